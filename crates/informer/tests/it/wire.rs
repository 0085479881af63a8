//! What becomes of the bytes of a server: every object that can be used, and a word on each that cannot.

use std::{borrow::Cow, thread};

use crate::support::canned::{Canned, events, lines, list, watch};
use informer::{
    Object,
    source::{KubeListWatch, ListItem, ListOptions, ListWatch, SourceError, WatchItem, WireOptions},
};
use informer_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, api::DynamicObject, core::ApiResource};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// A pod of which only the `spec` is of interest.
#[derive(Debug, Clone, Deserialize)]
struct Slim<S> {
    metadata: ObjectMeta,
    #[serde(bound(deserialize = "S: DeserializeOwned"))]
    spec: S,
    #[serde(default)]
    status: u8,
}

impl<S> Resource for Slim<S> {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        "Pod".into()
    }
    fn group(_: &()) -> Cow<'_, str> {
        "".into()
    }
    fn version(_: &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural(_: &()) -> Cow<'_, str> {
        "pods".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

type Any = Slim<Value>;

fn mk_list(items: &[String]) -> String {
    let items = items.join(",");
    format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{items}]}}"#
    )
}

fn mk_event(change: &str, object: &str) -> String {
    format!("{{\"type\":\"{change}\",\"object\":{object}}}\n")
}

fn mk_item(name: &str, spec: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","namespace":"shop","resourceVersion":"7"}},"spec":{spec}}}"#)
}

/// An object that is nested so deep, by arrays and objects in turn.
fn mk_deep(name: &str, depth: usize) -> String {
    let mut spec = String::new();
    for level in 1..depth {
        spec += if level % 2 == 0 { "[" } else { r#"{"a":"# };
    }
    spec += "1";
    for level in (1..depth).rev() {
        spec += if level % 2 == 0 { "]" } else { "}" };
    }
    mk_item(name, &spec)
}

async fn list_of<K>(body: impl Into<Vec<u8>>) -> (Vec<ListItem<K>>, Option<SourceError>)
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    list(&KubeListWatch::<K>::all(Canned::json(body).serve().client())).await
}

async fn watch_of<K>(body: impl Into<Vec<u8>>) -> (Vec<WatchItem<K>>, Option<SourceError>)
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    watch(&KubeListWatch::<K>::all(Canned::json(body).serve().client()), ListOptions::default()).await
}

/// A server with so many config maps.
fn mk_server(maps: usize) -> ApiServer {
    let server = ApiServer::builder().seed(1).build();
    for map in 0..maps {
        server.put(mk_map(&format!("map-{map:03}"), json!({ "a": "\u{e9}\"}]" }))).expect("written");
    }
    server
}

fn mk_map(name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
}

fn maps_of(server: &ApiServer) -> KubeListWatch<ConfigMap> {
    // What is no object of its kind has no protobuf form.
    KubeListWatch::all(server.client()).in_namespace("default").wire(WireOptions::default().json())
}

/// A watch of all that there is, which the server ends by itself.
fn from_start() -> ListOptions {
    let timeout = Some(std::time::Duration::from_secs(1));
    ListOptions { resource_version: "1".into(), timeout, ..ListOptions::default() }
}

#[tokio::test]
async fn c09_ten_bad_objects_of_a_thousand_are_told_by_name_and_spoil_nothing() {
    let server = mk_server(1_000);
    for bad in 0..10 {
        server.put(mk_map(&format!("map-{:03}", bad * 99), json!({ "a": [bad] }))).expect("written");
    }
    let (items, error) = list(&maps_of(&server)).await;
    assert_eq!(error, None);
    let mut counts = [0; 3];
    for item in &items {
        match item {
            ListItem::Object(_) => counts[0] += 1,
            ListItem::Unusable(unusable) => {
                counts[1] += 1;
                let key = unusable.key.as_ref().expect("a key");
                assert_eq!((key.namespace(), key.as_str()), (Some("default"), unusable.name.as_str()));
                assert!(unusable.version.is_decimal());
                assert!(unusable.error.starts_with("data.a: invalid type: sequence"), "{}", unusable.error);
            }
            ListItem::End(_) => counts[2] += 1,
        }
    }
    assert_eq!(counts, [990, 10, 1]);
}

#[tokio::test(start_paused = true)]
async fn f13_a_bad_object_in_a_watch_is_told_by_name_and_the_watch_goes_on() {
    let server = mk_server(1);
    server.put(mk_map("bad", json!("text"))).expect("written");
    server.put(mk_map("good", json!({}))).expect("written");
    let (items, error) = watch(&maps_of(&server), from_start()).await;
    let names: Vec<String> =
        events(&items).iter().map(|line| line.split('@').next().unwrap().to_owned()).collect();
    assert_eq!(names, ["Added default/map-000", "Added ! default/bad", "Added default/good"]);
    assert_eq!(error, None);
}

#[tokio::test]
async fn f13_what_has_no_name_or_is_no_object_is_told_as_what_it_is() {
    let body = mk_list(&[
        "7".into(),
        r#"{"metadata":{}}"#.into(),
        r#"{"metadata":{"name":"a/b","namespace":"c"},"spec":1}"#.into(),
        r#"{"metadata":{"name":"gone"},"spec":tru}"#.into(),
        r#"{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"},"spec":1}"#.into(),
        mk_item("good", "1"),
    ]);
    let (items, error) = list_of::<Any>(body).await;
    assert_eq!(
        lines(&items),
        [
            "! an object without a name that begins with \"7\"",
            "! an object without a name that begins with \"{\\\"metadata\\\":{}}\"",
            "! c/a/b",
            "! gone",
            "! n1",
            "shop/good@7",
            "end 9"
        ]
    );
    let ListItem::Unusable(node) = &items[4] else { panic!("{items:?}") };
    assert_eq!(node.error, "Node (v1) in a list of Pod (v1)");
    assert_eq!(error, None);
}

#[tokio::test]
async fn f14_deep_objects_decode_beside_their_neighbours_and_too_deep_ones_are_told() {
    let depths = [3, 127, 128, 200, 9_990, 10_000, 10_001, 200_000];
    let items: Vec<String> = depths
        .iter()
        .flat_map(|depth| [mk_deep(&format!("d{depth}"), *depth), mk_item("good", "1")])
        .collect();
    let (seen, error) = list_of::<Any>(mk_list(&items)).await;
    let expected = depths.iter().flat_map(|depth| {
        let mark = if *depth > 10_000 { format!("! shop/d{depth}") } else { format!("shop/d{depth}@7") };
        [mark, "shop/good@7".to_owned()]
    });
    assert_eq!(lines(&seen), expected.chain(["end 9".to_owned()]).collect::<Vec<_>>());
    assert_eq!(error, None);

    let frames: String = depths.iter().map(|depth| mk_event("ADDED", &mk_deep("deep", *depth))).collect();
    let (seen, error) = watch_of::<Any>(frames).await;
    let lines = events(&seen);
    assert_eq!((&lines[..5], error), (&["Added shop/deep@7"; 5].map(str::to_owned)[..], None));
    // The event around it is a level, too.
    assert_eq!(lines[5..], ["Added ! shop/deep"; 3]);
}

#[tokio::test]
async fn f14_a_deep_object_is_copied_changed_and_dropped_on_any_stack() {
    let (items, _) = list_of::<Any>(mk_list(&[mk_deep("a", 9_990)])).await;
    let Some(ListItem::Object(object)) = items.into_iter().next() else { panic!("an object") };
    let held = object.clone();
    let small = |work: Box<dyn FnOnce() + Send>| {
        thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(work)
            .expect("a thread")
            .join()
            .expect("no overflow");
    };
    small(Box::new(move || {
        let change = |body: &mut Any| {
            body.status = 3;
            Ok::<(), ()>(())
        };
        let strip = |body: &mut Any| {
            body.spec = Value::Null;
            Ok::<(), ()>(())
        };
        let copy = object.modify(change).expect("changed");
        assert_eq!((copy.status, copy.wire_bytes() > 9_990), (3, true));
        let stripped = copy.modify(strip).expect("changed");
        drop(stripped);
    }));
    assert_eq!(held.status, 0);
    small(Box::new(move || drop(held)));
}

#[tokio::test]
async fn f14_deep_objects_that_fail_half_way_or_are_buffered_overflow_nothing() {
    let half = mk_deep("half", 9_990).replacen(r#""spec":"#, r#""status":256,"spec":"#, 1);
    let late = mk_deep("late", 9_990);
    let late = format!(r#"{},"status":"x"}}"#, &late[..late.len() - 1]);
    let (items, _) = list_of::<Any>(mk_list(&[half, late, mk_item("good", "1")])).await;
    assert_eq!(lines(&items), ["! shop/half", "! shop/late", "shop/good@7", "end 9"]);

    let server = Canned::json(mk_list(&[mk_deep("a", 9_990), mk_deep("b", 10_001)])).serve();
    let kind = ApiResource::erase::<Pod>(&());
    let (items, _) = list(&KubeListWatch::<DynamicObject>::of_kind(server.client(), kind)).await;
    assert_eq!(lines(&items), ["shop/a@7", "! shop/b", "end 9"]);
}

#[tokio::test]
async fn f15_large_objects_come_one_by_one_and_one_over_the_limit_is_told_by_name() {
    let large = |name: &str, size: usize| mk_item(name, &format!("\"{}\"", "x".repeat(size)));
    let mut items: Vec<String> = (0..20).map(|_| large("large", 1_500_000)).collect();
    items.push(large("over", 17 << 20));
    items.push(mk_item("good", "1"));
    let (seen, error) = list_of::<Any>(mk_list(&items)).await;
    let mut expected = vec!["shop/large@7"; 20];
    expected.extend(["! shop/over", "shop/good@7", "end 9"]);
    assert_eq!((lines(&seen), error), (expected.iter().map(ToString::to_string).collect(), None));
    let ListItem::Object(object) = &seen[0] else { panic!("an object") };
    assert_eq!(object.wire_bytes(), items[0].len());
}

#[tokio::test]
async fn f21_a_list_cut_at_any_byte_gives_what_came_before_and_is_broken() {
    let server = mk_server(3);
    let (whole_list, _) = list(&maps_of(&server)).await;
    let whole_list = lines(&whole_list);
    let mut seen = 0;
    for cut in 0.. {
        let id = server.faults().add(Rule::new(Fault::CutAfter(cut)).verb(Verb::List));
        let (items, error) = list(&maps_of(&server)).await;
        server.faults().remove(id);
        if error.is_none() {
            assert_eq!(lines(&items), whole_list);
            break;
        }
        assert!(matches!(error, Some(SourceError::Broken(_))), "cut after {cut}: {error:?}");
        assert_eq!(lines(&items), whole_list[..items.len()], "cut after {cut}");
        assert!(items.len() >= seen && items.len() < whole_list.len());
        seen = items.len();
    }
    assert_eq!(seen, 3);
}

#[tokio::test(start_paused = true)]
async fn f21_a_watch_cut_at_any_byte_gives_what_came_before_and_is_broken() {
    let server = mk_server(2);
    let (whole, error) = watch(&maps_of(&server), from_start()).await;
    assert_eq!((whole.len(), error), (2, None));
    let mut seen = 0;
    for cut in 0.. {
        let id = server.faults().add(Rule::new(Fault::CutAfter(cut)).verb(Verb::Watch));
        let (items, error) = watch(&maps_of(&server), from_start()).await;
        server.faults().remove(id);
        if error.is_none() {
            break;
        }
        assert!(matches!(error, Some(SourceError::Broken(_))), "cut after {cut}: {error:?}");
        assert!(items.len() >= seen);
        assert_eq!(events(&items), events(&whole)[..items.len()]);
        seen = items.len();
    }
    assert_eq!(seen, 2);
}

#[tokio::test]
async fn f21_an_answer_that_ends_early_without_an_error_is_broken_too() {
    let body = mk_list(&[mk_item("a", "1"), mk_item("b", "1")]);
    for cut in 0..body.len() {
        let (items, error) = list_of::<Any>(&body.as_bytes()[..cut]).await;
        assert!(matches!(error, Some(SourceError::Broken(_))), "cut after {cut}: {error:?}");
        assert!(items.iter().all(|item| matches!(item, ListItem::Object(_))));
    }
    let event = mk_event("ADDED", &mk_item("a", "1"));
    for cut in 1..event.trim_end().len() {
        let (items, error) = watch_of::<Any>(&event.as_bytes()[..cut]).await;
        assert!(
            items.is_empty() && matches!(error, Some(SourceError::Broken(_))),
            "cut after {cut}: {error:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn f22_and_f30_one_byte_at_a_time_or_gzip_of_many_members_says_the_same() {
    let server = mk_server(300);
    let (plain, _) = list(&maps_of(&server)).await;
    let (plain_events, _) = watch(&maps_of(&server), from_start()).await;
    assert_eq!((plain.len(), plain_events.len()), (301, 300));
    for faults in [vec![Fault::OneByteAtATime], vec![Fault::Gzip], vec![Fault::Gzip, Fault::OneByteAtATime]] {
        for fault in faults {
            server.faults().add(Rule::new(fault));
        }
        let (items, error) = list(&maps_of(&server)).await;
        assert_eq!((lines(&items), error), (lines(&plain), None));
        let (items, error) = watch(&maps_of(&server), from_start()).await;
        assert_eq!((events(&items), error), (events(&plain_events), None));
        server.faults().clear();
    }
}

#[tokio::test]
async fn f22_empty_keep_alives_are_nothing_and_managed_fields_do_not_come_with_events() {
    let event = r#"{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a",
        "managedFields":[{"manager":"somebody"}],"namespace":"shop","resourceVersion":"7"}}}"#;
    let (items, error) = watch_of::<ConfigMap>(format!("\n\n \r\n{event}\n\n\n{event}\n \n")).await;
    assert_eq!((items.len(), error), (2, None));
    for item in items {
        let WatchItem::Object(_, object) = item else { panic!("{item:?}") };
        assert_eq!((object.key().as_str(), &object.metadata.managed_fields), ("shop/a", &None));
    }
}

#[tokio::test(start_paused = true)]
async fn f30_gzip_cut_in_the_middle_of_a_member_is_broken_after_what_came() {
    let server = mk_server(3);
    server.faults().add(Rule::new(Fault::Gzip));
    let mut seen = 0;
    for cut in 0.. {
        let id = server.faults().add(Rule::new(Fault::CutAfter(cut)));
        let (items, error) = watch(&maps_of(&server), from_start()).await;
        let (_, list_error) = list(&maps_of(&server)).await;
        server.faults().remove(id);
        if error.is_none() {
            break;
        }
        assert!(matches!(error, Some(SourceError::Broken(_))), "cut after {cut}: {error:?}");
        assert!(list_error.is_none_or(|error| matches!(error, SourceError::Broken(_))));
        assert!(items.len() >= seen);
        seen = items.len();
    }
    assert_eq!(seen, 3);
}

#[tokio::test]
async fn f23_what_is_no_list_is_malformed_and_the_error_shows_it() {
    let html = "<html>\u{1}<body>It works!</body></html>";
    for (answer, shown) in [
        (Canned::json(html), "begins with \"<html>\\u{1}<body>"),
        (Canned::new(200, html).header("content-type", "text/html; charset=utf-8"), "text/html"),
        (Canned::json(b"\xff\xfe\x00garbage".to_vec()), "unexpected `\\xff` at byte 0"),
        (Canned::json("[1,2]"), "unexpected `[` at byte 0"),
        (Canned::json(r#"{"message":"hello"}"#), "without a kind: \"{\\\"message\\\""),
        (
            Canned::json(r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}"#),
            "Table (meta.k8s.io/v1)",
        ),
        (Canned::json(r#"{"kind":"Status","apiVersion":"v1","status":"Failure"}"#), "Status (v1)"),
        (Canned::json(r#"{"kind":"NodeList","apiVersion":"v1","items":[]}"#), "NodeList (v1)"),
        (
            Canned::json(r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[]}"#),
            "PartialObjectMetadataList",
        ),
        (Canned::json(r#"{"kind":"PodList","apiVersion":"v1"}{}"#), "nothing after the list"),
        (Canned::new(302, "moved").header("location", "/"), "HTTP code 302"),
    ] {
        let (items, error) = list(&KubeListWatch::<Pod>::all(answer.serve().client())).await;
        let Some(SourceError::Malformed(text)) = error else { panic!("{error:?} for {shown}") };
        assert!(items.is_empty() && text.contains(shown), "{text}");
        assert!(text.len() < 400 && !text.chars().any(char::is_control), "{text}");
    }
    for accepted in
        [r#"{"kind":"List","apiVersion":"v1"}"#, r#"{"items":null,"apiVersion":"v1","kind":"PodList"}"#]
    {
        assert_eq!(list_of::<Pod>(accepted).await.1, None, "{accepted}");
    }
}

#[tokio::test]
async fn f23_in_a_watch_garbage_is_malformed_and_foreign_things_are_named() {
    let error = |body: &'static str| async move { watch_of::<Any>(body).await.1 };
    for garbage in ["<html></html>", "{\"type\" \"ADDED\"}", "7", "]"] {
        assert!(matches!(error(garbage).await, Some(SourceError::Malformed(_))), "{garbage}");
    }
    let frames = [
        mk_event("ADDED", r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[]}"#),
        mk_event("ADDED", r#"{"kind":"Pod","apiVersion":"v2","metadata":{"name":"a"}}"#),
        mk_event("MODIFIED", r#"{"kind":"Pod","apiVersion":"v1"}"#),
        mk_event("DELETED", "null"),
        mk_event("SYNC", &mk_item("a", "1")),
        r#"{"object":{}}"#.to_owned(),
        mk_event("BOOKMARK", r#"{"kind":"Pod","apiVersion":"v1","metadata":{}}"#),
        mk_event("DELETED", &mk_item("good", "1")),
    ];
    let (items, error) = watch_of::<Any>(frames.concat()).await;
    assert_eq!(
        events(&items),
        [
            "Foreign ADDED of Table (meta.k8s.io/v1) in a watch of Pod (v1)",
            "Foreign ADDED of Pod (v2) in a watch of Pod (v1)",
            "Foreign MODIFIED of something without metadata: \"{\\\"kind\\\":\\\"Pod\\\",\\\"apiVersion\\\":\\\"v1\\\"}\"",
            "Foreign DELETED of something without metadata: \"null\"",
            "Foreign an event of unknown type \"SYNC\"",
            "Foreign an event without a type: \"{\\\"object\\\":{}}\"",
            "Foreign BOOKMARK without a version",
            "Deleted shop/good@7",
        ]
    );
    assert_eq!(error, None);
}

#[tokio::test]
async fn c03_only_the_exact_annotation_closes_the_initial_events() {
    let bookmark = |annotations: &str| {
        let metadata = format!(r#"{{"resourceVersion":"5","annotations":{annotations}}}"#);
        format!(r#"{{"object":{{"kind":"Pod","apiVersion":"v1","metadata":{metadata}}},"type":"BOOKMARK"}}"#)
    };
    let values = ["\"true\"", "\"True\"", "true", "\"1\"", "[]"];
    let mut body: String =
        values.iter().map(|value| bookmark(&format!(r#"{{"k8s.io/initial-events-end":{value}}}"#))).collect();
    body += &bookmark("null");
    let (items, error) = watch_of::<Any>(body).await;
    assert_eq!((events(&items)[0].as_str(), error), ("Bookmark 5 initial", None));
    assert_eq!(events(&items)[1..], ["Bookmark 5"; 5]);
}

#[tokio::test]
async fn c05_an_error_in_the_stream_is_the_servers_status_or_shows_what_came() {
    let expired = r#"{"kind":"Status","apiVersion":"v1","reason":"Expired","code":410,"message":"too old"}"#;
    let odd = format!(r#"{{"kind":"Odd","text":"{}"}}"#, "x".repeat(5_000));
    let (items, _) = watch_of::<Any>(mk_event("ERROR", expired) + &mk_event("ERROR", &odd)).await;
    let [WatchItem::Error(expired), WatchItem::Error(odd)] = &items[..] else { panic!("{items:?}") };
    assert!(expired.needs_relist() && expired.code == 410);
    assert_eq!(odd.code, 500);
    assert!(odd.to_string().contains("Odd") && format!("{odd:?}").len() < 3_000);
}

#[tokio::test]
async fn managed_fields_reach_nobody_who_did_not_ask() {
    let pod = |fields: &str| {
        format!(r#"{{"metadata":{{"name":"a",{fields}"namespace":"shop","resourceVersion":"7"}},"spec":1}}"#)
    };
    let managed = r#""managedFields":[{"manager":"m","fieldsV1":{"f:a":{"f:b":{}}}}],"#;
    let body = mk_list(&[pod(managed), pod(&managed.repeat(2)), pod(r#""managed\u0046ields":[],"#)]);
    let server = Canned::json(body).serve();
    let managed_of = |items: &[ListItem<Any>]| -> Vec<usize> {
        let objects = items.iter().filter_map(|item| match item {
            ListItem::Object(object) => Some(object),
            _ => None,
        });
        objects.map(|object| object.metadata.managed_fields.as_ref().map_or(99, Vec::len)).collect()
    };
    let (items, _) = list(&KubeListWatch::<Any>::all(server.client())).await;
    assert_eq!(managed_of(&items), [99; 3]);
    let (items, _) = list(&KubeListWatch::<Any>::all(server.client()).keep_managed_fields()).await;
    assert_eq!(managed_of(&items)[0], 1);
}

#[tokio::test]
async fn a_kind_of_few_fields_decodes_only_those() {
    #[derive(Debug, Clone, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Placed {
        node_name: String,
    }
    let item = mk_item("a", r#"{"containers":"whatever","nodeName":"n\u0031","x":[{}]}"#);
    let (items, error) = list_of::<Slim<Placed>>(mk_list(&[item])).await;
    let Some(ListItem::Object(object)) = items.first() else { panic!("{error:?}") };
    let object: &Object<Slim<Placed>> = object;
    assert_eq!(object.spec.node_name, "n1");
}

#[tokio::test]
async fn a_list_of_a_custom_resource_may_have_any_name() {
    let kind = ApiResource {
        group: "example.com".into(),
        version: "v1".into(),
        api_version: "example.com/v1".into(),
        kind: "Site".into(),
        plural: "sites".into(),
    };
    let item = r#"{"kind":"Site","apiVersion":"example.com/v1","metadata":{"name":"a"}}"#;
    for (list_kind, api_version, good) in [
        ("SiteList", "example.com/v1", true),
        ("Sites", "example.com/v1", true),
        ("Table", "meta.k8s.io/v1", false),
    ] {
        let body = format!(r#"{{"items":[{item}],"kind":"{list_kind}","apiVersion":"{api_version}"}}"#);
        let source =
            KubeListWatch::<DynamicObject>::of_kind(Canned::json(body).serve().client(), kind.clone());
        let (items, error) = list(&source).await;
        assert_eq!((items.len(), error.is_none()), (1 + usize::from(good), good), "{error:?}");
        assert_eq!(ListWatch::namespace(&source), None);
    }
}

#[tokio::test]
async fn f23_a_list_where_a_watch_was_asked_for_is_malformed_and_the_error_says_so() {
    let large = mk_item("a", &format!(r#"{{"text":"{}"}}"#, "x".repeat(40 << 20)));
    for body in [mk_list(&[]), mk_list(&[mk_item("a", "{}")]), mk_list(&[large])] {
        let (items, error) = watch_of::<Pod>(body).await;
        assert!(items.is_empty(), "{:?}", events(&items));
        let Some(SourceError::Malformed(words)) = error else { panic!("{error:?}") };
        assert!(words.contains("a list (PodList) where a watch was asked for"), "{words}");
    }
}

/// Something that panics at objects with a thorn.
#[derive(Debug, Clone, Deserialize)]
struct Thorny {
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "without_thorn")]
    spec: Value,
}

fn without_thorn<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let spec = Value::deserialize(deserializer)?;
    assert!(spec.get("thorn").is_none(), "a thorn");
    Ok(spec)
}

informer::projection!(Thorny of Pod);

#[tokio::test]
async fn c09_a_type_that_panics_at_an_object_costs_that_object_and_no_more() {
    let (good, bad) = (mk_item("a", "{}"), mk_item("b", r#"{"thorn":1}"#));
    let (items, error) = list_of::<Thorny>(mk_list(&[bad.clone(), good.clone()])).await;
    assert_eq!((lines(&items).len(), error), (3, None));
    let ListItem::Unusable(unusable) = &items[0] else { panic!("{:?}", lines(&items)) };
    assert!(unusable.key.is_some() && unusable.error.contains("panicked: a thorn"), "{unusable:?}");
    assert!(matches!(&items[1], ListItem::Object(object) if object.spec.is_object()));
    let (items, error) = watch_of::<Thorny>(mk_event("ADDED", &bad) + &mk_event("ADDED", &good)).await;
    assert_eq!((events(&items).len(), error), (2, None));
    assert!(matches!(&items[0], WatchItem::Unusable(..)), "{:?}", events(&items));
}

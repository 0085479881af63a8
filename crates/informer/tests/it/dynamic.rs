//! Objects of kinds that are known only at run time.

use std::{any::type_name, thread};

use crate::support::canned::{Canned, lines, list};
use informer::{
    DynamicObject,
    source::{KubeListWatch, ListItem},
};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Api, Resource, api::PostParams, core::ApiResource};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, Visitor},
    forward_to_deserialize_any,
};
use serde_json::{Map, Value, json};

fn mk(object: &Value) -> DynamicObject {
    serde_json::from_str(&object.to_string()).expect("an object")
}

/// The value that is nested so deep, by arrays alone.
fn mk_deep(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

/// Runs on a stack that is too small for anything deep.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(128 << 10).spawn(work).expect("a thread").join().expect("no overflow");
}

#[test]
fn any_object_comes_back_as_it_was() {
    for object in [
        json!({ "apiVersion": "v1", "kind": "A", "metadata": { "name": "a", "labels": { "b": "c" } }, "spec": [1, null] }),
        json!({ "kind": "Alone", "metadata": {} }),
        json!({ "metadata": { "annotations": {} }, "": "", "data": { "kind": 1, "metadata": "2" }, "status": 1.5 }),
    ] {
        assert_eq!(serde_json::to_value(mk(&object)).expect("JSON"), object);
    }
    let null = mk(&json!({ "kind": null, "metadata": null, "spec": null }));
    assert_eq!(serde_json::to_value(null).expect("JSON"), json!({ "metadata": {}, "spec": null }));
    let missing = mk(&json!({}));
    assert_eq!((missing.meta(), missing.data.len()), (&ObjectMeta::default(), 0));
}

#[test]
fn what_every_object_has_comes_once_and_is_not_among_the_data() {
    let object = mk(&json!({ "apiVersion": "v1", "kind": "A", "metadata": { "name": "a" }, "spec": {} }));
    assert_eq!(object.data.keys().collect::<Vec<_>>(), ["spec"]);
    for (twice, name) in [
        (r#"{"kind":"A","kind":"A"}"#, "kind"),
        (r#"{"apiVersion":null,"apiVersion":"v1"}"#, "apiVersion"),
        (r#"{"metadata":{},"spec":1,"metadata":{}}"#, "metadata"),
    ] {
        let error = serde_json::from_str::<DynamicObject>(twice).expect_err("twice");
        assert!(error.to_string().starts_with(&format!("duplicate field `{name}`")), "{error}");
    }
    let last: DynamicObject = serde_json::from_str(r#"{"spec":1,"spec":2}"#).expect("the last one counts");
    assert_eq!(last.data["spec"], 2);
    let forged = DynamicObject { data: Map::from_iter([("kind".to_owned(), json!("B"))]), ..object };
    assert_eq!(serde_json::to_value(&forged).expect("JSON")["kind"], "A");
    assert_eq!(DynamicObject::from(kube::core::DynamicObject::from(forged)).data, Map::new());
}

#[test]
fn what_is_no_object_is_an_error_that_says_so() {
    for (text, words) in [
        ("7", "invalid type: integer `7`, expected an object of Kubernetes"),
        ("[]", "expected an object of Kubernetes"),
        (r#"{"kind":7}"#, "expected a string"),
        (r#"{"metadata":"a"}"#, "expected"),
        (r#"{"spec":"#, "EOF"),
    ] {
        let error = serde_json::from_str::<DynamicObject>(text).expect_err(text);
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_pointer_leads_to_a_value_and_nowhere_else() {
    let object =
        mk(&json!({ "metadata": { "name": "a" }, "spec": { "a/b": [{ "~": 1 }] }, "a~/b": 2, "": 3 }));
    for (pointer, value) in [
        ("/spec/a~1b/0/~0", Some(1)),
        ("/a~0~1b", Some(2)),
        ("/", Some(3)),
        ("", None),
        ("spec", None),
        ("/spec/a~1b/1/~0", None),
        ("/none/of/it", None),
        ("/metadata/name", None),
    ] {
        assert_eq!(object.pointer(pointer).and_then(Value::as_u64), value, "{pointer}");
    }
    assert_eq!(object.pointer("/spec"), Some(&object.data["spec"]));
}

#[test]
fn it_is_what_it_says_in_the_rust_type_of_its_kind() {
    let json = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "generation": 2 },
        "spec": { "replicas": 3, "selector": {}, "template": { "spec": { "containers": [] } } },
    });
    let typed: Deployment = mk(&json).try_parse().expect("a deployment");
    assert_eq!(typed, serde_json::from_value(json.clone()).expect("a deployment"));
    assert_eq!(mk(&json).try_parse::<Value>().expect("any JSON"), json);
    let error = mk(&json).try_parse::<ConfigMap>().expect_err("another kind");
    assert!(error.to_string().contains("expected v1"), "{error}");
    let error =
        mk(&json!({ "spec": { "replicas": "many" } })).try_parse::<Deployment>().expect_err("no number");
    assert!(error.to_string().contains("\"many\""), "{error}");
}

#[test]
fn it_becomes_what_kube_calls_a_dynamic_object_and_comes_back() {
    for json in [
        json!({ "apiVersion": "v1", "kind": "A", "metadata": { "name": "a" }, "spec": { "b": 1 } }),
        json!({ "metadata": { "name": "a" }, "data": {} }),
    ] {
        let kubes = kube::core::DynamicObject::from(mk(&json));
        assert_eq!(kubes, serde_json::from_value(json.clone()).expect("an object"));
        assert_eq!(DynamicObject::from(kubes), mk(&json));
    }
    let bare = kube::core::DynamicObject { types: None, metadata: ObjectMeta::default(), data: Value::Null };
    assert_eq!(DynamicObject::from(bare), DynamicObject::default());
}

#[test]
fn it_shows_whose_it_is_and_not_what_is_in_it() {
    let secret = mk(&json!({
        "apiVersion": "v1", "kind": "Secret", "data": { "password": "s3cret" },
        "metadata": { "name": "a", "namespace": "shop", "resourceVersion": "7" },
    }));
    assert_eq!(format!("{secret:?}"), "Secret shop/a@7");
    assert_eq!(format!("{:?}", DynamicObject::default()), "DynamicObject ?@?");
}

/// Three members, and for each value the types that are asked for: a `Value` to be kept, or something that buffers.
struct Recorder<'a> {
    members: std::vec::IntoIter<(&'static str, Value)>,
    value: Option<Value>,
    asked: &'a mut Vec<&'static str>,
}

fn asked_by<T: DeserializeOwned>() -> Vec<&'static str> {
    let mut asked = Vec::new();
    let members = vec![("metadata", json!({})), ("spec", json!({ "a": [1] })), ("status", json!(2))];
    let recorder = Recorder { members: members.into_iter(), value: None, asked: &mut asked };
    T::deserialize(recorder).expect("an object");
    asked
}

impl<'de> Deserializer<'de> for Recorder<'_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Recorder<'_> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Self::Error> {
        let Some((name, value)) = self.members.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(Value::from(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Self::Error> {
        self.asked.push(type_name::<V::Value>());
        seed.deserialize(self.value.take().ok_or_else(|| Error::custom("asked for twice"))?)
    }
}

#[test]
fn each_value_is_decoded_once_into_what_is_kept() {
    let value = type_name::<Value>();
    let asked = asked_by::<DynamicObject>();
    assert_eq!(asked, [type_name::<Option<ObjectMeta>>(), value, value]);
    assert!(!asked_by::<kube::core::DynamicObject>().contains(&value), "this is what buffering looks like");
}

#[tokio::test]
async fn f14_deep_objects_decode_and_are_copied_parsed_and_dropped_on_any_stack() {
    let item = |name: &str, depth| {
        format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"7"}},"spec":{}}}"#, mk_deep(depth))
    };
    let items = [item("a", 9_000), item("b", 9_999), item("c", 10_000), item("d", 1)].join(",");
    let body = format!(r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{}},"items":[{items}]}}"#);
    let kind = ApiResource::erase::<ConfigMap>(&());
    let server = Canned::json(body).serve();
    let (items, error) = list(&KubeListWatch::<DynamicObject>::of_kind(server.client(), kind)).await;
    assert_eq!(
        (lines(&items), error),
        (["a@7", "b@7", "! c", "d@7", "end "].map(str::to_owned).to_vec(), None)
    );
    let Some(ListItem::Object(object)) = items.into_iter().nth(1) else { panic!("an object") };
    on_a_small_stack(move || {
        #[derive(Deserialize)]
        struct Whole {
            spec: Value,
        }
        let held = object.clone();
        let map: ConfigMap = object.try_parse().expect("the spec is passed over");
        assert_eq!(map.metadata.name.as_deref(), Some("b"));
        let whole: Whole = object.try_parse().expect("the whole spec");
        // Not an informer's any more: who takes it out must have the stack for it.
        thread::Builder::new()
            .stack_size(64 << 20)
            .spawn(move || drop(whole.spec))
            .expect("a thread")
            .join()
            .unwrap();
        let strip = |body: &mut DynamicObject| {
            body.data.clear();
            Ok::<(), ()>(())
        };
        let stripped = object.modify(strip).expect("changed");
        assert_eq!((stripped.data.len(), held.data.len()), (0, 1));
    });
}

#[tokio::test]
async fn every_object_says_what_it_is_also_where_a_list_leaves_it_to_the_list() {
    let items =
        r#"{"metadata":{"name":"a"}}, { "metadata":{"managedFields":[{}],"name":"b"},"data":{"kind":"c"}}"#;
    let said = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"d"}}"#;
    let body = format!(r#"{{"kind":"ConfigMapList","apiVersion":"v1","items":[{items},{said}, {{}}]}}"#);
    let server = Canned::json(body).serve();
    let kind = ApiResource::erase::<ConfigMap>(&());
    let (items, error) = list(&KubeListWatch::<DynamicObject>::of_kind(server.client(), kind)).await;
    assert!(error.is_none() && items.len() == 5, "{error:?}");
    for (item, name) in items.iter().zip(["a", "b", "d"]) {
        let ListItem::Object(object) = item else { panic!("an object") };
        let said = (object.api_version.as_deref(), object.kind.as_deref(), object.key().name());
        assert_eq!(said, (Some("v1"), Some("ConfigMap"), name));
    }
    let ListItem::Unusable(empty) = &items[3] else { panic!("without a name") };
    assert!(empty.error.contains("no metadata.name"), "{}", empty.error);
}

#[tokio::test]
async fn a_client_writes_and_reads_it() {
    let server = informer_apiserver::ApiServer::builder().seed(1).build();
    let maps: Api<DynamicObject> =
        Api::namespaced_with(server.client(), "default", &ApiResource::erase::<ConfigMap>(&()));
    let map = mk(
        &json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "b": "c" } }),
    );
    let written = maps.create(&PostParams::default(), &map).await.expect("written");
    assert_eq!(written.pointer("/data/b"), Some(&json!("c")));
    assert_eq!(maps.get("a").await.expect("read"), written);
}

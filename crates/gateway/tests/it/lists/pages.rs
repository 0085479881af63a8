//! Pages: one list, read in parts, from one moment.

use std::collections::BTreeMap;

use informer_testing::{number, seed};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use crate::support::*;

const PODS: &str = "/core/v1/pods";

/// How many lists are read while the cluster changes, unless `INFORMER_HISTORIES` says otherwise.
const LISTS: u64 = 150;

/// Pods that `size` and `name` tell apart.
fn mk_sized(n: usize, size: u32) -> Value {
    let mut pod = mk_pod(
        "default",
        &format!("pod-{n}"),
        json!({"parity": if n.is_multiple_of(2) { "even" } else { "odd" }}),
    );
    pod["spec"]["size"] = size.into();
    pod
}

/// Reads a list to its end. Before each further page `meanwhile` is called.
async fn read(
    stage: &Stage,
    path: &str,
    parameters: &[(&str, &str)],
    mut meanwhile: impl FnMut(),
) -> Vec<Value> {
    let (mut items, mut token, mut seen) = (Vec::new(), String::new(), None);
    loop {
        let page: Vec<_> = parameters.iter().copied().chain([("continue", token.as_str())]).collect();
        let answer = stage.ask(path, &page).await;
        let told =
            (answer.header("x-resource-version").to_owned(), answer.header("x-total-count").to_owned());
        assert_eq!(*seen.get_or_insert(told.clone()), told, "all pages are of one moment");
        items.extend(answer.items());
        token = answer.header("x-continue").to_owned();
        if token.is_empty() {
            assert_eq!(items.len().to_string(), told.1, "all that were counted came");
            return items;
        }
        meanwhile();
    }
}

#[tokio::test]
async fn pages_have_what_the_whole_list_has() {
    let stage = Stage::open(mk_demo(100)).await;
    for path in [PODS, "/api/v1/pods"] {
        let whole = stage.get(path).await.items();
        for limit in ["1", "7", "99", "100", "101"] {
            assert!(read(&stage, path, &[("limit", limit)], || ()).await == whole, "{path} limit={limit}");
        }
    }
    let all = stage.ask(PODS, &[("limit", "0")]).await;
    assert_eq!((all.items().len(), all.header("x-continue")), (100, ""), "0 is no limit");
    stage.close().await;
}

#[tokio::test]
async fn pages_never_drift_whatever_changes_meanwhile() {
    let seed = seed();
    println!("replay with INFORMER_SEED={seed}");
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let stage = Stage::inside(mk_server(), |builder| builder);
    let mut model: BTreeMap<usize, u32> = BTreeMap::new();
    for _ in 0..number("INFORMER_HISTORIES").unwrap_or(LISTS) {
        change(&stage, &mut model, &mut random);
        let version = stage.put([mk_sized(0, 0)]);
        model.insert(0, 0);
        let limit = random.random_range(1..12).to_string();
        let mut parameters = vec![("limit", limit.as_str()), ("minResourceVersion", version.as_str())];
        let mut expected: Vec<(u32, String)> =
            model.iter().map(|(n, size)| (*size, format!("pod-{n}"))).collect();
        if random.random() {
            parameters.push(("labelSelector", "parity=even"));
            expected.retain(|(_, name)| name.ends_with(['0', '2', '4', '6', '8']));
        }
        if random.random() {
            parameters.push(("sort", "-spec.size,metadata.name"));
            expected.sort_by(|(one, a), (other, b)| other.cmp(one).then(a.cmp(b)));
        } else {
            expected.sort_by(|(_, a), (_, b)| a.cmp(b));
        }
        let items = read(&stage, PODS, &parameters, || change(&stage, &mut model, &mut random)).await;
        let found: Vec<(u32, String)> = items
            .iter()
            .map(|item| {
                let size =
                    item["spec"]["size"].as_u64().and_then(|size| size.try_into().ok()).expect("a size");
                (size, item["metadata"]["name"].as_str().expect("a name").to_owned())
            })
            .collect();
        assert_eq!(found, expected, "{parameters:?}");
    }
}

/// A few pods are added, changed and deleted.
fn change(stage: &Stage, model: &mut BTreeMap<usize, u32>, random: &mut Pcg64Mcg) {
    for _ in 0..random.random_range(0..8) {
        let (n, size) = (random.random_range(0..40), random.random_range(0..10));
        if random.random_range(0..3) == 0 && model.remove(&n).is_some() {
            stage.discard("pods", &format!("default/pod-{n}"));
        } else {
            stage.put([mk_sized(n, size)]);
            model.insert(n, size);
        }
    }
}

#[tokio::test]
async fn a_page_can_be_read_again_and_with_another_limit() {
    let stage = Stage::open(mk_demo(10)).await;
    let whole = stage.get(PODS).await.names();
    let first = stage.get("/core/v1/pods?limit=3").await;
    let token = first.header("x-continue").to_owned();
    assert_eq!(first.ok()["continue"], token);
    for limit in ["2", "2", "5"] {
        let page = stage.ask(PODS, &[("limit", limit), ("continue", &token)]).await;
        let to = 3 + limit.parse::<usize>().unwrap();
        assert_eq!(page.names(), whole[3..to], "limit={limit}");
    }
    assert_eq!(
        stage.ask(PODS, &[("continue", &token)]).await.names(),
        whole[3..],
        "without a limit the rest"
    );
    stage.close().await;
}

#[tokio::test]
async fn kubernetes_pages_say_how_many_remain() {
    let stage = Stage::open(mk_demo(10)).await;
    let page = stage.get("/api/v1/pods?limit=4").await.ok();
    assert_eq!(
        (&page["metadata"]["remainingItemCount"], page["items"].as_array().unwrap().len()),
        (&json!(6), 4)
    );
    let token = page["metadata"]["continue"].as_str().unwrap();
    let last = stage.ask("/api/v1/pods", &[("limit", "6"), ("continue", token)]).await.ok();
    assert_eq!((last["metadata"].get("remainingItemCount"), last["metadata"].get("continue")), (None, None));
    assert_eq!(last["metadata"]["resourceVersion"], page["metadata"]["resourceVersion"]);
    stage.close().await;
}

#[tokio::test]
async fn a_token_belongs_to_one_question() {
    let stage = Stage::open(mk_demo(10)).await;
    let token = stage.get("/core/v1/pods?limit=3&sort=metadata.uid").await.header("x-continue").to_owned();
    let page = ("continue", token.as_str());
    for (path, parameters) in [
        (PODS, &[page][..]),
        (PODS, &[page, ("sort", "-metadata.uid")]),
        (PODS, &[page, ("sort", "metadata.uid"), ("labelSelector", "app=web")]),
        (PODS, &[page, ("sort", "metadata.uid"), ("namespace", "default")]),
        ("/core/v1/services", &[page, ("sort", "metadata.uid")]),
        ("/deploy", &[page, ("sort", "metadata.uid")]),
    ] {
        let message = stage.ask(path, parameters).await.says(400);
        assert!(message.contains("another query"), "{path} {parameters:?}: {message}");
    }
    let good = stage.ask(PODS, &[page, ("sort", "metadata.uid")]).await;
    assert_eq!(good.items().len(), 7, "who was refused has broken nothing");
    stage.close().await;
}

#[tokio::test]
async fn a_token_that_was_never_given_is_400_and_one_of_a_sorted_list_that_is_over_410() {
    let stage = Stage::open(mk_demo(10)).await;
    let sorted = ("sort", "metadata.uid");
    let token = stage.ask(PODS, &[("limit", "3"), sorted]).await.header("x-continue").to_owned();
    let (id, _) = token.split_once('.').unwrap();
    for bad in
        ["x", ".", "1", "1.", ".1", "g.1", "-1.-1", "1.99999999999999999999999999", "1.1.1", "\u{e9}.1"]
    {
        stage.ask(PODS, &[("continue", bad)]).await.says(400);
    }
    for beyond in [format!("{id}.11"), format!("{id}.{}", usize::MAX)] {
        stage.ask(PODS, &[("limit", "3"), ("continue", &beyond)]).await.says(400);
    }
    let again = [("continue", token.as_str()), sorted];
    assert_eq!(stage.ask(PODS, &again).await.items().len(), 7);
    let message = stage.ask(PODS, &again).await.says(410);
    assert!(message.contains("start again"), "{message}");
    let gone = stage.ask("/api/v1/pods", &again).await;
    gone.fails(410);
    assert_eq!(gone.json()["reason"], "Expired");
    stage.close().await;
}

#[tokio::test]
async fn a_list_that_is_no_longer_kept_goes_on_after_the_object_it_had_reached() {
    let stage = Stage::open(mk_demo(10)).await;
    let first = stage.get("/api/v1/pods?limit=4").await.ok();
    let version = first["metadata"]["resourceVersion"].clone();
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = names(&stage.get("/api/v1/pods").await.ok());
    // Somebody else begins more lists than are kept, as many as a hostile client likes.
    for _ in 0..300 {
        stage.get("/core/v1/pods?limit=1").await;
    }
    let mut token = first["metadata"]["continue"].as_str().map(str::to_owned);
    let mut read = names(&first);
    while let Some(next) = token {
        let page = stage.ask("/api/v1/pods", &[("limit", "4"), ("continue", &next)]).await.ok();
        assert_eq!(page["metadata"]["resourceVersion"], version, "to be watched from where it began");
        read.extend(names(&page));
        token = page["metadata"]["continue"].as_str().map(str::to_owned);
        stage.get("/core/v1/pods?limit=1").await;
    }
    assert_eq!(read, all, "no object twice, none left out");
    let odd = format!("{:032x}.{}.1.{}.a", 7, usize::MAX, "0".repeat(16));
    stage.ask("/api/v1/pods", &[("continue", &odd)]).await.fails(400);
    stage.close().await;
}

#[tokio::test]
async fn a_token_is_good_for_another_gateway_of_the_same_cluster() {
    let stage = Stage::open(mk_demo(10)).await;
    let query = &[("limit", "4"), ("namespace", "shop"), ("namespace", "logistics"), ("namespace", "media")];
    let all = stage.ask(PODS, &query[1..]).await.names();
    let first = stage.ask(PODS, query).await;
    let other = Stage::open(stage.server.clone()).await;
    let token = first.header("x-continue").to_owned();
    let rest = other.ask(PODS, &[&query[1..], &[("continue", token.as_str())]].concat()).await;
    assert_eq!([first.names(), rest.names()].concat(), all);
    assert_eq!(rest.header("x-total-count"), all.len().to_string());
    stage.close().await;
    other.close().await;
}

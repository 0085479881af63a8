//! Objects that cannot be read, are very deep or very large, and answers that are none.

use std::{collections::BTreeSet, time::Duration};

use informer::{
    KubeListWatch, Object, SharedInformer,
    model::{ObjectKey, Status},
    source::WireOptions,
};
use informer_apiserver::{
    ApiServer, Fault,
    Verb::{List, Watch},
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::cluster::{Cluster, Watched, over_seeds, until};

fn mk_map(name: &str, data: Value) -> Value {
    let metadata = json!({ "name": name, "namespace": "default" });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
}

/// Writes an object that is no config map, though it says so.
fn put_corrupt(server: &ApiServer, name: &str) {
    server.put(mk_map(name, json!(["not", "a", "map"]))).expect("written");
}

fn quarantined(watched: &Watched) -> Vec<String> {
    watched.informer.quarantined().into_iter().map(|one| one.name).collect()
}

async fn quarantines(watched: &Watched, names: &[&str]) {
    until(|| quarantined(watched) == names, || format!("{:?} instead of {names:?}", quarantined(watched)))
        .await;
}

#[test]
fn f13_one_object_that_does_not_decode_costs_that_object_and_no_more() {
    over_seeds(30, async |mut cluster| {
        // What is no object of its kind has no protobuf form.
        cluster.wire = WireOptions::default().json();
        // It is there from the beginning, or comes while the others are watched.
        put_corrupt(&cluster.server, "bad-0");
        let watched = cluster.synced().await;
        quarantines(&watched, &["default/bad-0"]).await;
        put_corrupt(&cluster.server, "bad-1");
        cluster.write(10);
        watched.converges(&cluster).await;
        quarantines(&watched, &["default/bad-0", "default/bad-1"]).await;
        assert!(watched.causes().is_empty(), "no list was repeated: {:?}", watched.problems());
        assert!(!watched.informer.health().is_healthy());

        // Their next good version, or their end, releases them; a list finds the same as the watch would.
        if cluster.chance() {
            cluster.fault(Fault::StreamError(Status::expired("too old")), &[Watch], |rule| rule.times(1));
        }
        cluster.server.put(mk_map("bad-0", json!({ "now": "good" }))).expect("written");
        cluster.discard(&"default/bad-1".parse().expect("a key"));
        quarantines(&watched, &[]).await;
        let good: ObjectKey = "default/bad-0".parse().expect("a key");
        until(|| watched.informer.store().get(&good).is_some(), || "it is not there".to_owned()).await;

        // One that was good stays in the cache as it was, until it is good again or gone.
        put_corrupt(&cluster.server, "bad-0");
        quarantines(&watched, &["default/bad-0"]).await;
        cluster.fault(Fault::StreamError(Status::expired("too old")), &[Watch], |rule| rule.times(1));
        cluster.write(10);
        watched.has_had("version expired").await;
        until(|| watched.informer.health().trouble().is_none(), || "in trouble".to_owned()).await;
        assert!(watched.informer.store().get(&good).is_some(), "it exists");
        cluster.discard(&good);
        quarantines(&watched, &[]).await;
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f13_ten_bad_objects_among_a_thousand_leave_nine_hundred_and_ninety() {
    over_seeds(4, async |mut cluster| {
        cluster.wire = WireOptions::default().json();
        for number in 0..1_000 {
            let name = format!("some-{number}");
            match number % 100 {
                37 => put_corrupt(&cluster.server, &name),
                _ => cluster.server.put(mk_map(&name, json!({ "a": "1" }))).expect("written"),
            }
        }
        let watched = cluster.watched();
        watched.informer.wait_until_synced(Duration::from_secs(60)).await.expect("synced");
        assert_eq!((watched.informer.store().len(), quarantined(&watched).len()), (990, 10));
        let health = watched.informer.health().to_string();
        assert!(health.contains("990 objects, 10 quarantined"), "{health}");
        watched.stop().await;
    });
}

fn mk_deep(name: &str, depth: usize) -> Value {
    let mut deep = json!(1);
    for level in 0..depth {
        deep = if level % 2 == 0 { json!([deep]) } else { json!({ "in": deep }) };
    }
    let mut map = mk_map(name, json!({ "a": "1" }));
    map["deep"] = deep;
    map
}

#[test]
fn f14_an_object_nested_deeper_than_a_hundred_and_twenty_eight_levels_is_like_any_other() {
    over_seeds(8, async |mut cluster| {
        cluster.server.put(mk_deep("deep-0", 129)).expect("written");
        let watched = cluster.watched();
        cluster.write(5);
        let depth = 130 + cluster.pick(0..870);
        cluster.server.put(mk_deep("deep-1", depth)).expect("written");
        for name in ["default/deep-0", "default/deep-1"] {
            let key: ObjectKey = name.parse().expect("a key");
            let there = || watched.informer.store().get(&key).is_some();
            until(there, || format!("{:?}", watched.informer.quarantined())).await;
        }
        assert_eq!(watched.informer.quarantined(), []);
        watched.stop().await;
    });
}

/// A config map as large as etcd takes them.
fn mk_large(name: &str, letter: &str) -> Value {
    mk_map(name, json!({ "letters": letter.repeat(1_500_000) }))
}

#[test]
fn f15_objects_of_one_and_a_half_megabytes_come_by_list_and_by_watch() {
    over_seeds(4, async |cluster| {
        cluster.server.put(mk_large("large-0", "a")).expect("written");
        let watched = cluster.watched();
        watched.informer.wait_until_synced(Duration::from_secs(60)).await.expect("synced");
        cluster.server.put(mk_large("large-0", "b")).expect("written");
        cluster.server.put(mk_large("large-1", "c")).expect("written");
        let letters = |name: &str| {
            let map = watched.informer.store().get(&name.parse::<ObjectKey>().expect("a key"))?;
            let letters = map.data.as_ref()?.get("letters")?;
            Some((letters.chars().next()?, letters.len()))
        };
        let both = || (letters("default/large-0"), letters("default/large-1"));
        let wanted = (Some(('b', 1_500_000)), Some(('c', 1_500_000)));
        until(|| both() == wanted, || format!("{:?}", both())).await;
        watched.stop().await;
    });
}

#[test]
fn f15_a_list_of_two_hundred_of_them_is_taken_whole() {
    over_seeds(2, async |cluster| {
        for number in 0..200 {
            cluster.server.put(mk_large(&format!("large-{number}"), "x")).expect("written");
        }
        let watched = cluster.watched();
        until(|| watched.informer.store().len() == 200, || watched.informer.health().to_string()).await;
        assert_eq!(watched.causes(), [""; 0]);
        watched.stop().await;
    });
}

#[test]
fn f23_a_page_of_html_with_the_code_200_is_an_error_and_not_an_empty_cluster() {
    over_seeds(30, async |mut cluster| {
        let watched = cluster.synced().await;
        let (heard, cached) = (watched.handlers[0].events(), watched.cached());
        cluster.fault(Fault::Html, &[List, Watch], |rule| rule);
        cluster.end_watches();
        cluster.pause(Duration::from_secs(60)).await;
        watched.has_had("malformed answer").await;
        assert_eq!((watched.handlers[0].events(), watched.cached()), (heard, cached), "nothing is gone");
        let health = watched.informer.health().to_string();
        assert!(health.contains("text/html") && health.contains("Gateway"), "{health}");
        cluster.write(10);
        cluster.heal();
        watched.ends_well(&cluster).await;
    });
}

/// The handles of what the cache has.
fn handles(watched: &Watched) -> Vec<Object<ConfigMap>> {
    watched.informer.store().snapshot().iter().cloned().collect()
}

#[test]
fn f32_a_list_that_repeats_what_is_known_shares_it() {
    over_seeds(20, async |mut cluster| {
        let watched = cluster.synced().await;
        let before = handles(&watched);
        let heard = watched.handlers[0].events();
        relist(&mut cluster, &watched).await;
        for (before, after) in before.iter().zip(&handles(&watched)) {
            let changed = before.resource_version() != after.resource_version();
            assert!(
                before.key() == after.key() && (changed || before.ptr_eq(after)),
                "{before:?} is another one"
            );
        }
        assert_eq!(watched.handlers[0].events(), heard + 1, "only the change was told");
        watched.ends_well(&cluster).await;
    });
}

/// Changes one object, and the informer learns of it by a list.
async fn relist(cluster: &mut Cluster, watched: &Watched) {
    cluster.fault(Fault::StreamError(Status::expired("too old")), &[Watch], |rule| rule.times(1));
    let key = watched.cached().into_keys().next().expect("an object");
    cluster.put(&key);
    watched.has_had("version expired").await;
    watched.converges(cluster).await;
}

/// A config map that panics at what it does not like.
#[derive(Debug, Clone, Deserialize)]
struct Thorny {
    metadata: ObjectMeta,
    #[serde(rename = "data", deserialize_with = "without_thorn")]
    _data: (),
}

fn without_thorn<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let data = Value::deserialize(deserializer)?;
    assert!(data.get("thorn").is_none(), "a thorn, as planned");
    Ok(())
}

informer::projection!(Thorny of ConfigMap);

#[test]
fn f33_a_type_that_panics_at_some_objects_costs_these_and_no_more() {
    over_seeds(20, async |mut cluster| {
        let source = KubeListWatch::<Thorny>::all(cluster.server.client());
        let builder = SharedInformer::builder(source).streaming(cluster.chance()).seed(cluster.seed);
        let (informer, stop) = (builder.build().expect("built"), CancellationToken::new());
        let running = tokio::spawn({
            let (informer, stop) = (informer.clone(), stop.clone());
            async move { informer.run(stop).await }
        });
        let (mut good, mut bad) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..40 {
            let name = format!("map-{}", cluster.pick(0..8));
            let key = format!("default/{name}");
            good.remove(&key);
            bad.remove(&key);
            match cluster.pick(0..6) {
                0 => drop(cluster.discard(&key.parse().expect("a key"))),
                1 => {
                    cluster.server.put(mk_map(&name, json!({ "thorn": "1" }))).expect("written");
                    bad.insert(key);
                }
                _ => {
                    cluster.put_named(&name);
                    good.insert(key);
                }
            }
            if cluster.pick(0..6) == 0 {
                let fault = Fault::StreamError(Status::expired("too old"));
                cluster.fault(fault, &[Watch], |rule| rule.times(1));
            }
            cluster.pause(Duration::from_secs(5)).await;
        }
        // One that cannot be used may be in the cache as it was before.
        let cached = || {
            let snapshot = informer.store().snapshot();
            let keys = snapshot.iter().map(|object| object.key().to_string());
            keys.filter(|key| !bad.contains(key)).collect::<BTreeSet<_>>()
        };
        let unusable = || informer.quarantined().into_iter().map(|one| one.name).collect::<BTreeSet<_>>();
        let health = || informer.health().to_string();
        until(|| informer.has_synced() && cached() == good && unusable() == bad, health).await;
        assert!(informer.quarantined().iter().all(|one| one.error.contains("panicked: a thorn")));
        stop.cancel();
        running.await.expect("no panic").expect("it ran");
    });
}

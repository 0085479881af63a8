//! Stories of the store, each named after the promise that it tells.

use std::{panic, sync::Arc, time::Duration};

use crate::support::{Config, data_keys, key, mk, mk_labelled, mk_with, show};
use informer::{
    Event, Object,
    model::{ResourceVersion, Selector},
    queue::Replacement,
    store::{self, IndexError, LABEL_INDEX, NAMESPACE_INDEX, WaitError},
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};

fn selector(text: &str) -> Selector {
    text.parse().expect("a selector")
}

#[test]
fn c17_an_index_changes_with_the_object() {
    let (mut writer, store) = store::new::<ConfigMap>();
    let by_data = store.add_index("data", data_keys).unwrap();
    writer.write(|batch| batch.insert(mk_with("ns/a", 1, &[], &["x", "y"])));
    assert_eq!((show(&by_data.get("x")), show(&by_data.get("y"))), ("ns/a@1".into(), "ns/a@1".into()));
    writer.write(|batch| batch.insert(mk_with("ns/a", 2, &[], &["y", "z"])));
    assert_eq!(by_data.values(), ["y", "z"], "a value without objects vanishes");
    assert_eq!((by_data.get("x").len(), by_data.count("z")), (0, 1));
    writer.write(|batch| batch.remove(&key("ns/a")));
    assert!(by_data.values().is_empty());
}

#[test]
fn c17_what_indexes_take_grows_with_their_values_and_goes_with_them() {
    let (mut writer, store) = store::new::<ConfigMap>();
    assert_eq!(store.snapshot().index_bytes(), 0);
    let fill = |labels: &dyn Fn(usize) -> String| {
        let (mut writer, store) = store::new::<ConfigMap>();
        writer.write(|batch| {
            for number in 0..1_000 {
                batch.insert(mk_labelled(&format!("ns/map-{number}"), 1, &[("app", &labels(number))]));
            }
        });
        store.snapshot().index_bytes()
    };
    // Two values with all objects under them, four bytes for each; and a thousand labels of 64 letters.
    assert!((8_000..16_000).contains(&fill(&|_| "one".to_owned())), "{}", fill(&|_| "one".to_owned()));
    let each = fill(&|number| format!("{number:060}"));
    assert!((64_000..256_000).contains(&each), "{each}");
    store.add_index("data", data_keys).unwrap();
    writer.write(|batch| batch.insert(mk_with("ns/a", 1, &[("a", "b")], &["x", "y"])));
    assert!(store.snapshot().index_bytes() > 200);
    writer.write(|batch| batch.remove(&key("ns/a")));
    assert_eq!(store.snapshot().index_bytes(), 0);
}

#[test]
fn c17_unknown_and_conflicting_names_are_errors() {
    let (_writer, store) = store::new::<ConfigMap>();
    store.add_index("data", data_keys).unwrap();
    let unknown = store.snapshot().by_index("dota", "x").unwrap_err();
    assert_eq!(unknown.to_string(), r#"there is no index "dota"; the store has namespace, label, data"#);
    assert!(store.index("dota").is_err() && store.snapshot().index_values("dota").is_err());
    for taken in ["data", NAMESPACE_INDEX, LABEL_INDEX] {
        assert_eq!(
            store.add_index(taken, data_keys).err(),
            Some(IndexError::Conflict { name: taken.into() })
        );
    }
}

#[test]
fn c17_an_index_added_while_running_has_what_is_there() {
    let (mut writer, store) = store::new::<ConfigMap>();
    writer.write(|batch| batch.insert(mk_with("ns/a", 1, &[], &["x"])));
    let before = store.snapshot();
    let by_data = store.add_index("data", data_keys).unwrap();
    assert_eq!(show(&by_data.get("x")), "ns/a@1");
    assert!(before.by_index("data", "x").is_err(), "an older snapshot stays as it was");
    writer.write(|batch| batch.insert(mk_with("ns/b", 2, &[], &["x"])));
    assert_eq!(show(&by_data.get("x")), "ns/a@1 ns/b@2");
}

#[test]
fn c17_a_panicking_index_function_is_reported_and_does_no_harm() {
    let (mut writer, store) = store::new::<ConfigMap>();
    let by_data = store
        .add_index("data", |object: &Config| {
            // The panic comes after the first value: what was said before it must not count.
            let keys = data_keys(object);
            keys.into_iter().inspect(|key| assert!(key != "boom", "cannot index {key}"))
        })
        .unwrap();
    writer.write(|batch| {
        batch.insert(mk_with("ns/bad", 1, &[], &["a", "boom"]));
        batch.insert(mk_with("ns/good", 1, &[], &["a"]));
    });
    assert_eq!((store.len(), show(&by_data.get("a"))), (2, "ns/good@1".into()));
    let failures = store.index_failures();
    assert_eq!(failures.len(), 1);
    assert_eq!((failures[0].index.as_str(), failures[0].key.as_str()), ("data", "ns/bad"));
    assert_eq!(failures[0].message, "cannot index boom");

    writer.write(|batch| batch.insert(mk_with("ns/bad", 2, &[], &["a"])));
    assert_eq!(show(&by_data.get("a")), "ns/bad@2 ns/good@1", "the next good version is indexed");
    assert!(store.index_failures().is_empty());
}

#[test]
fn c17_an_index_function_that_changes_its_mind_leaves_nothing_behind() {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    let calls = AtomicU32::new(0);
    let (mut writer, store) = store::new::<ConfigMap>();
    let fickle = store.add_index("fickle", move |_| Some(calls.fetch_add(1, Relaxed).to_string())).unwrap();
    for version in 0..3 {
        writer.write(|batch| batch.insert(mk("ns/a", version)));
        assert_eq!(fickle.values(), [version.to_string()]);
    }
    writer.write(|batch| batch.remove(&key("ns/a")));
    assert!(fickle.values().is_empty());
}

#[test]
fn c17_an_index_function_may_read_the_store_but_not_add_to_it() {
    let (mut writer, store) = store::new::<ConfigMap>();
    let inner = store.clone();
    let index = store.add_index("peers", move |_| {
        let refused = inner.add_index("more", data_keys).err();
        assert_eq!(refused, Some(IndexError::InsideIndexFunction { name: "more".into() }));
        assert!(inner.index_failures().is_empty());
        Some(inner.len().to_string())
    });
    writer.write(|batch| batch.insert(mk("ns/a", 1)));
    assert_eq!(index.unwrap().values(), ["0"], "a function sees the store as it was before the batch");
}

#[test]
fn c18_namespaces_and_labels_are_always_indexed() {
    let (mut writer, store) = store::new::<ConfigMap>();
    writer.write(|batch| {
        for (name, app) in [("b/2", "web"), ("a/1", "web"), ("b/1", "db"), ("b-c/1", "web"), ("loose", "web")]
        {
            batch.insert(mk_labelled(name, 1, &[("app", app), ("all", "yes")]));
        }
    });
    let all = store.snapshot();
    assert_eq!(show(all.iter_namespace("b")), "b/1@1 b/2@1");
    assert_eq!(show(all.iter_namespace("")), "loose@1", "without a namespace");
    assert_eq!(show(all.iter_namespace("nowhere")), "");
    assert_eq!(all.index_values(NAMESPACE_INDEX).unwrap(), ["", "a", "b", "b-c"]);
    assert_eq!(show(all.by_index(NAMESPACE_INDEX, "b-c").unwrap()), "b-c/1@1");
    assert_eq!(show(all.by_index(LABEL_INDEX, "app=db").unwrap()), "b/1@1");
    assert_eq!(show(all.list(&selector("app=web,all"))), "a/1@1 b-c/1@1 b/2@1 loose@1");
    assert_eq!(show(all.list(&selector("app in (db,none)"))), "b/1@1");
    assert_eq!(show(all.list(&selector("app!=web"))), "b/1@1");
    assert_eq!(show(all.list(&Selector::nothing())), "");
    assert_eq!(show(all.list_namespace("b", &selector("all=yes"))), "b/1@1 b/2@1");
    assert_eq!(show(all.list_namespace("b", &selector("app=web"))), "b/2@1");
    assert_eq!(show(all.list_namespace("", &selector("app=web"))), "loose@1");
}

#[test]
fn c19_a_snapshot_is_one_point_in_time_in_the_order_of_keys() {
    let (mut writer, store) = store::new::<ConfigMap>();
    writer.write(|batch| {
        batch.insert(mk("b/x", 1));
        batch.insert(mk("a/x", 2));
        assert!(store.is_empty(), "nothing shows before the batch is complete");
        assert_eq!(show(batch.snapshot().iter()), "a/x@2 b/x@1", "but the batch sees what it does");
    });
    let before = store.snapshot();
    writer.write(|batch| {
        batch.remove(&key("a/x"));
        batch.insert(mk("a-b/x", 3));
        batch.insert(mk("b/x", 4));
    });
    assert_eq!(show(before.iter()), "a/x@2 b/x@1");
    assert_eq!(show(store.snapshot().iter()), "a-b/x@3 b/x@4");
    assert_eq!((before.len(), store.len()), (2, 2));
}

#[test]
fn c14_replace_tells_deletions_first_and_keeps_what_is_only_unusable() {
    let (mut writer, store) = store::new::<ConfigMap>();
    let list = vec![mk("ns/d", 1), mk("ns/a", 1), mk("ns/c", 1), mk("ns/b", 1)];
    let first = writer.write(|batch| batch.replace(Replacement::new(list, 5)));
    assert!(first.iter().all(|change| matches!(change, Event::Added(_))));
    assert_eq!(store.resource_version(), 5.into());

    let list = vec![mk("ns/z", 6), mk("ns/c", 7)];
    let changes = writer.write(|batch| {
        let unusable = vec![key("ns/b"), key("ns/new")];
        batch.replace(Replacement { unusable, ..Replacement::new(list, 8) })
    });
    let told: Vec<String> = changes
        .iter()
        .map(|change| match change {
            Event::Added(new) => format!("+{new:?}"),
            Event::Updated { old, new } => format!("~{old:?}→{new:?}"),
            Event::Deleted(gone) => format!("-{:?}", gone.object().expect("it was there")),
        })
        .collect();
    assert_eq!(told, ["-ns/a@1", "-ns/d@1", "+ns/z@6", "~ns/c@1→ns/c@7"]);
    assert_eq!(show(store.snapshot().iter()), "ns/b@1 ns/c@7 ns/z@6");
}

#[test]
fn a_panic_in_the_middle_of_a_batch_leaves_the_store_usable() {
    let (mut writer, store) = store::new::<ConfigMap>();
    let broken = panic::catch_unwind(panic::AssertUnwindSafe(|| {
        writer.write(|batch| {
            batch.insert(mk("ns/a", 1));
            panic!("in the middle");
        })
    }));
    assert!(broken.is_err() && store.is_empty());
    writer.write(|batch| batch.insert(mk("ns/b", 2)));
    assert_eq!(show(store.snapshot().iter()), "ns/a@1 ns/b@2");
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn c21_waiting_for_a_version_ends_when_the_store_has_it() {
    let (mut writer, store) = store::new::<ConfigMap>();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.wait_for_resource_version(&7.into(), MINUTE).await }
    });
    for version in [5, 6, 9] {
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "version {version} has not been applied yet");
        writer.write(|batch| batch.set_resource_version(version.into()));
    }
    assert_eq!(waiting.await.unwrap(), Ok(9.into()));
    assert_eq!(store.wait_for_resource_version(&9.into(), Duration::ZERO).await, Ok(9.into()));
}

#[tokio::test(start_paused = true)]
async fn c21_waiting_ends_at_the_deadline_and_says_where_the_store_is() {
    let (mut writer, store) = store::new::<ConfigMap>();
    writer.write(|batch| batch.set_resource_version(3.into()));
    let error = store.wait_for_resource_version(&4.into(), MINUTE).await.unwrap_err();
    assert_eq!(error.to_string(), r#"the cache has not reached version 4 within 60s; it is at "3""#);
}

#[tokio::test(start_paused = true)]
async fn c21_waiting_for_what_can_never_come_is_an_error_at_once() {
    let (mut writer, store) = store::new::<ConfigMap>();
    writer.write(|batch| batch.set_resource_version(3.into()));
    let error = store.wait_for_resource_version(&"etcd-4".into(), MINUTE).await.unwrap_err();
    assert!(matches!(error, WaitError::Incomparable { .. }), "{error}");
    drop(writer);
    let error = store.wait_for_resource_version(&4.into(), MINUTE).await.unwrap_err();
    assert!(matches!(error, WaitError::Stopped { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn c21_a_version_that_was_reached_stays_reached_after_the_stop() {
    let (mut writer, store) = store::new::<ConfigMap>();
    writer.write(|batch| batch.set_resource_version(7.into()));
    drop(writer);
    assert_eq!(store.wait_for_resource_version(&7.into(), MINUTE).await, Ok(7.into()));
    let error = store.wait_for_resource_version(&8.into(), MINUTE).await.unwrap_err();
    assert!(matches!(error, WaitError::Stopped { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn c21_who_waits_for_no_version_does_not_wait() {
    let (mut writer, store) = store::new::<ConfigMap>();
    let unset = ResourceVersion::UNSET;
    assert_eq!(store.wait_for_resource_version(&unset, MINUTE).await, Ok(unset.clone()));
    writer.write(|batch| batch.set_resource_version(7.into()));
    assert_eq!(store.wait_for_resource_version(&unset, MINUTE).await, Ok(7.into()));
    drop(writer);
    assert_eq!(store.wait_for_resource_version(&unset, MINUTE).await, Ok(7.into()));
}

/// How much time it takes to change all values of an object with so many.
fn refiling(values: usize) -> Duration {
    let (mut writer, store) = store::new::<ConfigMap>();
    let function = move |object: &Config| {
        let version = object.resource_version().to_string();
        (0..values).map(move |value| format!("{version}-{value}")).collect::<Vec<_>>()
    };
    let by_value = store.add_index("many", function).unwrap();
    let began = std::time::Instant::now();
    for version in [1, 2] {
        writer.write(|batch| batch.insert(mk("a/x", version)));
    }
    let took = began.elapsed();
    assert_eq!(by_value.values().len(), values);
    took
}

#[test]
fn c17_an_object_with_very_many_values_costs_as_many_steps() {
    // A hundred times the values: a hundred times the steps and some waiting for memory, or ten thousand times the
    // steps if each were compared with each. One of many tries has to show it: machines are noisy.
    let mut tries = (0..20).map(|_| (refiling(1_000), refiling(100_000)));
    assert!(tries.any(|(few, many)| many < 500 * few), "100,000 values cost more than 500 times 1,000");
}

/// How much time it takes to file an object with so many labels, and then to change the values of all of them.
fn relabelling(labels: usize) -> (Duration, Duration) {
    let keys: Vec<String> = (0..labels).map(|label| format!("label-{label:06}")).collect();
    let object = |version: u64| {
        let value = version.to_string();
        mk_labelled("a/x", version, &keys.iter().map(|key| (&**key, &*value)).collect::<Vec<_>>())
    };
    let (mut writer, store) = store::new::<ConfigMap>();
    let mut took = [object(1), object(2)].map(|object| {
        let began = std::time::Instant::now();
        writer.write(|batch| batch.insert(object));
        began.elapsed()
    });
    assert_eq!(store.snapshot().index_values(LABEL_INDEX).unwrap().len(), labels);
    took.sort();
    (took[0], took[1])
}

#[test]
fn c18_an_object_with_very_many_labels_costs_as_many_steps() {
    // The second state is as many labels gone and as many come. If each were looked for among all, that would cost some
    // hundred times as much.
    let mut tries = (0..20).map(|_| relabelling(10_000));
    assert!(
        tries.any(|(filed, changed)| changed < 40 * filed),
        "10,000 labels: changing costs 40 times filing"
    );
}

#[test]
fn c17_labels_that_come_go_and_change_are_filed_one_by_one() {
    let (mut writer, store) = store::new::<ConfigMap>();
    let states: [&[(&str, &str)]; 6] = [
        &[("a", "1"), ("a-b", "1"), ("z", "1")],
        &[("a", "1"), ("a-b", "2"), ("b", "1")],
        &[("0", "1"), ("a", "2"), ("b", "1"), ("c", "1")],
        &[],
        &[("a-b", "1")],
        &[("a", "1"), ("z", "1")],
    ];
    for (version, labels) in (1..).zip(states) {
        writer.write(|batch| batch.insert(mk_labelled("a/x", version, labels)));
        let expected: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let mut filed = store.snapshot().index_values(LABEL_INDEX).unwrap();
        filed.sort();
        let mut sorted = expected.clone();
        sorted.sort();
        assert_eq!(filed, sorted);
    }
}

/// An object that can be counted while anybody has it.
#[derive(Clone)]
struct Counted {
    metadata: ObjectMeta,
    _alive: Arc<()>,
}

informer::projection!(Counted of ConfigMap);

#[test]
fn what_only_readers_of_a_store_without_a_writer_hold_goes_with_them() {
    let ((mut writer, store), alive) = (store::new::<Counted>(), Arc::new(()));
    let mut put = |version: u64| {
        let (name, resource_version) = (Some("a".to_owned()), Some(version.to_string()));
        let metadata = ObjectMeta { name, resource_version, ..ObjectMeta::default() };
        let object = Object::new(Counted { metadata, _alive: Arc::clone(&alive) }).unwrap();
        writer.write(|batch| batch.insert(object));
    };
    put(1);
    let snapshot = store.snapshot();
    put(2);
    drop(writer);
    assert_eq!(Arc::strong_count(&alive), 3, "ours, what was, and what is");
    drop(snapshot);
    assert_eq!(Arc::strong_count(&alive), 2);
}

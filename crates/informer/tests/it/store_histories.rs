//! The store against a naive model, over random histories.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Config, data_keys, key, mk_with, show};
use informer::{
    Event,
    model::{ObjectKey, Selector},
    queue::Replacement,
    store::{self, LABEL_INDEX, NAMESPACE_INDEX, Snapshot},
};
use informer_testing::histories;
use k8s_openapi::api::core::v1::ConfigMap;
use proptest::{collection::vec, prelude::*, sample::subsequence};

/// Few names, so that histories come back to the same objects; `a-b` sorts before `a/`.
const KEYS: [&str; 10] = ["a/1", "a/2", "a/3", "a-b/1", "a-b/2", "b/1", "b/2", "b/3", "cluster", "wide"];
const LABELS: [(&str, &str); 6] = [("x", "1"), ("x", "2"), ("x", ""), ("y", "1"), ("y", "2"), ("z", "1")];
const DATA: [&str; 4] = ["p", "q", "r", ""];
const SELECTORS: [&str; 12] = [
    "",
    "x=1",
    "x==2",
    "x=",
    "x in (1,2)",
    "x!=1",
    "y notin (1)",
    "x",
    "!x",
    "x=1,y=2",
    "x in (1,2),y in (1,2),z",
    "w=9",
];

type Model = BTreeMap<ObjectKey, Config>;

#[derive(Debug, Clone)]
enum Step {
    Insert(Spec),
    Remove(&'static str),
    Replace(Vec<Spec>, Vec<&'static str>),
}

/// What an object has; its version is the number of the step.
#[derive(Debug, Clone)]
struct Spec {
    key: &'static str,
    labels: Vec<(&'static str, &'static str)>,
    data: Vec<&'static str>,
}

fn a_key() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&KEYS[..])
}

fn a_spec() -> impl Strategy<Value = Spec> {
    let labels = subsequence(LABELS.to_vec(), 0..4);
    (a_key(), labels, subsequence(DATA.to_vec(), 0..3)).prop_map(|(key, labels, data)| Spec {
        key,
        labels,
        data,
    })
}

fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => a_spec().prop_map(Step::Insert),
        3 => a_key().prop_map(Step::Remove),
        1 => (vec(a_spec(), 0..8), vec(a_key(), 0..3)).prop_map(|(list, keep)| Step::Replace(list, keep)),
    ]
}

fn object(spec: &Spec, version: u64) -> Config {
    mk_with(spec.key, version, &spec.labels, &spec.data)
}

#[test]
fn c17_c18_c19_the_store_equals_a_naive_model() {
    // Batches of steps; an index is added before one of them; a snapshot is kept after each.
    let history = (vec(vec(a_step(), 0..6), 0..8), 0..8usize);
    histories(&history, |(batches, index_at)| {
        let (mut writer, store) = store::new::<ConfigMap>();
        let (mut model, mut version) = (Model::new(), 0);
        let mut kept = Vec::new();
        for (i, steps) in batches.iter().enumerate() {
            if i == index_at {
                store.add_index("data", data_keys).unwrap();
            }
            let announced = steps.iter().filter_map(|step| match step {
                Step::Insert(spec) => Some(object(spec, version)),
                _ => None,
            });
            let announced: Vec<Config> = announced.collect();
            writer.write(|batch| {
                batch.prefetch(&announced);
                for step in steps {
                    version += 1;
                    match step {
                        Step::Insert(spec) => {
                            let old = batch.insert(object(spec, version));
                            let modelled = model.insert(key(spec.key), object(spec, version));
                            assert_eq!(show(&old), show(&modelled));
                        }
                        Step::Remove(name) => {
                            assert_eq!(show(&batch.remove(&key(name))), show(&model.remove(&key(name))));
                        }
                        Step::Replace(list, keep) => {
                            let objects: Vec<Config> =
                                list.iter().map(|spec| object(spec, version)).collect();
                            let keep: Vec<ObjectKey> = keep.iter().map(|name| key(name)).collect();
                            let expected = replace_model(&mut model, &objects, &keep);
                            let changes = batch.replace(Replacement {
                                unusable: keep,
                                ..Replacement::new(objects, version)
                            });
                            assert_eq!(changes.iter().map(show_change).collect::<Vec<_>>(), expected);
                        }
                    }
                    batch.set_resource_version(version.into());
                }
            });
            kept.push((store.snapshot(), model.clone(), version, i >= index_at));
        }
        for (snapshot, model, version, indexed) in &kept {
            check(snapshot, model, *version, *indexed);
        }
    });
}

fn show_change(change: &Event<ConfigMap>) -> String {
    match change {
        Event::Added(new) => format!("+{new:?}"),
        Event::Updated { old, new } => format!("{old:?} {new:?}"),
        Event::Deleted(gone) => format!("-{:?}", gone.object().expect("it was there")),
    }
}

fn replace_model(model: &mut Model, objects: &[Config], keep: &[ObjectKey]) -> Vec<String> {
    let listed: BTreeSet<&ObjectKey> = objects.iter().map(|object| object.key()).chain(keep).collect();
    let gone: Vec<ObjectKey> = model.keys().filter(|key| !listed.contains(key)).cloned().collect();
    let mut told: Vec<String> = gone.iter().map(|key| format!("-{:?}", model.remove(key).unwrap())).collect();
    for object in objects {
        told.push(match model.insert(object.key().clone(), object.clone()) {
            Some(old) => format!("{old:?} {object:?}"),
            None => format!("+{object:?}"),
        });
    }
    told
}

/// Every question that a snapshot can answer, answered from the model.
fn check(snapshot: &Snapshot<ConfigMap>, model: &Model, version: u64, indexed: bool) {
    let filtered = |test: &dyn Fn(&&Config) -> bool| show(model.values().filter(test));
    assert_eq!(show(snapshot.iter()), show(model.values()));
    assert_eq!(snapshot.len(), model.len());
    if version > 0 {
        assert_eq!(*snapshot.resource_version(), version.into());
    }
    for name in KEYS {
        assert_eq!(show(snapshot.get(&key(name))), show(model.get(&key(name))));
    }
    for text in SELECTORS {
        let selector: Selector = text.parse().unwrap();
        let matching = |object: &&Config| selector.matches(object.labels());
        assert_eq!(show(snapshot.list(&selector)), filtered(&matching), "{text}");
        for namespace in ["a", "a-b", "b", "", "none"] {
            let within = |object: &&Config| object.key().namespace().unwrap_or("") == namespace;
            let expected = filtered(&|object| within(object) && matching(object));
            assert_eq!(show(snapshot.list_namespace(namespace, &selector)), expected, "{namespace}: {text}");
        }
    }
    for namespace in ["a", "a-b", "b", "", "none"] {
        let expected = filtered(&|object| object.key().namespace().unwrap_or("") == namespace);
        assert_eq!(show(snapshot.iter_namespace(namespace)), expected);
        assert_eq!(show(snapshot.by_index(NAMESPACE_INDEX, namespace).unwrap()), expected);
    }
    check_index(snapshot, NAMESPACE_INDEX, model, &|object| {
        vec![object.key().namespace().unwrap_or("").to_owned()]
    });
    check_index(snapshot, LABEL_INDEX, model, &|object| {
        object.labels().iter().map(|label| label.pair().to_owned()).collect()
    });
    if indexed {
        check_index(snapshot, "data", model, &data_keys);
    } else {
        assert!(snapshot.by_index("data", "p").is_err());
    }
}

fn check_index(
    snapshot: &Snapshot<ConfigMap>,
    name: &str,
    model: &Model,
    values: &dyn Fn(&Config) -> Vec<String>,
) {
    let expected: BTreeSet<String> = model.values().flat_map(values).collect();
    assert!(snapshot.index_values(name).unwrap().iter().eq(&expected), "values of {name}");
    for value in &expected {
        let filed = model.values().filter(|object| values(object).contains(value));
        assert_eq!(show(snapshot.by_index(name, value).unwrap()), show(filed), "{name} {value}");
    }
}

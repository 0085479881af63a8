//! Random histories of managers that apply and update one custom object.

use std::{collections::BTreeMap, sync::LazyLock};

use informer_testing::histories;
use proptest::{collection::vec, option, prelude::*};
use serde_json::{Map, Value, json};

use super::mk_writer;
use crate::apply::{Managers, NotApplied, Operation, Type, managers::Entry, merge};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let number = json!({ "type": "integer" });
    let item =
        json!({ "type": "object", "properties": { "name": { "type": "string" }, "a": number, "b": number } });
    json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "entries": { "type": "object", "additionalProperties": number },
        "tags": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
        "order": { "type": "array", "items": number },
        "pair": { "type": "object", "x-kubernetes-map-type": "atomic", "properties": { "x": number } },
        "size": number,
        "items": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item },
        "any": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    } } } })
});

fn r#type() -> Type<'static> {
    Type::CustomObject(&SCHEMA)
}

/// What somebody wants an object to be, in whole or in part: few fields and few values, so that managers meet.
#[derive(Debug, Clone)]
struct Wish {
    entries: [Option<u8>; 2],
    tags: [bool; 3],
    order: Option<u8>,
    pair: Option<u8>,
    size: Option<u8>,
    any: Option<u8>,
    items: [Option<(Option<u8>, Option<u8>)>; 2],
}

impl Wish {
    fn object(&self, with_items: bool) -> Value {
        let mut spec = Map::new();
        let mut put = |name: &str, value: Option<Value>| value.map(|value| spec.insert(name.into(), value));
        let entries: Map<String, Value> = ["m", "n"]
            .into_iter()
            .zip(self.entries)
            .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
            .collect();
        put("entries", (!entries.is_empty()).then(|| entries.into()));
        let tags = ["p", "q", "r"].into_iter().zip(self.tags).filter(|(_, there)| *there);
        let tags: Vec<Value> = tags.map(|(tag, _)| tag.into()).collect();
        put("tags", (!tags.is_empty()).then(|| tags.into()));
        put("order", self.order.map(|n| json!([n, n])));
        put("pair", self.pair.map(|n| json!({ "x": n })));
        put("size", self.size.map(Value::from));
        put("any", self.any.map(|n| json!({ "n": n })));
        let items: Vec<Value> = ["x", "y"]
            .into_iter()
            .zip(self.items)
            .filter_map(|(name, fields)| {
                let (a, b) = fields?;
                let mut item = json!({ "name": name });
                for (field, value) in [("a", a), ("b", b)] {
                    if let Some(value) = value {
                        item[field] = value.into();
                    }
                }
                Some(item)
            })
            .collect();
        put("items", (with_items && !items.is_empty()).then(|| items.into()));
        if spec.is_empty() { json!({}) } else { json!({ "spec": spec }) }
    }
}

#[derive(Debug, Clone)]
struct Step {
    manager: usize,
    applies: bool,
    force: bool,
    wish: Wish,
}

fn wishes() -> impl Strategy<Value = Wish> {
    let value = || option::of(0..2_u8);
    let items = [option::of((value(), value())), option::of((value(), value()))];
    let fields = ([value(), value()], any::<[bool; 3]>(), value(), value(), value(), value(), items);
    fields.prop_map(|(entries, tags, order, pair, size, any, items)| Wish {
        entries,
        tags,
        order,
        pair,
        size,
        any,
        items,
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..4_usize, any::<bool>(), any::<bool>(), wishes());
    let step = step.prop_map(|(manager, applies, force, wish)| Step { manager, applies, force, wish });
    vec(step, 1..9)
}

/// The leaves of an object, by their paths.
fn leaves(object: &Value) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let spec = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, value) in &spec {
        let path = format!(".spec.{name}");
        match (name.as_str(), value) {
            ("entries", Value::Object(entries)) => {
                all.extend(entries.iter().map(|(name, value)| (format!("{path}.{name}"), value.clone())));
            }
            ("tags", Value::Array(tags)) => {
                all.extend(tags.iter().map(|tag| (format!("{path}[={tag}]"), tag.clone())));
            }
            ("items", Value::Array(items)) => {
                for item in items {
                    let path = format!("{path}[name={}]", item["name"]);
                    let fields = item.as_object().into_iter().flatten();
                    all.extend(fields.map(|(name, value)| (format!("{path}.{name}"), value.clone())));
                }
            }
            ("any", Value::Object(fields)) => {
                all.extend(fields.iter().map(|(name, value)| (format!("{path}.{name}"), value.clone())));
            }
            // What has nothing left may still be somebody's.
            (_, Value::Null) => {}
            (_, value) => drop(all.insert(path, value.clone())),
        }
    }
    all
}

fn owns(entry: &Entry, path: &str) -> bool {
    entry.fields.paths().iter().any(|owned| owned == path)
}

/// Who has a leaf, and which value it has.
type Model = BTreeMap<String, (Value, Vec<String>)>;

fn identity(manager: usize, applies: bool) -> String {
    format!("m{manager}{}", if applies { " applies" } else { "" })
}

/// What a step makes of the model; None where it has to be refused.
fn model_step(model: &Model, step: &Step, wish: &BTreeMap<String, Value>) -> Option<Model> {
    let me = identity(step.manager, step.applies);
    let mut next = Model::new();
    for (path, (value, owners)) in model {
        match wish.get(path) {
            Some(wanted) if wanted != value => {
                let others = owners.iter().any(|owner| *owner != me);
                if step.applies && others && !step.force {
                    return None;
                }
                next.insert(path.clone(), (wanted.clone(), vec![me.clone()]));
            }
            Some(_) => {
                let mut owners = owners.clone();
                if step.applies && !owners.contains(&me) {
                    owners.push(me.clone());
                }
                next.insert(path.clone(), (value.clone(), owners));
            }
            None if step.applies => {
                let left: Vec<_> = owners.iter().filter(|owner| **owner != me).cloned().collect();
                if !left.is_empty() {
                    next.insert(path.clone(), (value.clone(), left));
                }
            }
            None => {}
        }
    }
    for (path, wanted) in wish {
        next.entry(path.clone()).or_insert_with(|| (wanted.clone(), vec![me.clone()]));
    }
    Some(next)
}

fn seen(object: &Value, managers: &Managers) -> Model {
    let owners = |path: &str| {
        let own = managers.0.iter().filter(|entry| owns(entry, path));
        let names = own.map(|entry| {
            let applies = entry.manager.operation == Operation::Apply;
            format!("{}{}", entry.manager.name, if applies { " applies" } else { "" })
        });
        names.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    };
    leaves(object)
        .into_iter()
        .map(|(path, value)| {
            let owners = owners(&path);
            (path, (value, owners))
        })
        .collect()
}

fn sorted(mut model: Model) -> Model {
    model.values_mut().for_each(|(_, owners)| owners.sort());
    model
}

#[test]
fn a_history_without_lists_of_items_is_what_the_model_says() {
    histories(&steps(), |steps| {
        let (mut object, mut managers, mut model) = (json!({}), Managers::default(), Model::new());
        for (now, step) in steps.iter().enumerate() {
            let wanted = step.wish.object(false);
            let expected = model_step(&model, step, &leaves(&wanted));
            let time = format!("2026-01-01T00:00:{now:02}Z");
            let operation = if step.applies { Operation::Apply } else { Operation::Update };
            let writer = mk_writer(r#type(), &format!("m{}", step.manager), operation, &time);
            if step.applies {
                let known = (!managers.0.is_empty()).then(|| managers.clone());
                match (writer.apply(&object, &wanted, known, step.force), expected) {
                    (Ok(applied), Some(expected)) => ((object, managers), model) = (applied, expected),
                    (Err(NotApplied::Conflicts(_)), None) => {}
                    (answer, expected) => panic!("{answer:?}\nthe model: {expected:?}"),
                }
            } else {
                managers = writer.update(&object, &wanted, managers);
                (object, model) = (wanted, expected.unwrap());
            }
            assert_eq!(seen(&object, &managers), sorted(model.clone()), "after step {now}");
        }
    });
}

#[test]
fn what_is_always_so_is_so() {
    histories(&steps(), |steps| {
        let (mut object, mut managers) = (json!({}), Managers::default());
        for (now, step) in steps.iter().enumerate() {
            let wanted = step.wish.object(true);
            let time = format!("2026-01-01T00:00:{now:02}Z");
            let operation = if step.applies { Operation::Apply } else { Operation::Update };
            let writer = mk_writer(r#type(), &format!("m{}", step.manager), operation, &time);
            if !step.applies {
                managers = writer.update(&object, &wanted, managers);
                object = wanted;
                check(&object, &managers);
                continue;
            }
            let known = (!managers.0.is_empty()).then(|| managers.clone());
            let before = managers.position(&writer.manager).map(|place| managers.0[place].clone());
            let Ok((applied, then)) = writer.apply(&object, &wanted, known, step.force) else {
                assert!(!step.force, "force has no conflicts");
                continue;
            };
            let (had, has) = (leaves(&object), leaves(&applied));
            for (path, value) in leaves(&wanted) {
                assert_eq!(has.get(&path), Some(&value), "{path} is what was applied");
            }
            let own = then.position(&writer.manager).map(|place| &then.0[place]);
            let set = own.map(|own| own.fields.clone()).unwrap_or_default();
            assert_eq!(set, merge::field_set(r#type(), &wanted).unwrap(), "its manager has exactly that");
            for other in managers.0.iter().filter(|other| !other.manager.is(&writer.manager) && !step.force) {
                for path in other.fields.paths().iter().filter(|path| has.contains_key(*path)) {
                    assert_eq!(had.get(path), has.get(path), "{path} of another is not changed");
                }
            }
            for path in before.iter().flat_map(|before| before.fields.paths()) {
                let is_owned = then.0.iter().any(|entry| owns(entry, &path));
                assert!(is_owned || !has.contains_key(&path), "{path} was given up, and is nobody's");
            }
            let again = writer.apply(
                &applied,
                &wanted,
                Some(then.clone()).filter(|then| !then.0.is_empty()),
                step.force,
            );
            assert_eq!(again, Ok((applied.clone(), then.clone())), "the same again changes nothing");
            (object, managers) = (applied, then);
            check(&object, &managers);
        }
    });
}

/// Everything is somebody's, and nobody has what is not there.
fn check(object: &Value, managers: &Managers) {
    for path in leaves(object).keys() {
        assert!(managers.0.iter().any(|entry| owns(entry, path)), "{path} is nobody's in {managers:?}");
    }
    let there = merge::present(r#type(), object).with_named_fields(r#type()).paths();
    for entry in &managers.0 {
        for path in entry.fields.paths() {
            assert!(
                there.contains(&path) || path == ".spec.items" || path == ".spec.tags",
                "{path} is not there: {object}"
            );
        }
    }
}

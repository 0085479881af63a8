//! What is read from a text is what the decoded object says.

use std::thread;

use informer_model::{FieldOperator, FieldPath, FieldRequirement, FieldSelector, FieldStep, ObjectKey};
use informer_testing::histories;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};

use super::Readable;
use crate::query::{fields::FieldFilter, order::Order, projection::Projection};

fn key() -> ObjectKey {
    "shop/web-0".parse().unwrap()
}

/// Names as they stand in a text, some of them in two spellings.
fn name() -> impl Strategy<Value = &'static str> + Clone {
    select(vec![
        r#""a""#,
        r#""b""#,
        r#""c""#,
        r#""\u0061""#,
        r#""""#,
        r#""x\"y""#,
        r#""é\\""#,
        r#""long-name-0""#,
    ])
}

/// Texts of objects: names that come again, blanks, numbers in odd spellings.
fn object() -> impl Strategy<Value = String> {
    let leaves = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "7",
        "-7",
        "1.50",
        "1e3",
        "18446744073709551616",
        "123456789012345678901234",
        r#""""#,
        r#""7""#,
        r#""true""#,
        r#""x""#,
        r#""\u0078""#,
        r#""100m""#,
        r#""]}\",{[""#,
        r#""\\""#,
        r#""é☃ long text""#,
        "{}",
        "[]",
    ];
    let leaf = select(leaves.to_vec()).prop_map(str::to_owned);
    let value = leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(|elements| format!("[{}]", elements.join(","))),
            1 => vec(inner.clone(), 0..4).prop_map(|elements| format!("[ {} ]", elements.join(" ,\n"))),
            4 => members(inner),
        ]
    });
    members(value)
}

fn members(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (vec((name(), value), 0..5), any::<bool>()).prop_map(|(members, is_spaced)| {
        let sign = if is_spaced { " :\t" } else { ":" };
        let members: Vec<String> =
            members.into_iter().map(|(name, value)| format!("{name}{sign}{value}")).collect();
        format!("{{{}}}", members.join(if is_spaced { " , " } else { "," }))
    })
}

fn path() -> impl Strategy<Value = FieldPath> {
    let named = name().prop_map(|name| {
        let name: String = serde_json::from_str(name).unwrap();
        format!("['{}']", name.replace('\\', r"\\"))
    });
    let step = prop_oneof![
        4 => named.clone(),
        1 => select(vec!["[0]", "[1]", "[3]"]).prop_map(str::to_owned),
        2 => Just("[*]".to_owned()),
    ];
    (named, vec(step, 0..4)).prop_map(|(first, rest)| (first + &rest.concat()).parse().unwrap())
}

fn requirement() -> impl Strategy<Value = FieldRequirement> {
    let values =
        ["", "x", "7", "-7", "true", "0", "-0", "1.5", "1000.0", "1.2345678901234568e23", "{}", "]}\",{["];
    let operators = [
        (FieldOperator::Equals, 1),
        (FieldOperator::NotEquals, 1),
        (FieldOperator::In, 3),
        (FieldOperator::NotIn, 2),
        (FieldOperator::Exists, 0),
        (FieldOperator::NotExists, 0),
    ];
    let parts = (path(), select(operators.to_vec()), vec(select(values.to_vec()), 3));
    parts.prop_map(|(path, (operator, count), values)| {
        FieldRequirement::new(path, operator, values.into_iter().take(count)).unwrap()
    })
}

#[test]
fn a_filter_matches_the_texts_of_the_objects_that_the_selector_matches() {
    histories(&(object(), vec(requirement(), 1..5)), |(text, requirements)| {
        let object: Value = serde_json::from_str(&text).unwrap();
        let all = FieldSelector::new(requirements.clone());
        assert_eq!(FieldFilter::new(all.clone()).matches(&key(), &text), all.matches(&object), "{all}");
        for requirement in requirements {
            let one = FieldSelector::new([requirement]);
            assert_eq!(FieldFilter::new(one.clone()).matches(&key(), &text), one.matches(&object), "{one}");
        }
    });
}

/// What remains of a value, found the plain way.
fn part(value: &Value, paths: &[&[FieldStep]]) -> Option<Value> {
    if paths.iter().any(|path| path.is_empty()) {
        return Some(value.clone());
    }
    let after = |leads: &dyn Fn(&FieldStep) -> bool| -> Vec<&[FieldStep]> {
        let rest = |path: &&[FieldStep]| path.split_first().map(|(step, _)| leads(step));
        paths.iter().filter(|path| rest(path) == Some(true)).map(|path| &path[1..]).collect()
    };
    let part = match value {
        Value::Object(members) => {
            let part = |(name, value): (&String, &Value)| {
                let paths = after(&|step| matches!(step, FieldStep::Name(known) if **known == **name));
                part(value, &paths).map(|part| (name.clone(), part))
            };
            Value::from(members.iter().filter_map(part).collect::<Map<_, _>>())
        }
        Value::Array(elements) => {
            let part = |(i, value): (usize, &Value)| {
                let paths = after(&|step| *step == FieldStep::AnyElement || *step == FieldStep::Element(i));
                part(value, &paths)
            };
            Value::from(elements.iter().enumerate().filter_map(part).collect::<Vec<_>>())
        }
        _ => return None,
    };
    (part != json!({}) && part != json!([])).then_some(part)
}

fn projected(fields: &str, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Projection::parse(fields).unwrap().apply(text, &mut out);
    out
}

fn listed(paths: &[FieldPath]) -> String {
    paths.iter().map(FieldPath::as_str).collect::<Vec<_>>().join(",")
}

#[test]
fn a_projection_is_the_part_of_the_decoded_object() {
    histories(&(object(), vec(path(), 1..5)), |(text, paths)| {
        let object: Value = serde_json::from_str(&text).unwrap();
        let steps: Vec<&[FieldStep]> = paths.iter().map(FieldPath::steps).collect();
        let expected = part(&object, &steps).unwrap_or_else(|| json!({}));
        let out = projected(&listed(&paths), &text);
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), expected, "{text}");
    });
}

#[test]
fn objects_are_sorted_whatever_is_in_them_and_none_is_lost() {
    histories(&(vec(object(), 0..12), vec(path(), 1..3)), |(mut texts, paths)| {
        let order = Order::parse(&listed(&paths)).unwrap();
        let mut sorted = texts.clone();
        order.sort(&mut sorted);
        let once = sorted.clone();
        order.sort(&mut sorted);
        assert_eq!(sorted, once, "what is sorted stays");
        texts.sort();
        sorted.sort();
        assert_eq!(sorted, texts);
    });
}

#[test]
fn what_is_not_json_is_read_as_far_as_it_goes() {
    let cut = (object(), any::<prop::sample::Index>(), any::<char>());
    histories(&(cut, requirement(), path()), |((mut text, at, odd), requirement, path)| {
        let at = at.index(text.len() + 1);
        let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let filter = FieldFilter::new(FieldSelector::new([requirement]));
        for text in [&text[..at], &text[at..]] {
            filter.matches(&key(), &text);
            projected(path.as_str(), text);
        }
        text.insert(at, odd);
        filter.matches(&key(), &text);
        projected(path.as_str(), &text);
    });
}

#[test]
fn neither_a_deep_object_nor_a_long_path_needs_a_deep_stack() {
    const DEPTH: usize = 10_000;
    let read = || {
        let objects = r#"{"a":"#.repeat(DEPTH) + "7" + &"}".repeat(DEPTH);
        let arrays = r#"{"a":"#.to_owned() + &"[".repeat(DEPTH) + "7" + &"]".repeat(DEPTH) + "}";
        let (names, stars) = (vec!["a"; DEPTH].join("."), "a".to_owned() + &"[*]".repeat(DEPTH));
        for (text, path) in [(&objects, names), (&arrays, stars)] {
            let matches = |selector: &str| {
                FieldFilter::new(FieldSelector::parse_extended(selector).unwrap()).matches(&key(), text)
            };
            assert!(matches("a exists") && matches("b=") && matches("a.b="));
            assert!(matches(&format!("{path}=7")) && matches(&format!("{path} exists")));
            assert!(matches(&format!("!{path}.a")) && matches(&format!("{path}!=8")));
            assert!(matches(&format!("!b.{path}")));
            assert_eq!(projected(&path, text), text.as_bytes());
            assert_eq!(projected(&format!("{path}.a"), text), b"{}");
        }
    };
    thread::Builder::new().stack_size(64 * 1024).spawn(read).unwrap().join().unwrap();
}

impl Readable for &str {
    fn text(&self) -> Option<&str> {
        Some(self)
    }

    fn with_json<R>(&self, mut read: impl FnMut(&str) -> R) -> R {
        read(self)
    }
}

impl Readable for String {
    fn text(&self) -> Option<&str> {
        Some(self)
    }

    fn with_json<R>(&self, mut read: impl FnMut(&str) -> R) -> R {
        read(self)
    }
}

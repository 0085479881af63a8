//! What is read from a text is what the decoded object says.

use std::thread;

use informer_model::{FieldOperator, FieldPath, FieldRequirement, FieldSelector, FieldStep, ObjectKey};
use informer_testing::histories;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};

use crate::{
    cache::beside::Beside,
    query::{fields::FieldFilter, order::Order, projection::Projection, readable::Readable},
};

#[path = "../../../../../fuzz/reader_checks.rs"]
mod reader_checks;

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

/// A packed object: what stands beside it is looked at, and the text only shown.
struct Packed {
    json: String,
    beside: Option<Beside>,
}

impl Packed {
    fn of(json: String) -> Self {
        Self { beside: Beside::of(&json), json }
    }
}

impl Readable for Packed {
    fn text(&self) -> Option<&str> {
        None
    }

    fn beside(&self) -> Option<&Beside> {
        self.beside.as_ref()
    }

    fn with_json<R>(&self, mut read: impl FnMut(&str) -> R) -> R {
        read(&self.json)
    }
}

/// The paths of these objects, of which the last ones do not stand beside them.
const BESIDE: [&str; 7] =
    ["metadata.name", "spec.nodeName", "status.phase", "status.replicas", "type", "spec.image", "status"];

/// An object with members of the names that stand beside objects, some of them twice, or with values that are too long for that.
fn known_object() -> impl Strategy<Value = String> + Clone {
    let values = [
        "null",
        "true",
        "7",
        "1.50",
        r#""100m""#,
        r#""""#,
        r#""Running""#,
        r#""R\u0075nning""#,
        r#""a\nb""#,
        "{}",
        r#"[{"phase":1}]"#,
        r#"{"phase":"x"}"#,
    ];
    let value = prop_oneof![
        12 => select(values.map(str::to_owned).to_vec()),
        1 => Just(format!("\"{}\"", "long".repeat(50))),
    ];
    const NAMES: &[&str] = &["name", "nodeName", "phase", r"ph\u0061se", "replicas", "image"];
    let members = |inner: BoxedStrategy<String>, names: &'static [&'static str]| {
        let member = (select(names), inner).prop_map(|(name, value)| format!("\"{name}\":{value}"));
        vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(",")))
    };
    let inner = members(value.clone().boxed(), NAMES);
    members(prop_oneof![4 => inner, 1 => value].boxed(), &["metadata", "spec", "status", "type"])
}

fn known_path() -> impl Strategy<Value = FieldPath> + Clone {
    select(BESIDE.to_vec()).prop_map(|path| FieldPath::parse_prefix(path).unwrap().0)
}

#[test]
fn what_stands_beside_an_object_says_what_its_text_says() {
    let operators = ["=", "!=", " in ", " notin ", " exists", "!"];
    let values = select(vec!["", "7", "1.5", "Running", "100m", "x", "true"]);
    let requirement = (known_path(), select(operators.to_vec()), values).prop_map(
        |(path, operator, value)| match operator {
            " in " | " notin " => format!("{path}{operator}({value},Running)"),
            " exists" => format!("{path} exists"),
            "!" => format!("!{path}"),
            _ => format!("{path}{operator}{value}"),
        },
    );
    histories(&(known_object(), vec(requirement, 1..4)), |(json, requirements)| {
        let selector = requirements.join(",");
        let filter = FieldFilter::new(FieldSelector::parse_extended(&selector).unwrap());
        let packed = Packed::of(json.clone());
        assert_eq!(filter.matches(&key(), &packed), filter.matches(&key(), &json), "{selector}: {json}");
    });
}

#[test]
fn objects_are_in_the_same_order_whichever_of_them_are_packed() {
    let objects = vec((known_object(), any::<bool>()), 0..12);
    let paths = vec((known_path(), any::<bool>()), 1..4);
    histories(&(objects, paths), |(objects, paths)| {
        let sign = |descending: bool| if descending { "-" } else { "" };
        let listed: Vec<String> = paths.iter().map(|(path, down)| format!("{}{path}", sign(*down))).collect();
        let order = Order::parse(&listed.join(",")).unwrap();
        // Equal texts can be told apart.
        let numbered = |at: usize, json: &str| match json.strip_prefix("{}") {
            Some(_) => format!("{{\"at\":{at}}}"),
            None => format!("{{\"at\":{at},{}", &json[1..]),
        };
        let texts: Vec<String> =
            objects.iter().enumerate().map(|(at, (json, _))| numbered(at, json)).collect();
        let mut sorted = texts.clone();
        order.sort(&mut sorted);
        let mixed = texts.into_iter().zip(&objects).map(|(text, (_, is_packed))| match is_packed {
            true => Either::Packed(Packed::of(text)),
            false => Either::Plain(text),
        });
        let mut mixed: Vec<Either> = mixed.collect();
        order.sort(&mut mixed);
        let mixed: Vec<String> = mixed.iter().map(|one| one.with_json(str::to_owned)).collect();
        assert_eq!(mixed, sorted);
    });
}

enum Either {
    Plain(String),
    Packed(Packed),
}

impl Readable for Either {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Plain(json) => Some(json),
            Self::Packed(_) => None,
        }
    }

    fn beside(&self) -> Option<&Beside> {
        match self {
            Self::Plain(_) => None,
            Self::Packed(packed) => packed.beside(),
        }
    }

    fn with_json<R>(&self, mut read: impl FnMut(&str) -> R) -> R {
        match self {
            Self::Plain(json) => read(json),
            Self::Packed(packed) => packed.with_json(read),
        }
    }
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

#[test]
fn what_is_read_from_mutated_texts_is_what_their_objects_say() {
    let pieces = [
        "status.phase",
        "=",
        "!=",
        " in (",
        " notin (",
        " exists",
        "!",
        ",",
        "a",
        "[*]",
        "[0]",
        "['",
        "']",
        "\n",
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        "\"a\":",
        "null",
        "true",
        "1.50",
        "-0",
        "1e400",
        "\\u0061",
        "\\",
        "\"phase\":\"Running\"",
        " ",
    ];
    informer_testing::fuzz("reader", &pieces, 100_000, reader_checks::reader);
}

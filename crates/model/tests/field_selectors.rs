//! Field selectors on generated texts and objects.

use informer_model::{FieldOperator, FieldPath, FieldRequirement, FieldSelector};
use informer_testing::histories;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};

/// One step of a path, as a user may think of it.
#[derive(Debug, Clone)]
enum Step {
    Name(String),
    Element(usize),
    AnyElement,
}

/// Names that need quotes and names that do not.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => select(vec!["a", "b", "c"]).prop_map(str::to_owned),
        1 => select(vec!["", "a.b/c", "it's", "\"", "\\", "x=y,z", "['", "é\n", "*"]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => name().prop_map(Step::Name),
        1 => (0..3usize).prop_map(Step::Element),
        1 => Just(Step::AnyElement),
    ];
    (name(), vec(step, 0..4)).prop_map(|(first, mut rest)| {
        rest.insert(0, Step::Name(first));
        rest
    })
}

/// Values in which every character that matters to the grammar occurs.
fn value() -> impl Strategy<Value = String> {
    let nasty = select(vec!["\\", ",", "=", "==", "!=", "a", " ", "'", "[", "\n", "\0", "é"]);
    prop_oneof![
        2 => select(vec!["", "x", "1", "true", "1.5"]).prop_map(str::to_owned),
        1 => vec(nasty, 0..8).prop_map(|parts| parts.concat()),
        1 => any::<String>(),
    ]
}

/// A path's text in which every name is quoted, with either quote.
fn quoted(steps: &[Step], quote: char) -> String {
    let escape = |name: &String| name.replace('\\', "\\\\").replace('\'', "\\'").replace('"', "\\\"");
    let spell = |step: &Step| match step {
        Step::Name(name) => format!("[{quote}{}{quote}]", escape(name)),
        Step::Element(index) => format!("[{index}]"),
        Step::AnyElement => "[*]".to_owned(),
    };
    steps.iter().map(spell).collect()
}

fn path(steps: &[Step]) -> FieldPath {
    quoted(steps, '\'').parse().unwrap()
}

fn operator() -> impl Strategy<Value = FieldOperator> {
    select(vec![FieldOperator::Equals, FieldOperator::NotEquals])
}

/// Objects with the names that paths like best.
fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        Just(json!(1)),
        Just(json!(1.5)),
        value().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..3).prop_map(Value::from),
            3 => vec((name(), inner), 0..4).prop_map(|fields| Value::from(Map::from_iter(fields))),
        ]
    })
}

/// Every text that the path leads to, found the plain way; `None` for what has no text.
fn texts(value: &Value, steps: &[Step]) -> Vec<Option<String>> {
    let Some((step, rest)) = steps.split_first() else {
        return vec![match value {
            Value::Null => Some(String::new()),
            Value::String(text) => Some(text.clone()),
            Value::Array(_) | Value::Object(_) => None,
            other => Some(other.to_string()),
        }];
    };
    match step {
        Step::Name(name) => texts(value.get(name).unwrap_or(&Value::Null), rest),
        Step::Element(index) => texts(value.get(index).unwrap_or(&Value::Null), rest),
        Step::AnyElement => {
            value.as_array().into_iter().flatten().flat_map(|element| texts(element, rest)).collect()
        }
    }
}

#[test]
fn a_selectors_text_is_the_selector() {
    histories(&vec((steps(), operator(), value()), 0..4), |terms| {
        let terms =
            terms.iter().map(|(steps, operator, value)| FieldRequirement::new(path(steps), *operator, value));
        let selector = FieldSelector::new(terms);
        assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
    });
}

#[test]
fn a_path_has_one_spelling() {
    histories(&steps(), |steps| {
        let single = path(&steps);
        assert_eq!(quoted(&steps, '"').parse(), Ok(single.clone()));
        assert_eq!(single.as_str().parse(), Ok(single.clone()));
    });
}

#[test]
fn matching_is_what_the_requirement_says() {
    histories(&(object(), steps(), value()), |(object, steps, value)| {
        let expected = texts(&object, &steps).contains(&Some(value.clone()));
        let holds = |operator| FieldRequirement::new(path(&steps), operator, &value).matches(&object);
        assert_eq!(holds(FieldOperator::Equals), expected);
        assert_eq!(holds(FieldOperator::NotEquals), !expected);
    });
}

/// Parses a text that may be anything.
fn parse_anything(text: &str) {
    match FieldSelector::parse(text) {
        Ok(selector) => assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector)),
        Err(error) => {
            assert!(text.is_char_boundary(error.position), "{error}");
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}

#[test]
fn any_text_is_read_or_refused_within_its_bounds() {
    let words = ["a", ".", "[", "]", "'", "\"", "*", "0", "99", "=", "!", ",", "\\", " ", "é", "\n", "\0"];
    histories(&any::<String>(), |text| parse_anything(&text));
    histories(&vec(any::<u8>(), 0..200), |bytes| parse_anything(&String::from_utf8_lossy(&bytes)));
    histories(&vec(select(words.to_vec()), 0..60), |words| parse_anything(&words.concat()));
}

#[test]
fn a_selector_with_a_slip_is_read_or_refused_within_its_bounds() {
    let slip = (any::<prop::sample::Index>(), 0..3usize, any::<char>());
    histories(&(steps(), operator(), value(), vec(slip, 1..4)), |(steps, operator, value, slips)| {
        let valid = FieldRequirement::new(path(&steps), operator, value).to_string();
        let mut text: Vec<char> = valid.chars().collect();
        for (at, cut, c) in slips {
            let at = at.index(text.len() + 1);
            let end = text.len().min(at + cut);
            text.splice(at..end, (cut != 1).then_some(c));
        }
        parse_anything(&text.into_iter().collect::<String>());
    });
}

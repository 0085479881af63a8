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
    let nasty = select(vec!["\\", ",", "=", "==", "!=", "a", " ", "'", "[", "(", ")", "\n", "\0", "é"]);
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

fn requirement(steps: &[Step], operator: FieldOperator, values: &[String]) -> FieldRequirement {
    FieldRequirement::new(path(steps), operator, values).unwrap()
}

/// A requirement that every API server can read.
fn kubernetes_requirement() -> impl Strategy<Value = FieldRequirement> {
    let operator = select(vec![FieldOperator::Equals, FieldOperator::NotEquals]);
    (steps(), operator, value()).prop_map(|(steps, operator, value)| requirement(&steps, operator, &[value]))
}

fn any_requirement() -> impl Strategy<Value = FieldRequirement> {
    let list = select(vec![FieldOperator::In, FieldOperator::NotIn]);
    let list = (steps(), list, vec(value(), 1..4));
    let bare = (steps(), select(vec![FieldOperator::Exists, FieldOperator::NotExists]));
    prop_oneof![
        kubernetes_requirement(),
        list.prop_map(|(steps, operator, values)| requirement(&steps, operator, &values)),
        bare.prop_map(|(steps, operator)| requirement(&steps, operator, &[])),
    ]
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
    histories(&vec(kubernetes_requirement(), 0..4), |requirements| {
        let selector = FieldSelector::new(requirements);
        assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
    });
    histories(&vec(any_requirement(), 0..4), |requirements| {
        let selector = FieldSelector::new(requirements);
        assert_eq!(FieldSelector::parse_extended(&selector.to_string()), Ok(selector));
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
    histories(&(object(), steps(), vec(value(), 1..3)), |(object, steps, values)| {
        let texts = texts(&object, &steps);
        let has = |value: &String| texts.contains(&Some(value.clone()));
        let holds = |operator, values| requirement(&steps, operator, values).matches(&object);
        assert_eq!(holds(FieldOperator::Equals, &values[..1]), has(&values[0]));
        assert_eq!(holds(FieldOperator::NotEquals, &values[..1]), !has(&values[0]));
        assert_eq!(holds(FieldOperator::In, &values), values.iter().any(has));
        assert_eq!(holds(FieldOperator::NotIn, &values), !values.iter().any(has));
    });
}

/// Whether the path leads to a value that is not null, found the plain way.
fn exists(value: &Value, steps: &[Step]) -> bool {
    let Some((step, rest)) = steps.split_first() else { return !value.is_null() };
    match step {
        Step::Name(name) => value.get(name).is_some_and(|value| exists(value, rest)),
        Step::Element(index) => value.get(index).is_some_and(|value| exists(value, rest)),
        Step::AnyElement => value.as_array().is_some_and(|all| all.iter().any(|value| exists(value, rest))),
    }
}

#[test]
fn a_field_exists_or_does_not() {
    histories(&(object(), steps()), |(object, steps)| {
        let holds = |operator| requirement(&steps, operator, &[]).matches(&object);
        assert_eq!(holds(FieldOperator::Exists), exists(&object, &steps));
        assert_eq!(holds(FieldOperator::NotExists), !exists(&object, &steps));
    });
}

/// Parses a text that may be anything: the wider grammar reads all that the narrower reads, as the same.
fn parse_anything(text: &str) {
    let extended = FieldSelector::parse_extended(text);
    if let Ok(selector) = &extended {
        assert_eq!(FieldSelector::parse_extended(&selector.to_string()).as_ref(), Ok(selector));
    }
    let plain = FieldSelector::parse(text);
    if let Ok(selector) = &plain {
        assert_eq!(FieldSelector::parse(&selector.to_string()).as_ref(), Ok(selector));
        assert_eq!(extended.as_ref(), Ok(selector));
    }
    for error in [plain.err(), extended.err()].into_iter().flatten() {
        assert!(text.is_char_boundary(error.position), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

#[test]
fn any_text_is_read_or_refused_within_its_bounds() {
    let words = [
        "a", ".", "[", "]", "'", "\"", "*", "0", "99", "=", "!", ",", "\\", " ", "é", "\n", "\0", "(", ")",
        " in (", " notin (", " exists",
    ];
    histories(&any::<String>(), |text| parse_anything(&text));
    histories(&vec(any::<u8>(), 0..200), |bytes| parse_anything(&String::from_utf8_lossy(&bytes)));
    histories(&vec(select(words.to_vec()), 0..60), |words| parse_anything(&words.concat()));
}

#[test]
fn a_selector_with_a_slip_is_read_or_refused_within_its_bounds() {
    let slip = (any::<prop::sample::Index>(), 0..3usize, any::<char>());
    histories(&(any_requirement(), vec(slip, 1..4)), |(valid, slips)| {
        let mut text: Vec<char> = valid.to_string().chars().collect();
        for (at, cut, c) in slips {
            let at = at.index(text.len() + 1);
            let end = text.len().min(at + cut);
            text.splice(at..end, (cut != 1).then_some(c));
        }
        parse_anything(&text.into_iter().collect::<String>());
    });
}

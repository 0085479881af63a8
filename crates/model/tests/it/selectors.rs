//! Label selectors: which texts are one, where the others are wrong, and what they select.

use std::collections::BTreeMap;

use informer_model::{LabelError, Labels, Operator, Requirement, Selector, SelectorError, SelectorErrorKind};
use informer_testing::histories;
use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    sample::select,
};

#[test]
fn accepted_texts_and_what_they_are_written_as() {
    for (text, canonical) in [
        ("", ""),
        (" ", ""),
        ("\t\r\n ", ""),
        ("x", "x"),
        (" x ", "x"),
        ("\rx", "x"),
        ("!x", "!x"),
        (" ! x ", "!x"),
        ("x=a", "x=a"),
        ("x = a", "x=a"),
        ("x==a", "x==a"),
        ("x== a", "x==a"),
        ("x!=a", "x!=a"),
        ("x != a", "x!=a"),
        ("x=", "x="),
        ("x= ", "x="),
        ("x==", "x=="),
        ("x!=", "x!="),
        ("x=,y", "x=,y"),
        ("x=,y=,z!=", "x=,y=,z!="),
        ("x=a\n,\ty=b", "x=a,y=b"),
        ("y=b,x=a", "x=a,y=b"),
        ("x>1", "x>1"),
        ("x > 1 , x < 5", "x>1,x<5"),
        ("x>007", "x>007"),
        ("x<9223372036854775807", "x<9223372036854775807"),
        ("x in (a)", "x in (a)"),
        ("x in(a)", "x in (a)"),
        ("x in\n(\ta\r)", "x in (a)"),
        ("x in (b,a)", "x in (a,b)"),
        ("x in (a,a, a)", "x in (a)"),
        ("x in ()", "x in ()"),
        ("x in ( )", "x in ()"),
        ("x in (,)", "x in ()"),
        ("x in (,,,)", "x in ()"),
        ("x in (a,)", "x in (,a)"),
        ("x in (,a)", "x in (,a)"),
        ("x in (a,,b)", "x in (,a,b)"),
        ("x in (a, ,b)", "x in (,a,b)"),
        ("x notin ()", "x notin ()"),
        ("x notin (c,b , a)", "x notin (a,b,c)"),
        ("x in (in,notin)", "x in (in,notin)"),
        ("in", "in"),
        ("!notin", "!notin"),
        ("in,notin", "in,notin"),
        ("in in (in)", "in in (in)"),
        ("notin notin (notin)", "notin notin (notin)"),
        ("in=in", "in=in"),
        ("notin!=in", "notin!=in"),
        ("in>1", "in>1"),
        ("x=in", "x=in"),
        ("IN", "IN"),
        ("x in (IN)", "x in (IN)"),
        ("x,x,x", "x,x,x"),
        ("x,!x", "x,!x"),
        ("0.1.2.domain/99 notin (10.10.100.1, tick.tock)", "0.1.2.domain/99 notin (10.10.100.1,tick.tock)"),
        ("app.kubernetes.io/name=Web_1.2-x", "app.kubernetes.io/name=Web_1.2-x"),
        ("a.b/in in (x)", "a.b/in in (x)"),
        ("Z,a,A", "A,Z,a"),
    ] {
        let selector = Selector::parse(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(selector.to_string(), canonical, "{text:?}");
        assert_eq!(Selector::parse(canonical), Ok(selector), "{canonical:?}");
    }
}

/// Each comes with the byte where the error is and the word or sign that stands there.
#[test]
fn refused_texts_with_their_position() {
    for (text, position, found) in [
        (",", 0, ","),
        (",x", 0, ","),
        ("x,", 2, ""),
        ("x, ", 3, ""),
        ("x=,", 3, ""),
        ("x in (a),", 9, ""),
        ("x,,y", 2, ","),
        ("x y", 2, "y"),
        ("x inn (a)", 2, "inn"),
        ("x IN (a)", 2, "IN"),
        ("xin (a)", 4, "("),
        ("x nott in (y)", 2, "nott"),
        ("x (", 2, "("),
        ("x)", 1, ")"),
        ("(", 0, "("),
        ("()", 0, "("),
        ("=", 0, "="),
        ("=a", 0, "="),
        ("!=a", 0, "!="),
        (">1", 0, ">"),
        ("!", 1, ""),
        ("! ", 2, ""),
        ("!!x", 1, "!"),
        ("!,x", 1, ","),
        ("!=", 0, "!="),
        ("x!", 1, "!"),
        ("x!,y", 1, "!"),
        ("x!y", 1, "!"),
        ("x ! = y", 2, "!"),
        ("!x=a", 2, "="),
        ("!x!=a", 2, "!="),
        ("!x in (a)", 3, "in"),
        ("!x>1", 2, ">"),
        ("x==a==b", 4, "=="),
        ("x=a=b", 3, "="),
        ("x===a", 3, "="),
        ("x= =a", 3, "="),
        ("x!==a", 3, "="),
        ("x=!a", 2, "!"),
        ("x=>1", 2, ">"),
        ("x>=1", 2, "="),
        ("x<>1", 2, ">"),
        ("x=(a)", 2, "("),
        ("x=a b", 4, "b"),
        ("x=a y=b", 4, "y"),
        ("x in", 4, ""),
        ("x in ", 5, ""),
        ("a in x)", 5, "x"),
        ("x in a", 5, "a"),
        ("x in in", 5, "in"),
        ("x in in (a)", 5, "in"),
        ("x in,y", 4, ","),
        ("x in =a", 5, "="),
        ("x notin(", 8, ""),
        ("x in (a", 7, ""),
        ("x in (a,", 8, ""),
        ("x in (,", 7, ""),
        ("x in (a b)", 8, "b"),
        ("x in (a=b)", 7, "="),
        ("x in (=)", 6, "="),
        ("x in (!a)", 6, "!"),
        ("x in ((a))", 6, "("),
        ("x in (a)y", 8, "y"),
        ("x in (a))", 8, ")"),
        ("x in (a) in (b)", 9, "in"),
        ("x \0 and all that follows", 2, "\0"),
        ("x=a \0", 4, "\0"),
        ("x>", 2, ""),
        ("x>,y", 2, ","),
        ("x>a", 2, "a"),
        ("x<1.5", 2, "1.5"),
        ("x<9223372036854775808", 2, "9223372036854775808"),
        ("x>(1)", 2, "("),
    ] {
        let SelectorError { input, position: at, kind } = Selector::parse(text).unwrap_err();
        assert_eq!((input.as_str(), at), (text, position), "{kind:?}");
        match kind {
            SelectorErrorKind::Unexpected { found: actual, .. } => assert_eq!(actual, found, "{text:?}"),
            kind => panic!("{text:?}: {kind:?}"),
        }
    }
}

#[test]
fn broken_label_rules_are_found_within_the_whole_text() {
    use SelectorErrorKind::{Key, Value};
    let long = "x".repeat(64);
    for (text, position, kind) in [
        ("x=a||y=b", 3, Value(LabelError::Character)),
        ("a,b/c/d", 5, Key(LabelError::ExtraSlash)),
        ("a, !/d", 4, Key(LabelError::EmptyPrefix)),
        ("a,b/", 4, Key(LabelError::EmptyName)),
        ("a,B.c/d=1", 2, Key(LabelError::PrefixCharacter)),
        ("x in (a, b, -c)", 12, Value(LabelError::Character)),
        ("x in (a,b_,c)", 9, Value(LabelError::Character)),
        ("x=a/b", 3, Value(LabelError::Character)),
        ("x>-1", 2, Value(LabelError::Character)),
        ("ä", 0, Key(LabelError::Character)),
        ("x=aä", 3, Value(LabelError::Character)),
        ("x\0", 1, Key(LabelError::Character)),
        ("\0", 0, Key(LabelError::Character)),
        ("x=a\u{a0},y=b", 3, Value(LabelError::Character)),
        ("x\u{b}", 1, Key(LabelError::Character)),
        (&format!("a,{long}"), 65, Key(LabelError::TooLong)),
        (&format!("a={long}"), 65, Value(LabelError::TooLong)),
        (&format!("a={}é", &long[..62]), 64, Value(LabelError::TooLong)),
        (&format!("{}/a", long.repeat(4)), 253, Key(LabelError::PrefixTooLong)),
    ] {
        let error = Selector::parse(text).unwrap_err();
        assert_eq!((error.position, &error.kind), (position, &kind), "{error}");
    }
}

#[test]
fn errors_are_one_line() {
    for (text, message) in [
        ("a in x)", r#"label selector "a in x)": expected `(` at byte 5, found `x`"#),
        ("a,", r#"label selector "a,": expected a label key or `!` at byte 2, found the end"#),
        ("!x=a", r#"label selector "!x=a": expected `,` or the end at byte 2, found `=`"#),
        (
            "a\nin\u{b}",
            "label selector \"a\\nin\\u{b}\": expected `=`, `==`, `!=`, `in`, `notin`, `>`, `<`, `,` or the end at byte 2, found `in\\u{b}`",
        ),
        ("a/b/c", r#"label selector "a/b/c": bad label key at byte 3: a label key has at most one `/`"#),
    ] {
        assert_eq!(Selector::parse(text).unwrap_err().to_string(), message);
    }
}

const OPERATORS: [Operator; 9] = [
    Operator::Equals,
    Operator::DoubleEquals,
    Operator::NotEquals,
    Operator::In,
    Operator::NotIn,
    Operator::Exists,
    Operator::DoesNotExist,
    Operator::GreaterThan,
    Operator::LessThan,
];

/// Keys that meet each other often, and some that look like syntax.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec!["a", "b", "in", "notin", "x.io/a"]).prop_map(str::to_owned),
        1 => "([a-z0-9]([-a-z0-9]{0,4}[a-z0-9])?\\.io/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,6}[A-Za-z0-9])?",
    ]
}

const MAX: &str = "9223372036854775807";

/// Values of labels, among them some that no requirement can ask for but an object may have.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![8 => askable_value(), 1 => select(vec!["-7", "+5"]).prop_map(str::to_owned)]
}

fn askable_value() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => select(vec!["", "x", "in", "notin", "0", "5", "007", MAX]).prop_map(str::to_owned),
        1 => "[A-Za-z0-9]([-A-Za-z0-9_.]{0,6}[A-Za-z0-9])?",
    ]
}

/// A requirement's parts, with values that the operator takes.
fn parts() -> impl Strategy<Value = (String, Operator, Vec<String>)> {
    (key(), select(OPERATORS.to_vec()), vec(askable_value(), 1..4), 0..=i64::MAX).prop_map(
        |(key, operator, values, n)| {
            let values = match operator {
                Operator::In | Operator::NotIn => values,
                Operator::Exists | Operator::DoesNotExist => vec![],
                Operator::GreaterThan | Operator::LessThan => {
                    vec![if n % 2 == 0 { n % 10 } else { n }.to_string()]
                }
                _ => values[..1].to_vec(),
            };
            (key, operator, values)
        },
    )
}

fn build(parts: &[(String, Operator, Vec<String>)]) -> Selector {
    Selector::new(
        parts.iter().map(|(key, operator, values)| Requirement::new(key, *operator, values).unwrap()),
    )
}

/// What the requirement means, said as plainly as possible.
fn holds(labels: &BTreeMap<String, String>, key: &str, operator: Operator, values: &[String]) -> bool {
    let label = labels.get(key);
    let number = |text: &String| text.parse::<i64>().ok();
    match operator {
        Operator::Exists => label.is_some(),
        Operator::DoesNotExist => label.is_none(),
        Operator::Equals | Operator::DoubleEquals => label == Some(&values[0]),
        Operator::NotEquals => label != Some(&values[0]),
        Operator::In => values.iter().any(|value| label == Some(value)),
        Operator::NotIn => values.iter().all(|value| label != Some(value)),
        Operator::GreaterThan => label.and_then(number).is_some_and(|n| n > number(&values[0]).unwrap()),
        Operator::LessThan => label.and_then(number).is_some_and(|n| n < number(&values[0]).unwrap()),
    }
}

#[test]
fn a_selectors_text_is_the_selector() {
    histories(&vec(parts(), 0..6), |parts| {
        let selector = build(&parts);
        assert_eq!(Selector::parse(&selector.to_string()), Ok(selector.clone()));
        assert_eq!(selector.is_everything(), parts.is_empty());
        assert!(selector.requirements().is_sorted_by(|a, b| a.key() <= b.key()));
    });
}

#[test]
fn matching_is_what_the_requirements_say() {
    let labels = btree_map(key(), value(), 0..6);
    histories(&(vec(parts(), 0..4), labels), |(parts, labels)| {
        let selector = build(&parts);
        let expected = parts.iter().all(|(key, operator, values)| holds(&labels, key, *operator, values));
        assert_eq!(selector.matches(&labels), expected);
        assert_eq!(selector.matches(&Labels::from(&labels)), expected, "in compact form");
        assert!(!(expected && selector.is_nothing()), "nothing matches nothing");
        for requirement in selector.requirements() {
            let found = labels.get(requirement.key());
            let named =
                requirement.exact_values().is_none_or(|values| found.is_some_and(|v| values.contains(v)));
            assert!(named || !expected, "an index on {requirement} would miss a match");
        }
    });
}

/// Parses a text that may be anything.
fn parse_anything(text: &str) {
    match Selector::parse(text) {
        Ok(selector) => assert_eq!(Selector::parse(&selector.to_string()), Ok(selector)),
        Err(error) => {
            assert!(text.is_char_boundary(error.position), "{error}");
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}

#[test]
fn any_text_is_read_or_refused_within_its_bounds() {
    let words = [
        "a", "in", "notin", "=", "!", "(", ")", ",", ">", "<", " ", "\n", "1", "-", "/", ".", "é", "\0", "☃",
    ];
    histories(&any::<String>(), |text| parse_anything(&text));
    histories(&vec(any::<u8>(), 0..200), |bytes| parse_anything(&String::from_utf8_lossy(&bytes)));
    histories(&vec(select(words.to_vec()), 0..100), |words| parse_anything(&words.concat()));
}

#[test]
fn a_selector_with_a_slip_is_read_or_refused_within_its_bounds() {
    let slip = (any::<prop::sample::Index>(), 0..3usize, any::<char>());
    histories(&(vec(parts(), 1..4), vec(slip, 1..4)), |(parts, slips)| {
        let mut text: Vec<char> = build(&parts).to_string().chars().collect();
        for (at, cut, c) in slips {
            let at = at.index(text.len() + 1);
            let end = text.len().min(at + cut);
            text.splice(at..end, (cut != 1).then_some(c));
        }
        parse_anything(&text.into_iter().collect::<String>());
    });
}

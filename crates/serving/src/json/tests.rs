use informer_testing::histories;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::*;

/// Looks at everything there is, as the decoded value shows it.
fn seen(json: &Json<'_>) -> Value {
    if let Some(elements) = json.as_array() {
        return elements.iter().map(seen).collect();
    }
    if let Some(members) = json.as_object() {
        return members.into_iter().map(|(name, member)| (name.into_owned(), seen(member))).collect();
    }
    let text = json.as_str().map(Value::from);
    let number = || json.as_i64().map(Value::from);
    text.or_else(|| json.as_bool().map(Value::from)).or_else(number).unwrap_or_else(|| json.value())
}

#[test]
fn what_is_read_is_what_is_decoded() {
    let texts = [
        "null",
        " true ",
        "-0",
        "1.50",
        "9223372036854775808",
        r#""a\"\u0062""#,
        "[]",
        r#"[[],{},[[1]],"]"]"#,
        r#" { "a" : [ 1 , { "}" : "{" } ] , "b" : { } } "#,
        r#"{"a":1,"a":{"b":[1]},"c":{"b":1,"b":2},"\u0061":{"b":[{"x":1},2]}}"#,
        r#"{"":0,"\n":1,"é":"☃","e\u0301":[null,false]}"#,
    ];
    for text in texts {
        let decoded: Value = serde_json::from_str(text).unwrap();
        assert_eq!(seen(&Outline::of(text).root()), decoded, "{text}");
    }
}

#[test]
fn any_value_is_read_as_it_was_written() {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(4, 40, 6, |inner| {
        let name = prop_oneof![select(vec!["a", "metadata", ""]).prop_map(str::to_owned), any::<String>()];
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((name, inner), 0..6).prop_map(|members| members.into_iter().collect()),
        ]
    });
    histories(&value, |value| {
        for text in [value.to_string(), format!("{value:#}")] {
            assert_eq!(seen(&Outline::of(&text).root()), serde_json::from_str::<Value>(&text).unwrap());
        }
    });
}

#[test]
fn a_pointer_leads_where_it_leads_in_the_decoded_value() {
    let text = r#"{"a":{"b":1,"x/y~z":2},"l":[[0],{"b":"3"}],"a":{"b\u0063":4,"x/y~z":5,"":6},"s":"t"}"#;
    let outline = Outline::of(text);
    let root = outline.root();
    let decoded: Value = serde_json::from_str(text).unwrap();
    let pointers = [
        "",
        "/",
        "a",
        "/a",
        "/a/b",
        "/a/bc",
        "/a/",
        "/a/x~1y~0z",
        "/l/0/0",
        "/l/1/b",
        "/l/2",
        "/l/b",
        "/s/0",
        "/n",
        "/l/-1",
        "/a/bcd",
    ];
    for pointer in pointers {
        assert_eq!(root.pointer(pointer).map(Json::value).as_ref(), decoded.pointer(pointer), "{pointer}");
    }
}

#[test]
fn a_value_is_told_as_it_stands_in_the_text() {
    let outline = Outline::of(r#" {"a": [ 1.50, {"b" : "\u0063"} ] , "d":1e3}"#);
    let text = |pointer| outline.root().pointer(pointer).map(Json::text);
    assert_eq!(text("/a"), Some(r#"[ 1.50, {"b" : "\u0063"} ]"#));
    assert_eq!(text("/a/0"), Some("1.50"));
    assert_eq!(text("/a/1/b"), Some(r#""\u0063""#));
    assert_eq!(text("/d"), Some("1e3"));
    assert_eq!(text("/e"), None);
}

#[test]
fn a_name_or_a_text_that_says_nothing_is_passed_over() {
    let outline = Outline::of(r#"{"\ud800":[1],"a":"\ud800","b":2}"#);
    let root = outline.root();
    assert_eq!(root.get("a").and_then(Json::as_str), None);
    assert_eq!(root.get("a").map(Json::value), Some(Value::Null));
    assert_eq!(root.get("b").and_then(Json::as_i64), Some(2));
    assert_eq!(root.as_object().map(|members| members.len()), Some(2));
}

#[test]
fn a_text_may_be_very_deep() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let text = format!(r#"{{"a":{deep},"b":[{deep},7]}}"#);
    let outline = Outline::of(&text);
    let root = outline.root();
    assert_eq!(root.get("a").map(Json::text), Some(&*deep));
    assert_eq!(root.get("a").map(Json::value), Some(Value::Null));
    assert_eq!(root.pointer("/b/1").and_then(Json::as_i64), Some(7));
}

#[test]
fn no_text_makes_the_reader_panic() {
    let whole = r#"{"a":[1,"x\"",{"b":null}],"c":{"d":[[]]},"é":"☃"}"#;
    for end in (0..=whole.len()).filter(|end| whole.is_char_boundary(*end)) {
        seen(&Outline::of(&whole[..end]).root());
    }
    let words = ["{", "}", "[", "]", ",", ":", "\"a\"", "\"", "\\", "1", "null", " ", "é"];
    histories(&vec(select(words.to_vec()), 0..20), |words| {
        seen(&Outline::of(&words.concat()).root());
    });
    histories(&any::<String>(), |text| drop(seen(&Outline::of(&text).root())));
    assert_eq!(seen(&Outline::of("").root()), json!(null));
}

use informer_testing::histories;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::*;
use crate::json::Outline;

fn find(path: &str, object: &Value) -> Vec<Value> {
    let path = JsonPath::parse(path).unwrap_or_else(|error| panic!("{error}"));
    let text = object.to_string();
    let outline = Outline::of(&text);
    path.find(&outline.root()).into_iter().map(Json::value).collect()
}

fn object() -> Value {
    json!({
        "metadata": { "name": "web", "labels": { "app.example.com/tier": "front", "a": { "b": 1 } } },
        "spec": { "replicas": 3, "": "nameless", "hosts": ["a", "b", "c"], "none": [], "nothing": null },
        "status": { "conditions": [
            { "type": "Synced", "status": "False", "count": 1, "weight": 0.5, "done": false },
            { "type": "Ready", "status": "True", "count": 3, "weight": 1.5, "done": true, "wants": "True" },
        ] },
    })
}

#[test]
fn a_path_leads_to_the_values_that_a_server_finds() {
    let object = object();
    let conditions = &object["status"]["conditions"];
    let expected = [
        (".spec.replicas", json!([3])),
        ("$.spec.replicas", json!([3])),
        (" .spec .replicas ", json!([3])),
        (".spec.", json!(["nameless"])),
        (".spec.nothing", json!([null])),
        (".spec.nothing[0].x", json!([])),
        (".spec.missing.deeper[0]", json!([])),
        (".spec.replicas.deeper", json!([])),
        (".spec['replicas']", json!([3])),
        (r#".spec["replicas"]"#, json!([3])),
        (".metadata.labels.app\\.example\\.com/tier", json!(["front"])),
        (".metadata.labels['app\\.example\\.com/tier']", json!(["front"])),
        (r#".metadata.labels["app.example.com/tier"]"#, json!(["front"])),
        (".metadata.labels['app.example.com/tier']", json!([])),
        (".metadata.labels['a.b']", json!([1])),
        (".metadata.labels.a.*", json!([1])),
        (".spec.hosts[0]", json!(["a"])),
        (".spec.hosts[-1]", json!(["c"])),
        (".spec.hosts[3]", json!([])),
        (".spec.hosts[-4]", json!([])),
        (".spec.hosts[*]", json!(["a", "b", "c"])),
        (".spec.hosts.*", json!(["a", "b", "c"])),
        (".spec.hosts[1:]", json!(["b", "c"])),
        (".spec.hosts[:-1]", json!(["a", "b"])),
        (".spec.hosts[0:0]", json!([])),
        (".spec.hosts[2:1]", json!([])),
        (".spec.hosts[0:9]", json!([])),
        (".spec.none[*]", json!([])),
        (".spec.replicas[0]", json!([])),
        (".status.conditions[*].type", json!(["Synced", "Ready"])),
        (".status.conditions", json!([conditions])),
    ];
    for (path, values) in expected {
        assert_eq!(Value::from(find(path, &object)), values, "{path}");
    }
}

#[test]
fn a_filter_keeps_the_elements_for_which_it_holds() {
    let expected = [
        (r#"@.type=="Ready""#, json!(["Ready"])),
        (r#" @.type == 'Ready' "#, json!(["Ready"])),
        (r#"@.type!="Ready""#, json!(["Synced"])),
        (r#"@.type == "\Ready""#, json!(["Ready"])),
        ("@.count<2", json!(["Synced"])),
        ("@.count <= 1", json!(["Synced"])),
        ("@.count>1", json!(["Ready"])),
        ("@.count >= +1", json!(["Synced", "Ready"])),
        ("@.weight > 1.0", json!(["Ready"])),
        ("@.done==true", json!(["Ready"])),
        ("@['done'] != true", json!(["Synced"])),
        ("@.wants", json!(["Ready"])),
        ("@.status==@.wants", json!(["Ready"])),
        (r#""Ready"==@.type"#, json!(["Ready"])),
        // Nothing at all, since values of two types do not compare.
        ("@.count == 1.0", json!([])),
        ("@.type > 1", json!([])),
        ("@.done > false", json!([])),
        (r#"@.missing=="x""#, json!([])),
    ];
    for (filter, types) in expected {
        let path = format!(".status.conditions[?({filter})].type");
        assert_eq!(Value::from(find(&path, &object())), types, "{path}");
    }
    assert!(find(r#".spec[?(@.type=="Ready")]"#, &object()).is_empty());
    assert!(find(r#".spec.hosts[?(@.type=="Ready")]"#, &object()).is_empty());
    assert_eq!(find(r#".spec.hosts[?(@=="b")]"#, &object()), [json!("b")]);
}

#[test]
fn an_error_tells_where_the_text_stops_being_a_path() {
    let expected = [
        ("", 0, "`.` or `[`"),
        ("spec.replicas", 0, "`.` or `[`"),
        (".spec,", 5, STEP),
        (".spec}", 5, STEP),
        (".a..b", 2, "one `.`"),
        (".a[", 3, "`*`, `?(`"),
        (".a[x]", 3, "`*`, `?(`"),
        (".a[0", 4, "`]`"),
        (".a[0,1]", 4, "`]`"),
        (".a[99999999999999999999]", 3, "an index"),
        (".a['b]", 6, "`'`"),
        (".a[?(@.b==\"c)]", 14, "the second quote"),
        (".a[?(@.b=1)]", 8, "`==`"),
        (".a[?(@.b==x)]", 10, "`@`"),
        (".a[?(@.b==inf)]", 10, "`@`"),
        (".a[?(@.b[?(@.c)])]", 11, "no filter"),
        (".é[é]", 4, "`*`, `?(`"),
    ];
    for (path, position, wanted) in expected {
        let error = JsonPath::parse(path).expect_err(path);
        assert_eq!(error.position, position, "{error}");
        assert!(error.expected.starts_with(wanted), "{error}");
    }
    let error = JsonPath::parse(".a[x]").unwrap_err().to_string();
    assert!(error.starts_with(r#"JSONPath ".a[x]": expected `*`, `?(`,"#), "{error}");
    assert!(error.ends_with("at byte 3"), "{error}");
}

const STEP: &str = "`.`, `[` or the end";

#[test]
fn no_text_makes_the_parser_or_the_search_panic() {
    let text = object().to_string();
    let object = Outline::of(&text);
    let check = |text: &str| match JsonPath::parse(text) {
        Ok(path) => drop(path.find(&object.root())),
        Err(error) => assert!(text.is_char_boundary(error.position), "{error}"),
    };
    histories(&any::<String>(), |text| check(&text));
    histories(&vec(any::<u8>(), 0..60), |bytes| check(&String::from_utf8_lossy(&bytes)));
    let words = [
        ".",
        "[",
        "]",
        "[?(",
        ")]",
        "@",
        "$",
        "*",
        "'",
        "\"",
        "\\",
        "==",
        "!=",
        "<",
        ">",
        "0",
        "-1",
        ":",
        "spec",
        "hosts",
        "status",
        "conditions",
        "type",
        "count",
        "true",
        " ",
        "é",
        "[*]",
        "[0]",
        "{",
    ];
    histories(&vec(select(words.to_vec()), 0..20), |words| check(&words.concat()));
}

//! Manifests: YAML and JSON as kubectl reads them.

use informer_apiserver::{ApiServer, LoadError, View};
use informer_testing::{custom_resource, widgets};
use serde_json::{Value, json};

use crate::{
    client::Api,
    objects::{CRDS, MAPS, WIDGETS, mk_config_map, mk_crd, mk_server, mk_widget},
};

fn map(server: &ApiServer, name: &str) -> Option<Value> {
    server.get(("", "configmaps"), "default", name)
}

/// The `data` of a ConfigMap of a custom kind, in which every type is allowed.
fn loaded(yaml: &str) -> Result<Value, LoadError> {
    let server = mk_server();
    server.load(&custom_resource("Widget", &[]).to_string()).expect("a definition");
    let yaml: String = yaml.lines().map(|line| format!("  {line}\n")).collect();
    server
        .load(&format!("apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: w}}\nspec:\n{yaml}"))?;
    let mut widget = server.get(("example.com", "widgets"), "default", "w").expect("a widget");
    Ok(widget["spec"].take())
}

#[test]
fn yaml_has_any_number_of_documents_and_empty_ones_are_nothing() {
    let server = mk_server();
    let manifest = "
# a comment before everything
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: a   # here, too
data:
  text: |
    line 1
    line 2
---
---
# nothing but a comment
---
null
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: kube-system}}
...
---
";
    assert_eq!(server.load(manifest).expect("loaded"), 2);
    assert_eq!(map(&server, "a").expect("a")["data"], json!({ "text": "line 1\nline 2\n" }));
    assert!(server.get(("", "configmaps"), "kube-system", "b").is_some());
}

#[test]
fn nothing_is_no_objects() {
    for nothing in [
        "",
        "\n\n",
        "# a comment\n",
        "---\n---\n",
        "---\n# a comment\n...\n",
        "\u{feff}",
        "{\"kind\":\"List\",\"items\":[]}",
    ] {
        assert_eq!(mk_server().load(nothing).map_err(|e| e.to_string()), Ok(0), "{nothing:?}");
    }
}

#[test]
fn json_is_one_object_or_several_one_after_another() {
    let object =
        |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    for (manifest, count) in [
        (object("a").to_string(), 1),
        (format!("\u{feff}\n {:#}", object("a")), 1),
        (format!("{}{}\n{}\n", object("a"), object("b"), object("c")), 3),
        (format!("{}\n---\n{}\n", object("a"), object("b")), 2),
        (format!("---\n{}\n", object("a")), 1),
    ] {
        let server = mk_server();
        assert_eq!(server.load(&manifest).map_err(|e| e.to_string()), Ok(count), "{manifest}");
        assert!(map(&server, "a").is_some());
    }
}

#[test]
fn a_list_stands_for_its_items_and_says_of_them_what_they_do_not() {
    let server = mk_server();
    let list = json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } },
            { "apiVersion": "v1", "kind": "ConfigMapList", "items": [{ "metadata": { "name": "b" } }] },
            { "apiVersion": "apps/v1", "kind": "DeploymentList", "metadata": { "resourceVersion": "7" }, "items": [] },
        ],
    });
    assert_eq!(server.load(&list.to_string()).expect("loaded"), 2);
    assert!(map(&server, "a").is_some() && map(&server, "b").is_some());
    let bare = "{apiVersion: v1, kind: List, items: [{metadata: {name: a}}]}";
    assert!(
        matches!(server.load(bare), Err(LoadError::Refused { document: 1, .. })),
        "a List says nothing of kinds"
    );
}

#[test]
fn namespaces_and_definitions_come_before_what_needs_them() {
    let server = mk_server();
    let definition = custom_resource("Widget", &[]);
    let manifest = format!(
        "{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: w, namespace: shop}}}}\n---\n\
         {{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, namespace: shop}}}}\n---\n{definition}\n---\n\
         {{apiVersion: v1, kind: Namespace, metadata: {{name: shop}}}}\n"
    );
    assert_eq!(server.load(&manifest).expect("loaded"), 4);
    assert!(server.get(("example.com", "widgets"), "shop", "w").is_some());
    assert!(server.get(("", "configmaps"), "shop", "a").is_some());
}

#[test]
fn what_is_loaded_again_is_replaced_and_keeps_what_it_says_of_itself() {
    let server = mk_server();
    let pod = |phase: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": "p", "uid": "1b4e28ba-2fa1-11d2-883f-0016d3cca427" },
            "spec": { "containers": [{ "name": "c", "image": "i", "resources": { "limits": { "cpu": 1, "memory": "1Gi" } } }] },
            "status": { "phase": phase },
        })
        .to_string()
    };
    server.load(&pod("Running")).expect("loaded");
    server.load(&pod("Failed")).expect("loaded");
    let loaded = server.get(("", "pods"), "default", "p").expect("a pod");
    assert_eq!(loaded["status"]["phase"], "Failed");
    assert_eq!(loaded["metadata"]["uid"], "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
}

#[test]
fn broken_text_is_an_error_that_names_the_line() {
    for (manifest, line) in [
        ("apiVersion: v1\nkind: ConfigMap\ndata: [1, 2\n", ""),
        ("apiVersion: v1\nkind: ConfigMap\n\tdata: {}\n", "line 2"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n name: b\n", "line 5"),
        ("apiVersion: v1\nkind: a\nkind: b\n", "line 3"),
        ("a: *nowhere\n", "line 1"),
        ("{\n  \"apiVersion\": \"v1\",\n  \"kind\": oops\n", "line 3"),
        ("a: .inf\n", "line 1"),
        ("a: 1\n~: 2\n", "line 2"),
    ] {
        let server = mk_server();
        let version = server.version();
        match server.load(manifest) {
            Err(LoadError::Parse(message)) => {
                assert!(message.contains("line") && message.contains(line), "{manifest:?}: {message}");
                assert_eq!(message.lines().count(), 1, "{message}");
            }
            other => panic!("{manifest:?}: {other:?}"),
        }
        assert_eq!(server.version(), version, "nothing was written");
    }
}

#[test]
fn an_object_that_is_refused_is_named_with_its_document() {
    for (manifest, document, text, code) in [
        ("{apiVersion: v1, kind: Gizmo, metadata: {name: a}}", 1, "Gizmo \"a\"", 400),
        ("{apiVersion: v9, kind: Pod, metadata: {name: a}}", 1, "\"v9\"", 400),
        ("{kind: Pod, metadata: {name: a}}", 1, "Pod \"a\"", 400),
        ("{}", 1, "?", 400),
        ("- apiVersion: v1", 1, "?", 400),
        ("just text", 1, "?", 400),
        (
            "# nothing\n---\n\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: none}}",
            1,
            "namespaces",
            404,
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap}",
            2,
            "ConfigMap \"?\"",
            400,
        ),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: No_Name}}", 1, "No_Name", 422),
    ] {
        match mk_server().load(manifest) {
            Err(error @ LoadError::Refused { .. }) => {
                let message = error.to_string();
                assert!(
                    message.contains(text) && message.contains(&format!("document {document}")),
                    "{message}"
                );
                assert!(
                    matches!(error, LoadError::Refused { status, .. } if status.code == code),
                    "{message}"
                );
            }
            other => panic!("{manifest}: {other:?}"),
        }
    }
}

#[test]
fn what_stands_before_a_refused_object_is_written() {
    let server = mk_server();
    let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: None}\n---\n\
                    {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}";
    assert!(server.load(manifest).is_err());
    assert_eq!((map(&server, "a").is_some(), map(&server, "b").is_some()), (true, false));
}

#[test]
fn text_in_quotes_is_text() {
    let yaml = "a: 'yes'\nb: \"on\"\nc: '0755'\nd: \"1e3\"\ne: \"1\"\nf: 'null'\ng: \"~\"\nh: '2001-01-01'\ni: |-\n  yes\nj: !!str 1\nk: 1.10.0";
    let expected = json!({
        "a": "yes", "b": "on", "c": "0755", "d": "1e3", "e": "1", "f": "null", "g": "~", "h": "2001-01-01", "i": "yes",
        "j": "1", "k": "1.10.0",
    });
    assert_eq!(loaded(yaml).expect("loaded"), expected);
}

#[test]
fn scalars_without_quotes_are_what_kubectl_makes_of_them() {
    let yaml = "yes: yes\nNo: No\non: on\noff: OFF\ny: y\nt: true\noctal: 0755\nnew octal: 0o755\nhex: 0x1F\n\
                zero: 0\nlong: 1_000\nfloat: 1.5\nnothing: null\ntilde: ~\nempty:\ndate: 2001-01-01\ntime: 12:30:45\n\
                version: v1\n1: one\n1.5: x";
    let expected = json!({
        "yes": true, "No": false, "on": true, "off": false, "y": true, "t": true, "octal": 493, "new octal": 493,
        "hex": 31, "zero": 0, "long": 1000, "float": 1.5, "nothing": null, "tilde": null, "empty": null,
        "date": "2001-01-01", "time": "12:30:45", "version": "v1", "1": "one", "1.5": "x",
    });
    assert_eq!(loaded(yaml).expect("loaded"), expected);
    assert_eq!(loaded("e: 1e3").expect("loaded")["e"].as_f64(), Some(1000.0));
}

#[test]
fn a_scalar_of_the_wrong_type_for_a_built_in_kind_is_refused() {
    let yes = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  enabled: yes\n";
    match mk_server().load(yes) {
        Err(error @ LoadError::Refused { .. }) => {
            assert!(error.to_string().contains("data.enabled"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(mk_server().load(&yes.replace("yes", "'yes'")).expect("loaded"), 1);
    let mode = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {hostNetwork: on, containers: [{name: c, image: i}], \
                volumes: [{name: v, secret: {secretName: s, defaultMode: 0644}}]}}";
    let server = mk_server();
    server.load(mode).expect("loaded");
    let pod = server.get(("", "pods"), "default", "p").expect("a pod");
    assert_eq!(pod["spec"]["hostNetwork"], true);
    assert_eq!(pod["spec"]["volumes"][0]["secret"]["defaultMode"], 0o644);
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
    let yaml = "base: &base {a: 1, b: 2}\nsame: *base\nmerged:\n  <<: *base\n  b: 3\nlist: [&x one, *x]";
    let expected = json!({
        "base": { "a": 1, "b": 2 }, "same": { "a": 1, "b": 2 }, "merged": { "a": 1, "b": 3 }, "list": ["one", "one"],
    });
    assert_eq!(loaded(yaml).expect("loaded"), expected);
}

#[test]
fn few_bytes_cannot_become_many_objects_or_a_deep_one() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..12 {
        let below = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb.push_str(&format!("a{i}: &a{i} [{below}]\n"));
    }
    assert!(matches!(loaded(&bomb), Err(LoadError::Parse(_))));
    assert!(matches!(mk_server().load(&format!("a: {}", "[".repeat(100_000))), Err(LoadError::Parse(_))));
    let deep: String = (0..5_000).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
    assert!(matches!(mk_server().load(&deep), Err(LoadError::Parse(_))));
    assert!(matches!(mk_server().load(&"{\"a\":".repeat(100_000)), Err(LoadError::Parse(_))));
}

#[test]
fn a_whole_cluster_fits_into_one_manifest() {
    let server = mk_server();
    let data: String = (0..60).map(|i| format!("  key-{i}: value\n")).collect();
    let manifest: String = (0..3_000)
        .map(|i| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map-{i}\ndata:\n{data}"))
        .collect();
    assert_eq!(server.load(&manifest).expect("loaded"), 3_000);
}

#[tokio::test]
async fn what_a_request_cannot_create_cannot_be_loaded_and_the_reason_is_the_same() {
    let api = Api::new();
    api.post(CRDS, &mk_crd()).await.ok();
    let with = |mut object: Value, pointer: &str, value: Value| {
        *object.pointer_mut(pointer).expect("a field") = value;
        object
    };
    let (map, widget) = (mk_config_map("a"), mk_widget("a", "red"));
    let elsewhere = json!({ "name": "a", "namespace": "nowhere" });
    for (path, object) in [
        (MAPS, with(map.clone(), "/metadata", json!({ "name": "A" }))),
        (MAPS, with(map.clone(), "/metadata", json!({ "name": "a", "labels": { "a": "not a value" } }))),
        (MAPS, with(map.clone(), "/metadata", json!({ "name": "a", "finalizers": ["bare"] }))),
        (MAPS, with(map.clone(), "/data", json!(["a"]))),
        ("/api/v1/namespaces/nowhere/configmaps", with(map, "/metadata", elsewhere)),
        (WIDGETS, with(widget, "/metadata", json!({ "name": "a", "labels": ["a"] }))),
        (CRDS, with(widgets("other.example.com"), "/spec/scope", json!("Everywhere"))),
    ] {
        let refused = api.post(path, &object).await;
        assert!(refused.code >= 400, "{object}: {}", refused.body);
        let Err(LoadError::Refused { status, .. }) = api.server.load(&object.to_string()) else {
            panic!("{object} was loaded")
        };
        assert_eq!(serde_json::to_value(&status).expect("JSON"), refused.body, "{object}");
    }
}

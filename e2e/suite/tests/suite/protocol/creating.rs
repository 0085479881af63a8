//! POST: what is accepted, what the server adds, what it refuses.

use serde_json::{Value, json};

use crate::{
    objects::{mk_deployment, mk_map, mk_pod},
    stage::{Ask, JSON, play},
};

#[test]
fn create_answers_with_what_the_server_adds() {
    play("create", async |stage| {
        let path = stage.maps();
        stage.post(&path, &[], &mk_map("a")).await;
        stage.note("without its type, which the path says");
        stage.post(&path, &[], &json!({ "metadata": { "name": "b" }, "data": { "a": "1" } })).await;
        stage.note("what is the server's to say");
        let metadata = json!({
            "name": "c",
            "uid": "11111111-1111-1111-1111-111111111111",
            "creationTimestamp": "2001-01-01T00:00:00Z",
            "deletionTimestamp": "2001-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 5,
            "selfLink": "/somewhere",
            "labels": {},
            "annotations": { "Example.com/a": "any text" },
        });
        stage.post(&path, &[], &json!({ "metadata": metadata })).await;
        stage.note("a secret is stored with its strings encoded");
        let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "b" } });
        stage.post(&stage.core("secrets"), &[], &secret).await;
        stage.note("again");
        stage.post(&path, &[], &mk_map("a")).await;
        stage.make(&stage.group("apps/v1", "deployments"), mk_deployment("web", 1)).await;
        stage.post(&stage.group("apps/v1", "deployments"), &[], &mk_deployment("web", 1)).await;
    });
}

#[test]
fn names_are_generated() {
    play("generate_name", async |stage| {
        let path = stage.maps();
        for metadata in [
            json!({ "generateName": "web-" }),
            json!({ "generateName": "x".repeat(100) }),
            json!({ "generateName": "b-", "name": "a" }),
        ] {
            let made = stage.make(&path, json!({ "metadata": metadata })).await;
            let name = made["metadata"]["name"].as_str().expect("a name").to_owned();
            let shown = match made["metadata"]["generateName"].as_str() {
                Some(prefix) if name.starts_with(prefix) => {
                    format!("{prefix} and {} more", name.len() - prefix.len())
                }
                Some(prefix) => format!("{} of {prefix}, {} characters", name.len(), name.len()),
                None => name,
            };
            stage.note(format!("{metadata} is {shown}"));
        }
        for metadata in [json!({}), json!({ "name": "" })] {
            stage.write_refused("POST", &path, &[], JSON, &json!({ "metadata": metadata })).await;
        }
    });
}

#[test]
fn what_the_path_does_not_say_is_refused() {
    play("create_refused", async |stage| {
        let path = stage.maps();
        for (api_version, kind) in
            [("v1", "Secret"), ("v1", "Unknown"), ("v2", "ConfigMap"), ("apps/v1", "Deployment")]
        {
            let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "a" } });
            stage.write_refused("POST", &path, &[], JSON, &object).await;
        }
        stage.note("the namespace");
        let mut elsewhere = mk_map("a");
        elsewhere["metadata"]["namespace"] = "kube-system".into();
        stage.post(&path, &[], &elsewhere).await;
        stage.post("/api/v1/namespaces/nowhere/configmaps", &[], &mk_map("a")).await;
        stage.note("a version");
        let mut versioned = mk_map("a");
        versioned["metadata"]["resourceVersion"] = "5".into();
        stage.post(&path, &[], &versioned).await;
        stage.note("the method");
        stage.post(&format!("{path}/a"), &[], &mk_map("a")).await;
        stage.post("/api/v1/configmaps", &[], &mk_map("a")).await;
        stage.put(&path, &[], &mk_map("a")).await;
        stage.patch(&path, &[], "application/merge-patch+json", &json!({})).await;
        stage.delete("/api/v1/configmaps", &[]).await;
        for method in ["OPTIONS", "TRACE", "PROPFIND"] {
            stage.ask(Ask { method, path: &path, ..Ask::default() }).await;
        }
        stage.post("/api/v1/namespaces/default/nodes", &[], &mk_map("a")).await;
    });
}

#[test]
fn names_and_labels_must_be_valid() {
    play("names", async |stage| {
        let path = stage.maps();
        for name in ["A", "a_b", "-a", "a..b", "a/b", "ö", "..", &"x".repeat(254)] {
            stage.write_refused("POST", &path, &[], JSON, &mk_map(name)).await;
        }
        for labels in [
            json!({ "a b": "c" }),
            json!({ "a": "b c" }),
            json!({ "/a": "b" }),
            json!({ "a": "x".repeat(64) }),
        ] {
            let mut map = mk_map("a");
            map["metadata"]["labels"] = labels;
            stage.write_refused("POST", &path, &[], JSON, &map).await;
        }
        let mut map = mk_map("a");
        map["metadata"]["annotations"] = json!({ "a b": "c" });
        stage.write_refused("POST", &path, &[], JSON, &map).await;
        map["metadata"] = json!({ "name": "a", "finalizers": ["no slash or dot"] });
        stage.write_refused("POST", &path, &[], JSON, &map).await;
        let service = json!({ "metadata": { "name": "a.b" }, "spec": { "ports": [{ "port": 80 }] } });
        stage.write_refused("POST", &stage.core("services"), &[], JSON, &service).await;
        let role = json!({ "metadata": { "name": "a/b" } });
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        stage.write_refused("POST", roles, &[], JSON, &role).await;
        let rule = json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] });
        stage.post(roles, &[], &json!({ "metadata": { "name": "system:e2e-Names" }, "rules": [rule] })).await;
        stage.note("two at once");
        stage
            .write_refused(
                "POST",
                &path,
                &[],
                JSON,
                &json!({ "metadata": { "name": "A", "labels": { "a b": "c" } } }),
            )
            .await;
    });
}

#[test]
fn media_types_and_sizes_of_bodies() {
    play("bodies", async |stage| {
        let path = stage.maps();
        for r#type in ["text/plain", "application/xml", "application/merge-patch+json"] {
            stage.write_refused("POST", &path, &[], r#type, &mk_map("a")).await;
        }
        let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  a: '1'\n";
        let headers = &[("content-type", "application/yaml")];
        let ask = Ask { method: "POST", path: &path, headers, body: yaml.to_owned(), ..Ask::default() };
        stage.ask(ask).await;
        stage.write("POST", &path, &[], "application/json; charset=utf-8", &mk_map("charset")).await;
        stage.note("without a media type");
        let body = mk_map("untyped").to_string();
        stage.ask(Ask { method: "POST", path: &path, body, ..Ask::default() }).await;
        stage.note("what is no object");
        for body in ["", "{", "[]", "5", "{}{}", "{\"metadata\":5}"] {
            let headers = &[("content-type", JSON)];
            let body = body.to_owned();
            stage
                .ask(Ask { method: "POST", path: &path, headers, body, own_words: true, ..Ask::default() })
                .await;
        }
        stage.note("three mebibytes and a byte");
        let mut map = mk_map("large");
        map["data"]["a"] = "".into();
        map["data"]["a"] = "x".repeat(3 * 1024 * 1024 + 1 - map.to_string().len()).into();
        stage.post(&path, &[], &map).await;
    });
}

#[test]
fn a_dry_run_leaves_nothing_behind() {
    play("dry_run", async |stage| {
        let path = stage.maps();
        let shown = stage.send_quietly("POST", &format!("{path}?dryRun=All"), mk_map("a")).await;
        let metadata = shown.body["metadata"].as_object().expect("metadata");
        let fields: Vec<&str> =
            metadata.keys().map(String::as_str).filter(|name| *name != "managedFields").collect();
        stage.note(format!("create answers {} with {}", shown.code, fields.join(", ")));
        stage.get(&format!("{path}/a"), &[]).await;
        stage.post(&path, &[("dryRun", "Some")], &mk_map("a")).await;
        stage.post(&path, &[], &mk_map("a")).await;
        stage.post(&path, &[("dryRun", "All")], &mk_map("a")).await;
        stage
            .patch(
                &format!("{path}/a"),
                &[("dryRun", "All")],
                "application/merge-patch+json",
                &json!({ "data": { "b": "2" } }),
            )
            .await;
        let mut other = mk_map("a");
        other["data"] = json!({ "c": "3" });
        stage.put(&format!("{path}/a"), &[("dryRun", "All")], &other).await;
        stage.delete(&format!("{path}/a"), &[("dryRun", "All")]).await;
        stage.delete_with(&format!("{path}/a"), &json!({ "dryRun": ["All"] })).await;
        stage.delete_with(&format!("{path}/a"), &json!({ "dryRun": ["Some"] })).await;
        stage.delete(&path, &[("dryRun", "All")]).await;
        stage.get(&format!("{path}/a"), &[]).await;
    });
}

#[test]
fn unknown_fields_are_dropped_told_or_refused() {
    play("field_validation", async |stage| {
        let path = stage.maps();
        let unknown = |name: &str| {
            let mut map = mk_map(name);
            map["nothing"] = "x".into();
            map["metadata"]["lables"] = json!({ "a": "b" });
            map
        };
        for (name, validation) in [("a", ""), ("b", "Warn"), ("c", "Ignore"), ("d", "Strict")] {
            stage.post(&path, &[("fieldValidation", validation)], &unknown(name)).await;
        }
        stage.post(&path, &[("fieldValidation", "Perhaps")], &mk_map("e")).await;
        stage.note("a field twice");
        let twice = "{\"metadata\":{\"name\":\"f\"},\"data\":{\"a\":\"1\"},\"data\":{\"b\":\"2\"}}";
        for (validation, body) in [("Strict", twice), ("Warn", twice)] {
            let (parameters, headers) = (&[("fieldValidation", validation)], &[("content-type", JSON)]);
            let body = body.to_owned();
            stage.ask(Ask { method: "POST", path: &path, parameters, headers, body, ..Ask::default() }).await;
        }
        stage.note("fields of the wrong type");
        for (pointer, value) in [
            ("/spec/containers", json!({})),
            ("/spec/containers/0/image", json!(5)),
            ("/metadata/labels", json!([])),
            ("/metadata/labels", json!({ "a": 5 })),
            ("/spec/hostNetwork", json!("yes")),
        ] {
            let mut pod = mk_pod("a");
            let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
            let parent: &mut Value = pod.pointer_mut(parent).expect("the parent");
            parent[field] = value;
            stage.write_refused("POST", &stage.core("pods"), &[], JSON, &pod).await;
        }
    });
}

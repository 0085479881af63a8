//! Who manages which fields, and server-side apply.

use serde_json::{Value, json};

use crate::{
    objects::{mk_deployment, mk_map},
    stage::{Ask, JSON, Stage, play},
};

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

/// Writes down who manages what of an object.
async fn managers(stage: &Stage, path: &str) {
    let answer = stage.send_quietly("GET", path, Value::Null).await;
    let mut entries = Vec::new();
    for entry in answer.body["metadata"]["managedFields"].as_array().cloned().unwrap_or_default() {
        let text = |field: &str| entry[field].as_str().unwrap_or("-").to_owned();
        let dated = if entry.get("time").is_some() { "dated" } else { "undated" };
        let who = [text("manager"), text("operation"), text("apiVersion"), text("subresource")].join(" ");
        entries.push((format!("  {who} {dated}"), entry));
    }
    // They are in the order of their times, which depends on how fast everything was.
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (who, entry) in entries {
        stage.note(who);
        for line in fields(&entry["fieldsV1"], "") {
            stage.note(format!("    {line}"));
        }
    }
}

/// The fields of a set, one on a line.
fn fields(set: &Value, path: &str) -> Vec<String> {
    let below = set.as_object().cloned().unwrap_or_default();
    if below.is_empty() {
        return vec![path.to_owned()];
    }
    below.iter().flat_map(|(name, set)| fields(set, &format!("{path} {name}"))).collect()
}

async fn apply(stage: &Stage, path: &str, manager: &str, force: bool, object: &Value) {
    let parameters = [("fieldManager", manager), ("force", "true")];
    let parameters = if force { &parameters[..] } else { &parameters[..1] };
    stage.patch(path, parameters, APPLY, object).await;
    managers(stage, path).await;
}

#[test]
fn every_write_has_a_manager() {
    play("managers", async |stage| {
        let path = stage.maps();
        let a = format!("{path}/a");
        stage.note("by name, and by what the client calls itself");
        stage.post(&path, &[("fieldManager", "maker")], &mk_map("a")).await;
        managers(stage, &a).await;
        let b = format!("{path}/b");
        let (headers, body) =
            (&[("user-agent", "tester/1.0 (linux)"), ("content-type", JSON)], mk_map("b").to_string());
        stage.ask(Ask { method: "POST", path: &path, headers, body, ..Ask::default() }).await;
        managers(stage, &b).await;
        stage.note("a change, and none");
        let change = json!({ "data": { "a": "2", "b": "1" }, "metadata": { "annotations": { "x": "y" } } });
        for _ in 0..2 {
            stage.patch(&a, &[("fieldManager", "changer")], MERGE, &change).await;
            managers(stage, &a).await;
        }
        stage.note("an update takes away, and gives");
        let mut object = mk_map("a");
        object["data"] = json!({ "b": "1", "c": "3" });
        stage.put(&a, &[("fieldManager", "updater")], &object).await;
        managers(stage, &a).await;
        stage.note("a dry run");
        stage
            .patch(&a, &[("fieldManager", "dry"), ("dryRun", "All")], MERGE, &json!({ "data": { "d": "4" } }))
            .await;
        managers(stage, &a).await;
        stage.note("no manager");
        stage.patch(&a, &[], MERGE, &json!({ "metadata": { "managedFields": [{}] } })).await;
        managers(stage, &a).await;
        stage.patch(&a, &[("fieldManager", "late")], MERGE, &json!({ "data": { "e": "5" } })).await;
        managers(stage, &a).await;
        stage.note("names that are none");
        let long = "x".repeat(129);
        for name in [long.as_str(), "a\tb"] {
            stage.post(&path, &[("fieldManager", name)], &mk_map("c")).await;
        }
    });
}

#[test]
fn managers_of_kinds_with_defaults_and_a_status() {
    play("managers_of_kinds", async |stage| {
        let deployments = stage.group("apps/v1", "deployments");
        let web = format!("{deployments}/web");
        stage
            .send(&Ask {
                method: "POST",
                path: &deployments,
                parameters: &[("fieldManager", "maker")],
                headers: &[("content-type", JSON)],
                body: mk_deployment("web", 1).to_string(),
                ..Ask::default()
            })
            .await;
        managers(stage, &web).await;
        stage.note("its scale, and its status");
        stage
            .patch(
                &format!("{web}/scale"),
                &[("fieldManager", "scaler")],
                MERGE,
                &json!({ "spec": { "replicas": 3 } }),
            )
            .await;
        managers(stage, &web).await;
        let status = json!({ "status": { "replicas": 3, "conditions": [{ "type": "Available", "status": "True" }] }, "spec": { "replicas": 9 } });
        for manager in ["controller", "other"] {
            stage
                .send(&Ask {
                    method: "PATCH",
                    path: &format!("{web}/status"),
                    parameters: &[("fieldManager", manager)],
                    headers: &[("content-type", MERGE)],
                    body: status.to_string(),
                    ..Ask::default()
                })
                .await;
            managers(stage, &web).await;
        }
        let services = stage.core("services");
        stage.note("a service, and a pod");
        let service = json!({ "metadata": { "name": "s" }, "spec": { "selector": { "a": "b" }, "ports": [{ "port": 80, "name": "t" }, { "port": 80, "protocol": "UDP", "name": "u" }] } });
        for (path, object) in [
            (services, service),
            (
                stage.core("pods"),
                json!({ "metadata": { "name": "s" }, "spec": { "containers": [{ "name": "main", "image": "i:1", "env": [{ "name": "A", "value": "1" }], "ports": [{ "containerPort": 80 }], "resources": { "limits": { "cpu": "1" } } }], "tolerations": [{ "key": "a", "operator": "Exists" }], "nodeSelector": { "a": "b" } } }),
            ),
        ] {
            stage
                .send(&Ask {
                    method: "POST",
                    path: &path,
                    parameters: &[("fieldManager", "maker")],
                    headers: &[("content-type", JSON)],
                    body: object.to_string(),
                    ..Ask::default()
                })
                .await;
            managers(stage, &format!("{path}/s")).await;
        }
    });
}

#[test]
fn apply_of_lists_and_maps() {
    play("apply_lists", async |stage| {
        let services = stage.core("services");
        let s = format!("{services}/s");
        let service = |spec: Value, finalizers: &[&str]| json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s", "finalizers": finalizers }, "spec": spec });
        let show = async |manager: &str, force: bool, object: &Value| {
            let parameters = [("fieldManager", manager), ("force", "true")];
            let parameters = if force { &parameters[..] } else { &parameters[..1] };
            let headers = &[("content-type", APPLY)];
            let answer = stage
                .send(&Ask {
                    method: "PATCH",
                    path: &s,
                    parameters,
                    headers,
                    body: object.to_string(),
                    ..Ask::default()
                })
                .await;
            stage.note(format!("{manager} applies{} {object}", if force { " with force" } else { "" }));
            stage.note(format!(
                "  {} {} {}",
                answer.code, answer.body["message"], answer.body["details"]["causes"]
            ));
            let now = stage.send_quietly("GET", &s, Value::Null).await.body;
            stage.note(format!(
                "  {} {} {}",
                now["spec"]["ports"], now["spec"]["selector"], now["metadata"]["finalizers"]
            ));
            managers(stage, &s).await;
        };
        stage.note("by keys, as a set, and as a whole");
        let http = json!({ "name": "http", "port": 80 });
        let dns = json!({ "name": "dns", "port": 53, "protocol": "UDP" });
        show("one", false, &service(json!({ "ports": [http], "selector": { "a": "1" } }), &["e.com/one"]))
            .await;
        show("two", false, &service(json!({ "ports": [dns] }), &["e.com/two"])).await;
        stage.note("a selector is one value");
        show("two", false, &service(json!({ "ports": [dns], "selector": { "b": "2" } }), &["e.com/two"]))
            .await;
        stage.note("another port in the item of another");
        let target = json!({ "name": "http", "port": 80, "targetPort": 8080 });
        show("two", false, &service(json!({ "ports": [dns, target] }), &["e.com/two", "e.com/one"])).await;
        show("two", true, &service(json!({ "ports": [dns, target] }), &["e.com/two", "e.com/one"])).await;
        stage.note("what nobody else has goes");
        show("one", false, &service(json!({ "ports": [http], "selector": { "a": "1" } }), &[])).await;
        show("two", false, &service(json!({ "ports": [dns] }), &[])).await;
        stage.note("twice in one list");
        show("two", false, &service(json!({ "ports": [dns, dns] }), &[])).await;
    });
}

#[test]
fn apply_of_a_custom_resource() {
    play("apply_custom", async |stage| {
        let number = json!({ "type": "integer" });
        let text = json!({ "type": "string" });
        let schema = json!({ "type": "object", "properties": {
            "spec": { "type": "object", "properties": {
                "size": number,
                "entries": { "type": "object", "additionalProperties": text },
                "pair": { "type": "object", "x-kubernetes-map-type": "atomic", "properties": { "x": number, "y": number } },
                "order": { "type": "array", "items": text },
                "tags": { "type": "array", "x-kubernetes-list-type": "set", "items": text },
                "parts": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "zone"],
                    "items": { "type": "object", "required": ["name"], "properties": { "name": text, "zone": { "type": "string", "default": "here" }, "weight": number } } },
                "any": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                "either": { "x-kubernetes-int-or-string": true },
            } },
            "status": { "type": "object", "properties": { "phase": text } },
        } });
        let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "parcels.apply.e2e.example.com" },
            "spec": { "group": "apply.e2e.example.com", "scope": "Namespaced",
                "names": { "plural": "parcels", "kind": "Parcel" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema }, "subresources": { "status": {} } }] } });
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        stage.make(definitions, definition).await;
        let parcels = stage.group("apply.e2e.example.com/v1", "parcels");
        stage.until(&parcels, |answer| answer.code == 200).await;
        stage.transcript().forget();
        let a = format!("{parcels}/a");
        let parcel = |spec: Value| json!({ "apiVersion": "apply.e2e.example.com/v1", "kind": "Parcel", "metadata": { "name": "a" }, "spec": spec });
        apply(stage, &a, "one", false, &parcel(json!({ "size": 1, "entries": { "x": "1" }, "pair": { "x": 1 }, "order": ["a"], "tags": ["p"],
            "parts": [{ "name": "n", "zone": "z", "weight": 1 }], "any": { "deep": { "er": 1 }, "list": [1] }, "either": "5" }))).await;
        apply(stage, &a, "two", false, &parcel(json!({ "entries": { "y": "2" }, "tags": ["q"], "parts": [{ "name": "n", "zone": "other" }], "any": { "deep": { "too": 2 } } }))).await;
        stage.note("conflicts");
        apply(stage, &a, "two", false, &parcel(json!({ "size": 2, "pair": { "y": 1 }, "order": ["b"], "parts": [{ "name": "n", "zone": "z", "weight": 2 }], "any": { "deep": { "er": 2 } }, "either": 5 }))).await;
        stage.note("given up");
        apply(stage, &a, "one", false, &parcel(json!({ "size": 1 }))).await;
        stage.note("an update, and the status");
        stage
            .patch(
                &a,
                &[("fieldManager", "changer")],
                MERGE,
                &json!({ "spec": { "size": 5, "entries": { "y": null } } }),
            )
            .await;
        managers(stage, &a).await;
        stage
            .patch(
                &format!("{a}/status"),
                &[("fieldManager", "controller")],
                MERGE,
                &json!({ "status": { "phase": "Sent" } }),
            )
            .await;
        managers(stage, &a).await;
        let status = json!({ "apiVersion": "apply.e2e.example.com/v1", "kind": "Parcel", "metadata": { "name": "a" }, "status": { "phase": "Lost" } });
        let path = format!("{a}/status");
        stage.patch(&path, &[("fieldManager", "judge")], APPLY, &status).await;
        stage.patch(&path, &[("fieldManager", "judge"), ("force", "true")], APPLY, &status).await;
        managers(stage, &a).await;
        stage.remove(&format!("{definitions}/parcels.apply.e2e.example.com")).await;
    });
}

#[test]
fn apply_over_what_was_there_and_with_many() {
    play("apply_before", async |stage| {
        let path = stage.maps();
        let a = format!("{path}/a");
        let map = |data: Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data });
        stage.make(&path, mk_map("a")).await;
        stage.change(&a, json!({ "metadata": { "managedFields": [{}] } })).await;
        stage.note("nobody has managed it so far");
        apply(stage, &a, "one", false, &map(json!({ "a": "other" }))).await;
        apply(stage, &a, "one", false, &map(json!({ "b": "1" }))).await;
        stage.note("the same values are shared, without a time of their own");
        apply(stage, &a, "two", false, &map(json!({ "b": "1" }))).await;
        apply(stage, &a, "two", false, &map(json!({ "b": "1" }))).await;
        stage.note("several conflicts");
        let (parameters, headers) = (&[("fieldManager", "three")], &[("content-type", APPLY)]);
        let body = map(json!({ "b": "2", "a": "3" })).to_string();
        let refused =
            stage.send(&Ask { method: "PATCH", path: &a, parameters, headers, body, ..Ask::default() }).await;
        // Which manager comes first in the details is chance.
        stage.note(format!("  {} {}", refused.code, refused.body["message"]));
        stage.note("what was applied is left by who applies nothing");
        apply(
            stage,
            &a,
            "two",
            false,
            &json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } }),
        )
        .await;
        stage.note("of many updaters the oldest are one");
        for n in 0..12 {
            let value = format!("m{n:02}");
            let body = json!({ "data": { (value.clone()): "1" } }).to_string();
            let (parameters, headers) = (&[("fieldManager", value.as_str())], &[("content-type", MERGE)]);
            let answer = stage
                .send(&Ask { method: "PATCH", path: &a, parameters, headers, body, ..Ask::default() })
                .await;
            assert_eq!(answer.code, 200, "{}", answer.body);
            // Times have whole seconds, by which the oldest are found.
            tokio::time::sleep(std::time::Duration::from_millis(1_050)).await;
        }
        managers(stage, &a).await;
    });
}

#[test]
fn what_cannot_be_applied() {
    play("apply_refused", async |stage| {
        let path = stage.maps();
        let a = format!("{path}/a");
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a": "1" } });
        let with = |change: Value| {
            let mut object = map.clone();
            for (pointer, value) in change.as_object().into_iter().flatten() {
                object[pointer] = value.clone();
            }
            object
        };
        let by = &[("fieldManager", "one")];
        stage.note("a dry run makes nothing");
        stage.patch(&a, &[("fieldManager", "one"), ("dryRun", "All")], APPLY, &map).await;
        stage.get(&a, &[]).await;
        stage.patch(&a, by, APPLY, &map).await;
        stage.note("of another kind, another name, another place");
        for object in
            [with(json!({ "kind": "Secret" })), with(json!({ "apiVersion": "v2" })), json!({ "data": {} })]
        {
            stage.patch(&a, by, APPLY, &object).await;
        }
        for object in [
            with(json!({ "metadata": { "name": "b" } })),
            with(json!({ "metadata": { "name": "a", "namespace": "default" } })),
            with(json!({ "data": { "a": 5 } })),
            with(json!({ "unknown": 1 })),
        ] {
            stage.write_refused("PATCH", &a, by, APPLY, &object).await;
        }
        stage.note("with managers, another version, another uid");
        stage.patch(&a, by, APPLY, &with(json!({ "metadata": { "name": "a", "managedFields": [] } }))).await;
        stage
            .patch(&a, by, APPLY, &with(json!({ "metadata": { "name": "a", "resourceVersion": "1" } })))
            .await;
        let uid = "11111111-1111-1111-1111-111111111111";
        stage.patch(&a, by, APPLY, &with(json!({ "metadata": { "name": "a", "uid": uid } }))).await;
        stage
            .patch(&format!("{path}/b"), by, APPLY, &with(json!({ "metadata": { "name": "b", "uid": uid } })))
            .await;
        stage
            .patch(
                &format!("{path}/b"),
                by,
                APPLY,
                &with(json!({ "metadata": { "name": "b", "resourceVersion": "1" } })),
            )
            .await;
        stage.note("YAML, and none");
        for body in ["apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: '2'\n", "a: [", "5"] {
            let headers = &[("content-type", APPLY)];
            stage
                .ask(Ask {
                    method: "PATCH",
                    path: &a,
                    parameters: by,
                    headers,
                    body: body.into(),
                    own_words: body != "5" && body.len() < 9,
                    ..Ask::default()
                })
                .await;
        }
        stage.note("a status of nothing");
        let node = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "none-of-that" }, "status": {} });
        stage.patch("/api/v1/namespaces/none-of-that/status", by, APPLY, &node).await;
    });
}

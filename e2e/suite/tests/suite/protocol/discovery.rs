//! What a server says about itself, as far as both have it.

use serde_json::Value;

use crate::stage::{Ask, Stage, play};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn by<'a>(list: &'a Value, field: &str, value: &str) -> &'a Value {
    let items = list.as_array().into_iter().flatten();
    items.into_iter().find(|item| item[field] == value).unwrap_or(&Value::Null)
}

async fn read(stage: &Stage, path: &str, accept: &str) -> Value {
    let headers = &[("accept", accept)];
    let answer = stage.send(&Ask { method: "GET", path, headers, ..Ask::default() }).await;
    let r#type = answer.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    stage.note(format!(
        "{path} accept: {accept}: {} {type} {} {}",
        answer.code, answer.body["kind"], answer.body["apiVersion"]
    ));
    answer.body
}

#[test]
fn discovery_is_aggregated_for_who_asks_and_step_by_step_for_others() {
    play("discovery", async |stage| {
        let core = read(stage, "/api", AGGREGATED).await;
        let v1 = &core["items"][0]["versions"][0];
        stage.note(format!("  {} {}", v1["version"], v1["freshness"]));
        for plural in ["configmaps", "pods", "namespaces", "nodes", "services"] {
            stage.note(format!("  {}", by(&v1["resources"], "resource", plural)));
        }
        let groups = read(stage, "/apis", AGGREGATED).await;
        let apps =
            groups["items"].as_array().into_iter().flatten().find(|item| item["metadata"]["name"] == "apps");
        let versions = &apps.unwrap_or(&Value::Null)["versions"];
        for plural in ["deployments", "replicasets", "controllerrevisions"] {
            stage.note(format!("  {}", by(&versions[0]["resources"], "resource", plural)));
        }
        let unknown = "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList";
        read(stage, "/apis", &format!("{unknown},application/json")).await;
        read(stage, "/apis", unknown).await;
        let versions = read(stage, "/api", "application/json").await;
        stage.note(format!("  {}", versions["versions"]));
        let groups = read(stage, "/apis", "application/json").await;
        stage.note(format!("  {}", by(&groups["groups"], "name", "apps")));
        let group = read(stage, "/apis/apps", "application/json").await;
        stage.note(format!("  {group}"));
        let resources = read(stage, "/apis/apps/v1", "application/json").await;
        for name in ["deployments", "deployments/status", "deployments/scale"] {
            let mut resource = by(&resources["resources"], "name", name).clone();
            resource.as_object_mut().map(|fields| fields.remove("storageVersionHash"));
            stage.note(format!("  {resource}"));
        }
        let core = read(stage, "/api/v1", "application/json").await;
        for name in ["configmaps", "pods", "pods/status", "bindings"] {
            let mut resource = by(&core["resources"], "name", name).clone();
            resource.as_object_mut().map(|fields| fields.remove("storageVersionHash"));
            stage.note(format!("  {resource}"));
        }
        for path in ["/healthz", "/livez", "/readyz"] {
            stage.get(path, &[]).await;
        }
        let version = stage.send(&Ask { method: "GET", path: "/version", ..Ask::default() }).await;
        let fields: Vec<&String> = version.body.as_object().expect("an object").keys().collect();
        stage.note(format!("/version: {} {} {fields:?}", version.code, version.body["major"]));
    });
}

#[test]
fn both_serve_the_same_resources() {
    play("resources", async |stage| {
        for root in ["/api", "/apis"] {
            let document = read(stage, root, AGGREGATED).await;
            let mut lines = Vec::new();
            for group in document["items"].as_array().into_iter().flatten() {
                let name = group["metadata"]["name"].as_str().unwrap_or("core");
                // Other scenarios define resources at the same time.
                if name.ends_with("example.com") {
                    continue;
                }
                for version in group["versions"].as_array().into_iter().flatten() {
                    for resource in version["resources"].as_array().into_iter().flatten() {
                        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
                        let verbs: Vec<String> =
                            resource["verbs"].as_array().into_iter().flatten().map(text).collect();
                        lines.push(format!(
                            "  {name}/{} {} {} {} {}",
                            text(&version["version"]),
                            text(&resource["resource"]),
                            text(&resource["scope"]),
                            text(&resource["responseKind"]["kind"]),
                            verbs.join(","),
                        ));
                    }
                }
            }
            lines.sort();
            lines.into_iter().for_each(|line| stage.note(line));
        }
    });
}

//! Custom resources, from their definition to its end.

use informer_testing::widgets;
use serde_json::{Value, json};

use crate::{
    objects::{CRDS, mk_widget},
    stage::{JSON, Stage, play},
};

/// Defines widgets of a group and waits until they are served.
async fn define(stage: &Stage, group: &str) -> String {
    stage.make(CRDS, widgets(group)).await;
    let path = format!("/apis/{group}/v1/namespaces/{}/widgets", stage.namespace);
    stage.until(&path, |answer| answer.code == 200).await;
    path
}

#[test]
fn a_custom_resource_is_served_as_its_definition_says() {
    play("custom", async |stage| {
        let group = "custom.example.com";
        let path = define(stage, group).await;
        stage.transcript().forget();
        let a = format!("{path}/a");
        stage.post(&path, &[], &mk_widget(group, "a")).await;
        stage.get(&path, &[]).await;
        stage.get(&a, &[]).await;
        stage.note("in its other version");
        stage.get(&a.replace("/v1/", "/v1beta1/"), &[]).await;
        stage.note("its status");
        stage
            .patch(
                &a,
                &[],
                "application/merge-patch+json",
                &json!({ "status": { "size": 9 }, "spec": { "size": 3 } }),
            )
            .await;
        let status = json!({ "status": { "size": 1, "selector": "app=a" }, "spec": { "size": 7 } });
        stage.patch(&format!("{a}/status"), &[], "application/merge-patch+json", &status).await;
        stage.note("its scale");
        stage.get(&format!("{a}/scale"), &[]).await;
        stage
            .patch(
                &format!("{a}/scale"),
                &[],
                "application/merge-patch+json",
                &json!({ "spec": { "replicas": 6 } }),
            )
            .await;
        stage.get(&format!("{}/status", a.replace("/v1/", "/v1beta1/")), &[]).await;
        stage.note("its table");
        stage
            .get_as(&path, &[("includeObject", "None")], "application/json;as=Table;v=v1;g=meta.k8s.io")
            .await;
        stage.note("it has no protobuf");
        let accept = [("accept", "application/vnd.kubernetes.protobuf")];
        let ask = crate::stage::Ask {
            method: "GET",
            path: &path,
            headers: &accept,
            own_words: true,
            ..Default::default()
        };
        stage.ask(ask).await;
        stage.get_as(&a, &[], "application/vnd.kubernetes.protobuf,application/json").await;
        stage.note("its type must be said, and be the right one");
        stage.write_refused("POST", &path, &[], JSON, &json!({ "metadata": { "name": "b" } })).await;
        let mut other = mk_widget(group, "b");
        other["kind"] = "Gadget".into();
        stage.write_refused("POST", &path, &[], JSON, &other).await;
        stage.note("fields that it cannot be selected by");
        stage.get_refused(&path, &[("fieldSelector", "spec.color=red")]).await;
        stage.delete(&a, &[]).await;
        stage.remove(&format!("{CRDS}/widgets.{group}")).await;
    });
}

#[test]
fn a_definition_is_checked_served_and_withdrawn() {
    play("definition", async |stage| {
        let group = "defined.example.com";
        stage.note("what breaks the rules");
        for (pointer, value) in [
            ("/metadata/name", json!("wrong.example.com")),
            ("/spec/scope", json!("Galaxy")),
            ("/spec/names/kind", json!("")),
            ("/spec/versions/1/name", json!("v1")),
            ("/spec/versions/0/schema", Value::Null),
        ] {
            let mut crd = widgets(group);
            *crd.pointer_mut(pointer).expect("a field") = value;
            let answer = stage.send_quietly("POST", CRDS, crd).await;
            let causes = answer.body["details"]["causes"].as_array().cloned().unwrap_or_default();
            let causes: Vec<String> =
                causes.iter().map(|cause| format!("{} {}", cause["reason"], cause["field"])).collect();
            stage.note(format!("{pointer}: {} {} {}", answer.code, answer.body["reason"], causes.join(", ")));
        }
        let path = define(stage, group).await;
        stage.note("its names are accepted, it is established");
        let crd = stage.send_quietly("GET", &format!("{CRDS}/widgets.{group}"), Value::Null).await.body;
        let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
        for condition in conditions {
            stage.note(format!("  {} {} {}", condition["type"], condition["status"], condition["reason"]));
        }
        stage.note(format!("  {} {}", crd["status"]["acceptedNames"], crd["status"]["storedVersions"]));
        stage.note(format!("  finalizers {}", crd["metadata"]["finalizers"]));
        stage.note("what goes with it");
        // How often a definition is written until it is established is the server's business.
        stage.transcript().forget();
        let version = stage.make(&path, mk_widget(group, "a")).await;
        let version = version["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
        let mut watch = stage.watch(&path, &[("resourceVersion", &version)]).await;
        stage.remove(&format!("{CRDS}/widgets.{group}")).await;
        stage.transcript().forget();
        watch.events(1).await;
        stage.until(&path, |answer| answer.code == 404).await;
        stage.get(&path, &[]).await;
        stage.note("a new one begins empty");
        define(stage, group).await;
        stage.transcript().forget();
        stage.get(&path, &[]).await;
        stage.remove(&format!("{CRDS}/widgets.{group}")).await;
    });
}

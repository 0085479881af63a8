//! PUT, and the subresources `status` and `scale`.

use serde_json::{Value, json};

use crate::{
    objects::{mk_deployment, mk_map},
    stage::{JSON, Stage, play},
};

#[test]
fn update_replaces_and_conflicts_are_409() {
    play("update", async |stage| {
        let path = stage.maps();
        let a = format!("{path}/a");
        let made = stage.make(&path, mk_map("a")).await;
        let mut sent = mk_map("a");
        sent["data"] = json!({ "b": "2" });
        sent["metadata"]["labels"] = json!({ "x": "y" });
        sent["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
        stage.put(&a, &[], &sent).await;
        stage.note("what changes nothing has no new version");
        stage.put(&a, &[], &sent).await;
        stage.note("a stale version");
        stage.put(&a, &[], &made).await;
        stage.note("another uid");
        sent["metadata"]["uid"] = "11111111-1111-1111-1111-111111111111".into();
        stage.write_refused("PUT", &a, &[], JSON, &sent).await;
        stage.note("another name, another namespace, another kind, nothing there");
        stage.write_refused("PUT", &a, &[], JSON, &mk_map("b")).await;
        let mut elsewhere = mk_map("a");
        elsewhere["metadata"]["namespace"] = "default".into();
        stage.put(&a, &[], &elsewhere).await;
        stage
            .write_refused(
                "PUT",
                &a,
                &[],
                JSON,
                &json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } }),
            )
            .await;
        stage.put(&format!("{path}/none"), &[], &mk_map("none")).await;
        stage.note("an object without a name");
        stage.write_refused("PUT", &a, &[], JSON, &json!({ "data": { "z": "1" } })).await;
    });
}

/// A deployment without what only a real server fills in.
async fn show(stage: &Stage, what: &str, object: &Value) {
    let version =
        stage.transcript().version(object["metadata"]["resourceVersion"].as_str().unwrap_or("none"));
    let shown = ["generation", "labels"].map(|field| object["metadata"][field].to_string());
    let (replicas, status) = (&object["spec"]["replicas"], &object["status"]);
    let paused = &object["spec"]["paused"];
    stage.note(format!(
        "{what}: {version} generation {} labels {} replicas {replicas} paused {paused} status {status}",
        shown[0], shown[1]
    ));
}

#[test]
fn status_is_a_part_of_its_own_and_changes_of_spec_are_counted() {
    play("status", async |stage| {
        let path = stage.group("apps/v1", "deployments");
        let web = format!("{path}/web");
        let mut sent = mk_deployment("web", 2);
        sent["status"] = json!({ "replicas": 9 });
        sent["metadata"]["generation"] = 17.into();
        let made = stage.make(&path, sent).await;
        show(stage, "created with a status", &made).await;
        let mut object = made;
        object["status"] = json!({ "replicas": 2, "readyReplicas": 1 });
        object["spec"]["replicas"] = 7.into();
        object["metadata"]["labels"] = json!({ "a": "b" });
        let answer = stage.send_quietly("PUT", &format!("{web}/status"), object).await;
        show(stage, &format!("status put ({})", answer.code), &answer.body).await;
        let patch = json!({ "spec": { "replicas": 5, "paused": true }, "status": { "replicas": 8 } });
        let answer = stage.change(&web, patch).await;
        show(stage, "spec and status patched", &answer).await;
        let answer = stage.change(&web, json!({ "metadata": { "labels": { "c": "d" } } })).await;
        show(stage, "labels patched", &answer).await;
        let answer = stage.change(&format!("{web}/status"), json!({ "status": { "replicas": 3 } })).await;
        show(stage, "status patched", &answer).await;
        let answer = stage.send_quietly("GET", &format!("{web}/status"), Value::Null).await;
        show(stage, &format!("status read ({})", answer.code), &answer.body).await;
        stage.get(&format!("{path}/none/status"), &[]).await;
        stage.delete(&format!("{web}/status"), &[]).await;
    });
}

#[test]
fn scale_is_the_number_of_replicas() {
    play("scale", async |stage| {
        let path = stage.group("apps/v1", "deployments");
        let scale = format!("{path}/web/scale");
        stage.make(&path, mk_deployment("web", 2)).await;
        let read = stage.get(&scale, &[]).await;
        let mut sent = read.body.clone();
        sent["spec"]["replicas"] = 3.into();
        stage.put(&scale, &[], &sent).await;
        stage.note("a stale one");
        sent["spec"]["replicas"] = 4.into();
        stage.put(&scale, &[], &sent).await;
        stage.note("patched");
        stage.patch(&scale, &[], "application/merge-patch+json", &json!({ "spec": { "replicas": 5 } })).await;
        stage.note("less than nothing");
        let negative = json!({ "spec": { "replicas": -1 } });
        stage.write_refused("PATCH", &scale, &[], "application/merge-patch+json", &negative).await;
        stage.get(&format!("{path}/none/scale"), &[]).await;
        stage.get(&format!("{}/a/scale", stage.maps()), &[]).await;
    });
}

//! DELETE of one object and of a collection.

use serde_json::json;

use crate::{
    objects::{mk_deployment, mk_held, mk_labelled, mk_map},
    stage::{JSON, play},
};

#[test]
fn delete_answers_with_what_is_gone() {
    play("delete", async |stage| {
        let path = stage.maps();
        let a = format!("{path}/a");
        stage.make(&path, mk_map("a")).await;
        stage.delete(&a, &[]).await;
        stage.delete(&a, &[]).await;
        stage.note("kinds that answer with the object");
        stage.make(&stage.core("serviceaccounts"), json!({ "metadata": { "name": "a" } })).await;
        stage.delete(&format!("{}/a", stage.core("serviceaccounts")), &[]).await;
        stage.make(&stage.core("resourcequotas"), json!({ "metadata": { "name": "a" }, "spec": {} })).await;
        let gone =
            stage.send_quietly("DELETE", &format!("{}/a", stage.core("resourcequotas")), json!(null)).await;
        stage.note(format!("resourcequotas: {} {}", gone.code, gone.body["kind"]));
        stage.note("and one of a group");
        stage.make(&stage.group("apps/v1", "deployments"), mk_deployment("web", 1)).await;
        stage.delete(&format!("{}/web", stage.group("apps/v1", "deployments")), &[]).await;
    });
}

#[test]
fn preconditions_and_options_are_checked() {
    play("delete_refused", async |stage| {
        let path = stage.maps();
        let a = format!("{path}/a");
        let made = stage.make(&path, mk_map("a")).await;
        let uid = &made["metadata"]["uid"];
        for preconditions in [
            json!({ "uid": "11111111-1111-1111-1111-111111111111" }),
            json!({ "resourceVersion": "1" }),
            json!({ "uid": uid, "resourceVersion": "1" }),
        ] {
            let options = json!({ "preconditions": preconditions });
            stage.write_refused("DELETE", &a, &[], JSON, &options).await;
        }
        stage.note("options of the wrong type");
        for options in [
            json!({ "preconditions": 5 }),
            json!({ "preconditions": { "uid": 5 } }),
            json!({ "gracePeriodSeconds": "soon" }),
            json!({ "propagationPolicy": 5 }),
            json!({ "kind": "Pod", "apiVersion": "v1" }),
        ] {
            stage.write_refused("DELETE", &a, &[], JSON, &options).await;
        }
        stage.note("an unknown policy");
        stage.delete(&a, &[("propagationPolicy", "Sideways")]).await;
        stage.delete_with(&a, &json!({ "propagationPolicy": "Sideways" })).await;
        stage.note("selectors that cannot be read");
        for bad in [("labelSelector", "a in"), ("fieldSelector", "data.a=1")] {
            stage.write_refused("DELETE", &path, &[bad], JSON, &json!({})).await;
        }
        stage.note("what holds");
        let version = &made["metadata"]["resourceVersion"];
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1",
            "preconditions": { "uid": uid, "resourceVersion": version },
        });
        stage.delete_with(&a, &options).await;
    });
}

#[test]
fn finalizers_hold_an_object() {
    play("finalizers", async |stage| {
        let path = stage.maps();
        let (a, merge) = (format!("{path}/a"), "application/merge-patch+json");
        stage.make(&path, mk_held("a")).await;
        stage.delete(&a, &[]).await;
        stage.note("again");
        stage.delete(&a, &[]).await;
        stage.note("no finalizer can be added, the deletion cannot be undone");
        let more = json!({ "metadata": { "finalizers": ["example.com/hold", "example.com/more"] } });
        stage.patch(&a, &[], merge, &more).await;
        stage.patch(&a, &[], merge, &json!({ "metadata": { "deletionTimestamp": null } })).await;
        stage.note("the name is taken");
        stage.post(&path, &[], &mk_map("a")).await;
        stage.note("the last finalizer goes");
        stage.patch(&a, &[], merge, &json!({ "metadata": { "finalizers": null } })).await;
        stage.get(&a, &[]).await;
        stage.note("the mark counts in the generation");
        let mut held = mk_deployment("web", 1);
        held["metadata"]["finalizers"] = json!(["example.com/hold"]);
        let deployments = stage.group("apps/v1", "deployments");
        stage.make(&deployments, held).await;
        let marked = stage.send_quietly("DELETE", &format!("{deployments}/web"), json!(null)).await;
        stage.note(format!("  {} generation {}", marked.code, marked.body["metadata"]["generation"]));
    });
}

#[test]
fn policies_decide_about_what_is_owned() {
    play("propagation", async |stage| {
        let deployments = stage.group("apps/v1", "deployments");
        for policy in ["Background", "Foreground", "Orphan"] {
            stage.make(&deployments, mk_deployment("web", 1)).await;
            let web = format!("{deployments}/web");
            let answer =
                stage.send_quietly("DELETE", &format!("{web}?propagationPolicy={policy}"), json!(null)).await;
            let held = &answer.body["metadata"]["finalizers"];
            stage.note(format!("{policy}: {} {} finalizers {held}", answer.code, answer.body["kind"]));
            let left = stage.send_quietly("GET", &web, json!(null)).await;
            stage.note(format!("  then {}", left.code));
            if left.code == 200 {
                stage.change(&web, json!({ "metadata": { "finalizers": null } })).await;
            }
        }
    });
}

#[test]
fn a_collection_is_deleted_by_its_selectors() {
    play("delete_collection", async |stage| {
        let path = stage.maps();
        for (name, app) in [("a", "web"), ("b", "db"), ("c", "web"), ("d", "web")] {
            stage.make(&path, mk_labelled(name, app)).await;
        }
        stage.make(&path, mk_held("e")).await;
        stage.delete(&path, &[("labelSelector", "app=web"), ("fieldSelector", "metadata.name!=c")]).await;
        stage.get(&path, &[]).await;
        stage.delete(&path, &[("labelSelector", "app=none")]).await;
        stage.delete(&path, &[]).await;
        stage.get(&path, &[]).await;
    });
}

#[test]
fn a_namespace_is_terminating_until_it_is_empty() {
    play("namespaces", async |stage| {
        let path = "/api/v1/namespaces";
        stage.post(path, &[], &json!({ "metadata": { "name": "e2e-empty" } })).await;
        stage.note("deleted");
        stage.delete(&format!("{path}/e2e-empty"), &[]).await;
        stage.make(path, json!({ "metadata": { "name": "e2e-full" } })).await;
        stage.make(&format!("{path}/e2e-full/configmaps"), mk_map("a")).await;
        stage.note("with something in it");
        stage.delete(&format!("{path}/e2e-full"), &[]).await;
        stage.note("nothing new is made there");
        stage.write_refused("POST", &format!("{path}/e2e-full/configmaps"), &[], JSON, &mk_map("b")).await;
    });
}

//! Label and field selectors: grammar, and what each kind can be selected by.

use serde_json::json;

use crate::{
    objects::{mk_deployment, mk_labelled, mk_pod},
    stage::play,
};

#[test]
fn labels_select_by_every_form_of_the_grammar() {
    play("labels", async |stage| {
        for (name, app) in [("a", "web"), ("b", "db"), ("c", "")] {
            stage.make(&stage.maps(), mk_labelled(name, app)).await;
        }
        stage
            .make(&stage.maps(), json!({ "metadata": { "name": "d", "labels": { "x.io/tier": "1" } } }))
            .await;
        for selector in [
            "app=web",
            "app==web",
            "app!=web",
            "app=",
            "app",
            "!app",
            "app in (web,db)",
            "app in (web, )",
            "app notin (web)",
            "app=web,app!=db",
            "x.io/tier=1",
            "x.io/tier>0",
            "x.io/tier<1",
            "app in ()",
            " app = web ",
        ] {
            stage.get(&stage.maps(), &[("labelSelector", selector)]).await;
        }
        for selector in [
            "app=web,",
            ",app=web",
            "a b",
            "app in",
            "app in (web",
            "app=web=db",
            "=web",
            "app=!",
            "-app",
            "app=-web",
            "x.io/y/z=1",
            "app in (a b)",
            "app>x",
            "!app=web",
        ] {
            stage.get_refused(&stage.maps(), &[("labelSelector", selector)]).await;
        }
    });
}

#[test]
fn fields_select_by_name_namespace_and_what_the_kind_has() {
    play("fields", async |stage| {
        for name in ["a", "b"] {
            let mut pod = mk_pod(name);
            // The real server runs without the plugin that fills it in.
            pod["spec"]["serviceAccountName"] = "default".into();
            stage.make(&stage.core("pods"), pod).await;
        }
        let pods = stage.core("pods");
        for selector in [
            "metadata.name=a",
            "metadata.name==a",
            "metadata.name!=a",
            "metadata.name=a,metadata.name=b",
            "metadata.namespace=default",
            "spec.nodeName=",
            "spec.nodeName!=",
            "spec.restartPolicy=Always",
            "spec.schedulerName=default-scheduler",
            "spec.serviceAccountName=default",
            "spec.hostNetwork=false",
            "status.phase=Pending",
            "status.phase!=Pending",
            "status.podIP=",
            "status.nominatedNodeName=",
            "metadata.name=a\\,b",
            ",",
        ] {
            stage.get(&pods, &[("fieldSelector", selector)]).await;
        }
        for selector in [
            "metadata.labels.app=web",
            "metadata.uid=x",
            "spec.nothing=1",
            "metadata.name",
            "metadata.name=a\\x",
            "metadata.name in (a)",
            "=a",
        ] {
            stage.get_refused(&pods, &[("fieldSelector", selector)]).await;
        }
    });
}

#[test]
fn each_kind_has_its_own_fields() {
    play("fields_of_kinds", async |stage| {
        stage.make(&stage.group("apps/v1", "deployments"), mk_deployment("web", 1)).await;
        let secret = json!({ "metadata": { "name": "s" }, "type": "example.com/x" });
        stage.make(&stage.core("secrets"), secret).await;
        for (path, selector) in [
            (stage.group("apps/v1", "deployments"), "metadata.name=web"),
            (stage.group("apps/v1", "deployments"), "spec.replicas=1"),
            (stage.group("apps/v1", "replicasets"), "status.replicas=1"),
            (stage.group("batch/v1", "jobs"), "status.successful=1"),
            (stage.core("secrets"), "type=example.com/x"),
            (stage.core("secrets"), "data.x=1"),
            (stage.core("configmaps"), "data.a=1"),
            (stage.core("events"), "involvedObject.name=x"),
            (stage.core("events"), "reason=Started,type!=Normal"),
            (stage.core("events"), "reportingComponent=x"),
            (stage.core("events"), "count=1"),
            (stage.group("events.k8s.io/v1", "events"), "regarding.name=x"),
            (stage.core("services"), "spec.clusterIP=None"),
            (stage.core("services"), "spec.type=ClusterIP"),
            (stage.core("replicationcontrollers"), "status.replicas=1"),
            (stage.core("persistentvolumeclaims"), "spec.volumeName=x"),
            ("/api/v1/nodes".to_owned(), "spec.unschedulable=true"),
            ("/api/v1/nodes".to_owned(), "status.phase=x"),
            ("/api/v1/namespaces".to_owned(), "status.phase=Terminated"),
            ("/api/v1/namespaces".to_owned(), "name=x"),
            ("/api/v1/persistentvolumes".to_owned(), "name=x"),
            ("/apis/certificates.k8s.io/v1/certificatesigningrequests".to_owned(), "spec.signerName=x"),
            ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(), "spec.group=x"),
        ] {
            stage.get_refused(&path, &[("fieldSelector", selector)]).await;
        }
    });
}

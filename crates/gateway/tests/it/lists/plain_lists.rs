//! The plain lists: the shapes and codes of the Go server that came before.

use serde_json::{Value, json};

use crate::support::*;

fn mk_deployment(namespace: &str, name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"replicas": 1},
    })
}

async fn with_deployments() -> Stage {
    let stage = Stage::open(mk_server()).await;
    stage.put([
        mk_deployment("kube-system", "coredns", json!({"k8s-app": "kube-dns", "tier": "system"})),
        mk_deployment("kube-system", "coredns-canary", json!({"k8s-app": "kube-dns", "tier": "canary"})),
        mk_deployment("default", "web", json!({"k8s-app": "web", "tier": "front"})),
    ]);
    stage
}

#[tokio::test]
async fn a_resource_answers_its_objects_under_msg() {
    let stage = with_deployments().await;
    let answer = stage.get("/apps/v1/deployments").await;
    let list = answer.ok();
    assert_eq!(list.as_object().unwrap().keys().collect::<Vec<_>>(), ["msg"]);
    assert_eq!(answer.names(), ["web", "coredns", "coredns-canary"], "by namespace and name");
    assert_eq!(answer.header("content-type"), "application/json");
    let web = &list["msg"][0];
    assert_eq!((&web["kind"], &web["apiVersion"]), (&json!("Deployment"), &json!("apps/v1")));
    assert_eq!(web["spec"]["replicas"], 1);
    stage.close().await;
}

#[tokio::test]
async fn core_is_the_group_without_a_name_and_an_empty_list_is_a_list() {
    let stage = with_deployments().await;
    assert_eq!(stage.get("/core/v1/pods").await.ok(), json!({"msg": []}));
    let namespaces = stage.get("/core/v1/namespaces").await.names();
    assert_eq!(namespaces, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    stage.close().await;
}

#[tokio::test]
async fn deployments_answer_under_data_and_all_labels_must_match() {
    let stage = with_deployments().await;
    let answer = stage.get("/deploy?labels[k8s-app]=kube-dns").await;
    assert_eq!(answer.ok().as_object().unwrap().keys().collect::<Vec<_>>(), ["data"]);
    assert_eq!(answer.names(), ["coredns", "coredns-canary"]);
    for (path, names) in [
        ("/deploy", &["web", "coredns", "coredns-canary"][..]),
        ("/deploy?labels[k8s-app]=kube-dns&labels[tier]=canary", &["coredns-canary"]),
        ("/deploy?labels%5Bk8s-app%5D=kube-dns&labels%5Btier%5D=system", &["coredns"]),
        ("/deploy?labels[k8s-app]=kube-dns&labels[k8s-app]=web", &[]),
        ("/deploy?labels[tier]=", &[]),
        ("/deploy?labels[k8s-app]=kube-dns&labelSelector=tier%20notin%20(system)", &["coredns-canary"]),
        ("/deploy?labels[k8s-app]=kube-dns&sort=-metadata.name&limit=1", &["coredns-canary"]),
        ("/deploy?namespace=default", &["web"]),
    ] {
        assert_eq!(stage.get(path).await.names(), names, "{path}");
    }
    stage.close().await;
}

#[tokio::test]
async fn a_label_that_is_none_is_400_with_its_position() {
    let stage = with_deployments().await;
    for (query, words) in [
        ("labels[a%20b]=x", "the key is wrong at position 1"),
        ("labels[]=x", "the key is wrong at position 0"),
        ("labels[a]=b%2Cc%3Dd", "the value is wrong at position 1"),
        ("labels[a]=b)", "the value is wrong at position 1"),
        ("labels[a/b/c]=x", "the key is wrong at position"),
        ("labels[a", "there is no parameter \"labels[a\""),
        ("label[a]=b", "there is no parameter"),
    ] {
        let message = stage.get(&format!("/deploy?{query}")).await.says(400);
        assert!(message.contains(words), "{query}: {message}");
    }
    stage.close().await;
}

#[tokio::test]
async fn what_is_not_served_is_404_with_the_nearest_names() {
    let stage = with_deployments().await;
    for (path, near) in [
        ("/apps/v1/deploymnets", "deployments"),
        ("/core/v1/podz", "pods"),
        ("/apps/v1/pods", "pods"),
        ("/core/v7/pods", "pods"),
    ] {
        let message = stage.get(path).await.says(404);
        assert!(message.contains("did you mean") && message.contains(near), "{path}: {message}");
    }
    for path in
        ["/apps/v1/xyzzyxyzzy", "/UPPER/v1/pods", "/core/v1/-", "/a b/v1/pods".replace(' ', "%20").as_str()]
    {
        stage.get(path).await.says(404);
    }
    stage.close().await;
}

#[tokio::test]
async fn a_wrong_query_is_400_and_says_where_it_is_wrong() {
    let stage = with_deployments().await;
    for route in ["/apps/v1/deployments", "/deploy"] {
        for (name, value, words) in [
            ("labelSelector", "a in (b", "byte 7"),
            ("fieldSelector", "spec.replicas", "byte 13"),
            ("fieldSelector", "spec..replicas=1", "byte 5"),
            ("sort", "metadata.name,,a", "byte 14"),
            ("fields", "metadata.name,spec[", "byte 19"),
            ("limit", "many", "a whole number"),
            ("limit", "-1", "a whole number"),
            ("continue", "nonsense", "not a token"),
            ("minResourceVersion", "latest", "decimal"),
            ("as", "yaml", "table or object"),
            ("watch", "true", "no parameter \"watch\""),
        ] {
            let message = stage.ask(route, &[(name, value)]).await.says(400);
            assert!(message.contains(words), "{route} {name}={value}: {message}");
        }
    }
    stage.close().await;
}

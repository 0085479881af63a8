//! POST: what is accepted, what the server adds, and what it refuses.

use serde_json::{Value, json};

use crate::{
    client::{Api, JSON, query, version},
    objects::{DEPLOYMENTS, MAPS, PODS, mk_config_map, mk_deployment, mk_pod},
};

#[tokio::test]
async fn create_answers_201_with_what_the_server_adds() {
    let api = Api::new();
    let answer = api.post(DEPLOYMENTS, &mk_deployment("web", 2)).await;
    assert_eq!(answer.code, 201);
    let created = answer.ok();
    let metadata = &created["metadata"];
    assert_eq!((&created["kind"], &created["apiVersion"]), (&"Deployment".into(), &"apps/v1".into()));
    assert_eq!((&metadata["namespace"], &metadata["generation"]), (&"default".into(), &1.into()));
    assert_eq!(version(&created), api.server.version());
    let uid = metadata["uid"].as_str().expect("a uid");
    assert!(uid.len() == 36 && uid.split('-').map(str::len).eq([8, 4, 4, 4, 12]), "{uid}");
    let time = metadata["creationTimestamp"].as_str().expect("a time");
    assert!(time.len() == 20 && time.ends_with('Z'), "{time}: seconds in UTC");
    assert_eq!(api.get(&format!("{DEPLOYMENTS}/web")).await.ok(), created);
}

#[tokio::test]
async fn what_only_the_server_may_say_is_not_taken_from_the_client() {
    let api = Api::new();
    let mut sent = mk_deployment("web", 2);
    sent["metadata"]["uid"] = "11111111-1111-1111-1111-111111111111".into();
    sent["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    sent["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z".into();
    sent["metadata"]["deletionGracePeriodSeconds"] = 5.into();
    sent["metadata"]["generation"] = 17.into();
    sent["metadata"]["selfLink"] = "/somewhere".into();
    sent["status"] = json!({ "replicas": 9 });
    let created = api.post(DEPLOYMENTS, &sent).await.ok();
    let metadata = &created["metadata"];
    assert_ne!(metadata["uid"], sent["metadata"]["uid"]);
    assert_ne!(metadata["creationTimestamp"], sent["metadata"]["creationTimestamp"]);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        assert!(metadata.get(field).is_none(), "{field}");
    }
    assert_eq!((&metadata["generation"], created["status"].get("replicas")), (&1.into(), None));
}

#[tokio::test]
async fn generate_name_is_the_prefix_and_five_characters() {
    let api = Api::new();
    let mut sent = mk_pod("");
    sent["metadata"] = json!({ "generateName": "web-" });
    let mut names = Vec::new();
    for _ in 0..3 {
        let created = api.post(PODS, &sent).await.ok();
        let name = created["metadata"]["name"].as_str().expect("a name").to_owned();
        let suffix = name.strip_prefix("web-").expect("the prefix");
        assert!(
            suffix.len() == 5 && suffix.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()),
            "{name}"
        );
        assert_eq!(created["metadata"]["generateName"], "web-");
        names.push(name);
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 3);
}

#[tokio::test]
async fn a_long_generate_name_is_cut_so_that_the_name_fits() {
    let api = Api::new();
    let mut sent = mk_config_map("");
    sent["metadata"] = json!({ "generateName": "x".repeat(100) });
    let created = api.post(MAPS, &sent).await.ok();
    assert_eq!(created["metadata"]["name"].as_str().map(str::len), Some(63));
}

#[tokio::test]
async fn a_name_wins_over_generate_name_and_one_of_them_must_be_there() {
    let api = Api::new();
    let mut sent = mk_config_map("a");
    sent["metadata"]["generateName"] = "b-".into();
    assert_eq!(api.post(MAPS, &sent).await.ok()["metadata"]["name"], "a");
    sent["metadata"] = json!({});
    let status = api.post(MAPS, &sent).await.fails(422, "Invalid");
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.name");
    sent["metadata"] = json!({ "generateName": "Not A Name" });
    api.post(MAPS, &sent).await.fails(422, "Invalid");
}

#[tokio::test]
async fn creating_what_exists_is_409_already_exists() {
    let api = Api::new();
    api.post(DEPLOYMENTS, &mk_deployment("web", 1)).await.ok();
    let status = api.post(DEPLOYMENTS, &mk_deployment("web", 1)).await.fails(409, "AlreadyExists");
    assert_eq!(status["details"], json!({ "name": "web", "group": "apps", "kind": "deployments" }));
    assert_eq!(status["message"], r#"deployments.apps "web" already exists"#);
}

#[tokio::test]
async fn a_type_that_is_not_that_of_the_path_is_400() {
    let api = Api::new();
    for (api_version, kind) in [
        ("v1", "Secret"),
        ("v1", "Unknown"),
        ("v2", "ConfigMap"),
        ("apps/v1", "ConfigMap"),
        ("apps/v1", "Deployment"),
        ("v1", "configmap"),
        ("a/b/c", "ConfigMap"),
    ] {
        let mut sent = mk_config_map("a");
        (sent["apiVersion"], sent["kind"]) = (api_version.into(), kind.into());
        api.post(MAPS, &sent).await.fails(400, "BadRequest");
    }
}

#[tokio::test]
async fn a_built_in_object_that_does_not_say_its_type_is_taken_for_what_the_path_says() {
    let api = Api::new();
    let sent = json!({ "metadata": { "name": "a" }, "data": { "a": "1" } });
    let created = api.post(MAPS, &sent).await.ok();
    assert_eq!((&created["kind"], &created["apiVersion"]), (&"ConfigMap".into(), &"v1".into()));
}

#[tokio::test]
async fn a_namespace_that_is_not_that_of_the_path_is_400() {
    let api = Api::new();
    let mut sent = mk_config_map("a");
    sent["metadata"]["namespace"] = "kube-system".into();
    api.post(MAPS, &sent).await.fails(400, "BadRequest");
    sent["metadata"]["namespace"] = "default".into();
    api.post(MAPS, &sent).await.ok();
}

#[tokio::test]
async fn a_namespace_that_does_not_exist_is_404() {
    let api = Api::new();
    let status =
        api.post("/api/v1/namespaces/nowhere/configmaps", &mk_config_map("a")).await.fails(404, "NotFound");
    assert_eq!(status["details"], json!({ "name": "nowhere", "kind": "namespaces" }));
    assert!(api.names("/api/v1/namespaces/nowhere/configmaps").await.is_empty(), "to read there is nothing");
}

#[tokio::test]
async fn a_version_on_a_new_object_is_400() {
    let api = Api::new();
    let mut sent = mk_config_map("a");
    sent["metadata"]["resourceVersion"] = "5".into();
    api.post(MAPS, &sent).await.fails(400, "BadRequest");
}

#[tokio::test]
async fn names_labels_and_namespaces_must_be_valid() {
    let api = Api::new();
    for name in ["A", "a_b", "-a", "a-", "a..b", "a/b", "a b", "ö", ".", &"x".repeat(254)] {
        let status = api.post(MAPS, &mk_config_map(name)).await.fails(422, "Invalid");
        assert_eq!(status["details"]["causes"][0]["field"], "metadata.name", "{name}");
    }
    for labels in [
        json!({ "a b": "c" }),
        json!({ "a": "b c" }),
        json!({ "/a": "b" }),
        json!({ "Example.com/a": "b" }),
        json!({ "a": "x".repeat(64) }),
    ] {
        let mut sent = mk_config_map("a");
        sent["metadata"]["labels"] = labels.clone();
        let status = api.post(MAPS, &sent).await.fails(422, "Invalid");
        assert_eq!(status["details"]["causes"][0]["field"], "metadata.labels", "{labels}");
    }
    let mut sent = mk_config_map("a.b-c.1");
    sent["metadata"]["labels"] = json!({ "example.com/Some_Key.1": "Some_Value.1", "empty": "" });
    sent["metadata"]["annotations"] = json!({ "Example.com/a": "any text, of any length \u{1f600}" });
    api.post(MAPS, &sent).await.ok();
}

#[tokio::test]
async fn names_of_roles_may_have_colons_and_those_of_services_no_dots() {
    let api = Api::new();
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let role = |name: &str| json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name } });
    api.post(roles, &role("system:Node")).await.ok();
    assert_eq!(api.get(&format!("{roles}/system:Node")).await.ok()["metadata"]["name"], "system:Node");
    api.post(roles, &role("a/b")).await.fails(422, "Invalid");
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a.b" }, "spec": {} });
    api.post("/api/v1/namespaces/default/services", &service).await.fails(422, "Invalid");
}

#[tokio::test]
async fn a_media_type_that_is_not_read_is_415() {
    let api = Api::new();
    for r#type in ["text/plain", "application/xml", "application/merge-patch+json"] {
        let answer =
            api.send("POST", MAPS, &[("content-type", r#type)], mk_config_map("a").to_string()).await;
        answer.fails(415, "UnsupportedMediaType");
    }
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  a: '1'\n";
    let answer = api.send("POST", MAPS, &[("content-type", "application/yaml")], yaml).await;
    assert_eq!(answer.ok()["data"]["a"], "1");
    let answer = api
        .send(
            "POST",
            MAPS,
            &[("content-type", "application/json; charset=utf-8")],
            mk_config_map("b").to_string(),
        )
        .await;
    assert_eq!(answer.code, 201);
}

#[tokio::test]
async fn a_body_of_three_mebibytes_is_read_and_a_longer_one_is_413() {
    let api = Api::new();
    let sized = |length: usize| {
        let mut map = mk_config_map("a");
        map["data"]["a"] = "".into();
        let text = "x".repeat(length - map.to_string().len());
        map["data"]["a"] = text.into();
        map.to_string()
    };
    const LIMIT: usize = 3 * 1024 * 1024;
    for length in [LIMIT + 1, 4 * 1024 * 1024] {
        let answer = api.send("POST", MAPS, &[("content-type", JSON)], sized(length)).await;
        answer.fails(413, "RequestEntityTooLarge");
    }
    assert_eq!(api.send("POST", MAPS, &[("content-type", JSON)], sized(LIMIT)).await.code, 201);
}

#[tokio::test]
async fn dry_run_shows_what_would_be_and_leaves_nothing_behind() {
    let api = Api::new();
    let before = api.server.version();
    let mut watch = api.watch(&query(MAPS, &[("watch", "true")])).await;
    let answer = api.post(&query(MAPS, &[("dryRun", "All")]), &mk_config_map("a")).await;
    assert_eq!(answer.code, 201);
    let shown = answer.ok();
    assert!(shown["metadata"]["uid"].is_string() && shown["metadata"]["creationTimestamp"].is_string());
    api.get(&format!("{MAPS}/a")).await.fails(404, "NotFound");
    assert!(watch.is_silent());
    assert_eq!(api.server.version(), before);
    api.post(&query(MAPS, &[("dryRun", "Some")]), &mk_config_map("a")).await.fails(422, "Invalid");
    api.post(MAPS, &mk_config_map("a")).await.ok();
    api.post(&query(MAPS, &[("dryRun", "All")]), &mk_config_map("a")).await.fails(409, "AlreadyExists");
}

#[tokio::test]
async fn unknown_fields_are_dropped_with_a_warning_or_refused_as_field_validation_says() {
    let api = Api::new();
    let unknown = |name: &str| {
        let mut pod = mk_pod(name);
        pod["spec"]["containers"][0]["imge"] = "x".into();
        pod
    };
    for (name, validation, warned) in [("a", "", true), ("b", "Warn", true), ("c", "Ignore", false)] {
        let answer = api.post(&query(PODS, &[("fieldValidation", validation)]), &unknown(name)).await;
        let warning = answer.headers.get("warning").map(|text| text.to_str().expect("text").to_owned());
        assert_eq!(warning.is_some(), warned, "{validation}: {warning:?}");
        assert!(
            warning.is_none_or(|text| text.contains("spec.containers[0].imge") && text.starts_with("299 - "))
        );
        assert!(answer.ok()["spec"]["containers"][0].get("imge").is_none());
    }
    let status = api
        .post(&query(PODS, &[("fieldValidation", "Strict")]), &unknown("d"))
        .await
        .fails(400, "BadRequest");
    assert!(status["message"].as_str().expect("text").contains("spec.containers[0].imge"));
    api.post(&query(PODS, &[("fieldValidation", "Perhaps")]), &mk_pod("e")).await.fails(422, "Invalid");
}

#[tokio::test]
async fn a_field_of_the_wrong_type_is_400() {
    let api = Api::new();
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
        api.post(PODS, &pod).await.fails(400, "BadRequest");
    }
}

#[tokio::test]
async fn a_secret_is_stored_with_its_strings_encoded() {
    let api = Api::new();
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "stringData": { "a": "b" } });
    let created = api.post("/api/v1/namespaces/default/secrets", &secret).await.ok();
    assert_eq!(
        (&created["data"]["a"], created.get("stringData"), &created["type"]),
        (&"Yg==".into(), None, &"Opaque".into())
    );
}

#[tokio::test]
async fn objects_are_created_in_a_collection_and_nowhere_else() {
    let api = Api::new();
    api.post(&format!("{MAPS}/a"), &mk_config_map("a")).await.fails(405, "MethodNotAllowed");
    api.post("/api/v1/configmaps", &mk_config_map("a")).await.fails(405, "MethodNotAllowed");
    api.post("/api/v1/namespaces/default/nodes", &mk_config_map("a")).await.fails(404, "NotFound");
}

//! What the server says about itself.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    client::Api,
    objects::{CRDS, mk_crd},
};

const AGGREGATED: &str = "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io";

fn group<'a>(document: &'a Value, name: &str) -> &'a Value {
    let items = document["items"].as_array().expect("items");
    items.iter().find(|item| item["metadata"]["name"] == name).expect("the group")
}

fn by<'a>(list: &'a Value, field: &str, value: &str) -> Option<&'a Value> {
    list.as_array().expect("a list").iter().find(|item| item[field] == value)
}

#[tokio::test]
async fn aggregated_discovery_is_one_document_for_the_core_group_and_one_for_all_others() {
    let api = Api::new();
    let answer = api.get_as("/api", AGGREGATED).await;
    let r#type = answer.headers["content-type"].to_str().expect("text").to_owned();
    for part in ["as=APIGroupDiscoveryList", "v=v2", "g=apidiscovery.k8s.io"] {
        assert!(r#type.contains(part), "{type}");
    }
    let core = answer.ok();
    assert_eq!(
        (&core["kind"], &core["apiVersion"]),
        (&"APIGroupDiscoveryList".into(), &"apidiscovery.k8s.io/v2".into())
    );
    let v1 = &core["items"][0]["versions"][0];
    assert_eq!((&v1["version"], &v1["freshness"]), (&"v1".into(), &"Current".into()));
    let pods = by(&v1["resources"], "resource", "pods").expect("pods");
    assert_eq!((&pods["scope"], &pods["singularResource"]), (&"Namespaced".into(), &"pod".into()));
    assert_eq!(pods["responseKind"], json!({ "group": "", "version": "v1", "kind": "Pod" }));
    assert!(by(&pods["subresources"], "subresource", "status").is_some());

    let groups = api.get_as("/apis", AGGREGATED).await.ok();
    let apps = group(&groups, "apps");
    let deployments = by(&apps["versions"][0]["resources"], "resource", "deployments").expect("deployments");
    let scale = by(&deployments["subresources"], "subresource", "scale").expect("scale");
    assert_eq!(scale["responseKind"], json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" }));
}

#[tokio::test]
async fn clients_that_ask_as_kubectl_does_get_the_aggregated_document() {
    let api = Api::new();
    let accept = format!(
        "{AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
    );
    assert_eq!(api.get_as("/apis", &accept).await.ok()["kind"], "APIGroupDiscoveryList");
    let unknown = "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList";
    api.get_as("/apis", unknown).await.fails(406, "NotAcceptable");
    assert_eq!(
        api.get_as("/apis", &format!("{unknown},application/json")).await.ok()["kind"],
        "APIGroupList"
    );
}

#[tokio::test]
async fn legacy_discovery_is_a_document_for_each_step() {
    let api = Api::new();
    let versions = api.get("/api").await.ok();
    assert_eq!((&versions["kind"], &versions["versions"]), (&"APIVersions".into(), &json!(["v1"])));
    let groups = api.get("/apis").await.ok();
    assert_eq!(groups["kind"], "APIGroupList");
    let apps = by(&groups["groups"], "name", "apps").expect("apps");
    assert_eq!(apps["preferredVersion"], json!({ "groupVersion": "apps/v1", "version": "v1" }));
    let one = api.get("/apis/apps").await.ok();
    assert_eq!(
        (&one["kind"], &one["name"], &one["versions"]),
        (&"APIGroup".into(), &"apps".into(), &apps["versions"])
    );
    let resources = api.get("/apis/apps/v1").await.ok();
    assert_eq!(
        (&resources["kind"], &resources["groupVersion"]),
        (&"APIResourceList".into(), &"apps/v1".into())
    );
    let deployments = by(&resources["resources"], "name", "deployments").expect("deployments");
    assert_eq!(
        (&deployments["kind"], &deployments["namespaced"], &deployments["shortNames"]),
        (&"Deployment".into(), &true.into(), &json!(["deploy"]))
    );
    for part in ["deployments/status", "deployments/scale"] {
        assert!(by(&resources["resources"], "name", part).is_some(), "{part}");
    }
    assert!(by(&api.get("/api/v1").await.ok()["resources"], "name", "pods").is_some());
}

#[tokio::test]
async fn every_resource_that_discovery_names_can_be_listed() {
    let api = Api::new();
    for root in ["/api", "/apis"] {
        let document = api.get_as(root, AGGREGATED).await.ok();
        for group in document["items"].as_array().expect("items") {
            for version in group["versions"].as_array().expect("versions") {
                let base = match group["metadata"]["name"].as_str() {
                    Some(name) => format!("/apis/{name}"),
                    None => "/api".to_owned(),
                };
                for resource in version["resources"].as_array().expect("resources") {
                    let (version, plural) = (version["version"].as_str(), resource["resource"].as_str());
                    let path = format!("{base}/{}/{}", version.expect("a version"), plural.expect("a name"));
                    let list = api.get(&path).await.ok();
                    let kind = resource["responseKind"]["kind"].as_str().expect("a kind");
                    assert_eq!(list["kind"], format!("{kind}List"), "{path}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_group_or_version_that_is_not_there_is_404() {
    let api = Api::new();
    for path in ["/apis/apps/v9", "/api/v9", "/apis/apps/v1/nothings", "/api/v9/pods", "/api/v1/a/b/c/d/e/f"]
    {
        api.get(path).await.fails(404, "NotFound");
    }
    for path in ["/nothing", "/apis/nothing.example.com", "/apis/nothing.example.com/v1/things"] {
        assert!(api.get(path).await.is_nowhere(), "{path}");
    }
}

#[tokio::test]
async fn a_definition_is_in_discovery_as_long_as_it_is_there() {
    let api = Api::new();
    api.post(CRDS, &mk_crd()).await.ok();
    let groups = api.get_as("/apis", AGGREGATED).await.ok();
    let versions = group(&groups, "example.com")["versions"].as_array().expect("versions").clone();
    assert_eq!(
        versions.iter().map(|v| v["version"].as_str().expect("a name")).collect::<Vec<_>>(),
        ["v1", "v1beta1"]
    );
    let widgets = by(&versions[0]["resources"], "resource", "widgets").expect("widgets");
    assert_eq!((&widgets["shortNames"], &widgets["singularResource"]), (&json!(["wd"]), &"widget".into()));
    assert_eq!(
        api.get("/apis/example.com/v1beta1").await.ok()["resources"].as_array().map(Vec::len),
        Some(1)
    );
    api.delete(&format!("{CRDS}/widgets.example.com")).await.ok();
    assert!(api.get("/apis/example.com").await.is_nowhere());
}

#[tokio::test]
async fn health_and_version_are_answered() {
    let api = Api::new();
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping"] {
        assert_eq!(api.get(path).await.code, 200, "{path}");
    }
    let version = api.get("/version").await.ok();
    assert_eq!(version["major"], "1");
    assert!(version["gitVersion"].as_str().is_some_and(|text| text.starts_with("v1.")));
    let root = api.get("/").await.ok();
    assert!(root["paths"].as_array().is_some_and(|paths| paths.contains(&"/apis/apps/v1".into())));
}

#[tokio::test]
async fn a_server_that_is_being_filled_is_alive_and_not_ready() {
    let api = Api::new();
    api.server.set_ready(false);
    for (path, code) in [("/livez", 200), ("/readyz", 503), ("/readyz/ping", 503), ("/api/v1/pods", 200)] {
        // A probe reads the code; what it is answered with is no `Status`.
        assert_eq!(api.call("GET", path, &[], Bytes::new()).await.status(), code, "{path}");
    }
    api.server.set_ready(true);
    assert_eq!(api.get("/readyz").await.code, 200);
}

#[tokio::test]
async fn discovery_cannot_be_written() {
    let api = Api::new();
    for path in ["/api", "/apis", "/apis/apps/v1", "/version"] {
        api.post(path, &json!({})).await.fails(405, "MethodNotAllowed");
    }
}

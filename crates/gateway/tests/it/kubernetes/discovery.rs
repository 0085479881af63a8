//! What the gateway says that it serves: everything that can be kept in memory, for reading.

use std::{collections::BTreeSet, time::Duration};

use informer_apiserver::{Fault, Rule};
use kube::Client;
use serde_json::{Value, json};

use super::{mk_website, mk_websites};
use crate::support::*;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn items<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// What the cluster itself serves in a version of a group, and can be listed and watched.
async fn served(client: &Client, path: &str) -> BTreeSet<String> {
    let request = http::Request::get(path).body(Vec::new()).expect("a request");
    let list: Value = client.request(request).await.expect("a document");
    let can = |resource: &&Value, verb: &str| items(resource, "verbs").contains(&json!(verb));
    let resources = items(&list, "resources").iter();
    resources.filter(|r| can(r, "list") && can(r, "watch")).map(|r| text(&r["name"])).collect()
}

#[tokio::test]
async fn documents_of_a_version_offer_reading_only_and_no_parts() {
    let stage = Stage::open(mk_demo(5)).await;
    for path in ["/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/rbac.authorization.k8s.io/v1"] {
        let list = stage.get(path).await.ok();
        // As a real server: the document of the core group does not say its version.
        let version = if path == "/api/v1" { Value::Null } else { json!("v1") };
        assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("APIResourceList"), &version));
        let mut names = BTreeSet::new();
        for resource in items(&list, "resources") {
            assert_eq!(resource["verbs"], json!(["get", "list", "watch"]), "{resource}");
            assert!(!text(&resource["name"]).contains('/'), "{resource}");
            names.insert(text(&resource["name"]));
        }
        let mut expected = served(&stage.server.client(), path).await;
        expected.remove("secrets");
        assert_eq!(names, expected, "{path}");
    }
    stage.close().await;
}

#[tokio::test]
async fn a_slash_at_the_end_of_a_document_makes_no_difference() {
    let stage = Stage::open(mk_demo(5)).await;
    for path in ["/api", "/apis", "/version", "/api/v1", "/apis/apps", "/apis/apps/v1"] {
        assert_eq!(stage.get(path).await.ok(), stage.get(&format!("{path}/")).await.ok(), "{path}");
    }
    stage.close().await;
}

#[tokio::test]
async fn groups_are_listed_and_each_has_its_document() {
    let stage = Stage::open(mk_demo(5)).await;
    let core = stage.get("/api").await.ok();
    assert_eq!((&core["kind"], &core["versions"]), (&json!("APIVersions"), &json!(["v1"])));
    let address = &core["serverAddressByClientCIDRs"][0]["serverAddress"];
    assert_eq!(*address, stage.address.to_string());
    let groups = stage.get("/apis").await.ok();
    assert_eq!(groups["kind"], "APIGroupList");
    assert!(items(&groups, "groups").iter().any(|group| group["name"] == "apps"));
    for group in items(&groups, "groups") {
        let path = format!("/apis/{}", text(&group["name"]));
        assert_eq!(stage.get(&path).await.ok()["preferredVersion"], group["preferredVersion"]);
        for version in items(group, "versions") {
            stage.get(&format!("/apis/{}", text(&version["groupVersion"]))).await.ok();
        }
    }
    for path in ["/api/v7", "/apis/nothing.example.com", "/apis/apps/v7", "/apis/apps/v1/nothing"] {
        stage.get(path).await.fails(404);
    }
    stage.close().await;
}

#[tokio::test]
async fn aggregated_documents_say_the_same_in_one() {
    let stage = Stage::open(mk_demo(5)).await;
    for path in ["/api", "/apis"] {
        let answer =
            stage.get_with(path, &[("accept", &format!("{AGGREGATED},application/json;q=0.5"))]).await;
        assert_eq!(answer.header("content-type"), AGGREGATED);
        let list = answer.ok();
        assert_eq!(list["kind"], "APIGroupDiscoveryList");
        for group in items(&list, "items") {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            for version in items(group, "versions") {
                let base = if path == "/api" { "/api".to_owned() } else { format!("/apis/{name}") };
                let legacy = stage.get(&format!("{base}/{}", text(&version["version"]))).await.ok();
                let legacy: Vec<_> = items(&legacy, "resources").iter().map(|r| r["name"].clone()).collect();
                let resources = items(version, "resources");
                assert_eq!(resources.iter().map(|r| r["resource"].clone()).collect::<Vec<_>>(), legacy);
                for resource in resources {
                    assert_eq!(resource["verbs"], json!(["get", "list", "watch"]), "{resource}");
                    assert!(resource.get("subresources").is_none(), "{resource}");
                }
            }
        }
    }
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_added_later_is_served_with_its_columns() {
    let stage = Stage::inside(mk_demo(5), |builder| builder);
    stage.get("/apis/example.com/v1/websites").await.fails(404);
    stage.get("/example.com/v1/websites").await.says(404);
    stage.get("/_resources").await.ok();
    stage.put([mk_websites(), mk_website("one"), mk_website("two")]);
    assert_eq!(stage.get("/example.com/v1/websites").await.names(), ["one", "two"]);
    assert_eq!(stage.get("/apis/example.com/v1/websites").await.ok()["kind"], "WebsiteList");
    let table = stage.get("/example.com/v1/websites?as=table").await.ok();
    let names: Vec<_> = items(&table, "columns").iter().map(|column| text(&column["name"])).collect();
    assert_eq!(names, ["Name", "Address", "Pages"]);
    assert_eq!(table["columns"][2]["priority"], 1);
    assert_eq!(table["rows"][0]["cells"][1], "https://one.example.com");
    assert_eq!(table["rows"][0]["cells"][2], 3);
    let table = stage.get_with("/apis/example.com/v1/websites", &[("accept", super::TABLE)]).await.ok();
    assert_eq!(table["columnDefinitions"][1]["description"], "Where it is.");
    // What all kinds there are is asked for again after some seconds.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let resources = stage.get("/_resources").await.ok();
    let website =
        items(&resources, "resources").iter().find(|r| r["kind"] == "Website").expect("the new kind");
    assert_eq!((&website["path"], &website["state"]), (&json!("example.com/v1/websites"), &json!("synced")));
    let groups = stage.get("/apis").await.ok();
    assert!(items(&groups, "groups").iter().any(|group| group["name"] == "example.com"));
}

#[tokio::test(start_paused = true)]
async fn names_that_mean_nothing_do_not_become_a_flood_of_questions_about_what_there_is() {
    let stage = Stage::inside(mk_demo(5), |builder| builder);
    let all = stage.server.faults().add(Rule::new(Fault::Delay(Duration::ZERO)));
    let asked = || stage.server.faults().hits(all);
    stage.get("/core/v1/nothing").await.says(404);
    let first = asked();
    for number in 0..500 {
        stage.get(&format!("/core/v1/nothing-{number}")).await.says(404);
    }
    assert!(asked() <= 20 * first, "{} requests, where one name takes {first}", asked());
    // What is new is found again a moment later.
    stage.put([mk_websites(), mk_website("one")]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.get("/example.com/v1/websites").await.names(), ["one"]);
}

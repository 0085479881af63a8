//! Continue tokens, and what becomes of them and of old versions when history is forgotten.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::{
    client::{Api, names, query, version},
    objects::{MAPS, mk_config_map},
};

/// A list of which the first page was read, and the token for the second.
async fn after_first_page() -> (Api, String) {
    let api = Api::new();
    for name in ["a", "b", "c"] {
        api.post(MAPS, &mk_config_map(name)).await.ok();
    }
    let first = api.get(&query(MAPS, &[("limit", "1")])).await.ok();
    let token = first["metadata"]["continue"].as_str().expect("a token").to_owned();
    (api, token)
}

#[tokio::test]
async fn a_token_is_base64url_of_format_version_and_start() {
    let (api, token) = after_first_page().await;
    let text = BASE64_URL_SAFE_NO_PAD.decode(&token).expect("base64url");
    let token: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!((&token["v"], &token["rv"]), (&"meta.k8s.io/v1".into(), &api.server.version().into()));
    assert!(token["start"].is_string());
}

#[tokio::test]
async fn a_bad_token_is_400() {
    let (api, token) = after_first_page().await;
    let made_up = |json: Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
    for bad in [
        "x".to_owned(),
        "%%%".to_owned(),
        token[..token.len() / 2].to_owned(),
        made_up(json!({})),
        made_up(json!({ "v": "meta.k8s.io/v1", "rv": 0, "start": "default/a" })),
        made_up(json!({ "v": "meta.k8s.io/v1", "rv": -3, "start": "default/a" })),
        made_up(json!({ "v": "meta.k8s.io/v1", "rv": "5", "start": "default/a" })),
        made_up(json!({ "v": "meta.k8s.io/v3", "rv": 5, "start": "default/a" })),
        made_up(json!({ "v": "meta.k8s.io/v1", "rv": 5, "start": "../kube-system/a" })),
        made_up(json!({ "v": "meta.k8s.io/v1", "rv": 5, "start": "" })),
    ] {
        api.get(&query(MAPS, &[("limit", "1"), ("continue", &bad)])).await.fails(400, "BadRequest");
    }
}

#[tokio::test]
async fn a_token_beside_another_version_is_400() {
    let (api, token) = after_first_page().await;
    api.get(&query(MAPS, &[("continue", &token), ("resourceVersion", "5")])).await.fails(400, "BadRequest");
    let rest = api.get(&query(MAPS, &[("continue", &token), ("resourceVersion", "0")])).await;
    assert_eq!(rest.names(), ["b", "c"], "\"0\" asks for nothing");
}

#[tokio::test]
async fn a_token_for_another_namespace_shows_nothing_of_it() {
    let (api, token) = after_first_page().await;
    let elsewhere = "/api/v1/namespaces/kube-system/configmaps";
    let foreign = BASE64_URL_SAFE_NO_PAD.encode(
        json!({ "v": "meta.k8s.io/v1", "rv": api.server.version(), "start": "default/a" }).to_string(),
    );
    for token in [token, foreign] {
        assert!(api.get(&query(elsewhere, &[("continue", &token)])).await.names().is_empty());
    }
}

#[tokio::test]
async fn a_compacted_list_is_410_with_a_token_that_goes_on_at_the_newest_version() {
    let (api, token) = after_first_page().await;
    api.post(MAPS, &mk_config_map("bb")).await.ok();
    api.server.compact();
    let status = api.get(&query(MAPS, &[("limit", "1"), ("continue", &token)])).await.fails(410, "Expired");
    let fresh = status["metadata"]["continue"].as_str().expect("a fresh token");
    assert_ne!(fresh, token);
    let newest = api.server.version();
    let rest = api.get(&query(MAPS, &[("limit", "2"), ("continue", fresh)])).await.ok();
    assert_eq!((names(&rest), version(&rest)), (vec!["b".into(), "bb".into()], newest));
    let token = rest["metadata"]["continue"].as_str().expect("more");
    assert_eq!(api.get(&query(MAPS, &[("continue", token)])).await.names(), ["c"]);
}

#[tokio::test]
async fn an_exact_version_that_is_compacted_is_410() {
    let (api, _) = after_first_page().await;
    let older = (api.server.version() - 1).to_string();
    api.server.compact();
    for more in [("resourceVersionMatch", "Exact"), ("limit", "1")] {
        api.get(&query(MAPS, &[("resourceVersion", &older), more])).await.fails(410, "Expired");
    }
    let newer = api.get(&query(MAPS, &[("resourceVersion", &older)])).await;
    assert_eq!(newer.names().len(), 3, "not older than it there is something");
    assert_eq!(api.names(MAPS).await.len(), 3, "the newest is always there");
}

#[tokio::test]
async fn versions_are_decimal_integers_without_leading_zeros_that_grow() {
    let (api, _) = after_first_page().await;
    let mut last = 0;
    for name in ["x", "y", "z"] {
        let created = api.post(MAPS, &mk_config_map(name)).await.ok();
        let text = created["metadata"]["resourceVersion"].as_str().expect("a version");
        assert!(!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()), "{text}");
        assert!(version(&created) > last);
        last = version(&created);
    }
}

//! GET and LIST: which version they read.

use crate::{
    objects::mk_map,
    stage::{Stage, play},
};

/// Config maps of these names, one after the other; the version of each.
async fn with_maps(stage: &Stage, names: &[&str]) -> Vec<String> {
    let mut versions = Vec::new();
    for name in names {
        let made = stage.make(&stage.maps(), mk_map(name)).await;
        versions.push(made["metadata"]["resourceVersion"].as_str().expect("a version").to_owned());
    }
    versions
}

#[test]
fn get_reads_the_newest_any_or_not_older_than_a_version() {
    play("get", async |stage| {
        let versions = with_maps(stage, &["a"]).await;
        let path = format!("{}/a", stage.maps());
        for wanted in ["", "0", "1", &versions[0]] {
            stage.get(&path, &[("resourceVersion", wanted)]).await;
        }
        stage.get(&path, &[]).await;
        stage.get_refused(&path, &[("resourceVersion", "x")]).await;
        for absent in [
            format!("{}/none", stage.maps()),
            format!("{}/none", stage.group("apps/v1", "deployments")),
            "/api/v1/nodes/none".to_owned(),
            "/api/v1/namespaces/none-of-them".to_owned(),
            "/api/v1/namespaces/none-of-them/configmaps/a".to_owned(),
        ] {
            stage.get(&absent, &[]).await;
        }
    });
}

#[test]
fn paths_that_lead_nowhere_are_404() {
    play("nowhere", async |stage| {
        with_maps(stage, &["a"]).await;
        for path in [
            "/nothing",
            "/api/v9",
            "/api/v9/pods",
            "/apis/nothing.example.com",
            "/apis/nothing.example.com/v1",
            "/apis/nothing.example.com/v1/things",
            "/apis/apps/v9",
            "/apis/apps/v1/nothings",
            "/api/v1/configmaps/a",
            "/api/v1/nothings",
            "/api/v1/namespaces/default/nothings",
            "/api/v1/namespaces/default/nodes",
            "/api/v1/namespaces/default/namespaces/default",
            "/api/v1/namespaces/default/configmaps/a/b",
            "/api/v1/namespaces/default/configmaps/a/status",
            "/api/v1/namespaces/default/configmaps/a/b/c",
            "/api/v1/a/b/c/d/e/f",
        ] {
            stage.get(path, &[]).await;
        }
    });
}

#[test]
fn a_list_is_read_at_the_version_that_was_asked_for() {
    play("list", async |stage| {
        let versions = with_maps(stage, &["a", "b", "c"]).await;
        let path = stage.maps();
        stage.get(&path, &[]).await;
        stage.get(&path, &[("resourceVersion", "")]).await;
        for parameters in [
            &[("resourceVersion", "0")][..],
            &[("resourceVersion", "0"), ("limit", "1")],
            &[("resourceVersion", "0"), ("resourceVersionMatch", "NotOlderThan")],
            &[("resourceVersion", "0"), ("resourceVersionMatch", "NotOlderThan"), ("limit", "1")],
            &[("resourceVersion", &versions[0])],
            &[("resourceVersion", &versions[0]), ("resourceVersionMatch", "NotOlderThan")],
            &[("resourceVersion", &versions[0]), ("resourceVersionMatch", "NotOlderThan"), ("limit", "2")],
            &[("resourceVersion", &versions[0]), ("limit", "5")],
            &[("resourceVersion", &versions[1]), ("limit", "1")],
            &[("resourceVersion", &versions[0]), ("resourceVersionMatch", "Exact")],
            &[("resourceVersion", &versions[1]), ("resourceVersionMatch", "Exact"), ("limit", "1")],
            &[("resourceVersion", &versions[2]), ("resourceVersionMatch", "Exact")],
            &[("resourceVersionMatch", "")],
        ] {
            stage.get(&path, parameters).await;
        }
    });
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    play("list_refused", async |stage| {
        let versions = with_maps(stage, &["a", "b"]).await;
        let path = stage.maps();
        let first = stage.get(&path, &[("limit", "1")]).await;
        let token = first.body["metadata"]["continue"].as_str().expect("a token").to_owned();
        for parameters in [
            &[("resourceVersionMatch", "Exact")][..],
            &[("resourceVersionMatch", "NotOlderThan")],
            &[("resourceVersionMatch", "Sometimes")],
            &[("resourceVersion", "0"), ("resourceVersionMatch", "Exact")],
            &[("resourceVersion", "1"), ("resourceVersionMatch", "exact")],
            &[("resourceVersion", &versions[0]), ("resourceVersionMatch", "Exact"), ("continue", &token)],
            &[("continue", &token), ("resourceVersionMatch", "NotOlderThan")],
            &[("sendInitialEvents", "true")],
            &[("sendInitialEvents", "false")],
            &[("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")],
            &[
                ("sendInitialEvents", "true"),
                ("resourceVersion", "0"),
                ("resourceVersionMatch", "NotOlderThan"),
            ],
            &[("resourceVersion", "01")],
            &[("limit", "-1")],
            &[("limit", "0")],
        ] {
            stage.get(&path, parameters).await;
        }
        for parameters in [
            &[("resourceVersion", "x")][..],
            &[("resourceVersion", "-1")],
            &[("resourceVersion", "0x1")],
            &[("resourceVersion", "1.5")],
            &[("resourceVersion", "1x"), ("resourceVersionMatch", "Exact")],
            &[("resourceVersion", "99999999999999999999")],
            &[("limit", "x")],
            &[("timeoutSeconds", "x")],
        ] {
            stage.get_refused(&path, parameters).await;
        }
    });
}

#[test]
fn a_version_of_the_future_is_waited_for_and_then_504() {
    play("future", async |stage| {
        with_maps(stage, &["a"]).await;
        let path = stage.maps();
        let future = "1000000000";
        stage.get(&format!("{path}/a"), &[("resourceVersion", future)]).await;
        for parameters in [
            &[("resourceVersion", future)][..],
            &[("resourceVersion", future), ("resourceVersionMatch", "NotOlderThan")],
            &[("resourceVersion", future), ("resourceVersionMatch", "Exact")],
            &[("resourceVersion", future), ("limit", "1")],
        ] {
            stage.get(&path, parameters).await;
        }
        stage.note("a streaming list");
        let streaming = [
            ("sendInitialEvents", "true"),
            ("resourceVersionMatch", "NotOlderThan"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", future),
        ];
        let mut watch = stage.watch(&path, &streaming).await;
        watch.rest().await;
    });
}

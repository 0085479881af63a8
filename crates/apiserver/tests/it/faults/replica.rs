//! A second replica that lags behind.

use std::{pin::pin, time::Duration};

use futures_util::{FutureExt, TryStreamExt};
use informer_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{GetParams, ListParams, VersionMatch, WatchEvent, WatchParams},
};
use tokio::time::Instant;

use crate::{
    client::{Watch, get_json, names, version},
    objects::{MAPS, discard_map, mk_server, put_maps},
};

/// A server with `a`, whose second replica has not seen yet that `b` came and `a` went.
fn mk_lagging() -> (ApiServer, Api<ConfigMap>, u64) {
    let server = mk_server();
    put_maps(&server, &["a"]);
    let held = server.version();
    server.hold_replica(Some(held));
    put_maps(&server, &["b"]);
    discard_map(&server, "a");
    let maps = Api::default_namespaced(server.replica_client());
    (server, maps, held)
}

fn of(list: &kube::api::ObjectList<ConfigMap>) -> (Vec<String>, u64) {
    let version = list.metadata.resource_version.as_deref().expect("a version").parse().expect("a number");
    (list.items.iter().map(ResourceExt::name_any).collect(), version)
}

#[tokio::test]
async fn reads_of_any_version_are_old_and_consistent_reads_are_not() {
    let (server, maps, held) = mk_lagging();
    let any = ListParams::default().match_any();
    assert_eq!(of(&maps.list(&any).await.expect("a list")), (vec!["a".into()], held));
    assert_eq!(
        of(&maps.list(&ListParams::default()).await.expect("a list")),
        (vec!["b".into()], server.version())
    );
    assert!(maps.get_with("a", &GetParams::any()).await.is_ok(), "it is still there");
    let fresh = maps.get("a").await.expect_err("it is gone");
    assert!(matches!(fresh, kube::Error::Api(status) if status.code == 404));

    let first: Api<ConfigMap> = Api::default_namespaced(server.client());
    assert_eq!(of(&first.list(&any).await.expect("a list")).0, ["b"], "the first replica is up to date");
    let at = ListParams::default().at(&held.to_string()).matching(VersionMatch::NotOlderThan);
    assert_eq!(of(&maps.list(&at).await.expect("a list")), (vec!["a".into()], held));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_it_has_not_reached_is_waited_for_and_then_too_large() {
    let (server, maps, held) = mk_lagging();
    let beyond = (held + 1).to_string();
    let start = Instant::now();
    for outcome in [
        maps.list(&ListParams::default().at(&beyond)).await.map(drop),
        maps.get_with("b", &GetParams::at(&beyond)).await.map(drop),
    ] {
        match outcome {
            Err(kube::Error::Api(status)) => {
                assert_eq!((status.code, status.reason.as_str()), (504, "Timeout"));
                let details = status.details.expect("details");
                assert_eq!(
                    (details.causes[0].reason.as_str(), details.retry_after_seconds),
                    ("ResourceVersionTooLarge", 1)
                );
                assert!(status.message.contains(&format!("current: {held}")), "{}", status.message);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(start.elapsed(), Duration::from_secs(6));
    let first: Api<ConfigMap> = Api::default_namespaced(server.client());
    assert!(first.list(&ListParams::default().at(&beyond)).await.is_ok());
    assert_eq!(start.elapsed(), Duration::from_secs(6), "the first replica does not wait");
}

#[tokio::test(start_paused = true)]
async fn a_read_that_waits_goes_on_as_soon_as_the_replica_has_caught_up() {
    let (server, maps, held) = mk_lagging();
    let at = ListParams::default().at(&(held + 1).to_string());
    let start = Instant::now();
    let catch_up = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.hold_replica(Some(held + 1));
    };
    let (list, ()) = tokio::join!(maps.list(&at), catch_up);
    assert_eq!(of(&list.expect("a list")), (vec!["a".into(), "b".into()], held + 1));
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

#[tokio::test]
async fn a_watch_lags_and_then_sees_everything_in_order() {
    let (server, maps, held) = mk_lagging();
    let mut events = pin!(maps.watch(&WatchParams::default(), "0").await.expect("a watch"));
    let mut next = async || match events.try_next().await.expect("an event").expect("more") {
        WatchEvent::Added(map) => format!("+{}", map.name_any()),
        WatchEvent::Deleted(map) => format!("-{}", map.name_any()),
        other => panic!("{other:?}"),
    };
    assert_eq!(next().await, "+a");
    assert!(next().now_or_never().is_none(), "it knows no more");
    server.hold_replica(Some(held + 1));
    assert_eq!(next().await, "+b");
    assert!(next().now_or_never().is_none());
    put_maps(&server, &["c"]);
    assert!(next().now_or_never().is_none());
    server.hold_replica(None);
    assert_eq!((next().await, next().await), ("-a".into(), "+c".into()));
    put_maps(&server, &["d"]);
    assert_eq!(next().await, "+d", "and is up to date from then on");
}

#[tokio::test]
async fn a_watch_after_a_version_that_it_has_not_reached_is_silent_until_then() {
    let (server, maps, _) = mk_lagging();
    let newest = server.version().to_string();
    let mut events = pin!(maps.watch(&WatchParams::default(), &newest).await.expect("a watch"));
    put_maps(&server, &["c"]);
    assert!(events.try_next().now_or_never().is_none());
    server.hold_replica(None);
    let event = events.try_next().await.expect("an event");
    assert!(matches!(event, Some(WatchEvent::Added(map)) if map.name_any() == "c"));
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_of_a_version_that_it_has_not_reached_waits_and_fails() {
    let (server, maps, held) = mk_lagging();
    let streaming = WatchParams::default().initial_events();
    let mut late = pin!(maps.watch(&streaming, &server.version().to_string()).await.expect("a watch"));
    assert!(matches!(late.try_next().await, Ok(Some(WatchEvent::Error(status))) if status.code == 504));
    let mut events = pin!(maps.watch(&streaming, "0").await.expect("a watch"));
    assert!(matches!(events.try_next().await, Ok(Some(WatchEvent::Added(map))) if map.name_any() == "a"));
    match events.try_next().await {
        Ok(Some(WatchEvent::Bookmark(mark))) => assert_eq!(mark.metadata.resource_version, held.to_string()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn single_requests_can_be_sent_to_it() {
    let (server, _, held) = mk_lagging();
    server.faults().add(Rule::new(Fault::Stale).verb(Verb::List).nth([2]));
    server.faults().add(Rule::new(Fault::Stale).verb(Verb::Watch).times(1));
    let any = format!("{MAPS}?resourceVersion=0");
    let mut lists = Vec::new();
    for _ in 0..3 {
        lists.push(get_json(&server, &any).await);
    }
    let seen: Vec<_> = lists.iter().map(|list| (names(list), version(list))).collect();
    let newest = server.version();
    let expected = [("b", newest), ("a", held), ("b", newest)];
    assert_eq!(seen, expected.map(|(name, version)| (vec![name.to_owned()], version)));
    let mut stale = Watch::of(&server, &format!("resourceVersion={held}")).await;
    let mut fresh = Watch::of(&server, &format!("resourceVersion={held}")).await;
    assert_eq!((stale.now(), fresh.now().len()), (vec![], 2));
    server.hold_replica(None);
    assert_eq!(stale.now(), ["ADDED b", "DELETED a"], "a watch stays with its replica");
}

#[tokio::test]
async fn a_replica_that_is_not_held_is_up_to_date_and_one_held_ahead_stops_there() {
    let server = mk_server();
    put_maps(&server, &["a"]);
    let maps: Api<ConfigMap> = Api::default_namespaced(server.replica_client());
    let any = ListParams::default().match_any();
    assert_eq!(of(&maps.list(&any).await.expect("a list")).0, ["a"]);
    server.hold_replica(Some(server.version() + 1));
    put_maps(&server, &["b", "c"]);
    assert_eq!(
        of(&maps.list(&any).await.expect("a list")),
        (vec!["a".into(), "b".into()], server.version() - 1)
    );
}

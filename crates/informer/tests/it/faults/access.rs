//! Servers that say no: the kind is gone, the permission, the token; or it is all too much for them now.

use std::time::Duration;

use informer::{
    KubeListWatch, SharedInformer,
    model::{ObjectKey, Status},
    reflector::{Problem, Remedy},
};
use informer_apiserver::{
    ApiServer, Fault, Rule, Verb,
    Verb::{List, Watch},
    View,
};
use informer_testing::custom_resource;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::cluster::{Versions, Watched, over_seeds, until, version};

fn install_widgets(server: &ApiServer) {
    server.put(custom_resource("Widget", &[])).expect("written");
}

fn uninstall_widgets(server: &ApiServer) {
    let key = ObjectKey::new(None, "widgets.example.com").expect("a key");
    assert!(server.discard("apiextensions.k8s.io", "customresourcedefinitions", &key));
}

fn put_widget(server: &ApiServer, number: usize) {
    let metadata = json!({ "name": format!("widget-{number}"), "namespace": "default" });
    let widget = json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata });
    server.put(widget).expect("written");
}

fn widgets(server: &ApiServer) -> Versions {
    let there = (0..10).filter_map(|number| {
        let name = format!("widget-{number}");
        let widget = server.get(("example.com", "widgets"), "default", &name)?;
        Some((ObjectKey::new(Some("default"), &name).expect("a key"), version(&widget)))
    });
    there.collect()
}

#[test]
fn f16_a_kind_that_goes_and_comes_back_is_followed_through_all_of_it() {
    over_seeds(30, async |mut cluster| {
        let server = cluster.server.clone();
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
        let source = KubeListWatch::<DynamicObject>::of_kind(server.client(), kind);
        let builder = SharedInformer::builder(source).streaming(cluster.seed % 2 == 0).seed(cluster.seed);
        let mut watched = Watched::run(builder);
        for _ in 0..3 {
            // Not there: the informer says so, and what can be done.
            until(|| watched.informer.health().trouble().is_some(), || "no trouble".to_owned()).await;
            let health = watched.informer.health().to_string();
            assert!(health.contains("CustomResourceDefinition"), "{health}");
            cluster.pause(Duration::from_secs(90)).await;
            install_widgets(&server);
            for _ in 0..cluster.pick(0..10) {
                put_widget(&server, cluster.pick(0..10));
            }
            watched.holds(|| widgets(&server)).await;
            watched.join();
            put_widget(&server, 1);
            put_widget(&server, 2);
            watched.holds(|| widgets(&server)).await;
            cluster.pause(Duration::from_secs(60)).await;
            uninstall_widgets(&server);
        }
        install_widgets(&server);
        watched.holds(|| widgets(&server)).await;
        assert!(watched.cached().is_empty(), "what went with the kind is gone");
        watched.stop().await;
    });
}

/// Everything is refused for a while, in the middle of a watch.
fn refused_for_a_while(status: fn() -> Status, cause: &'static str, words: &[&str]) {
    over_seeds(30, async |mut cluster| {
        let watched = cluster.synced().await;
        cluster.fault(Fault::Status(status()), &[List, Watch], |rule| rule);
        cluster.end_watches();
        cluster.write_for(20, Duration::from_secs(120)).await;
        let health = watched.informer.health();
        let (_, trouble) = health.trouble().expect("in trouble");
        assert_eq!(trouble.problem.cause(), cause);
        let text = health.to_string();
        assert!(words.iter().all(|words| text.contains(words)), "{text}");
        assert!(!health.is_healthy() && health.synced, "{text}");
        let asked = watched.causes().len();
        assert!(asked < 60, "asked {asked} times in two minutes");
        cluster.heal();
        let healed = Instant::now();
        watched.converges(&cluster).await;
        assert!(healed.elapsed() <= Duration::from_secs(31), "back after {:?}", healed.elapsed());
        sleep(Duration::from_secs(15)).await;
        assert!(watched.informer.health().is_healthy(), "{}", watched.informer.health());
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f17_a_permission_that_is_revoked_and_restored_is_a_state_that_a_person_can_read() {
    let status =
        || Status::forbidden("configmaps", "", "", "User \"web\" cannot list resource \"configmaps\"");
    refused_for_a_while(status, "forbidden", &["User \"web\" cannot list", "grant the verbs list and watch"]);
}

#[test]
fn f18_a_token_that_has_expired_is_a_state_until_there_is_another_one() {
    refused_for_a_while(|| Status::unauthorized("Unauthorized"), "unauthorized", &["check the credentials"]);
}

#[test]
fn f17_a_permission_that_is_missing_in_one_namespace_stops_only_that_one() {
    over_seeds(30, async |mut cluster| {
        let status = Status::forbidden("configmaps", "", "", "no");
        let forbidden = Rule::new(Fault::Status(status)).namespace("kube-system");
        if cluster.chance() {
            cluster.server.faults().add(forbidden.clone());
        }
        cluster.write(20);
        let source = |namespace| KubeListWatch::all(cluster.server.client()).in_namespace(namespace);
        let builder = SharedInformer::builder(source("default")).source(source("kube-system"));
        let watched = Watched::run(builder.streaming(cluster.seed.is_multiple_of(2)).seed(cluster.seed));
        cluster.pause(Duration::from_secs(60)).await;
        cluster.server.faults().add(forbidden);
        cluster.end_watches();
        cluster.write_for(20, Duration::from_secs(120)).await;
        let of = |versions: Versions, namespace| -> Versions {
            versions.into_iter().filter(|(key, _)| key.namespace() == Some(namespace)).collect()
        };
        let (cached, there) = (of(watched.cached(), "default"), of(cluster.truth(), "default"));
        assert_eq!(cached, there, "{}", watched.informer.health());
        let health = watched.informer.health();
        let (source, trouble) = health.trouble().expect("in trouble");
        assert!(source.description.contains("kube-system"), "{health}");
        assert_eq!(trouble.problem.cause(), "forbidden");
        cluster.heal();
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f20_a_busy_watch_waits_as_long_as_the_server_says_and_does_not_list() {
    over_seeds(30, async |mut cluster| {
        let watched = cluster.synced().await;
        let seconds = 1 + u32::try_from(cluster.pick(0..40)).expect("small");
        let times = 1 + cluster.pick(0..3) as u64;
        let busy = Status::too_many_requests("later, please", seconds);
        cluster.fault(Fault::Status(busy), &[Watch], |rule| rule.times(times));
        let before = Instant::now();
        cluster.end_watches();
        cluster.write(20);
        watched.converges(&cluster).await;
        let least = Duration::from_secs(u64::from(seconds) * times);
        assert!(before.elapsed() >= least, "after {:?} instead of {least:?}", before.elapsed());
        for (problem, remedy) in watched.problems() {
            let rewatches = matches!(remedy, Remedy::Rewatch(delay) if delay.as_secs() >= seconds.into());
            assert!(matches!(problem, Problem::WatchRefused(_)) && rewatches, "{problem}: {remedy}");
        }
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f20_a_busy_stream_goes_on_where_it_was() {
    over_seeds(20, async |mut cluster| {
        let watched = cluster.synced().await;
        let busy = Status::too_many_requests("later, please", 3);
        cluster.fault(Fault::StreamError(busy), &[Watch], |rule| rule.nth([2, 7]));
        for _ in 0..4 {
            cluster.write(5);
            watched.converges(&cluster).await;
        }
        let remedies = watched.problems().into_iter().map(|(_, remedy)| remedy);
        assert!(remedies.clone().all(|remedy| !remedy.relists()), "{:?}", remedies.collect::<Vec<_>>());
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f20_whatever_the_server_answers_to_lists_and_watches_the_cache_gets_there() {
    let answers = [
        Fault::Status(Status::too_many_requests("busy", 2)),
        Fault::Status(Status::internal_error("etcd is on fire")),
        Fault::Status(Status::service_unavailable("starting")),
        Fault::Status(Status::timeout("too slow", 1)),
        Fault::Status(Status::from_response(502, "<html>bad gateway</html>")),
        Fault::Status(Status::from_response(418, "")),
        Fault::Refuse,
        Fault::Reset,
        Fault::Html,
    ];
    for answer in answers {
        println!("{answer:?}");
        over_seeds(12, async |mut cluster| {
            let verbs: &[Verb] = [&[List][..], &[Watch], &[List, Watch]][cluster.pick(0..3)];
            let times = 1 + cluster.pick(0..6) as u64;
            let begin = cluster.fault(answer.clone(), verbs, |rule| rule.times(times));
            let mut watched = cluster.synced().await;
            cluster.server.faults().remove(begin);
            cluster.fault(answer.clone(), verbs, |rule| rule.times(times));
            cluster.end_watches();
            cluster.write(10);
            watched.join();
            watched.converges(&cluster).await;
            watched.ends_well(&cluster).await;
        });
    }
}

//! Told to stop, an informer stops, whatever it is doing.

use std::time::Duration;

use informer::{EventHandler, Object, model::Status, reflector::Phase};
use informer_apiserver::{
    Fault,
    Verb::{List, Watch},
};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::{Instant, sleep};

use super::cluster::{Cluster, Watched, over_seeds, until};

/// Stops an informer once it does this, or some time later, and wants it to be over at once.
async fn stops_at_once(cluster: &mut Cluster, watched: Watched, phase: Phase) {
    let doing = || watched.informer.health().sources[0].phase;
    until(|| doing() == phase, || format!("{}", watched.informer.health())).await;
    sleep(Duration::from_millis(cluster.pick(0..400) as u64)).await;
    let told = Instant::now();
    watched.stop().await;
    assert_eq!(told.elapsed(), Duration::ZERO);
    cluster.heal();
}

#[test]
fn f29_while_it_lists() {
    over_seeds(20, async |mut cluster| {
        cluster.write(20);
        let slow = [Fault::Delay(Duration::from_secs(20)), Fault::StallAfter(cluster.pick(0..200))];
        let slow = slow[cluster.pick(0..2)].clone();
        cluster.fault(slow, &[List], |rule| rule);
        let watched = Watched::run(cluster.informer(cluster.server.client()).streaming(false));
        stops_at_once(&mut cluster, watched, Phase::Listing).await;
    });
}

#[test]
fn f29_between_two_pages() {
    over_seeds(20, async |mut cluster| {
        cluster.write(40);
        cluster.fault(Fault::Delay(Duration::from_millis(200)), &[List], |rule| rule);
        let page = 2 + cluster.pick(0..2) as u64;
        cluster.fault(Fault::StallAfter(0), &[List], |rule| rule.nth([page]));
        let watched = Watched::run(cluster.informer(cluster.server.client()).streaming(false).page_size(2));
        stops_at_once(&mut cluster, watched, Phase::Listing).await;
    });
}

#[test]
fn f29_in_a_streaming_list() {
    over_seeds(20, async |mut cluster| {
        cluster.write(20);
        let bytes = cluster.pick(0..200);
        let slow =
            [Fault::DropInitialEventsEnd, Fault::StallAfter(bytes), Fault::Delay(Duration::from_secs(9))];
        let slow = slow[cluster.pick(0..3)].clone();
        cluster.fault(slow, &[Watch], |rule| rule);
        let watched = Watched::run(cluster.informer(cluster.server.client()).streaming(true));
        stops_at_once(&mut cluster, watched, Phase::Streaming).await;
    });
}

#[test]
fn f29_while_it_watches() {
    over_seeds(20, async |mut cluster| {
        let watched = cluster.synced().await;
        let count = cluster.pick(0..100);
        cluster.write(count);
        stops_at_once(&mut cluster, watched, Phase::Watching).await;
    });
}

#[test]
fn f29_while_a_watch_is_being_opened() {
    over_seeds(20, async |mut cluster| {
        let watched = cluster.synced().await;
        cluster.fault(Fault::Delay(Duration::from_secs(30)), &[Watch], |rule| rule);
        cluster.end_watches();
        sleep(Duration::from_millis(5)).await;
        stops_at_once(&mut cluster, watched, Phase::Watching).await;
    });
}

#[test]
fn f29_while_it_waits_after_a_failure() {
    over_seeds(20, async |mut cluster| {
        cluster.write(20);
        let busy = Status::too_many_requests("later", 60);
        let failure = [Fault::Status(busy), Fault::Refuse, Fault::Html][cluster.pick(0..3)].clone();
        cluster.fault(failure, &[List, Watch], |rule| rule);
        let watched = cluster.watched();
        stops_at_once(&mut cluster, watched, Phase::Waiting).await;
    });
}

/// Takes its time for each object.
struct Slow;

impl EventHandler<ConfigMap> for Slow {
    async fn on_add(&mut self, _: &Object<ConfigMap>, _: bool) {
        sleep(Duration::from_secs(7)).await;
    }
}

#[test]
fn f29_while_a_handler_is_at_work_which_is_waited_for() {
    over_seeds(20, async |mut cluster| {
        cluster.write(30);
        let watched = cluster.watched();
        watched.informer.add_handler(Slow).expect("it runs");
        watched.converges(&cluster).await;
        cluster.pause(Duration::from_secs(20)).await;
        let told = Instant::now();
        watched.stop().await;
        assert!(told.elapsed() <= Duration::from_secs(7), "one callback, not all: {:?}", told.elapsed());
    });
}

#[test]
fn f29_at_any_moment() {
    over_seeds(60, async |mut cluster| {
        cluster.write(20);
        let bytes = cluster.pick(0..4_000);
        cluster.fault(Fault::CutAfter(bytes), &[List, Watch], |rule| rule.probability(0.3));
        cluster.fault(Fault::Delay(Duration::from_millis(30)), &[List, Watch], |rule| rule.probability(0.5));
        let watched = cluster.watched();
        cluster.pause(Duration::from_millis(300)).await;
        cluster.write(5);
        let told = Instant::now();
        watched.stop().await;
        assert_eq!(told.elapsed(), Duration::ZERO);
        cluster.heal();
    });
}

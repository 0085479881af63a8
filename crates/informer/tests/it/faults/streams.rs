//! Streams that break, stall, lose something or say it twice.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use informer::{
    KubeListWatch, Object, SharedInformer,
    model::{ObjectKey, Status},
    source::{
        ListOptions, ListStream, ListWatch, SourceError, WatchChange, WatchItem, WatchStream, WireOptions,
    },
};
use informer_apiserver::{
    Fault,
    Verb::{List, Watch},
};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::Instant;

use super::cluster::{Cluster, Watched, over_seeds};

#[test]
fn f07_a_streaming_list_that_is_never_complete_gives_way_to_an_ordinary_one() {
    over_seeds(20, async |mut cluster| {
        cluster.write(20);
        let lost = cluster.fault(Fault::DropInitialEventsEnd, &[Watch], |rule| rule);
        let began = Instant::now();
        let watched = Watched::run(cluster.informer(cluster.server.client()).streaming(true));
        watched.converges(&cluster).await;
        assert!(began.elapsed() <= Duration::from_secs(31), "synced after {:?}", began.elapsed());
        assert!(watched.had("streaming list incomplete"), "{:?}", watched.problems());
        // The next round meets the same fault.
        cluster.fault(Fault::StreamError(Status::expired("too old")), &[Watch], |rule| rule.nth([3]));
        cluster.write(20);
        watched.converges(&cluster).await;
        cluster.pause(Duration::from_secs(60)).await;
        cluster.write(5);
        watched.converges(&cluster).await;
        assert!(cluster.server.faults().hits(lost) >= 1);
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f07_a_streaming_list_that_ends_too_early_gives_way_to_an_ordinary_one() {
    over_seeds(30, async |mut cluster| {
        cluster.write(20);
        let bytes = cluster.pick(0..3_000);
        let broken = [Fault::CutAfter(bytes), Fault::StallAfter(bytes)][cluster.pick(0..2)].clone();
        cluster.fault(broken, &[Watch], |rule| rule.times(1));
        let watched = Watched::run(cluster.informer(cluster.server.client()).streaming(true));
        cluster.write_for(10, Duration::from_secs(40)).await;
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f08_a_connection_without_bytes_and_without_an_end_is_given_up() {
    over_seeds(40, async |mut cluster| {
        cluster.write(20);
        for verb in [List, Watch] {
            let bytes = cluster.pick(0..4_000);
            cluster.fault(Fault::StallAfter(bytes), &[verb], |rule| rule.times(2));
        }
        let watched = cluster.watched();
        cluster.write_for(40, Duration::from_secs(1_200)).await;
        let last = Instant::now();
        watched.converges(&cluster).await;
        // Twice ten minutes and five seconds is as long as two watches may be dead.
        assert!(last.elapsed() <= Duration::from_secs(2 * 605 + 60), "{:?}", last.elapsed());
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f09_a_watch_that_a_proxy_keeps_open_and_silent_is_reopened_after_its_time() {
    over_seeds(30, async |mut cluster| {
        let watched = cluster.synced().await;
        // Lists get through, and probes with them: only the watch is dead.
        cluster.fault(Fault::StallAfter(0), &[Watch], |rule| rule.times(1));
        cluster.end_watches();
        let dead = Instant::now();
        cluster.pause(Duration::from_secs(120)).await;
        cluster.write(20);
        watched.converges(&cluster).await;
        assert!(dead.elapsed() <= Duration::from_secs(606), "{:?}", dead.elapsed());
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f10_deletions_that_the_server_did_not_tell_are_noticed_by_counting() {
    over_seeds(30, async |mut cluster| {
        let watched = cluster.synced().await;
        cluster.write(10);
        watched.converges(&cluster).await;
        let before = Instant::now();
        let untold = 1 + cluster.pick(0..3);
        let lost = cluster.fault(Fault::DropEvent, &[Watch], |rule| rule);
        for key in cluster.truth().keys().take(untold) {
            assert!(cluster.discard(key));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(cluster.server.faults().hits(lost), untold as u64);
        cluster.server.faults().remove(lost);
        let count = cluster.pick(0..5);
        for _ in 0..count {
            cluster.put_named("map-7");
        }
        watched.converges(&cluster).await;
        // Two differences in a row: two probes, and the bookmark after each.
        assert!(before.elapsed() <= Duration::from_secs(180), "{:?}", before.elapsed());
        assert!(watched.had("events lost"), "{:?}", watched.problems());
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f10_additions_that_the_server_did_not_tell_are_noticed_by_counting() {
    over_seeds(30, async |mut cluster| {
        let keys: Vec<ObjectKey> =
            (0..3).map(|n| format!("default/map-{n}").parse().expect("a key")).collect();
        let watched = cluster.synced().await;
        for key in &keys {
            cluster.discard(key);
        }
        watched.converges(&cluster).await;
        let lost = cluster.fault(Fault::DropEvent, &[Watch], |rule| rule);
        let untold = 1 + cluster.pick(0..3);
        keys.iter().take(untold).for_each(|key| cluster.put(key));
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(cluster.server.faults().hits(lost), untold as u64);
        cluster.server.faults().remove(lost);
        watched.converges(&cluster).await;
        assert!(watched.had("events lost"), "{:?}", watched.problems());
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f11_events_that_come_twice_are_told_once() {
    over_seeds(30, async |mut cluster| {
        cluster.fault(Fault::DuplicateEvent, &[Watch], |rule| rule.probability(0.5));
        let watched = cluster.synced().await;
        cluster.write_for(60, Duration::from_secs(300)).await;
        watched.ends_well(&cluster).await;
    });
}

/// A server that, now and then, repeats an event of long ago in the middle of a watch.
struct Repeating {
    inner: KubeListWatch<ConfigMap>,
    told: Arc<Mutex<BTreeMap<ObjectKey, Object<ConfigMap>>>>,
    every: usize,
}

impl ListWatch<ConfigMap> for Repeating {
    fn description(&self) -> String {
        self.inner.description()
    }

    fn list(&self, options: ListOptions) -> BoxFuture<'static, Result<ListStream<ConfigMap>, SourceError>> {
        self.inner.list(options)
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'static, Result<WatchStream<ConfigMap>, SourceError>> {
        let initial = options.send_initial_events;
        let (opening, told, every) = (self.inner.watch(options), Arc::clone(&self.told), self.every);
        async move {
            let mut events = 0;
            let repeated = opening.await?.flat_map(move |item| {
                let mut items = Vec::new();
                if let Ok(WatchItem::Object(_, object)) = &item {
                    let old = told.lock().unwrap().insert(object.key().clone(), object.clone());
                    events += 1;
                    if let Some(old) = old.filter(|_| !initial && events % every == 0) {
                        let change =
                            [WatchChange::Added, WatchChange::Modified, WatchChange::Deleted][events % 3];
                        items.push(Ok(WatchItem::Object(change, old)));
                    }
                }
                // The old news comes after the new one.
                items.insert(0, item);
                stream::iter(items)
            });
            Ok(repeated.boxed())
        }
        .boxed()
    }
}

#[test]
fn f11_an_event_older_than_what_was_seen_changes_nothing() {
    over_seeds(30, async |mut cluster| {
        cluster.write(20);
        let inner = KubeListWatch::all(cluster.server.client());
        let every = 1 + cluster.pick(0..4);
        let source = Repeating { inner, told: Arc::default(), every };
        let watched = Watched::run(SharedInformer::builder(source).streaming(false).seed(cluster.seed));
        for _ in 0..10 {
            cluster.write_for(10, Duration::from_secs(30)).await;
            watched.converges(&cluster).await;
        }
        watched.ends_well(&cluster).await;
    });
}

/// A cluster of two small objects, and an informer whose first list or watch is cut after so many bytes.
async fn cut(
    mut cluster: Cluster,
    verb: informer_apiserver::Verb,
    bytes: usize,
    gzip: bool,
    streaming: bool,
    protobuf: bool,
) -> bool {
    let wire = WireOptions::default().uncompressed();
    cluster.wire = if protobuf { wire } else { wire.json() };
    cluster.put_named("map-0");
    cluster.put_named("map-1");
    if gzip {
        cluster.fault(Fault::Gzip, &[List, Watch], |rule| rule);
    }
    let cut = cluster.fault(Fault::CutAfter(bytes), &[verb], |rule| rule.times(1));
    let watched = Watched::run(cluster.informer(cluster.server.client()).streaming(streaming));
    tokio::time::sleep(Duration::from_millis(10)).await;
    let key = "default/map-0".parse().expect("a key");
    cluster.put_named("map-2");
    cluster.discard(&key);
    watched.converges(&cluster).await;
    let problems = !watched.problems().is_empty();
    assert_eq!(cluster.server.faults().hits(cut), 1);
    watched.ends_well(&cluster).await;
    problems
}

/// Cuts at every offset, until an offset is behind the end of all that comes.
fn cut_everywhere(verb: informer_apiserver::Verb, gzip: bool, streaming: bool) {
    for (protobuf, offsets, least) in [(false, 2_000, 300), (true, 800, 200)] {
        let cuts = std::cell::Cell::new(0);
        over_seeds(offsets, async |cluster| {
            let bytes = usize::try_from(cluster.seed).expect("small");
            if cut(cluster, verb, bytes, gzip, streaming, protobuf).await {
                cuts.set(cuts.get() + 1);
            }
        });
        println!("{} offsets of {offsets} were within the stream", cuts.get());
        assert!(cuts.get() > least, "{} cuts", cuts.get());
    }
}

#[test]
fn f21_a_list_cut_at_any_byte_gives_the_same_cache() {
    cut_everywhere(List, false, false);
}

#[test]
fn f21_a_watch_cut_at_any_byte_gives_the_same_cache() {
    cut_everywhere(Watch, false, false);
}

#[test]
fn f21_a_streaming_list_cut_at_any_byte_gives_the_same_cache() {
    cut_everywhere(Watch, false, true);
}

#[test]
fn f30_a_gzip_watch_cut_in_the_middle_of_any_member_gives_the_same_cache() {
    cut_everywhere(Watch, true, false);
}

#[test]
fn f30_a_gzip_list_and_a_gzip_streaming_list_cut_anywhere_give_the_same_cache() {
    cut_everywhere(List, true, false);
    cut_everywhere(Watch, true, true);
}

#[test]
fn f22_one_byte_at_a_time_and_many_events_at_once_are_read_alike() {
    over_seeds(10, async |mut cluster| {
        cluster.fault(Fault::OneByteAtATime, &[List, Watch], |rule| rule.probability(0.7));
        if cluster.chance() {
            cluster.fault(Fault::Gzip, &[List, Watch], |rule| rule.probability(0.5));
        }
        let watched = cluster.synced().await;
        for _ in 0..3 {
            cluster.write(200);
            watched.converges(&cluster).await;
            cluster.end_watches();
        }
        watched.ends_well(&cluster).await;
    });
}

//! Versions that expire, fall or run ahead: lists and watches of another time than the client thinks.

use std::time::Duration;

use informer::{
    model::{ObjectKey, ResourceVersion, Status},
    reflector::Remedy,
};
use informer_apiserver::{
    Fault,
    Verb::{List, Watch},
};
use tokio::time::Instant;

use super::cluster::{Watched, over_seeds, until};

#[test]
fn f01_a_replica_that_lags_never_takes_the_cache_back_in_time() {
    over_seeds(40, async |mut cluster| {
        cluster.write(20);
        cluster.server.hold_replica(Some(cluster.server.version()));
        cluster.write(20);
        // Any list or watch may end up at either replica, and watches break off and are asked for again.
        cluster.fault(Fault::Stale, &[List, Watch], |rule| rule.probability(0.5));
        let cut = 200 + cluster.pick(0..3_000);
        cluster.fault(Fault::CutAfter(cut), &[Watch], |rule| rule.times(6));
        let mut watched = cluster.watched();
        for _ in 0..5 {
            cluster.write_for(10, Duration::from_secs(20)).await;
            if cluster.chance() {
                cluster.server.compact();
            }
            cluster.server.hold_replica(Some(cluster.server.version().saturating_sub(5)));
        }
        watched.join();
        cluster.server.hold_replica(None);
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f02_a_restored_backup_is_noticed_within_a_probe_period_and_the_cache_rebuilt() {
    over_seeds(40, async |mut cluster| {
        let watched = cluster.synced().await;
        let backup = cluster.server.version();
        let lost = 10 + cluster.pick(0..40);
        cluster.write(lost);
        watched.converges(&cluster).await;
        cluster.pause(Duration::from_secs(60)).await;
        cluster.server.rewind(backup).expect("in the history");
        watched.handlers.iter().for_each(|handler| handler.allow_rewinding());
        let since = cluster.pick(0..4);
        cluster.write(since);
        let rewound = Instant::now();
        watched.converges(&cluster).await;
        assert!(rewound.elapsed() <= Duration::from_secs(31), "noticed after {:?}", rewound.elapsed());
        assert!(watched.had("version rewound"), "{:?}", watched.problems());
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f03_a_version_that_is_too_large_leads_to_the_newest_at_once_and_to_no_loop() {
    let large = |number: u64| {
        let (asked, has) = (ResourceVersion::from("999999"), ResourceVersion::from("7"));
        match number % 3 {
            0 => Status::too_large_resource_version(&asked, &has),
            1 => Status::timeout("Too large resource version: 999999, current: 7", 1),
            // What servers said before there was a reason for it.
            _ => Status::from_response(500, "Too large resource version: 999999, current: 7"),
        }
    };
    over_seeds(30, async |mut cluster| {
        let watched = cluster.synced().await;
        cluster.fault(Fault::StreamError(Status::expired("too old")), &[Watch], |rule| rule.times(1));
        let verbs = if cluster.seed % 2 == 0 { [Watch] } else { [List] };
        let large = cluster.fault(Fault::Status(large(cluster.seed)), &verbs, |rule| rule.times(1));
        cluster.write(3);
        watched.has_had("version too large").await;
        let found = Instant::now();
        watched.converges(&cluster).await;
        assert!(found.elapsed() < Duration::from_secs(1), "at once, not after {:?}", found.elapsed());
        assert_eq!(cluster.server.faults().hits(large), 1);
        let told =
            watched.problems().into_iter().filter(|(problem, _)| problem.cause() == "version too large");
        assert_eq!(told.map(|(_, remedy)| remedy).collect::<Vec<_>>(), [Remedy::ListNewest]);
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f03_a_server_that_always_says_too_large_is_asked_with_growing_pauses() {
    over_seeds(10, async |mut cluster| {
        cluster.write(20);
        let (asked, has) = (ResourceVersion::from("9"), ResourceVersion::from("7"));
        let status = Status::too_large_resource_version(&asked, &has);
        let rule = cluster.fault(Fault::Status(status), &[List, Watch], |rule| rule);
        let watched = cluster.watched();
        tokio::time::sleep(Duration::from_secs(300)).await;
        // Full jitter halves the steps on average; a loop would ask thousands of times.
        let asked = cluster.server.faults().hits(rule);
        assert!((10..=120).contains(&asked), "asked {asked} times in five minutes");
        cluster.heal();
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f04_a_version_that_expires_within_the_stream_leads_to_a_list() {
    over_seeds(40, async |mut cluster| {
        let watched = cluster.synced().await;
        for round in 0..3 {
            let gone = [Status::expired("too old resource version"), Status::gone("gone")];
            let gone = gone[cluster.pick(0..2)].clone();
            let nth = 1 + cluster.pick(0..10) as u64;
            cluster.fault(Fault::StreamError(gone), &[Watch], |rule| rule.nth([nth]));
            cluster.server.compact();
            cluster.write(20);
            watched.converges(&cluster).await;
            let told =
                watched.problems().into_iter().filter(|(problem, _)| problem.cause() == "version expired");
            let remedies: Vec<Remedy> = told.map(|(_, remedy)| remedy).collect();
            assert!(remedies.len() > round && remedies.iter().all(|one| one.relists()), "{remedies:?}");
        }
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f05_a_list_whose_pages_expire_again_and_again_is_taken_as_a_whole() {
    over_seeds(30, async |mut cluster| {
        cluster.write(40);
        // Each page takes its time, and meanwhile what it is a page of is forgotten.
        cluster.fault(Fault::Delay(Duration::from_millis(100)), &[List], |rule| rule);
        cluster.fault(Fault::Compact, &[List], |rule| rule);
        let builder = cluster.informer(cluster.server.client()).streaming(false).page_size(2);
        let watched = Watched::run(builder);
        for round in 1..=3 {
            cluster.fault(Fault::StreamError(Status::expired("too old")), &[Watch], |rule| rule.times(1));
            let expired = || watched.causes().iter().filter(|cause| **cause == "page expired").count();
            for _ in 0..10_000 {
                if expired() < round {
                    cluster.write_for(2, Duration::from_millis(20)).await;
                }
            }
            assert!(expired() >= round, "{:?}", watched.problems());
            watched.converges(&cluster).await;
        }
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f06_a_version_that_expired_before_the_watch_opens_leads_to_a_list() {
    over_seeds(40, async |mut cluster| {
        let watched = cluster.synced().await;
        let gone = [Status::expired("too old resource version"), Status::gone("gone")];
        let (gone, times) = (gone[cluster.pick(0..2)].clone(), 1 + cluster.pick(0..4) as u64);
        cluster.fault(Fault::Status(gone), &[Watch], |rule| rule.times(times));
        cluster.end_watches();
        cluster.write(20);
        cluster.server.compact();
        watched.converges(&cluster).await;
        assert!(watched.had("version expired"), "{:?}", watched.problems());
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f12_an_object_that_went_and_came_back_unseen_is_one_update_to_another_uid() {
    over_seeds(30, async |mut cluster| {
        let key: ObjectKey = "default/map-0".parse().expect("a key");
        cluster.put(&key);
        let watched = cluster.synced().await;
        cluster.put(&key);
        watched.converges(&cluster).await;
        let before = watched.informer.store().get(&key).expect("there").metadata.uid.clone();
        let (heard, problems) = (watched.handlers[0].events(), watched.problems().len());
        // The news that it went is replaced by the news that the watch is too old.
        let status = Status::expired("too old resource version");
        cluster.fault(Fault::StreamError(status), &[Watch], |rule| rule.times(1));
        assert!(cluster.discard(&key));
        cluster.put(&key);
        until(|| watched.problems().len() > problems, || "no problem".to_owned()).await;
        watched.converges(&cluster).await;
        let after = watched.informer.store().get(&key).expect("there").metadata.uid.clone();
        assert_ne!(before, after);
        let story = &watched.handlers[0].story()[heard..];
        assert!(matches!(story, [one] if one.contains("updated")), "{story:?}");
        watched.ends_well(&cluster).await;
    });
}

//! Everything at once.

use std::time::Duration;

use informer::model::Status;
use informer_apiserver::{
    Fault,
    Verb::{List, Watch},
};
use tokio::time::sleep;

use super::cluster::over_seeds;

#[test]
fn any_mixture_of_faults_ends_with_the_right_cache() {
    over_seeds(150, async |mut cluster| {
        cluster.write(20);
        let mut watched = cluster.watched();
        for _ in 0..6 {
            for _ in 0..cluster.pick(1..5) {
                let bytes = cluster.pick(0..5_000);
                let faults = [
                    Fault::CutAfter(bytes),
                    Fault::StallAfter(bytes),
                    Fault::Refuse,
                    Fault::Reset,
                    Fault::Html,
                    Fault::Gzip,
                    Fault::OneByteAtATime,
                    Fault::Compact,
                    Fault::Delay(Duration::from_secs(cluster.pick(0..40) as u64)),
                    Fault::Status(Status::expired("too old")),
                    Fault::Status(Status::service_unavailable("starting")),
                    Fault::Status(Status::forbidden("configmaps", "", "", "no")),
                    Fault::Status(Status::too_many_requests("busy", 1)),
                    Fault::StreamError(Status::gone("gone")),
                    Fault::StreamError(Status::internal_error("oh")),
                    Fault::DuplicateEvent,
                    Fault::DropBookmark,
                    Fault::DropInitialEventsEnd,
                    Fault::Stale,
                ];
                let fault = faults[cluster.pick(0..faults.len())].clone();
                let verbs = [&[List][..], &[Watch], &[List, Watch]][cluster.pick(0..3)];
                let share = cluster.pick(5..60) as f64 / 100.0;
                cluster.fault(fault, verbs, |rule| rule.probability(share));
            }
            let held = cluster.server.version().saturating_sub(cluster.pick(0..10) as u64);
            cluster.server.hold_replica(Some(held));
            cluster.write_for(30, Duration::from_secs(200)).await;
            if cluster.chance() {
                watched.join();
            }
            if cluster.chance() {
                cluster.heal();
                cluster.server.hold_replica(None);
                sleep(Duration::from_secs(1)).await;
            }
        }
        cluster.heal();
        cluster.server.hold_replica(None);
        watched.ends_well(&cluster).await;
    });
}

//! Many informers and one server that restarts.

use std::time::Duration;

use informer_apiserver::{
    Fault,
    Verb::{List, Watch},
};
use tokio::time::sleep;

use super::cluster::{Watched, over_seeds};

const INFORMERS: usize = 200;

#[test]
fn f19_two_hundred_informers_come_back_to_a_restarted_server_spread_over_time() {
    over_seeds(3, async |mut cluster| {
        cluster.write(20);
        let client = cluster.server.client();
        let crowd: Vec<Watched> = (0..INFORMERS)
            .map(|number| {
                Watched::run(cluster.informer(client.clone()).seed(cluster.seed << 32 | number as u64))
            })
            .collect();
        drop(client);
        for watched in &crowd {
            watched.converges(&cluster).await;
        }
        // The server goes, and is away for a while.
        let away = cluster.fault(Fault::Refuse, &[List, Watch], |rule| rule);
        cluster.end_watches();
        cluster.write_for(20, Duration::from_secs(60)).await;
        cluster.server.faults().remove(away);
        let mut asked = Vec::new();
        for _ in 0..40 {
            let before: u64 = cluster.server.requests().values().sum();
            sleep(Duration::from_secs(1)).await;
            asked.push(cluster.server.requests().values().sum::<u64>() - before);
        }
        println!("requests in each second after the restart: {asked:?}");
        // All at once would be some four hundred. Each needs a list and a watch, or a stream, and later a probe.
        let most = asked.iter().max().copied().unwrap_or_default();
        assert!(most <= INFORMERS as u64 / 3, "{most} requests in one second: {asked:?}");
        for watched in &crowd {
            watched.converges(&cluster).await;
        }
        for watched in crowd {
            watched.stop().await;
        }
    });
}

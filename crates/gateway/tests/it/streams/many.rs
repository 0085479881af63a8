//! Many clients at a time.

use super::{
    crowd::Crowd,
    events::{mk_cluster, put},
};
use crate::support::Stage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_hear_of_everything_once_whoever_does_not_read() {
    let stage = Stage::open(mk_cluster()).await;
    for number in 0..50 {
        put(&stage.server, &format!("a/c-{number}"), "old");
    }
    let mut crowd = Crowd::new(stage.address);
    crowd.stall(20).await;
    crowd.follow(200).await;
    let before = stage.server.version();
    for number in 0..1_000 {
        put(&stage.server, &format!("a/c-{}", number % 50), &number.to_string());
        tokio::task::yield_now().await;
    }
    let version = stage.server.version();
    assert_eq!(version - before, 1_000, "each is a version of its own");
    let heard = crowd.end(version).await;
    assert_eq!(heard.len(), 200);
    for heard in &heard {
        assert_eq!((heard.events, heard.lost, heard.twice, heard.cut), (1_000, 0, 0, 0), "{heard:?}");
    }
    stage.close().await;
}

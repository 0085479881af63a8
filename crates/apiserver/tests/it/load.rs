//! The load of `benches/load`, a tenth of it or less: nothing is lost and nothing comes twice.

#[allow(dead_code, reason = "the bench prints the figures, the test needs none")]
#[path = "../../benches/load/scenario.rs"]
mod scenario;

#[tokio::test(flavor = "multi_thread")]
async fn every_watcher_sees_every_change_once_and_in_order() {
    scenario::Load { pods: 1_000, watchers: 100, changes: 1_000 }.run().await;
}

//! What the server carries: `cargo bench -p informer-apiserver --bench load`.
//!
//! 100,000 pods of about 7 KB are created over the in-process client; then 1,000 watchers each see 10,000
//! changes. Every watcher checks that it sees each change once and in order, and decodes each event for it.

mod scenario;

use scenario::Load;

#[tokio::main]
async fn main() {
    let load = Load { pods: 100_000, watchers: 1_000, changes: 10_000 };
    let figures = load.run().await;
    let deliveries = (load.watchers * load.changes) as f64;
    let mb = |bytes: u64| bytes / 1_000_000;
    let [before, created, most] = figures.memory;
    println!(
        "create    {} pods, {} MB of JSON: {:.1} s, {:.0} per second",
        load.pods,
        mb(figures.stored as u64),
        figures.creating.as_secs_f64(),
        load.pods as f64 / figures.creating.as_secs_f64()
    );
    println!(
        "watch     {} watchers x {} changes: {:.1} s, {:.0} events per second, {} MB",
        load.watchers,
        load.changes,
        figures.watching.as_secs_f64(),
        deliveries / figures.watching.as_secs_f64(),
        mb(figures.delivered)
    );
    println!("memory    {} MB before, {} MB with all pods, {} MB at most", mb(before), mb(created), mb(most));
}

//! Pods of several clusters in one cache each, with one handler and one controller over all: every context of the kubeconfig
//! that kubectl would take is a cluster. Contexts may come and go while this runs.

use std::{env, path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use informer::{
    CancellationToken, Departure, Event,
    clusters::{ClusterKey, Clusters, KubeconfigContexts},
    controller::{Action, Controller},
};

/// The file that kubectl would read; of several, the first.
fn kubeconfig() -> Result<PathBuf> {
    let named = env::var_os("KUBECONFIG").and_then(|paths| env::split_paths(&paths).next());
    let default = || Some(PathBuf::from(env::var_os("HOME")?).join(".kube/config"));
    named.or_else(default).context("set KUBECONFIG to a kubeconfig")
}

#[tokio::main]
async fn main() -> Result<()> {
    let clusters = Clusters::new();
    let pods = clusters.informers(|factory| factory.core().v1().pods().informer());
    pods.add_handler("printer", |cluster, event, _| {
        if let Event::Deleted(gone) = event
            && gone.departure() == Some(Departure::Cluster)
        {
            println!("- {cluster}: {} left with its cluster", gone.key());
        }
    });
    let controller = Controller::<ClusterKey>::new("pods").workers(2);
    pods.feed(&controller);
    clusters.start();

    let stop = CancellationToken::new();
    let contexts = KubeconfigContexts::of(kubeconfig()?).read_every(Duration::from_secs(1));
    let following = clusters.follow(contexts, stop.clone());
    let reconciling = controller.run(stop.clone(), move |ClusterKey { cluster, key }| {
        let pod = pods.get(&cluster).and_then(|pods| pods.store().get(&key));
        let phase = pod.as_ref().and_then(|pod| pod.status.as_ref()?.phase.clone());
        println!(
            "{cluster}: {key} {}",
            phase.as_deref().unwrap_or(if pod.is_some() { "?" } else { "is gone" })
        );
        async { Ok::<_, kube::Error>(Action::AwaitChange) }
    });
    let ending = async {
        let ended = tokio::signal::ctrl_c().await;
        stop.cancel();
        ended
    };
    let (followed, reconciled, ended) = tokio::join!(following, reconciling, ending);
    clusters.shutdown().await;
    followed?;
    reconciled?;
    Ok(ended?)
}

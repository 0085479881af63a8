//! Listing a few objects of many by a label.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use clap::Args;
use informer::{
    Lister, Object,
    model::Selector,
    store::{self, Store, StoreWriter},
};
use k8s_openapi::{
    api::core::v1::{Pod, PodSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Serialize;

#[derive(Args)]
pub(crate) struct Shape {
    /// How many objects there are
    #[arg(long, value_name = "N")]
    objects: usize,
    /// How many of them have the label
    #[arg(long, value_name = "N", default_value_t = 100)]
    matches: usize,
}

#[derive(Serialize)]
pub(super) struct Figures {
    best_us: f64,
    median_us: f64,
}

/// A small pod: metadata with three labels, and the node's name.
pub(super) fn pod(number: usize, version: u64, app: &str) -> Result<Object<Pod>> {
    let labels = [
        ("app", app.to_owned()),
        ("tier", format!("tier-{}", number % 4)),
        ("pod-template-hash", (number / 10).to_string()),
    ];
    let metadata = ObjectMeta {
        name: Some(format!("pod-{number:07}")),
        namespace: Some(format!("namespace-{}", number % 20)),
        resource_version: Some(version.to_string()),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into()),
        ..ObjectMeta::default()
    };
    let spec = PodSpec { node_name: Some(format!("worker-{:03}", number % 500)), ..PodSpec::default() };
    Ok(Object::new(Pod { metadata, spec: Some(spec), ..Pod::default() })?)
}

fn filled(objects: usize, matches: usize) -> Result<(StoreWriter<Pod>, Store<Pod>)> {
    let (mut writer, store) = store::new();
    let every = (objects / matches.max(1)).max(1);
    writer.write(|batch| {
        for number in 0..objects {
            let wanted = number % every == 0 && number / every < matches;
            let app = if wanted { "wanted".to_owned() } else { format!("other-{}", number % 100) };
            batch.insert(pod(number, number as u64 + 1, &app)?);
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok((writer, store))
}

pub(super) fn run(&Shape { objects, matches }: &Shape) -> Result<Figures> {
    let (_writer, store) = filled(objects, matches)?;
    let (pods, selector) = (Lister::new(store), "app=wanted".parse::<Selector>()?);
    let began = Instant::now();
    let mut times = Vec::new();
    while times.len() < 50 || began.elapsed() < Duration::from_millis(500) {
        let start = Instant::now();
        let found = black_box(pods.list(&selector));
        times.push(start.elapsed());
        ensure!(found.len() == matches.min(objects), "{} objects were found, not {matches}", found.len());
    }
    times.sort();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    Ok(Figures { best_us: micros(times[0]), median_us: micros(times[times.len() / 2]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_objects_are_found_among_all() {
        for (objects, matches) in [(1_000, 100), (1_050, 100), (50, 100)] {
            assert!(run(&Shape { objects, matches }).unwrap().best_us > 0.0);
        }
    }
}

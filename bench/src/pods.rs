//! The cluster's content: pods as a real server has them after their controller and their kubelet have written.
//!
//! The demo cluster makes them up. They are created as kube-controller-manager would and their status is written as
//! the kubelet would, so the server itself keeps `managedFields` of both.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Method, Request};
use informer_apiserver::DemoCluster;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

/// The cluster is always the same, but for its age.
const SEED: u64 = 7;
/// So many requests are under way at a time.
const AT_ONCE: usize = 16;
/// Bytes are counted of so many pods.
const SAMPLE: usize = 2_000;

/// What was put into the cluster.
pub(crate) struct Population {
    pub(crate) pods: usize,
    /// Bytes of compact JSON, on average, as the server has them.
    pub(crate) bytes: f64,
    /// The same without `managedFields`.
    pub(crate) bytes_unmanaged: f64,
    /// A label, and how many pods have it.
    pub(crate) label: (String, String),
    pub(crate) labelled: usize,
    pub(crate) took: Duration,
}

/// Fills a cluster with so many pods, their namespaces and the deployments. About `labelled` of the pods have one label.
pub(crate) async fn create(client: &Client, pods: usize, labelled: usize) -> Result<Population> {
    let began = Instant::now();
    let cluster = DemoCluster::new(SEED, pods).at(Timestamp::now());
    let namespaces = cluster.objects().take_while(|object| object["kind"] == "Namespace");
    stream::iter(namespaces)
        .map(|namespace| write(client, namespace))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    let mut labels = HashMap::new();
    let mut made = 0;
    let objects =
        cluster.objects().filter(|object| object["kind"] == "Pod" || object["kind"] == "Deployment");
    let objects = objects.inspect(|object| {
        if object["kind"] == "Pod" {
            count_labels(&mut labels, object);
            made += 1;
            if made % 5_000 == 0 {
                eprintln!("  {made} pods");
            }
        }
    });
    stream::iter(objects)
        .map(|object| write(client, object))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    let took = began.elapsed();
    let closest = labels.into_iter().min_by_key(|(label, count)| (count.abs_diff(labelled), label.clone()));
    let (label, labelled) = closest.context("pods have labels")?;
    let (bytes, bytes_unmanaged) = mean_bytes(client).await?;
    Ok(Population { pods, bytes, bytes_unmanaged, label, labelled, took })
}

fn count_labels(counts: &mut HashMap<(String, String), usize>, pod: &Value) {
    for (key, value) in pod["metadata"]["labels"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        *counts.entry((key.clone(), value.to_owned())).or_default() += 1;
    }
}

/// Creates an object, and writes its status if it is a pod.
async fn write(client: &Client, mut object: Value) -> Result<()> {
    admit(&mut object);
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let collection = match text("/kind") {
        "Namespace" => "/api/v1/namespaces".to_owned(),
        "Deployment" => format!("/apis/apps/v1/namespaces/{}/deployments", text("/metadata/namespace")),
        _ => format!("/api/v1/namespaces/{}/pods", text("/metadata/namespace")),
    };
    let body = serde_json::to_vec(&object)?;
    if text("/kind") == "Pod" {
        let status = format!("{collection}/{}/status?fieldManager=kubelet", text("/metadata/name"));
        send(
            client,
            Method::POST,
            &format!("{collection}?fieldManager=kube-controller-manager"),
            body.clone(),
        )
        .await?;
        send(client, Method::PUT, &status, body).await
    } else {
        send(client, Method::POST, &collection, body).await
    }
}

/// Takes out what the server writes itself, and what would make it refuse pods.
fn admit(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "creationTimestamp", "generation", "managedFields", "resourceVersion"] {
            metadata.remove(field);
        }
    }
    if let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.retain(|key, _| !key.starts_with("pod-security.kubernetes.io/"));
    }
}

async fn send(client: &Client, method: Method, path: &str, body: Vec<u8>) -> Result<()> {
    let request = Request::builder().method(method.clone()).uri(path);
    let request = request.header("Content-Type", "application/json").body(body)?;
    client.request_text(request).await.with_context(|| format!("{method} {path}"))?;
    Ok(())
}

/// Bytes of a pod on average, with and without `managedFields`.
async fn mean_bytes(client: &Client) -> Result<(f64, f64)> {
    let request = Request::builder().uri(format!("/api/v1/pods?limit={SAMPLE}")).body(Vec::new())?;
    let mut list: Value = client.request(request).await?;
    let pods = list["items"].as_array_mut().context("a list has items")?;
    ensure!(!pods.is_empty(), "the server has no pods");
    let (mut with, mut without) = (0, 0);
    for pod in &mut *pods {
        with += pod.to_string().len();
        if let Some(metadata) = pod["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        without += pod.to_string().len();
    }
    let count = pods.len() as f64;
    Ok((with as f64 / count, without as f64 / count))
}

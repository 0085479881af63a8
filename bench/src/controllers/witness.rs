//! What is measured inside of a controller, the same way on both sides: whether its cache shows what it has written itself.
//!
//! The client that a [`Witness`] makes notes the version of each answer to a write. Then the controller shows it what it reads from
//! its caches.

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Client, Config, Resource, client::Body};
use serde::Deserialize;
use tokio::{sync::oneshot, task::spawn_blocking};
use tower_service::Service;

/// A clone sees the same.
#[derive(Clone, Default)]
pub(crate) struct Witness(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    /// By uid.
    written: HashMap<String, u64>,
    reads: u64,
    stale: u64,
}

impl Witness {
    /// A client whose writes are noted.
    pub(crate) fn client(&self, config: Config) -> kube::Result<Client> {
        let namespace = config.default_namespace.clone();
        Ok(Client::new(Noting { client: Client::try_from(config)?, witness: self.clone() }, namespace))
    }

    /// What a cache has.
    pub(crate) fn read(&self, object: Option<&impl Resource>) {
        let Some(meta) = object.map(Resource::meta) else { return };
        let (uid, version) = (meta.uid.clone().unwrap_or_default(), version(meta));
        self.with(|seen| {
            seen.reads += 1;
            seen.stale += u64::from(seen.written.get(&uid).is_some_and(|written| *written > version));
        });
    }

    fn wrote(&self, meta: ObjectMeta) {
        let version = version(&meta);
        self.with(|seen| {
            let written = seen.written.entry(meta.uid.unwrap_or_default()).or_default();
            *written = version.max(*written);
        });
    }

    /// Says that the controller is there, and what was seen for each line of the input. Returns a signal of the input's end.
    pub(crate) fn speak(&self) -> oneshot::Receiver<Infallible> {
        let (ended, end) = oneshot::channel();
        let witness = self.clone();
        println!("ready");
        spawn_blocking(move || {
            for _ in io::stdin().lines() {
                witness.with(|seen| println!("{} {}", seen.reads, seen.stale));
            }
            drop(ended);
        });
        end
    }

    fn with<R>(&self, act: impl FnOnce(&mut Seen) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_ref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[derive(Clone)]
struct Noting {
    client: Client,
    witness: Witness,
}

#[derive(Deserialize)]
struct Written {
    metadata: ObjectMeta,
}

impl Service<Request<Body>> for Noting {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, kube::Result<Response<Body>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<kube::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { client, witness } = self.clone();
        let is_write = request.method() != Method::GET;
        Box::pin(async move {
            let response = client.send(request).await?;
            if !is_write || !response.status().is_success() {
                return Ok(response);
            }
            let (parts, body) = response.into_parts();
            let bytes = body.collect_bytes().await?;
            if let Ok(Written { metadata }) = serde_json::from_slice(&bytes) {
                witness.wrote(metadata);
            }
            Ok(Response::from_parts(parts, Body::from(bytes)))
        })
    }
}

//! Caches that a manager starts and stops.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};

use crate::{Health, SharedInformerFactory, clusters::Clusters, factory::ShutDown};

/// What has informers that can be started and shut down together.
pub trait Caches: Send + Sync + sealed::Sealed + 'static {
    /// Starts what has been asked for.
    fn start(&self) -> Result<(), ShutDown>;
    /// Shuts everything down, and waits for that.
    fn shutdown(&self) -> BoxFuture<'_, ()>;
    /// What each informer is doing; with its cluster, if there are several.
    fn health(&self) -> Vec<(Option<Arc<str>>, Health)>;
}

impl Caches for SharedInformerFactory {
    fn start(&self) -> Result<(), ShutDown> {
        self.start()
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        self.shutdown().boxed()
    }

    fn health(&self) -> Vec<(Option<Arc<str>>, Health)> {
        self.health().into_iter().map(|health| (None, health)).collect()
    }
}

impl Caches for Clusters {
    fn start(&self) -> Result<(), ShutDown> {
        self.start();
        Ok(())
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        self.shutdown().boxed()
    }

    fn health(&self) -> Vec<(Option<Arc<str>>, Health)> {
        let each = self.health().into_iter();
        each.flat_map(|(cluster, all)| {
            all.into_iter().map(move |health| (Some(Arc::clone(&cluster)), health))
        })
        .collect()
    }
}

mod sealed {
    /// Only what has informers.
    pub trait Sealed {}

    impl Sealed for crate::SharedInformerFactory {}
    impl Sealed for crate::clusters::Clusters {}
}

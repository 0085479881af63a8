//! The order in which things begin and end.

use std::{future::Future, time::Duration};

use futures_util::{FutureExt, future::join_all};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    Caches, Manager, ManagerError, Term,
    parts::{Part, Running},
};
#[cfg(feature = "leader")]
use crate::leader::LeaderElection;
use crate::sync::Arc;

/// How long the return of the term and what runs without one have after the work's grace, and the caches after that.
const EACH: Duration = Duration::from_secs(1);

impl Manager {
    /// Runs everything until the stop, until a part fails, or until the term is lost, and ends everything in order. The error is the first one.
    ///
    /// Dropping the future ends everything at once.
    pub async fn run(self, stop: CancellationToken) -> Result<(), ManagerError> {
        let (at_once, running) = (self.at_once.clone(), Running::default());
        tokio::select! {
            biased;
            () = at_once.cancelled() => Err(ManagerError::AtOnce { parts: running.unended() }),
            ended = self.run_in_order(stop, &running) => ended,
        }
    }

    async fn run_in_order(self, stop: CancellationToken, running: &Running) -> Result<(), ManagerError> {
        #[cfg(feature = "leader")]
        if let Some(part) = self.leading.iter().find(|part| part.needs_term && self.election.is_none()) {
            return Err(ManagerError::NoElection { part: part.name.clone() });
        }
        #[cfg(feature = "endpoints")]
        let endpoints: Vec<_> = {
            let observer = self.observer();
            let serve =
                |endpoints: super::Endpoints| Last::spawn(|stop| endpoints.serve(observer.clone(), stop));
            self.endpoints.into_iter().map(serve).collect()
        };
        #[cfg(feature = "events")]
        let deliveries: Vec<_> =
            self.deliveries.into_iter().map(|delivery| Last::spawn(|stop| delivery.run(stop))).collect();
        let caches = Started(self.caches);
        for caches in &caches.0 {
            caches.start()?;
        }
        let others_stop = CancellationToken::new();
        let mut others: JoinSet<()> = JoinSet::new();
        for part in self.others {
            others.spawn(running.clone().attend(part, (), others_stop.child_token()));
        }
        let work = Work {
            parts: self.leading,
            running: running.clone(),
            grace: self.grace,
            #[cfg(feature = "leader")]
            election: self.election,
        };
        let work = AbortOnDropHandle::new(tokio::spawn(work.run()));
        let ready = self.known.run();
        tracing::info!("the manager has started");

        tokio::select! {
            () = stop.cancelled() => {}
            () = running.stopping().cancelled() => {}
        }
        tracing::info!("the manager stops");
        running.stopping().cancel();
        drop(ready);
        let (stopped, within) = (Instant::now(), self.grace.saturating_add(2 * EACH));
        // What is later than any moment is never.
        let before_caches = stopped.checked_add(self.grace.saturating_add(EACH));
        let _ = before(before_caches, work).await;
        others_stop.cancel();
        let _ = before(before_caches, async { while others.join_next().await.is_some() {} }).await;
        drop(others);
        let entry = running.enter("caches");
        if before(stopped.checked_add(within), join_all(caches.0.iter().map(|caches| caches.shutdown())))
            .await
            .is_some()
        {
            entry.ended();
        }
        #[cfg(feature = "events")]
        join_all(deliveries.into_iter().map(Last::end)).await;
        #[cfg(feature = "endpoints")]
        join_all(endpoints.into_iter().map(Last::end)).await;
        let unended = running.unended();
        match running.failure() {
            None if unended.is_empty() => Ok(()),
            None => Err(ManagerError::Unfinished { parts: unended, within }),
            Some(error) => {
                if !unended.is_empty() {
                    tracing::warn!(parts = unended.join(", "), "dropped where it was waiting");
                }
                Err(error)
            }
        }
    }
}

/// What needs the term.
struct Work {
    parts: Vec<Part<Term>>,
    running: Running,
    grace: Duration,
    #[cfg(feature = "leader")]
    election: Option<LeaderElection>,
}

impl Work {
    /// Ends with the work, and with the term given back.
    async fn run(self) {
        let Self { parts, running, grace, .. } = self;
        let stopping = running.stopping();
        let begin = |term: Term| {
            let each = parts
                .into_iter()
                .map(|part| running.clone().attend(part, term.clone(), stopping.child_token()));
            // The term lasts until the stop, also if all work has ended.
            join_all(each).then(|_| stopping.cancelled())
        };
        #[cfg(feature = "leader")]
        if let Some(election) = self.election {
            let entry = running.enter("the return of the term");
            match election
                .run_one_term(stopping, grace, |leadership| begin(Term { leadership: Some(leadership) }))
                .await
            {
                Ok(()) => {}
                Err(why) => running.fail(ManagerError::TermLost { why }),
            }
            return entry.ended();
        }
        let ending = async {
            stopping.cancelled().await;
            sleep(grace).await;
        };
        tokio::select! {
            () = begin(Term::default()) => {}
            () = ending => {}
        }
    }
}

/// Waits until then at most.
async fn before<T>(deadline: Option<Instant>, what: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, what).await.ok(),
        None => Some(what.await),
    }
}

/// Caches that run. Whatever happens, they are told to stop.
struct Started(Vec<Arc<dyn Caches>>);

impl Drop for Started {
    fn drop(&mut self) {
        for caches in &self.0 {
            // The first poll tells them, and nobody waits here.
            let _ = caches.shutdown().now_or_never();
        }
    }
}

/// What ends after all work.
#[cfg(any(feature = "events", feature = "endpoints"))]
struct Last {
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
}

#[cfg(any(feature = "events", feature = "endpoints"))]
impl Last {
    fn spawn<F: Future<Output = ()> + Send + 'static>(run: impl FnOnce(CancellationToken) -> F) -> Self {
        let stop = CancellationToken::new();
        let task = AbortOnDropHandle::new(tokio::spawn(run(stop.clone())));
        Self { stop, task }
    }

    async fn end(self) {
        self.stop.cancel();
        // What a panic in it had to say was said by the panic hook.
        let _ = self.task.await;
    }
}

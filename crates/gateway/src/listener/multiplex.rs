//! A connection with many requests at a time, which is HTTP/2: what it holds, and for how long.
//!
//! With HTTP/1.1 a connection is one answer, so limits on connections are limits on answers. Here every answer has a permit of
//! its own. One that nobody takes is reset, and the others go on. The connection ends when it holds its place for nothing.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::rt::Executor;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{Limits, connection_limits::Permit};

/// How often a connection is looked at.
const LOOK: Duration = Duration::from_secs(1);

tokio::task_local! {
    /// Resets the answer that the task is about.
    static RESET: CancellationToken;
}

/// Has each answer on a task that can be ended: what is dropped before its end is reset, for the client and for nobody else.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tasks;

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, answer: F) {
        let reset = CancellationToken::new();
        let answer = RESET.scope(reset.clone(), answer);
        tokio::spawn(async move { reset.run_until_cancelled(answer).await });
    }
}

/// The answers of one connection that have not ended.
#[derive(Default)]
pub(super) struct Answers(Mutex<State>);

struct State {
    next: u64,
    open: HashMap<u64, Offer>,
    idle_since: Instant,
}

struct Offer {
    /// From which moment on the client has been to take a piece; none while there is no piece to take.
    since: Option<Instant>,
    reset: CancellationToken,
}

impl Default for State {
    fn default() -> Self {
        Self { next: 0, open: HashMap::new(), idle_since: Instant::now() }
    }
}

impl Answers {
    /// An answer begins, on the task that is about it; it lasts until its body is dropped.
    pub(super) fn begin(self: &Arc<Self>, permit: Permit) -> Open {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        let reset = RESET.try_with(CancellationToken::clone).unwrap_or_default();
        state.open.insert(id, Offer { since: None, reset });
        Open { answers: Arc::clone(self), id, _permit: permit }
    }

    /// Resets the answers that nobody takes. Ends when the connection is to end, because nothing is asked for.
    pub(super) async fn watch(&self, limits: &Limits) {
        loop {
            sleep(LOOK).await;
            let state = self.lock();
            if state.open.is_empty() && state.idle_since.elapsed() >= limits.head {
                return;
            }
            let is_stalled =
                |offer: &&Offer| offer.since.is_some_and(|since| since.elapsed() >= limits.stall);
            state.open.values().filter(is_stalled).for_each(|offer| offer.reset.cancel());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that has not ended.
pub(super) struct Open {
    answers: Arc<Answers>,
    id: u64,
    _permit: Permit,
}

impl Open {
    fn offer(&self, since: Option<Instant>) {
        if let Some(offer) = self.answers.lock().open.get_mut(&self.id) {
            offer.since = since;
        }
    }

    /// The body of the answer.
    pub(super) fn body(self, body: Body) -> Body {
        Body::new(Watched { body, open: self })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.answers.lock();
        state.open.remove(&self.id);
        state.idle_since = Instant::now();
    }
}

/// A body of which it is known when its next piece was last asked for: that happens when the piece before is on its way.
struct Watched {
    body: Body,
    open: Open,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        self.open.offer(matches!(frame, Poll::Ready(Some(_))).then(Instant::now));
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

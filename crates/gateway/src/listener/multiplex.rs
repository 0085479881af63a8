//! A connection with many requests at a time, which is HTTP/2: what it holds, and for how long.
//!
//! With HTTP/1.1 a connection is one answer, so limits on connections are limits on answers. Here every answer has a permit of
//! its own, and the connection ends when it holds answers that nobody takes, or its place for nothing.

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
use tokio::time::{Instant, sleep};

use super::{Limits, connection_limits::Permit};

/// How often a connection is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The answers of one connection that have not ended.
#[derive(Default)]
pub(super) struct Answers(Mutex<State>);

struct State {
    next: u64,
    /// Each with the moment from which on its client has been to take a piece; none while there is no piece to take.
    open: HashMap<u64, Option<Instant>>,
    idle_since: Instant,
}

impl Default for State {
    fn default() -> Self {
        Self { next: 0, open: HashMap::new(), idle_since: Instant::now() }
    }
}

/// Why a connection is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It asks for nothing.
    Idle,
    /// It does not take what it asked for.
    Stalled,
}

impl Answers {
    /// An answer begins; it lasts until its body is dropped.
    pub(super) fn begin(self: &Arc<Self>, permit: Permit) -> Open {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        state.open.insert(id, None);
        Open { answers: Arc::clone(self), id, _seat: permit }
    }

    /// Waits until the connection is to end.
    pub(super) async fn verdict(&self, limits: &Limits) -> Verdict {
        loop {
            sleep(LOOK).await;
            let state = self.lock();
            if state.open.is_empty() && state.idle_since.elapsed() >= limits.head {
                return Verdict::Idle;
            }
            if state.open.values().flatten().any(|offered| offered.elapsed() >= limits.stall) {
                return Verdict::Stalled;
            }
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
    _seat: Permit,
}

impl Open {
    fn offer(&self, offered: Option<Instant>) {
        self.answers.lock().open.insert(self.id, offered);
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

//! A term of leadership, as the work that needs it sees it.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use informer_model::ObjectKey;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{Fence, machine::Term};

/// A term of leadership. It is cheap to clone (an `Arc`).
///
/// It is handed to the work when a term begins and says whether the term still lasts. The answer compares clocks: it is
/// right also if the process was stopped and nothing of it could run in time.
#[derive(Clone)]
pub struct Leadership(Arc<Shared>);

struct Shared {
    lease: ObjectKey,
    annotation: Arc<str>,
    /// The moment that the term's times count from.
    began: Instant,
    term: Mutex<Term>,
    renew_deadline: Duration,
    over: OnceLock<Lost>,
    ended: CancellationToken,
}

/// Why a term is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// It could not be renewed in time.
    #[error("the term is over: it was not renewed within {0:?}")]
    Deadline(Duration),
    /// Somebody else took the Lease, or emptied it.
    #[error("the term is over: {}", taken(by.as_deref()))]
    Taken {
        /// Who holds it now.
        by: Option<String>,
    },
    /// Somebody deleted the Lease.
    #[error("the term is over: the Lease was deleted")]
    Deleted,
    /// The Lease names this leader and is not the one of its term.
    #[error(
        "the term is over: the Lease has this leader's name and is not of this term: it was restored from a copy, or two processes have the same identity"
    )]
    Replaced,
    /// The work has ended, or was told to.
    #[error("the term is over: the leader has resigned")]
    Resigned,
}

fn taken(by: Option<&str>) -> String {
    match by {
        Some(holder) => format!("{holder:?} has taken the Lease"),
        None => "somebody has emptied the Lease".to_owned(),
    }
}

impl Leadership {
    pub(super) fn new(
        lease: ObjectKey,
        annotation: Arc<str>,
        began: Instant,
        renew_deadline: Duration,
        term: Term,
    ) -> Self {
        let (over, ended) = (OnceLock::new(), CancellationToken::new());
        Self(Arc::new(Shared {
            lease,
            annotation,
            began,
            term: Mutex::new(term),
            renew_deadline,
            over,
            ended,
        }))
    }

    pub(super) fn renew(&self, term: Term) {
        *self.0.term.lock().unwrap_or_else(PoisonError::into_inner) = term;
    }

    pub(super) fn end(&self, why: Lost) {
        // The first reason is the reason.
        let _ = self.0.over.set(why);
        self.0.ended.cancel();
    }

    fn term(&self) -> Term {
        *self.0.term.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fence for a write that begins now, or why there is none.
    pub fn fence(&self) -> Result<Fence, Lost> {
        if let Some(why) = self.0.over.get() {
            return Err(why.clone());
        }
        let term = self.term();
        match term.holds(self.0.began.elapsed()) {
            true => Ok(Fence::new(&self.0.lease, &self.0.annotation, term.token)),
            false => Err(Lost::Deadline(self.0.renew_deadline)),
        }
    }

    /// The number of the term, whether it still lasts or not.
    pub fn token(&self) -> u64 {
        self.term().token
    }

    /// The Lease.
    pub fn lease(&self) -> &ObjectKey {
        &self.0.lease
    }

    /// Waits until the term is over, and says why.
    pub async fn lost(&self) -> Lost {
        loop {
            if let Err(why) = self.fence() {
                return why;
            }
            let end = self.0.began + self.term().valid_until;
            tokio::select! {
                () = self.0.ended.cancelled() => {}
                () = sleep_until(end) => {}
            }
        }
    }

    /// Cancelled when the election learns that the term is over: for work that is spread over several tasks. What must not
    /// happen after the end of the term asks for a [`fence`](Self::fence) all the same.
    pub fn cancellation(&self) -> CancellationToken {
        self.0.ended.child_token()
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lease, token, over) = (&self.0.lease, self.token(), self.fence().err());
        f.debug_struct("Leadership")
            .field("lease", lease)
            .field("token", &token)
            .field("over", &over)
            .finish()
    }
}

//! What an election is doing, for a person and for a health check.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use informer_model::ObjectKey;
use tokio::time::Instant;

use super::{leadership::Lost, problem::ElectionProblem};
use crate::health::Ago;

/// Looks at an election from outside, while it runs and after it. It is cheap to clone (an `Arc`).
#[derive(Clone)]
pub struct Observer(Arc<Shared>);

struct Shared {
    lease: ObjectKey,
    identity: String,
    retry_period: Duration,
    state: Mutex<State>,
}

struct State {
    role: Role,
    since: Instant,
    leader: Option<String>,
    token: Option<u64>,
    renewed: Option<Instant>,
    /// When the term ends by the clock, while nobody has noticed an end of it.
    valid_until: Option<Instant>,
    lost: Option<Lost>,
    trouble: Option<(ElectionProblem, u64, Instant)>,
    stats: LeaderStats,
}

/// How the terms of a process have gone. Of several elections together it is the sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaderStats {
    /// Whether it leads at this moment, by its own clock.
    pub leads: bool,
    /// How often it began to lead.
    pub terms: u64,
    /// How many attempts to renew a term failed.
    pub renew_failures: u64,
    /// How often a leader had to read the Lease before it could renew its term.
    pub slow_renewals: u64,
}

impl LeaderStats {
    #[cfg(feature = "prometheus")]
    pub(crate) fn add(&mut self, other: Self) {
        self.leads |= other.leads;
        self.terms += other.terms;
        self.renew_failures += other.renew_failures;
        self.slow_renewals += other.slow_renewals;
    }
}

/// What one takes part in an election as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// It has not been started.
    NotStarted,
    /// It waits for its turn.
    Candidate,
    /// It leads.
    Leader,
    /// It has stopped.
    Stopped,
}

/// The state of an election at one moment, as one of those who take part sees it. Printed, it is a line that a person can
/// read.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaderHealth {
    /// The Lease.
    pub lease: ObjectKey,
    /// The identity of this candidate.
    pub identity: String,
    /// What it takes part as.
    pub role: Role,
    /// For how long.
    pub lasting: Duration,
    /// Who was last seen to lead.
    pub leader: Option<String>,
    /// The token of the present term, or of the last one.
    pub token: Option<u64>,
    /// How long ago the term was last renewed.
    pub renewed: Option<Duration>,
    /// For how long the term should have been over, if nothing could run in time to end it.
    pub overdue: Option<Duration>,
    /// Why the last term ended.
    pub lost: Option<Lost>,
    /// What is wrong, if something is.
    pub trouble: Option<LeaderTrouble>,
}

/// Something that goes wrong, once or again and again.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaderTrouble {
    /// What went wrong last.
    pub problem: ElectionProblem,
    /// How often in a row.
    pub times: u64,
    /// How long ago it began.
    pub began: Duration,
    /// How long is waited between two attempts, at least.
    pub retry_period: Duration,
}

/// A leader does not renew its term: its process was stopped, or its work does not let the election run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the term of {identity:?} for the Lease {lease} was over {overdue:?} ago and is not renewed: the work blocks its thread or the process gets no time"
)]
#[non_exhaustive]
pub struct Overdue {
    /// The Lease.
    pub lease: ObjectKey,
    /// Who should have renewed it.
    pub identity: String,
    /// For how long the term should have been over.
    pub overdue: Duration,
}

impl Observer {
    pub(super) fn new(lease: ObjectKey, identity: String, retry_period: Duration) -> Self {
        let state = State {
            role: Role::NotStarted,
            since: Instant::now(),
            leader: None,
            token: None,
            renewed: None,
            valid_until: None,
            lost: None,
            trouble: None,
            stats: LeaderStats::default(),
        };
        Self(Arc::new(Shared { lease, identity, retry_period, state: Mutex::new(state) }))
    }

    /// What is going on.
    pub fn health(&self) -> LeaderHealth {
        let state = self.lock();
        let trouble = state.trouble.as_ref().map(|(problem, times, began)| LeaderTrouble {
            problem: problem.clone(),
            times: *times,
            began: began.elapsed(),
            retry_period: self.0.retry_period,
        });
        LeaderHealth {
            lease: self.0.lease.clone(),
            identity: self.0.identity.clone(),
            role: state.role,
            lasting: state.since.elapsed(),
            leader: state.leader.clone(),
            token: state.token,
            renewed: state.renewed.map(|renewed| renewed.elapsed()),
            overdue: overdue(&state),
            lost: state.lost.clone(),
            trouble,
        }
    }

    /// Whether this one leads at this moment.
    pub fn is_leader(&self) -> bool {
        self.lock().valid_until.is_some_and(|end| Instant::now() < end)
    }

    /// How the terms of this process have gone.
    pub fn stats(&self) -> LeaderStats {
        LeaderStats { leads: self.is_leader(), ..self.lock().stats }
    }

    /// Who was last seen to lead.
    pub fn leader(&self) -> Option<String> {
        self.lock().leader.clone()
    }

    /// For a liveness probe: fails if the term of a leader was over for longer than `tolerance` and nothing of this process
    /// has noticed. A candidate is always well.
    pub fn check(&self, tolerance: Duration) -> Result<(), Overdue> {
        match overdue(&self.lock()).filter(|overdue| *overdue > tolerance) {
            None => Ok(()),
            Some(overdue) => {
                let (lease, identity) = (self.0.lease.clone(), self.0.identity.clone());
                Err(Overdue { lease, identity, overdue })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // What the election tells

    pub(super) fn enter(&self, role: Role) {
        let mut state = self.lock();
        (state.role, state.since) = (role, Instant::now());
    }

    pub(super) fn new_leader(&self, leader: &str) {
        tracing::info!(lease = %self.0.lease, leader, "a new leader");
        self.lock().leader = Some(leader.to_owned());
    }

    pub(super) fn renewed(&self, token: u64, sent: Instant, valid_until: Instant) {
        let mut state = self.lock();
        (state.token, state.renewed, state.valid_until) = (Some(token), Some(sent), Some(valid_until));
    }

    pub(super) fn gained(&self, token: u64) {
        let (lease, identity) = (&self.0.lease, &self.0.identity);
        tracing::info!(%lease, identity, token, "leads");
        self.enter(Role::Leader);
        self.lock().stats.terms += 1;
    }

    pub(super) fn lost(&self, why: &Lost) {
        let (lease, identity) = (&self.0.lease, &self.0.identity);
        if *why == Lost::Resigned {
            tracing::info!(%lease, identity, "has resigned");
        } else {
            tracing::warn!(%lease, identity, %why, "leads no longer");
        }
        self.enter(Role::Candidate);
        let mut state = self.lock();
        (state.valid_until, state.lost) = (None, Some(why.clone()));
    }

    /// A leader reads the Lease before it renews its term.
    pub(super) fn slow_renewal(&self) {
        self.lock().stats.slow_renewals += 1;
    }

    /// Notes a problem. The log gets a line when it begins or becomes another one, not for every repetition.
    pub(super) fn problem(&self, problem: ElectionProblem) {
        let mut state = self.lock();
        state.stats.renew_failures += u64::from(state.role == Role::Leader);
        let lease = &self.0.lease;
        let news = state.trouble.as_ref().is_none_or(|(known, ..)| known.cause() != problem.cause());
        if news {
            tracing::warn!(%lease, %problem, "in trouble");
        } else {
            tracing::debug!(%lease, %problem, "still in trouble");
        }
        state.trouble = match state.trouble.take() {
            Some((_, times, began)) => Some((problem, times + 1, began)),
            None => Some((problem, 1, Instant::now())),
        };
    }

    pub(super) fn recovered(&self) {
        if let Some((_, times, began)) = self.lock().trouble.take() {
            let lasted = began.elapsed();
            tracing::info!(lease = %self.0.lease, times, ?lasted, "works again");
        }
    }
}

fn overdue(state: &State) -> Option<Duration> {
    let end = state.valid_until?;
    Instant::now().checked_duration_since(end)
}

impl LeaderHealth {
    /// Whether nothing is wrong.
    pub fn is_healthy(&self) -> bool {
        self.trouble.is_none() && self.overdue.is_none()
    }
}

impl fmt::Display for LeaderHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lease, identity, .. } = self;
        write!(f, "the Lease {lease}: {identity:?} ")?;
        match self.role {
            Role::NotStarted => f.write_str("has not started")?,
            Role::Stopped => f.write_str("has stopped")?,
            Role::Leader => write!(f, "leads for {}", Ago(self.lasting))?,
            Role::Candidate => write!(f, "is a candidate for {}", Ago(self.lasting))?,
        }
        match (self.role, self.token, self.renewed) {
            (Role::Leader, Some(token), Some(renewed)) => {
                write!(f, " with token {token}, renewed {} ago", Ago(renewed))?;
            }
            (Role::Candidate, ..) => match &self.leader {
                Some(leader) => write!(f, ", {leader:?} was last seen to lead")?,
                None => f.write_str(", nobody was seen to lead")?,
            },
            _ => {}
        }
        if let Some(overdue) = self.overdue {
            write!(f, "; its term was over {} ago, and it was not told", Ago(overdue))?;
        }
        if let (Role::Candidate, Some(lost)) = (self.role, &self.lost) {
            write!(f, "; {lost}")?;
        }
        match &self.trouble {
            Some(trouble) => write!(f, "; {trouble}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for LeaderTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in trouble for {}", Ago(self.began))?;
        if self.times > 1 {
            write!(f, ", {} times", self.times)?;
        }
        write!(f, ": {}; trying again every {:?} or a little later", self.problem, self.retry_period)
    }
}

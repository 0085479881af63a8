//! Who leads, as it follows from the requests for the Lease alone.

use std::time::Duration;

use serde_json::Value;

use super::program::DEADLINE;

/// The terms of one process. Times are those of its own clock.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    terms: Vec<Term>,
    dead: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Term {
    id: (String, i64, String),
    pub(crate) token: u64,
    pub(crate) until: Duration,
    lost: Option<Duration>,
}

impl Term {
    fn holds(&self, at: Duration) -> bool {
        at < self.until && self.lost.is_none_or(|lost| at <= lost)
    }
}

impl Terms {
    /// The term at a moment.
    pub(crate) fn at(&self, at: Duration) -> Option<&Term> {
        self.terms.last().filter(|term| !self.dead && term.holds(at))
    }

    pub(crate) fn die(&mut self) {
        self.dead = true;
    }

    /// The Lease was written, and the answer is here. Says the token of a term that begins with that.
    pub(crate) fn written(
        &mut self,
        lease: &Value,
        identity: &str,
        sent: Duration,
        now: Duration,
    ) -> Option<u64> {
        let id = id(lease);
        if lease["spec"]["holderIdentity"] != *identity {
            return None;
        }
        let until = sent + DEADLINE;
        match self.terms.last_mut().filter(|term| term.id == id && term.holds(now)) {
            Some(term) => {
                term.until = until;
                None
            }
            None if now < until => {
                let token = lease["metadata"]["resourceVersion"].as_str()?.parse().ok()?;
                self.terms.push(Term { id, token, until, lost: None });
                Some(token)
            }
            None => None,
        }
    }

    /// The Lease was read, or is not there.
    pub(crate) fn read(&mut self, lease: Option<&Value>, now: Duration) {
        let Some(term) = self.terms.last_mut() else { return };
        if lease.is_none_or(|lease| id(lease) != term.id) {
            term.lost.get_or_insert(now);
        }
    }
}

fn id(lease: &Value) -> (String, i64, String) {
    let spec = &lease["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let holder = text(&spec["holderIdentity"]);
    (
        format!("{holder} {}", text(&lease["metadata"]["uid"])),
        spec["leaseTransitions"].as_i64().unwrap_or(0),
        text(&spec["acquireTime"]),
    )
}

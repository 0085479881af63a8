//! One attempt to acquire, renew or release: look, decide, write.

use std::time::Duration;

use super::{Action, Answer, Claim, Machine, Purpose, Record, Request, Role, Stored, Term};
use crate::leader::{leadership::Lost, problem::ElectionProblem};

/// A Lease that nobody else may take for longer is worth a remark.
const LONG: Duration = Duration::from_secs(3_600);

impl Machine {
    pub(super) fn look(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.request = Some(Request { purpose: Purpose::Look, sent: now, version: None });
        actions.push(Action::Get);
    }

    pub(super) fn answered(
        &mut self,
        now: Duration,
        wall: i64,
        request: Request,
        answer: Answer,
        actions: &mut Vec<Action>,
    ) {
        let refused = matches!(&answer, Answer::Failed(problem) if problem.is_refusal());
        self.known |= request.purpose == Purpose::Acquire && !refused;
        match answer {
            Answer::Lease(stored) => {
                // A write that left the version as it was changed nothing that others could see.
                let written = self.is_own(&stored) && request.version != Some(stored.version);
                let (uid, version) = (stored.uid.clone(), stored.version);
                self.observe(now, Some(stored), actions);
                match request.purpose {
                    Purpose::Look => self.decide(now, wall, actions),
                    Purpose::Release => self.end(actions),
                    Purpose::Acquire | Purpose::Renew if written => {
                        if let Some(claim) = &mut self.claim {
                            claim.uid = Some(uid);
                        }
                        self.granted(now, wall, &request, version, actions);
                    }
                    Purpose::Acquire | Purpose::Renew => {
                        self.failed(now, &request, ElectionProblem::NotWritten, actions);
                    }
                }
            }
            Answer::Absent => {
                self.observe(now, None, actions);
                match (request.purpose, self.role) {
                    (Purpose::Acquire, Role::Candidate) => self.wait(now),
                    _ => self.decide(now, wall, actions),
                }
            }
            Answer::Conflict => self.look_again(now, actions),
            Answer::Failed(problem) => self.failed(now, &request, problem, actions),
        }
    }

    fn failed(
        &mut self,
        now: Duration,
        request: &Request,
        problem: ElectionProblem,
        actions: &mut Vec<Action>,
    ) {
        self.fresh = false;
        actions.push(Action::Report(problem));
        let took_long = now.saturating_sub(request.sent) >= self.settings.retry_period;
        match self.role {
            // A leader whose request hung has waited already.
            Role::Leading(_) if took_long => self.look_again(now, actions),
            Role::Releasing { .. } => self.look_again(now, actions),
            _ => self.wait(now),
        }
    }

    /// Looks at once what became of a write, but only once in each attempt.
    fn look_again(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.fresh = false;
        if !std::mem::replace(&mut self.looked_again, true) {
            self.look(now, actions);
        } else if let Role::Releasing { .. } = self.role {
            self.end(actions);
        } else {
            self.wait(now);
        }
    }

    /// The server has written what this candidate asked for, as this version.
    fn granted(
        &mut self,
        now: Duration,
        wall: i64,
        request: &Request,
        version: u64,
        actions: &mut Vec<Action>,
    ) {
        // From the moment of sending: when exactly the server wrote it, and so how long others wait, is not known.
        let valid_until = request.sent.saturating_add(self.settings.renew_deadline);
        let term = Term { token: version, valid_until };
        match self.role {
            Role::Releasing { .. } => return self.decide(now, wall, actions),
            Role::Candidate if !term.holds(now) => {}
            Role::Candidate => {
                self.role = Role::Leading(term);
                actions.extend([Action::Recovered, Action::Gained(term)]);
            }
            Role::Leading(Term { token, .. }) => {
                let term = Term { token, valid_until };
                self.role = Role::Leading(term);
                actions.extend([Action::Recovered, Action::Renewed(term)]);
            }
            Role::Idle | Role::Done => {}
        }
        self.wait(now);
    }

    /// Does what follows from what was seen just now.
    pub(super) fn decide(&mut self, now: Duration, wall: i64, actions: &mut Vec<Action>) {
        let Some(sight) = &self.sight else { return self.wait(now) };
        let own = self.own(sight).cloned();
        match (self.role, own) {
            // A server that was restored from a backup may count from before the term.
            (Role::Leading(term), Some(lease)) if lease.version >= term.token => {
                self.renew(now, wall, lease, actions);
            }
            (Role::Leading(_), _) => {
                let why = match sight.record().map(Record::holder) {
                    None => Lost::Deleted,
                    Some(Some(holder)) if holder == self.settings.identity => Lost::Replaced,
                    Some(holder) => Lost::Taken { by: holder.map(str::to_owned) },
                };
                self.lose(now, why, actions);
            }
            (Role::Releasing { .. }, Some(lease)) => self.release(now, wall, lease, actions),
            (Role::Releasing { .. }, None) => self.end(actions),
            (Role::Candidate, _) if self.may_take(sight, now) => self.acquire(now, wall, actions),
            (Role::Candidate, _) => {
                // That there is none says nothing about whether one can be made.
                if let Some(record) = sight.record() {
                    let odd = oddity(record, self.settings.lease_duration);
                    actions.push(odd.map_or(Action::Recovered, Action::Report));
                }
                self.wait(now);
            }
            (Role::Idle | Role::Done, _) => {}
        }
    }

    fn acquire(&mut self, now: Duration, wall: i64, actions: &mut Vec<Action>) {
        // What has come to its end begins anew: nothing depends on it.
        let transitions = self.highest.checked_add(1).unwrap_or(1);
        // An attempt that is repeated is the same claim, so that it is recognised whichever of them was carried out.
        let repeated = self.claim.take_if(|claim| claim.transitions == transitions);
        let acquired = repeated.map_or(wall, |claim| claim.acquired);
        let lease = self.sight.as_ref().and_then(|sight| sight.lease.as_ref());
        let (version, uid) = lease.map(|lease| (lease.version, lease.uid.clone())).unzip();
        self.claim = Some(Claim { transitions, acquired, version, uid });
        let record = Record {
            holder: Some(self.settings.identity.clone()),
            duration_seconds: Some(seconds(self.settings.lease_duration)),
            transitions: Some(transitions),
            acquired: Some(acquired),
            renewed: Some(wall),
        };
        self.write(Purpose::Acquire, now, record, version, actions);
    }

    fn renew(&mut self, now: Duration, wall: i64, lease: Stored, actions: &mut Vec<Action>) {
        // Never a time that stood there before: whoever looks now and then has to see that something has changed. The wall
        // clock may go back, or stand still.
        let renewed = lease.record.renewed.map_or(wall, |before| wall.max(before.saturating_add(1)));
        let duration_seconds = Some(seconds(self.settings.lease_duration));
        let record = Record { renewed: Some(renewed), duration_seconds, ..lease.record };
        self.write(Purpose::Renew, now, record, Some(lease.version), actions);
    }

    fn release(&mut self, now: Duration, wall: i64, lease: Stored, actions: &mut Vec<Action>) {
        let (holder, renewed) = (Some(String::new()), Some(wall));
        let record = Record { holder, duration_seconds: Some(1), renewed, ..lease.record };
        self.write(Purpose::Release, now, record, Some(lease.version), actions);
    }

    fn write(
        &mut self,
        purpose: Purpose,
        now: Duration,
        record: Record,
        version: Option<u64>,
        actions: &mut Vec<Action>,
    ) {
        self.fresh = false;
        self.request = Some(Request { purpose, sent: now, version });
        actions.push(match version {
            Some(version) => Action::Update(record, version),
            None => Action::Create(record),
        });
    }
}

fn seconds(duration: Duration) -> i32 {
    duration.as_secs().try_into().unwrap_or(i32::MAX)
}

/// What is strange about a Lease that somebody else holds.
fn oddity(record: &Record, own: Duration) -> Option<ElectionProblem> {
    let holder = record.holder()?.to_owned();
    match record.duration() {
        None => {
            let seconds = record.duration_seconds;
            Some(ElectionProblem::NoDuration { holder, seconds, instead: own })
        }
        Some(duration) if duration > LONG => Some(ElectionProblem::LongDuration { holder, duration }),
        Some(_) => None,
    }
}

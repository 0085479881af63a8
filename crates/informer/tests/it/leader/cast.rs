//! Who takes part in a simulated election: processes with clocks of their own, and a server.

use std::{collections::VecDeque, time::Duration};

use informer::leader::machine::{Action, Answer, Input, Machine, Settings, Stored, Term};

/// A moment of the simulation, in microseconds; nobody in it can see this clock.
pub(crate) type Moment = u64;

/// A process that takes part in the election.
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) machine: Machine,
    /// When its clock began, and how fast it runs.
    began: Moment,
    rate: f64,
    /// How wrong its wall clock is, or where it has stopped.
    wall_clock: Result<i64, i64>,
    /// It does not run until then.
    pub(crate) paused_until: Option<Moment>,
    /// What came while it was paused.
    pub(crate) waiting: VecDeque<Input>,
    /// The number of the request that it waits for.
    pub(crate) request: Option<u64>,
    /// The term of the Lease that it last heard of.
    pub(crate) seen: Option<LeaseTerm>,
    /// The term that it believes to have, and in which life of the Lease.
    pub(crate) term: Option<(Term, Life)>,
    /// The number of the fenced write that is under way.
    pub(crate) writing: Option<u64>,
    /// It has resigned, or is about to have.
    pub(crate) leaving: bool,
}

impl Process {
    pub(crate) fn new(name: String, settings: Settings, seed: u64, began: Moment, rate: f64) -> Self {
        let machine = Machine::new(settings, seed);
        Self {
            name,
            machine,
            began,
            rate,
            wall_clock: Ok(0),
            paused_until: None,
            waiting: VecDeque::new(),
            request: None,
            seen: None,
            term: None,
            writing: None,
            leaving: false,
        }
    }

    /// What its own clock says.
    pub(crate) fn clock(&self, now: Moment) -> Duration {
        Duration::from_micros(((now - self.began) as f64 * self.rate) as u64)
    }

    /// When its own clock says what the machine waits for.
    pub(crate) fn deadline(&self) -> Option<Moment> {
        // Its clock counts whole microseconds: one more, so that the moment has come for certain.
        let local = self.machine.deadline()?.as_micros() as f64 + 1.0;
        Some(self.began + (local / self.rate).ceil() as u64 + 1)
    }

    pub(crate) fn handle(&mut self, now: Moment, input: Input) -> Vec<Action> {
        if let Input::Answer(Answer::Lease(lease)) = &input {
            self.seen = Some(LeaseTerm::of(lease));
        }
        self.machine.handle(self.clock(now), self.wall_clock(now), input)
    }

    fn wall_clock(&self, now: Moment) -> i64 {
        self.wall_clock.map_or_else(|stopped| stopped, |error| now as i64 + error)
    }

    /// Puts the wall clock forward or back.
    pub(crate) fn set_wall_clock(&mut self, now: Moment, by: i64) {
        self.wall_clock = Ok(self.wall_clock(now) - now as i64 + by);
    }

    pub(crate) fn stop_wall_clock(&mut self, now: Moment) {
        self.wall_clock = Err(self.wall_clock(now));
    }

    /// What the process would get if it asked for a fence: the token. Whether it runs or is paused makes no difference.
    pub(crate) fn fence(&self, now: Moment) -> Option<u64> {
        self.term.filter(|(term, _)| term.holds(self.clock(now))).map(|(term, _)| term.token)
    }
}

/// A number for each time that the Lease is made.
pub(crate) type Life = u64;

/// A term, as the Lease tells it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LeaseTerm {
    pub(crate) life: Life,
    count: i32,
}

impl LeaseTerm {
    fn of(lease: &Stored) -> Self {
        Self { life: lease.uid.parse().expect("a number"), count: lease.record.count() }
    }
}

/// A server with one Lease and one object that leaders write.
#[derive(Default)]
pub(crate) struct Server {
    version: u64,
    lease: Option<Stored>,
    lives: Life,
    /// The last term of the Lease that was last deleted, and when it was.
    pub(crate) deleted: Option<(LeaseTerm, Moment)>,
    pub(crate) object: Object,
}

/// An object with optimistic concurrency, and the token that it carries.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Object {
    pub(crate) version: u64,
    pub(crate) token: u64,
}

impl Server {
    /// Deletes the Lease, if there is one.
    pub(crate) fn delete(&mut self, now: Moment) -> bool {
        let lease = self.lease.take();
        self.deleted = lease.as_ref().map(|lease| (LeaseTerm::of(lease), now)).or(self.deleted);
        self.version += u64::from(lease.is_some());
        lease.is_some()
    }

    /// Carries out what a machine asks for.
    pub(crate) fn answer(&mut self, request: &Action) -> Answer {
        let next = self.version + 1;
        match (request, &self.lease) {
            (Action::Create(_), Some(_)) => return Answer::Conflict,
            (Action::Update(..), None) => return Answer::Absent,
            (Action::Update(_, version), Some(current)) if *version != current.version => {
                return Answer::Conflict;
            }
            // As a real server: a write that changes nothing makes no new version.
            (Action::Update(record, _), Some(current)) if *record == current.record => {}
            (Action::Update(record, _), Some(_)) | (Action::Create(record), None) => {
                self.version = next;
                self.lives += u64::from(self.lease.is_none());
                let (record, uid) = (record.clone(), self.lives.to_string());
                self.lease = Some(Stored { record, uid, version: next });
            }
            _ => {}
        }
        self.lease.clone().map_or(Answer::Absent, Answer::Lease)
    }

    /// Replaces the object if nobody did since it was read. Whether it was done.
    pub(crate) fn replace(&mut self, read: Object, token: u64) -> bool {
        if self.object.version != read.version {
            return false;
        }
        assert!(token >= self.object.token, "the object of token {} took token {token}", self.object.token);
        self.version += 1;
        self.object = Object { version: self.version, token };
        true
    }
}

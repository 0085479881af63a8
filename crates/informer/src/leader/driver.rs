//! Carries out what the machine says: asks the server, keeps the time, tells of terms.

use std::{collections::VecDeque, future::poll_fn, sync::Arc, task::Poll, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use informer_model::ObjectKey;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::{Api, api::PostParams};
use tokio::time::Instant;

use super::{
    LeaderElection, Leadership,
    leadership::Lost,
    machine::{Action, Answer, Input, Machine, Record, Stored, Term},
    observer::{Observer, Role},
    problem::ElectionProblem,
};
use crate::{request::SourceError, until};

/// A candidate at work.
pub(super) struct Driver {
    api: Api<Lease>,
    lease: ObjectKey,
    annotation: Arc<str>,
    machine: Machine,
    renew_deadline: Duration,
    observer: Observer,
    /// The moment that the machine's times count from.
    began: Instant,
    /// The Lease as it was last read or written: what others keep in it is kept.
    seen: Option<Lease>,
    request: Option<BoxFuture<'static, Result<Option<Lease>, Answer>>>,
    leadership: Option<Leadership>,
    events: VecDeque<Event>,
}

/// What happens to a candidate.
pub(super) enum Event {
    NewLeader(String),
    Gained(Leadership),
    Lost(Lost),
    Done,
}

impl Driver {
    /// Begins.
    pub(super) fn start(election: LeaderElection) -> Self {
        let LeaderElection { api, lease, annotation, machine, renew_deadline, observer, grace: _ } = election;
        observer.enter(Role::Candidate);
        let mut driver = Self {
            api,
            lease,
            annotation,
            machine,
            renew_deadline,
            observer,
            began: Instant::now(),
            seen: None,
            request: None,
            leadership: None,
            events: VecDeque::new(),
        };
        driver.handle(Input::Start);
        driver
    }

    /// What happens next. To drop this before it has happened loses nothing.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            let deadline = self.machine.deadline().map(|after| self.began + after);
            let input = tokio::select! {
                biased;
                () = passed(deadline) => Input::Timer,
                () = until(deadline) => Input::Timer,
                answer = answer(&mut self.request) => {
                    self.request = None;
                    Input::Answer(self.read(answer))
                }
            };
            self.handle(input);
        }
    }

    /// Ends the term, if there is one, and the candidacy. The work must have ended.
    pub(super) fn resign(&mut self) {
        self.handle(Input::Resign);
    }

    /// Gives the Lease back after resigning, if this one has it.
    pub(super) async fn finish(mut self) {
        while !matches!(self.next().await, Event::Done) {}
    }

    fn handle(&mut self, input: Input) {
        let wall = Timestamp::now().as_microsecond();
        for action in self.machine.handle(self.began.elapsed(), wall, input) {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Get => {
                if self.leadership.is_some() {
                    self.observer.slow_renewal();
                }
                let (api, lease) = (self.api.clone(), self.lease.clone());
                self.request =
                    Some(
                        async move {
                            api.get_opt(lease.name()).await.map_err(|error| failed("get", &lease, error))
                        }
                        .boxed(),
                    );
            }
            Action::Create(record) => {
                let (api, key) = (self.api.clone(), self.lease.clone());
                let metadata = ObjectMeta { name: Some(key.name().to_owned()), ..ObjectMeta::default() };
                let lease = written(Lease { metadata, spec: None }, record);
                self.request = Some(
                    async move {
                        let created = api.create(&PostParams::default(), &lease).await;
                        created.map(Some).map_err(|error| failed("create", &key, error))
                    }
                    .boxed(),
                );
            }
            Action::Update(record, version) => {
                let (api, key) = (self.api.clone(), self.lease.clone());
                let mut lease = written(self.seen.clone().unwrap_or_default(), record);
                lease.metadata.resource_version = Some(version.to_string());
                self.request = Some(
                    async move {
                        let replaced = api.replace(key.name(), &PostParams::default(), &lease).await;
                        replaced.map(Some).map_err(|error| failed("update", &key, error))
                    }
                    .boxed(),
                );
            }
            Action::Abandon => self.request = None,
            Action::NewLeader(leader) => {
                self.observer.new_leader(&leader);
                self.events.push_back(Event::NewLeader(leader));
            }
            Action::Gained(term) => self.gained(term),
            Action::Renewed(term) => {
                if let Some(leadership) = &self.leadership {
                    leadership.renew(term);
                }
                self.note_renewal(term);
            }
            Action::Lost(why) => {
                self.observer.lost(&why);
                if let Some(leadership) = self.leadership.take() {
                    leadership.end(why.clone());
                }
                // Before the news of who leads instead.
                self.events.push_front(Event::Lost(why));
            }
            Action::Report(problem) => self.observer.problem(problem),
            Action::Recovered => self.observer.recovered(),
            Action::Done => self.events.push_back(Event::Done),
        }
    }

    fn gained(&mut self, term: Term) {
        let (lease, annotation) = (self.lease.clone(), Arc::clone(&self.annotation));
        let leadership = Leadership::new(lease, annotation, self.began, self.renew_deadline, term);
        self.leadership = Some(leadership.clone());
        self.observer.gained(term.token);
        self.note_renewal(term);
        self.events.push_back(Event::Gained(leadership));
    }

    fn note_renewal(&self, term: Term) {
        let valid_until = self.began + term.valid_until;
        let sent = self.began + term.valid_until.saturating_sub(self.renew_deadline);
        self.observer.renewed(term.token, sent, valid_until);
    }

    /// Keeps the Lease that came, and tells the machine what it needs to know of it.
    fn read(&mut self, answer: Result<Option<Lease>, Answer>) -> Answer {
        let lease = match answer {
            Ok(Some(lease)) => lease,
            Ok(None) => return Answer::Absent,
            Err(answer) => return answer,
        };
        let found = lease.metadata.resource_version.clone().unwrap_or_default();
        let Ok(version) = found.parse() else { return Answer::Failed(ElectionProblem::NoNumber { found }) };
        let uid = lease.metadata.uid.clone().unwrap_or_default();
        let spec = lease.spec.as_ref();
        let micros = |time: &MicroTime| time.0.as_microsecond();
        let record = Record {
            holder: spec.and_then(|spec| spec.holder_identity.clone()),
            duration_seconds: spec.and_then(|spec| spec.lease_duration_seconds),
            transitions: spec.and_then(|spec| spec.lease_transitions),
            acquired: spec.and_then(|spec| spec.acquire_time.as_ref()).map(micros),
            renewed: spec.and_then(|spec| spec.renew_time.as_ref()).map(micros),
        };
        self.seen = Some(lease);
        Answer::Lease(Stored { record, uid, version })
    }
}

/// Whoever drops a candidate ends its term; the Lease is then over by itself.
impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(leadership) = self.leadership.take() {
            self.observer.lost(&Lost::Resigned);
            leadership.end(Lost::Resigned);
        }
        self.observer.enter(Role::Stopped);
    }
}

/// A Lease that says what a record says, and is otherwise as it was.
fn written(mut lease: Lease, record: Record) -> Lease {
    let time = |micros: i64| Timestamp::from_microsecond(micros).ok().map(MicroTime);
    lease.spec = Some(LeaseSpec {
        holder_identity: record.holder,
        lease_duration_seconds: record.duration_seconds,
        lease_transitions: record.transitions,
        acquire_time: record.acquired.and_then(time),
        renew_time: record.renewed.and_then(time),
        ..lease.spec.unwrap_or_default()
    });
    lease
}

/// How a request failed. Only what certainly means "somebody else was faster" or "there is none" is told apart.
fn failed(verb: &'static str, lease: &ObjectKey, error: kube::Error) -> Answer {
    let error = SourceError::from(error);
    let lease = lease.clone();
    let missing = error.status().filter(|status| status.code == 404).map(|status| status.details.as_ref());
    match (error.status().map(|status| status.code), missing) {
        (Some(409), _) => Answer::Conflict,
        (_, Some(Some(details))) if details.kind == "namespaces" => {
            Answer::Failed(ElectionProblem::NoNamespace { lease })
        }
        (_, Some(_)) if verb != "create" => Answer::Absent,
        _ => Answer::Failed(ElectionProblem::Request { verb, lease, error }),
    }
}

/// Ready as soon as the clock says so, whether or not a timer could fire: work that is polled after this is polled
/// within its term.
async fn passed(moment: Option<Instant>) {
    poll_fn(|_| match moment {
        Some(moment) if Instant::now() >= moment => Poll::Ready(()),
        _ => Poll::Pending,
    })
    .await;
}

async fn answer(
    request: &mut Option<BoxFuture<'static, Result<Option<Lease>, Answer>>>,
) -> Result<Option<Lease>, Answer> {
    match request {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}

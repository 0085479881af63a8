//! Sends what was recorded: one request at a time, again when it may help, and not for ever.

use std::time::Duration;

use k8s_openapi::{
    api::events::v1::{Event as Document, EventSeries},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Client, Resource,
    api::{Patch, PatchParams, PostParams},
    client::Body,
    core::Request,
};
use rand::Rng;
use rand_pcg::Pcg32;
use serde_json::json;
use tokio::{
    select,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Recorder,
    correlator::{Next, Outcome, Write},
    name::event_name,
    trouble::{Meaning, Verb, advice, meaning},
};
use crate::{
    backoff::{Backoff, Delays},
    request::{SourceError, read_document},
    until,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a server can have us wait.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// The longest answer that is read: it repeats what was sent.
const LARGEST: usize = 1 << 20;

/// Sends what a [`Recorder`] records. Without it nothing is sent, and once it is dropped, nothing more is taken in.
#[must_use = "nothing is sent unless it runs"]
pub struct Delivery {
    recorder: Recorder,
    post: Post,
    drain: Duration,
}

impl Delivery {
    pub(super) fn new(recorder: Recorder, post: Post, drain: Duration) -> Self {
        Self { recorder, post, drain }
    }

    /// Runs until it is told to stop. What was recorded by then is sent, for as long as [`Limits::drain`](super::Limits::drain) says;
    /// what is left after that, or comes after the stop, is dropped and counted.
    ///
    /// So this ends last: give it a token of its own, and cancel it when all that records has ended. A controller's calls go on
    /// for a while after the controller was told to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        let recorder = self.recorder.clone();
        let drain = self.drain;
        let ending = async {
            stop.cancelled().await;
            recorder.lock().correlator.close();
            recorder.inner.wake.notify_one();
            sleep(drain).await;
        };
        select! {
            biased;
            () = ending => {}
            () = self.send_all(&stop) => {}
        }
    }

    /// Sends everything, until nothing more can come.
    async fn send_all(&mut self, stop: &CancellationToken) {
        loop {
            let next = self.recorder.lock().correlator.next(Instant::now());
            match next {
                Next::Write(write) => {
                    let outcome = self.post.deliver(write, &self.recorder, stop).await;
                    self.recorder.lock().correlator.settle(outcome, Instant::now());
                }
                Next::Reached(mark) => {
                    self.recorder.inner.reached.send_replace(mark);
                }
                Next::Wait(moment) => select! {
                    () = self.recorder.inner.wake.notified() => {}
                    () = until(moment) => {}
                },
                Next::Finished => return,
            }
        }
    }
}

/// However it ends, nobody waits for it any more.
impl Drop for Delivery {
    fn drop(&mut self) {
        let left = self.recorder.lock().correlator.abandon();
        self.recorder.inner.reached.send_replace(u64::MAX);
        if left > 0 {
            tracing::warn!(
                controller = self.recorder.inner.controller,
                left,
                "not all events could be sent before the end"
            );
        }
    }
}

/// The way to the server.
pub(super) struct Post {
    client: Client,
    controller: String,
    instance: String,
    tries: u32,
    delays: Delays,
    /// What the delays count from.
    began: Instant,
    rng: Pcg32,
}

impl Post {
    pub(super) fn new(
        client: Client,
        controller: String,
        instance: String,
        tries: u32,
        backoff: Backoff,
        rng: Pcg32,
    ) -> Self {
        Self { client, controller, instance, tries, delays: Delays::new(backoff), began: Instant::now(), rng }
    }

    /// Writes an event, in as many tries as it takes and is allowed.
    async fn deliver(&mut self, mut write: Write, recorder: &Recorder, stop: &CancellationToken) -> Outcome {
        let known = write.there;
        // An earlier try may have been carried out, whatever came of its answer.
        let mut tried_before = false;
        for attempt in 1..=self.tries {
            let verb = if write.there { Verb::Patch } else { Verb::Create };
            let Err(error) = self.request(&write).await else { return Outcome::Written(write.name) };
            let mut least = Duration::ZERO;
            match meaning(&error, verb) {
                Meaning::Exists if known => write.there = true,
                // Nobody else gives out this name.
                Meaning::Exists if tried_before => return Outcome::Written(write.name),
                Meaning::Exists => {
                    write.name = event_name(write.report.topic.regarding.name(), self.rng.next_u64());
                }
                Meaning::Gone => write.there = false,
                Meaning::Later(after) => (least, tried_before) = (after, true),
                Meaning::Refused => {
                    complain(recorder, &error);
                    return Outcome::Failed;
                }
            }
            // A name that is taken or gone is no trouble, unless that does not end.
            if attempt == 1 && !tried_before {
                continue;
            }
            complain(recorder, &error);
            if attempt < self.tries {
                self.pause(least, stop).await;
            }
        }
        Outcome::Failed
    }

    /// Waits before the next try, and no longer when the end has come.
    async fn pause(&mut self, least: Duration, stop: &CancellationToken) {
        let delay = self.delays.next(self.began.elapsed(), &mut self.rng);
        let delay = delay.max(least.min(LONGEST_WAIT));
        if stop.is_cancelled() {
            return sleep(delay).await;
        }
        select! {
            () = sleep(delay) => {}
            () = stop.cancelled() => {}
        }
    }

    async fn request(&self, write: &Write) -> Result<(), SourceError> {
        let namespace = write.report.topic.regarding.namespace();
        let path = Request::new(Document::url_path(&(), Some(namespace)));
        let request = if write.there {
            let patch = Patch::Merge(json!({ "series": series(write) }));
            path.patch(&write.name, &PatchParams::default(), &patch)
        } else {
            let document = serde_json::to_vec(&self.document(write, namespace));
            document
                .map_err(kube::core::request::Error::SerializeBody)
                .and_then(|document| path.create(&PostParams::default(), document))
        };
        let request = request.map_err(kube::Error::BuildRequest)?.map(Body::from);
        let answer = timeout(PATIENCE, read_document(self.client.clone(), request, LARGEST)).await;
        answer
            .unwrap_or_else(|_| Err(SourceError::Unreachable(format!("no answer within {PATIENCE:?}"))))
            .map(drop)
    }

    fn document(&self, write: &Write, namespace: &str) -> Document {
        let topic = &write.report.topic;
        Document {
            metadata: ObjectMeta {
                name: Some(write.name.clone()),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(write.began)),
            series: (write.count > 1).then(|| series(write)),
            type_: Some(topic.type_.as_str().to_owned()),
            reason: Some(topic.reason.clone()),
            action: Some(topic.action.clone()),
            note: Some(write.report.note.clone()),
            regarding: Some(topic.regarding.0.clone()),
            related: topic.related.as_ref().map(|related| related.0.clone()),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            ..Document::default()
        }
    }
}

fn series(write: &Write) -> EventSeries {
    let count = i32::try_from(write.count).unwrap_or(i32::MAX);
    EventSeries { count, last_observed_time: MicroTime(write.last) }
}

/// Says what is wrong, once in a while for each kind of problem.
fn complain(recorder: &Recorder, error: &SourceError) {
    let (kind, advice) = advice(error);
    let mut state = recorder.lock();
    let (news, stats) = (state.complaints.are_due(kind, Instant::now()), state.correlator.stats());
    drop(state);
    if news {
        tracing::warn!(controller = recorder.inner.controller, problem = %error, advice, %stats, "events cannot be sent");
    }
}

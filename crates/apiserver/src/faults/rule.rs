//! Which requests or events something goes wrong with.

use std::time::Duration;

use informer_model::Status;
use informer_serving::path::Place;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::verbs::Verb;

/// What goes wrong.
///
/// The first part concerns requests and their answers, the second the events of a watch.
///
/// What becomes of a watch that is open when its rule is added: [`Reset`](Self::Reset),
/// [`CutAfter`](Self::CutAfter) and [`StallAfter`](Self::StallAfter) break its connection, with bytes counted from
/// then on. It counts for the rule like a request, the one that was opened first before the others. The faults of
/// events are about every event that comes. All others are about how a request is answered or its answer is written,
/// which has been decided.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// The connection ends before there is an answer.
    Refuse,
    /// The answer begins, and the connection is reset before its body does.
    Reset,
    /// The connection ends after so many bytes of the body, and before the end of a body of that length. A
    /// shorter one is left alone.
    CutAfter(usize),
    /// After so many bytes of the body nothing more comes, and no end: a half-open connection. A shorter body
    /// is left alone.
    StallAfter(usize),
    /// The body comes one byte at a time.
    OneByteAtATime,
    /// The answer comes later.
    Delay(Duration),
    /// This answer comes instead; one with `retryAfterSeconds` also has the header `Retry-After`.
    Status(Status),
    /// A proxy answers with a page of HTML and the code 200.
    Html,
    /// The body is compressed with gzip, one member for each piece that is sent, whether the client has asked
    /// for that or not.
    Gzip,
    /// The replica that lags behind answers, see [`ApiServer::hold_replica`](crate::ApiServer::hold_replica).
    Stale,
    /// All history is forgotten before the request is answered.
    Compact,

    /// An ERROR event comes instead of an event, and the watch ends.
    StreamError(Status),
    /// An event is lost.
    DropEvent,
    /// An event comes twice.
    DuplicateEvent,
    /// A bookmark is lost.
    DropBookmark,
    /// The bookmark that closes the initial events never comes.
    DropInitialEventsEnd,
}

/// What a rule is asked about.
#[derive(Debug, Clone)]
pub(crate) struct Requested {
    /// None for a request for something else than objects.
    pub(crate) objects: Option<(Verb, Place)>,
    /// `User-Agent`
    pub(crate) agent: Option<String>,
}

/// What happens that a rule is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    Request,
    Event,
    Bookmark,
    InitialEventsEnd,
}

impl Fault {
    pub(super) fn occasion(&self) -> Occasion {
        match self {
            Self::StreamError(_) | Self::DropEvent | Self::DuplicateEvent => Occasion::Event,
            Self::DropBookmark => Occasion::Bookmark,
            Self::DropInitialEventsEnd => Occasion::InitialEventsEnd,
            _ => Occasion::Request,
        }
    }

    /// Whether nothing is left of the request or the event that a later rule could be about.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Refuse | Self::Status(_) | Self::Html | Self::StreamError(_) | Self::DropEvent)
    }
}

/// When a rule applies, of all the occasions that it fits.
#[derive(Debug, Clone, PartialEq)]
enum When {
    Always,
    First(u64),
    /// Counted from 1.
    Each(Vec<u64>),
    Probability(f64),
}

/// A fault and what it happens to.
///
/// ```
/// use informer_apiserver::{Fault, Rule, Verb};
///
/// // The second watch of pods breaks off in the middle of an event.
/// let rule = Rule::new(Fault::CutAfter(1_000)).verb(Verb::Watch).resource("pods").nth([2]);
/// # let _ = rule;
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub(super) fault: Fault,
    verbs: Vec<Verb>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    client: Option<String>,
    when: When,
}

impl Rule {
    /// A fault that happens to every request, or to every event of every watch.
    pub fn new(fault: Fault) -> Self {
        Self {
            fault,
            verbs: Vec::new(),
            resource: None,
            subresource: None,
            namespace: None,
            client: None,
            when: When::Always,
        }
    }

    /// Only to this verb; may be said several times.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verbs.push(verb);
        self
    }

    /// Only to this resource: its plural name, `pods`, or with its group, `deployments.apps`.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Only to requests for this part of an object, like `status`; the empty text stands for the object itself.
    /// Without it a rule is about objects and all their parts.
    #[must_use]
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// Only to requests of this client: one of [`ApiServer::client_named`](crate::ApiServer::client_named), or a
    /// program by the name that begins its `User-Agent`, like `kubectl`.
    #[must_use]
    pub fn client(mut self, client: impl Into<String>) -> Self {
        self.client = Some(client.into());
        self
    }

    /// Only to requests for objects in this namespace: not to those for all namespaces.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only the first so many times.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.when = When::First(times);
        self
    }

    /// Only these times, counted from 1.
    #[must_use]
    pub fn nth(mut self, times: impl IntoIterator<Item = u64>) -> Self {
        self.when = When::Each(times.into_iter().collect());
        self
    }

    /// Only with this probability. Which times those are follows from the seed of the server.
    #[must_use]
    pub fn probability(mut self, probability: f64) -> Self {
        let probability = if probability.is_nan() { 0.0 } else { probability.clamp(0.0, 1.0) };
        self.when = When::Probability(probability);
        self
    }

    /// Whether it is about this request.
    pub(super) fn fits(&self, request: &Requested) -> bool {
        // `kubectl/v1.34.1 (linux/amd64) kubernetes/…`
        let agent = request.agent.as_deref().unwrap_or_default();
        let client = self
            .client
            .as_deref()
            .is_none_or(|client| agent == client || agent.split(['/', ' ']).next() == Some(client));
        let Some((verb, place)) = &request.objects else {
            let about_objects = [&self.resource, &self.subresource, &self.namespace];
            return client && self.verbs.is_empty() && about_objects.iter().all(|about| about.is_none());
        };
        let resource = self.resource.as_deref().is_none_or(|resource| match resource.split_once('.') {
            Some((plural, group)) => plural == place.plural && group == place.group,
            None => resource == place.plural,
        });
        let part = place.subresource.as_deref().unwrap_or_default();
        let subresource = self.subresource.as_deref().is_none_or(|subresource| subresource == part);
        let namespace = self.namespace.as_deref().is_none_or(|n| place.namespace.as_deref() == Some(n));
        let verb = self.verbs.is_empty() || self.verbs.contains(verb);
        client && resource && subresource && namespace && verb
    }

    /// Whether it applies the `nth` time that it fits.
    pub(super) fn applies(&self, nth: u64, random: &mut Pcg64Mcg) -> bool {
        match &self.when {
            When::Always => true,
            When::First(times) => nth <= *times,
            When::Each(times) => times.contains(&nth),
            When::Probability(probability) => random.random_bool(*probability),
        }
    }
}

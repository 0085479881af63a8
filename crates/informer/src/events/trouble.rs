//! What goes wrong with sending events, and what can be done about it.

use std::{collections::HashMap, time::Duration};

use informer_model::Status;
use tokio::time::Instant;

use crate::request::SourceError;

/// How long nothing is said about a kind of problem after it was mentioned.
const SILENCE: Duration = Duration::from_secs(600);

/// What the server gives as the cause when a namespace is going away.
const TERMINATING: &str = "NamespaceTerminating";

/// Which problems were mentioned when. Their kinds are named in the source, so that there are only a few.
#[derive(Debug, Default)]
pub(super) struct Complaints(HashMap<&'static str, Instant>);

impl Complaints {
    /// Whether a problem of this kind is to be mentioned now.
    pub(super) fn are_due(&mut self, kind: &'static str, now: Instant) -> bool {
        let silent = self.0.get(kind).is_some_and(|said| now.duration_since(*said) < SILENCE);
        if !silent {
            self.0.insert(kind, now);
        }
        !silent
    }
}

/// What a failed request means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// There is an event of that name.
    Exists,
    /// There is no event of that name any more.
    Gone,
    /// It may work later, and not before this long.
    Later(Duration),
    /// It would be refused again.
    Refused,
}

/// What a request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Patch,
}

/// What the failure of a request means.
pub(super) fn meaning(error: &SourceError, verb: Verb) -> Meaning {
    let Some(status) = error.status() else { return Meaning::Later(Duration::ZERO) };
    let later = Meaning::Later(status.retry_after().unwrap_or_default());
    match (status.code, verb) {
        (_, Verb::Create) if status.is_already_exists() => Meaning::Exists,
        (404, Verb::Patch) => Meaning::Gone,
        // A new token may come, a conflict is over at once.
        (401 | 408 | 409 | 429, _) => later,
        (400..500, _) => Meaning::Refused,
        _ => later,
    }
}

/// A kind of problem, and what a person can do about it.
pub(super) fn advice(error: &SourceError) -> (&'static str, &'static str) {
    let Some(status) = error.status() else {
        return ("unreachable", "it is tried again");
    };
    match status.code {
        401 => {
            ("unauthorized", "check the credentials: the token or certificate is missing, wrong or expired")
        }
        403 if is_terminating(status) => {
            ("namespace terminating", "nothing: no event is taken for what is in a namespace that goes away")
        }
        403 => (
            "forbidden",
            "grant the verbs create and patch on events in the API group events.k8s.io to the user that the message names",
        ),
        404 => (
            "namespace not found",
            "nothing, if the namespace was deleted; else check the namespace of the reference",
        ),
        400 | 422 => ("invalid", "check the reference to the object: the server takes no such event"),
        429 => ("too many requests", "it is tried again"),
        400..500 => ("refused", "the server takes no such event"),
        _ => ("server error", "it is tried again"),
    }
}

fn is_terminating(status: &Status) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == TERMINATING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kind_of_problem_is_mentioned_once_in_ten_minutes() {
        let mut complaints = Complaints::default();
        assert!(complaints.are_due("dropped", Instant::now()));
        assert!(!complaints.are_due("dropped", Instant::now()));
        assert!(complaints.are_due("forbidden", Instant::now()), "another kind");
        tokio::time::advance(SILENCE).await;
        assert!(complaints.are_due("dropped", Instant::now()));
    }

    #[test]
    fn what_waiting_does_not_help_is_not_tried_again() {
        let of = |status: Status, verb| meaning(&status.into(), verb);
        let refusals = [
            Status::forbidden("events", "events.k8s.io", "", "no"),
            Status::bad_request("no"),
            Status::from_response(422, "no"),
            Status::from_response(413, "no"),
        ];
        for status in refusals {
            assert_eq!(of(status.clone(), Verb::Create), Meaning::Refused, "{status}");
            assert_eq!(of(status, Verb::Patch), Meaning::Refused);
        }
        let missing = || Status::not_found("namespaces", "", "shop");
        assert_eq!(of(missing(), Verb::Create), Meaning::Refused);
        assert_eq!(of(missing(), Verb::Patch), Meaning::Gone);
        let busy = Status::too_many_requests("later", 7);
        assert_eq!(of(busy, Verb::Create), Meaning::Later(Duration::from_secs(7)));
        let there = Status::already_exists("events", "events.k8s.io", "web-0.1");
        assert_eq!(of(there, Verb::Create), Meaning::Exists);
        let down = SourceError::Refused("nobody".into());
        assert_eq!(meaning(&down, Verb::Create), Meaning::Later(Duration::ZERO));
    }
}

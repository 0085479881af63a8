//! What can go wrong with an election, and what to do about it.

use std::time::Duration;

use informer_model::ObjectKey;

use crate::request::SourceError;

/// Something went wrong. The candidate tries again after the retry period, whatever it is.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionProblem {
    /// A request failed.
    #[error("cannot {verb} the Lease {lease}: {error}{}", advice(.lease, .error))]
    Request {
        /// What was asked: `get`, `create` or `update`.
        verb: &'static str,
        /// Of which Lease.
        lease: ObjectKey,
        /// Why it failed.
        #[source]
        error: SourceError,
    },
    /// The namespace of the Lease does not exist.
    #[error(
        "cannot create the Lease {lease}: its namespace {:?} does not exist; create the namespace, or name another one",
        lease.namespace().unwrap_or_default()
    )]
    NoNamespace {
        /// The Lease.
        lease: ObjectKey,
    },
    /// The server did not answer.
    #[error("the server did not answer within {0:?}")]
    NoAnswer(Duration),
    /// The server took a write and answered with something else.
    #[error(
        "the server took a write of the Lease and kept another text of it; look for an admission webhook that changes Leases"
    )]
    NotWritten,
    /// The Lease does not say for how long it is held.
    #[error(
        "the Lease is held by {holder:?} and says {} for its duration in seconds; {instead:?} is taken instead, and the Lease can be deleted if nobody of that name runs",
        .seconds.map_or("nothing".to_owned(), |seconds| seconds.to_string())
    )]
    NoDuration {
        /// Who holds it.
        holder: String,
        /// What it says.
        seconds: Option<i32>,
        /// For how long it is taken to be held.
        instead: Duration,
    },
    /// The Lease is to be held for very long.
    #[error(
        "the Lease is held by {holder:?}, and nobody else may take it before it has not changed for {duration:?}; delete the Lease if nobody of that name runs"
    )]
    LongDuration {
        /// Who holds it.
        holder: String,
        /// How long it is held without a change.
        duration: Duration,
    },
    /// The version of the Lease, which tells one term from another, is not a number.
    #[error(
        "the resourceVersion of the Lease is {found:?}, which is no number, and a term has its token from there; servers of Kubernetes give numbers: look for what stands between this client and the server"
    )]
    NoNumber {
        /// What it is.
        found: String,
    },
}

impl ElectionProblem {
    /// Whether the server has certainly not done what it was asked for.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Request { error, .. } => {
                error.status().is_some_and(|status| (400..500).contains(&status.code))
                    || matches!(error, SourceError::Refused(_))
            }
            Self::NoNamespace { .. } => true,
            _ => false,
        }
    }

    /// A few words that do not vary, to count by: problems with the same words are the same problem for the log.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Request { error, .. } => match error.status().map(|status| status.code) {
                Some(401) => "unauthorized",
                Some(403) => "forbidden",
                Some(404) => "not found",
                Some(429) => "too many requests",
                Some(_) => "refused",
                None => match error {
                    SourceError::Credentials(_) => "login failed",
                    SourceError::Malformed(_) => "malformed",
                    _ => "unreachable",
                },
            },
            Self::NoNamespace { .. } => "no namespace",
            Self::NoAnswer(_) => "no answer",
            Self::NotWritten => "not written",
            Self::NoDuration { .. } => "no duration",
            Self::LongDuration { .. } => "long duration",
            Self::NoNumber { .. } => "no number",
        }
    }
}

/// What a person can do about an error of a request, where waiting will not help.
fn advice(lease: &ObjectKey, error: &SourceError) -> String {
    let namespace = lease.namespace().unwrap_or_default();
    match (error, error.status().map(|status| status.code)) {
        (_, Some(401)) | (SourceError::Credentials(_), _) => {
            "; check the credentials of this client".to_owned()
        }
        (_, Some(403)) => format!(
            "; grant the verbs get, create and update on leases of the group coordination.k8s.io in the namespace {namespace:?} to the user that the message names"
        ),
        (SourceError::Malformed(_), _) => {
            format!("; repair the Lease, or delete it: kubectl delete lease -n {namespace} {}", lease.name())
        }
        _ => String::new(),
    }
}

//! `v1.Status`: how an API server says that, and why, it did not do what it was asked to.
//!
//! In: a response body, or the object of an ERROR event in a watch. Out: an error value that says what kind
//! of failure it is. A server builds the same value with the constructors and writes it.

mod constructors;
mod reason;
mod wire;

use std::{error, fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::ResourceVersion;
pub use reason::Reason;
use wire::{ApiVersion, Kind, is_zero, number, or_default, version};

/// An answer of an API server about the outcome of a request: nearly always a failure, and so an error.
///
/// It is read and written in wire shape. Reading is tolerant: fields may be missing, `null` or unknown, a
/// reason may be any text, a number that makes no sense counts as absent. But an object of another kind is
/// refused, so that reading a body as a `Status` also tells whether it is one.
///
/// The questions (`is_…`) go by the reason. Where there is none, or none that Kubernetes has, they go by the
/// HTTP code.
///
/// ```
/// use informer_model::Status;
///
/// let body = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
///     "message":"pods \"web-0\" not found","reason":"NotFound",
///     "details":{"name":"web-0","kind":"pods"},"code":404}"#;
/// let status: Status = serde_json::from_str(body)?;
/// assert!(status.is_not_found());
/// assert_eq!(status, Status::not_found("pods", "", "web-0"));
/// assert_eq!(status.to_string(), r#"pods "web-0" not found"#);
/// assert!(serde_json::from_str::<Status>(r#"{"kind":"Pod","apiVersion":"v1"}"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    kind: Kind,
    #[serde(default, deserialize_with = "or_default")]
    api_version: ApiVersion,
    /// Rarely more than empty. An expired list continues with what stands here.
    #[serde(default, deserialize_with = "or_default")]
    pub metadata: Box<StatusMetadata>,
    /// Whether it went well.
    #[serde(default, deserialize_with = "or_default", rename = "status")]
    pub outcome: Outcome,
    /// What happened, for a person.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What happened, for a program.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Reason::is_unknown")]
    pub reason: Reason,
    /// What it happened to, and the details that some reasons have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<StatusDetails>>,
    /// The HTTP code, 0 when there is none.
    #[serde(default, deserialize_with = "number", skip_serializing_if = "is_zero")]
    pub code: u16,
}

/// The metadata of a [`Status`]: that of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusMetadata {
    /// A version of the whole collection, or unset.
    #[serde(deserialize_with = "version", skip_serializing_if = "ResourceVersion::is_unset")]
    pub resource_version: ResourceVersion,
    /// Where a list goes on, or empty. In an expired one: a token that goes on at the newest version.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty", rename = "continue")]
    pub continue_token: String,
    /// How many items a list has after those that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<i64>,
}

/// What a [`Status`] is about. Every field may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// The name of the object, or the operation that timed out.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group of the resource.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource or the kind: in nearly all reasons the plural resource, despite the name.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The UID of the object.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// What led to it, in single facts.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// After how many seconds a client may try again; 0 when nothing is said about it.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One fact that led to a [`Status`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// Its kind, one of the constants here.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The fact, for a person.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field of the object it is about, as `spec.ports[0].name`.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// Whether what was asked for was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Outcome {
    /// It was done.
    Success,
    /// It was not, or that is not known. Any text but `Success` reads as this.
    #[default]
    Failure,
}

/// What every server writes in `message` when a version is asked for that it has not reached yet.
const TOO_LARGE_VERSION: &str = "Too large resource version";

impl Status {
    /// Whether this is no failure at all.
    pub fn is_success(&self) -> bool {
        self.outcome == Outcome::Success
    }

    /// Whether the failure has this reason: says so, or has a reason unknown to Kubernetes and the HTTP code
    /// that stands for this one. `TooManyRequests` and `RequestEntityTooLarge` are told by their code alone.
    pub fn has_reason(&self, reason: &Reason) -> bool {
        let by_code = || Reason::of_code(self.code).is_some_and(|of_code| of_code == *reason);
        let code_suffices = matches!(reason, Reason::TooManyRequests | Reason::RequestEntityTooLarge);
        self.reason == *reason || ((code_suffices || !self.reason.is_known()) && by_code())
    }

    /// Whether the version asked for is too old to be served. Only the reason tells; a bare 410 is
    /// [`is_gone`](Self::is_gone).
    pub fn is_expired(&self) -> bool {
        self.has_reason(&Reason::Expired)
    }

    /// Whether the thing asked for is no longer there, without saying that it expired: what servers before
    /// 1.18 answer to a version that is too old.
    pub fn is_gone(&self) -> bool {
        self.has_reason(&Reason::Gone)
    }

    /// Whether the version asked for is no longer to be had and only a new list helps: expired or gone.
    pub fn needs_relist(&self) -> bool {
        self.is_expired() || self.is_gone()
    }

    /// Whether the version asked for is one that the server has not reached.
    ///
    /// Told by the cause; by the message of a cause of a timeout (1.17 and 1.18); or by the message alone
    /// (before).
    pub fn is_too_large_version(&self) -> bool {
        let causes = || self.details.iter().flat_map(|details| &details.causes);
        causes().any(|cause| cause.reason == StatusCause::RESOURCE_VERSION_TOO_LARGE)
            || (self.is_timeout() && causes().any(|cause| cause.message == TOO_LARGE_VERSION))
            || self.message.contains(TOO_LARGE_VERSION)
    }

    /// Whether somebody else changed the object first.
    pub fn is_conflict(&self) -> bool {
        self.has_reason(&Reason::Conflict)
    }

    /// Whether there is an object of that name. Only the reason tells; a bare 409 is
    /// [`is_conflict`](Self::is_conflict).
    pub fn is_already_exists(&self) -> bool {
        self.has_reason(&Reason::AlreadyExists)
    }

    /// Whether there is no such object, or no such resource.
    pub fn is_not_found(&self) -> bool {
        self.has_reason(&Reason::NotFound)
    }

    /// Whether the client may not do this.
    pub fn is_forbidden(&self) -> bool {
        self.has_reason(&Reason::Forbidden)
    }

    /// Whether the server does not know who the client is.
    pub fn is_unauthorized(&self) -> bool {
        self.has_reason(&Reason::Unauthorized)
    }

    /// Whether the request is refused for what stands in it.
    pub fn is_invalid(&self) -> bool {
        self.has_reason(&Reason::Invalid)
    }

    /// Whether the server is not able to answer in time.
    pub fn is_timeout(&self) -> bool {
        self.has_reason(&Reason::Timeout)
    }

    /// Whether the server asks to come back later.
    pub fn is_too_many_requests(&self) -> bool {
        self.has_reason(&Reason::TooManyRequests)
    }

    /// How long to wait before the next try, where the server says it. A `ServerTimeout` always does, if
    /// only that it may be at once.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.details.as_ref()?.retry_after_seconds;
        let says = seconds > 0 || self.reason == Reason::ServerTimeout;
        says.then(|| Duration::from_secs(seconds.into()))
    }
}

/// One line: the message, or what else there is.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.message.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty());
        match (lines.next(), &self.reason, self.code) {
            (Some(first), ..) => {
                f.write_str(first)?;
                lines.try_for_each(|line| write!(f, " {line}"))
            }
            (None, Reason::Unknown, 0) => write!(f, "{:?} without a message", self.outcome),
            (None, Reason::Unknown, code) => write!(f, "{:?} with HTTP code {code}", self.outcome),
            (None, reason, 0) => write!(f, "{reason}"),
            (None, reason, code) => write!(f, "{reason} (HTTP code {code})"),
        }
    }
}

impl error::Error for Status {}

impl Default for StatusMetadata {
    fn default() -> Self {
        Self {
            resource_version: ResourceVersion::UNSET,
            continue_token: String::new(),
            remaining_item_count: None,
        }
    }
}

#[cfg(test)]
mod tests;

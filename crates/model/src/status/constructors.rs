//! The failures that an API server answers with, in the words its users know.

use std::fmt;

use super::{Outcome, Reason, Status, StatusCause, TOO_LARGE_VERSION};
use crate::{ResourceVersion, qualified_name};

/// `resource` is the plural name, `group` its API group, empty for the core one. In messages both are one:
/// `deployments.apps`.
impl Status {
    /// It was done.
    pub fn success() -> Self {
        Self { outcome: Outcome::Success, ..Self::default() }
    }

    /// A failure with the code of its reason. The other constructors are this with the usual message and
    /// details.
    pub fn failure(reason: Reason, message: impl Into<String>) -> Self {
        let code = reason.code().unwrap_or_default();
        Self { message: message.into(), reason, code, ..Self::default() }
    }

    /// A response with an HTTP code and a body that is not a `Status`, from a proxy perhaps. The message shows
    /// how the body begins, a cause has all of it. A 404 is what a server says of a group that it does not serve.
    pub fn from_response(code: u16, body: impl Into<String>) -> Self {
        let (reason, body) = (Reason::of_code(code).unwrap_or_default(), body.into());
        let beginning: String = body.trim_start().chars().take(100).take_while(|c| !c.is_control()).collect();
        let message = match code {
            404 => format!("the server could not find the requested resource: {beginning:?}"),
            _ => format!("the server answered with HTTP code {code} and not with a Status: {beginning:?}"),
        };
        let cause = StatusCause::new(StatusCause::UNEXPECTED_SERVER_RESPONSE, "", body);
        Self { code, ..Self::failure(reason, message) }.with_causes([cause])
    }

    /// 401: the server does not know who the client is.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::failure(Reason::Unauthorized, message)
    }

    /// 403: the client may not do this, and why. An empty name stands for the whole resource.
    pub fn forbidden(resource: &str, group: &str, name: &str, why: impl fmt::Display) -> Self {
        let message = match (resource, name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{} is forbidden: {why}", qualified_name(resource, group)),
            _ => format!("{} {name:?} is forbidden: {why}", qualified_name(resource, group)),
        };
        Self::failure(Reason::Forbidden, message).about(resource, group, name)
    }

    /// 404: there is no such object.
    pub fn not_found(resource: &str, group: &str, name: &str) -> Self {
        let message = format!("{} {name:?} not found", qualified_name(resource, group));
        Self::failure(Reason::NotFound, message).about(resource, group, name)
    }

    /// 409: there is an object of that name.
    pub fn already_exists(resource: &str, group: &str, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified_name(resource, group));
        Self::failure(Reason::AlreadyExists, message).about(resource, group, name)
    }

    /// 409: the object is not in the state that the request needs, and why.
    pub fn conflict(resource: &str, group: &str, name: &str, why: impl fmt::Display) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified_name(resource, group));
        Self::failure(Reason::Conflict, message).about(resource, group, name)
    }

    /// 409: other managers own fields that an apply sets; one cause for each.
    pub fn apply_conflict(message: impl Into<String>, causes: impl IntoIterator<Item = StatusCause>) -> Self {
        Self::failure(Reason::Conflict, message).with_causes(causes)
    }

    /// 410: what was asked for is no longer there. Servers answer [`expired`](Self::expired) since 1.18.
    pub fn gone(message: impl Into<String>) -> Self {
        Self::failure(Reason::Gone, message)
    }

    /// 410: the version asked for is too old.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(Reason::Expired, message)
    }

    /// 422: the object breaks the rules of its kind; one cause for each broken rule. It is `kind` that is
    /// named here, not the resource.
    pub fn invalid(
        kind: &str,
        group: &str,
        name: &str,
        causes: impl IntoIterator<Item = StatusCause>,
    ) -> Self {
        let causes: Vec<StatusCause> = causes.into_iter().collect();
        let mut facts: Vec<String> = Vec::new();
        for fact in causes.iter().map(StatusCause::to_string) {
            if !facts.contains(&fact) {
                facts.push(fact);
            }
        }
        let facts = match facts.as_slice() {
            [] => String::new(),
            [fact] => format!(": {fact}"),
            facts => format!(": [{}]", facts.join(", ")),
        };
        let message = format!("{} {name:?} is invalid{facts}", qualified_name(kind, group));
        Self::failure(Reason::Invalid, message).about(kind, group, name).with_causes(causes)
    }

    /// 500: an operation, like `list`, cannot be done at the moment and should be tried again.
    pub fn server_timeout(resource: &str, group: &str, operation: &str, retry_after_seconds: u32) -> Self {
        let resource_name = qualified_name(resource, group);
        let message = format!(
            "The {operation} operation against {resource_name} could not be completed at this time, please try again."
        );
        Self::failure(Reason::ServerTimeout, message)
            .about(resource, group, operation)
            .with_retry_after(retry_after_seconds)
    }

    /// 504: it took longer than allowed.
    pub fn timeout(message: impl fmt::Display, retry_after_seconds: u32) -> Self {
        Self::failure(Reason::Timeout, format!("Timeout: {message}")).with_retry_after(retry_after_seconds)
    }

    /// 504: a version was asked for that the server has not reached; to be tried again after a second.
    pub fn too_large_resource_version(requested: &ResourceVersion, current: &ResourceVersion) -> Self {
        let cause = StatusCause::new(StatusCause::RESOURCE_VERSION_TOO_LARGE, "", TOO_LARGE_VERSION);
        let message = format!("{TOO_LARGE_VERSION}: {requested}, current: {current}");
        Self::timeout(message, 1).with_causes([cause])
    }

    /// 429: the client is to come back later.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::failure(Reason::TooManyRequests, message).with_retry_after(retry_after_seconds)
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(Reason::BadRequest, message)
    }

    /// 405: the resource does not have this verb.
    pub fn method_not_allowed(resource: &str, group: &str, verb: &str) -> Self {
        let message =
            format!("{verb} is not supported on resources of kind {:?}", qualified_name(resource, group));
        Self::failure(Reason::MethodNotAllowed, message).about(resource, group, "")
    }

    /// 406: the client accepts none of the media types that there are.
    pub fn not_acceptable(available: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", available.join(", "));
        Self::failure(Reason::NotAcceptable, message)
    }

    /// 413: the body is too large.
    pub fn request_entity_too_large(message: impl fmt::Display) -> Self {
        Self::failure(Reason::RequestEntityTooLarge, format!("Request entity too large: {message}"))
    }

    /// 415: the body has none of the media types that are read.
    pub fn unsupported_media_type(readable: &[&str]) -> Self {
        let readable = readable.join(", ");
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {readable}"
        );
        Self::failure(Reason::UnsupportedMediaType, message)
    }

    /// 500: something broke in the server.
    pub fn internal_error(why: impl fmt::Display) -> Self {
        let why = why.to_string();
        Self::failure(Reason::InternalError, format!("Internal error occurred: {why}"))
            .with_causes([StatusCause::new("", "", why)])
    }

    /// 500: objects under a key of the storage cannot be read; one cause for each.
    pub fn store_read_error(
        resource: &str,
        group: &str,
        key: &str,
        causes: impl IntoIterator<Item = StatusCause>,
    ) -> Self {
        let message =
            format!("{} under {key:?} cannot be read from the storage", qualified_name(resource, group));
        Self::failure(Reason::StoreReadError, message).about(resource, group, key).with_causes(causes)
    }

    /// 501: the server has nothing for this. There is no reason for it, only the code.
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self { code: 501, ..Self::failure(Reason::Unknown, message) }
    }

    /// 503: the server is not able to serve this at the moment.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::failure(Reason::ServiceUnavailable, message)
    }

    /// Names the object it is about.
    #[must_use]
    pub fn about(mut self, resource: &str, group: &str, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        (details.kind, details.group, details.name) = (resource.into(), group.into(), name.into());
        self
    }

    /// Adds causes.
    #[must_use]
    pub fn with_causes(mut self, causes: impl IntoIterator<Item = StatusCause>) -> Self {
        self.details.get_or_insert_default().causes.extend(causes);
        self
    }

    /// Says after how many seconds to try again.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// Hands out a token with which an expired list goes on at the newest version.
    #[must_use]
    pub fn with_continue(mut self, token: impl Into<String>) -> Self {
        self.metadata.continue_token = token.into();
        self
    }
}

/// What the kinds of causes are called.
impl StatusCause {
    /// A value stands twice where it may stand once.
    pub const FIELD_VALUE_DUPLICATE: &str = "FieldValueDuplicate";
    /// A value that is not allowed under these circumstances.
    pub const FIELD_VALUE_FORBIDDEN: &str = "FieldValueForbidden";
    /// A value in the wrong form.
    pub const FIELD_VALUE_INVALID: &str = "FieldValueInvalid";
    /// A value that refers to something that is not there.
    pub const FIELD_VALUE_NOT_FOUND: &str = "FieldValueNotFound";
    /// A value that is none of those there are.
    pub const FIELD_VALUE_NOT_SUPPORTED: &str = "FieldValueNotSupported";
    /// A value is missing.
    pub const FIELD_VALUE_REQUIRED: &str = "FieldValueRequired";
    /// A value is too long.
    pub const FIELD_VALUE_TOO_LONG: &str = "FieldValueTooLong";
    /// A list has too many values.
    pub const FIELD_VALUE_TOO_MANY: &str = "FieldValueTooMany";
    /// A value of another type than the schema has.
    pub const FIELD_VALUE_TYPE_INVALID: &str = "FieldValueTypeInvalid";
    /// Another manager owns a field that an apply sets.
    pub const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";
    /// Something that has nothing to do with the request.
    pub const INTERNAL_ERROR: &str = "InternalError";
    /// The version asked for is one that the server has not reached.
    pub const RESOURCE_VERSION_TOO_LARGE: &str = "ResourceVersionTooLarge";
    /// What answered may not be an API server.
    pub const UNEXPECTED_SERVER_RESPONSE: &str = "UnexpectedServerResponse";

    /// A cause; each part may be empty.
    pub fn new(reason: impl Into<String>, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), field: field.into() }
    }
}

/// `field: message`, or the message alone.
impl fmt::Display for StatusCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.message),
            field => write!(f, "{field}: {}", self.message),
        }
    }
}

//! What is asked for: the rules for what goes together in a request, and what a request selects.

use std::{borrow::Cow, sync::Arc};

use informer_model::{FieldSelector, ObjectKey, ResourceVersion, Selector, Status, StatusCause};

use super::super::{ListOptions, VersionMatch};
use crate::Object;

/// A request that a [`MemorySource`](super::MemorySource) got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A list, or one page of it.
    List(ListOptions),
    /// A watch.
    Watch(ListOptions),
}

/// Which version a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Newest,
    /// `"0"`: whichever is at hand.
    Any,
    At(u64),
}

impl Wanted {
    pub(super) fn new(version: &ResourceVersion) -> Result<Self, Status> {
        match version {
            version if version.is_unset() => Ok(Self::Newest),
            version if *version == ResourceVersion::ANY => Ok(Self::Any),
            // A longer number than our counter will ever be is in the future for good.
            version if version.is_decimal() => Ok(Self::At(version.to_string().parse().unwrap_or(u64::MAX))),
            _ => Err(Status::bad_request(format!(
                "invalid resource version {version:?}: not a decimal number"
            ))),
        }
    }
}

/// The objects that a request selects.
#[derive(Debug, Default)]
pub(super) struct Filter {
    namespace: Option<Arc<str>>,
    labels: Selector,
    fields: FieldSelector,
}

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

impl Filter {
    pub(super) fn of_namespace(namespace: Option<Arc<str>>) -> Self {
        Self { namespace, ..Self::default() }
    }

    /// Fields other than name and namespace are refused, as a server refuses those that it does not know.
    pub(super) fn new(namespace: Option<Arc<str>>, options: &ListOptions) -> Result<Self, Status> {
        let unreadable = |error: &dyn std::error::Error| Status::bad_request(error.to_string());
        let labels = options.label_selector.as_deref().unwrap_or_default();
        let fields = options.field_selector.as_deref().unwrap_or_default();
        let labels = labels.parse::<Selector>().map_err(|error| unreadable(&error))?;
        let fields = fields.parse::<FieldSelector>().map_err(|error| unreadable(&error))?;
        let mut paths = fields.requirements().iter().map(|requirement| requirement.path().as_str());
        match paths.find(|path| ![NAME, NAMESPACE].contains(path)) {
            Some(unknown) => Err(Status::bad_request(format!("field label not supported: {unknown}"))),
            None => Ok(Self { namespace, labels, fields }),
        }
    }

    /// Whether there is no selector.
    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    pub(super) fn matches<K>(&self, object: &Object<K>) -> bool {
        let key = object.key();
        self.namespace.as_deref().is_none_or(|namespace| key.namespace() == Some(namespace))
            && self.labels.matches(object.labels())
            && self.fields.matches_with(|path| match path.as_str() {
                NAME => Some(Cow::Borrowed(key.name())),
                NAMESPACE => Some(Cow::Borrowed(key.namespace().unwrap_or_default())),
                _ => None,
            })
    }
}

/// The rest of a list, as a continue token says it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rest {
    /// The version of the first page. None: the newest, because that one is no longer there.
    pub version: Option<u64>,
    /// The last key of the page before.
    pub after: ObjectKey,
}

impl Rest {
    pub(super) fn encode(&self) -> String {
        match self.version {
            Some(version) => format!("{version}:{}", self.after),
            None => format!("newest:{}", self.after),
        }
    }

    pub(super) fn decode(token: &str) -> Result<Self, Status> {
        let read = || {
            let (version, after) = token.split_once(':')?;
            let version = if version == "newest" { None } else { Some(version.parse().ok()?) };
            Some(Self { version, after: after.parse().ok()? })
        };
        read().ok_or_else(|| Status::bad_request(format!("continue key is not valid: {token:?}")))
    }
}

const MATCH: &str = "resourceVersionMatch";
const INITIAL: &str = "sendInitialEvents";

/// Checks what goes together in a list.
pub(super) fn check_list(options: &ListOptions) -> Result<(), Status> {
    let mut broken = Vec::new();
    if let Some(version_match) = options.resource_version_match {
        if options.resource_version.is_unset() {
            broken.push(forbidden(
                MATCH,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if options.continue_token.is_some() {
            broken.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if version_match == VersionMatch::Exact && options.resource_version == ResourceVersion::ANY {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            broken.push(forbidden(MATCH, why));
        }
    }
    if options.send_initial_events {
        broken.push(forbidden(INITIAL, "sendInitialEvents is forbidden for list"));
    }
    judge(broken)
}

/// Checks what goes together in a watch. A server that does not stream lists refuses to be asked for one.
pub(super) fn check_watch(options: &ListOptions, streams_lists: bool) -> Result<(), Status> {
    let mut broken = Vec::new();
    if options.send_initial_events {
        if options.resource_version_match != Some(VersionMatch::NotOlderThan) {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            broken.push(forbidden(MATCH, why));
        }
        if !streams_lists {
            let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            broken.push(forbidden(INITIAL, why));
        }
    } else if options.resource_version_match.is_some() {
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        broken.push(forbidden(MATCH, why));
    }
    judge(broken)
}

fn forbidden(field: &str, why: &str) -> StatusCause {
    StatusCause::new(StatusCause::FIELD_VALUE_FORBIDDEN, field, format!("Forbidden: {why}"))
}

fn judge(broken: Vec<StatusCause>) -> Result<(), Status> {
    if broken.is_empty() { Ok(()) } else { Err(Status::invalid("ListOptions", "meta.k8s.io", "", broken)) }
}

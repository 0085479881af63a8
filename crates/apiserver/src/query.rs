//! What stands behind the question mark: the options of a request, read and checked.

use std::{borrow::Cow, fmt, time::Duration};

use informer_model::{FieldSelector, Selector, Status, StatusCause};
use serde_json::Value;

/// The parameters of a request by name. Of several with one name the first counts.
#[derive(Debug, Default)]
pub(crate) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

/// Which version a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requested {
    /// The newest one.
    Unset,
    /// `"0"`: whichever is at hand.
    Any,
    At(u64),
}

/// How the version of a list is to be compared with the requested one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Exact,
    NotOlderThan,
}

/// Which objects a request is about.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub labels: Selector,
    pub fields: FieldSelector,
}

/// The options of a list.
#[derive(Debug)]
pub(crate) struct ListOptions {
    pub version: Requested,
    pub version_match: Option<Match>,
    /// None: everything.
    pub limit: Option<usize>,
    pub continue_from: Option<String>,
}

/// The options of a watch.
#[derive(Debug)]
pub(crate) struct WatchOptions {
    pub version: Requested,
    pub bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub timeout: Option<Duration>,
}

impl<'a> Query<'a> {
    pub(crate) fn new(query: Option<&'a str>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect())
    }

    /// A parameter that is there and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(other, _)| other == name)?;
        Some(value.as_ref()).filter(|value| !value.is_empty())
    }

    /// A switch: anything but `false` and `0` turns it on, also nothing at all.
    pub(crate) fn switch(&self, name: &str) -> Option<bool> {
        let (_, value) = self.0.iter().find(|(other, _)| other == name)?;
        Some(!matches!(value.as_ref(), "false" | "False" | "FALSE" | "0" | "f" | "F"))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number: i64 = text.parse().map_err(|e| bad_parameter(name, text, format!("{e}")))?;
        Ok(u64::try_from(number).ok())
    }

    /// The version of a read.
    pub(crate) fn version(&self) -> Result<Requested, Status> {
        match self.get("resourceVersion") {
            None => Ok(Requested::Unset),
            Some("0") => Ok(Requested::Any),
            Some(text) => version(text).map(Requested::At),
        }
    }

    /// `dryRun=All`.
    pub(crate) fn dry_run(&self) -> Result<bool, Status> {
        match self.get("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(invalid_options("CreateOptions", [unsupported("dryRun", [other], &["All"])])),
        }
    }

    pub(crate) fn selection(&self) -> Result<Selection, Status> {
        let labels = self.get("labelSelector").unwrap_or_default();
        let fields = self.get("fieldSelector").unwrap_or_default();
        Ok(Selection {
            labels: labels.parse().map_err(|e| bad_parameter("labelSelector", labels, e))?,
            fields: fields.parse().map_err(|e| bad_parameter("fieldSelector", fields, e))?,
        })
    }

    /// The options of a list, after the rules that a server has for what goes together.
    pub(crate) fn list(&self) -> Result<ListOptions, Status> {
        let text = self.get("resourceVersion").unwrap_or_default();
        let continue_from = self.get("continue");
        let mut broken = Vec::new();
        let mut version_match = None;
        if let Some(wanted) = self.get("resourceVersionMatch") {
            if text.is_empty() {
                broken.push(forbidden(
                    MATCH,
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if continue_from.is_some() {
                broken.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
            }
            match wanted {
                "Exact" if text == "0" => broken.push(forbidden(
                    MATCH,
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                )),
                "Exact" => version_match = Some(Match::Exact),
                "NotOlderThan" => version_match = Some(Match::NotOlderThan),
                other => broken.push(unsupported(MATCH, other, &["Exact", "NotOlderThan", ""])),
            }
        }
        if self.switch("sendInitialEvents").is_some() {
            broken.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        if !broken.is_empty() {
            return Err(invalid_options("ListOptions", broken));
        }
        self.number("timeoutSeconds")?;
        let limit = self.number("limit")?.filter(|limit| *limit > 0);
        Ok(ListOptions {
            version: self.version()?,
            version_match,
            limit: limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
            continue_from: continue_from.map(Into::into),
        })
    }

    /// The options of a watch, after the rules that a server has for what goes together.
    pub(crate) fn watch(&self) -> Result<WatchOptions, Status> {
        let send_initial_events = self.switch("sendInitialEvents");
        let version_match = self.get("resourceVersionMatch");
        let mut broken = Vec::new();
        if send_initial_events.is_some() && version_match != Some("NotOlderThan") {
            broken.push(forbidden(
                MATCH,
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if let Some(wanted) = version_match {
            if send_initial_events.is_none() {
                broken.push(forbidden(
                    MATCH,
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            if wanted != "NotOlderThan" {
                broken.push(unsupported(MATCH, wanted, &["NotOlderThan"]));
            }
            if self.get("continue").is_some() {
                broken.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
            }
        }
        if !broken.is_empty() {
            return Err(invalid_options("ListOptions", broken));
        }
        Ok(WatchOptions {
            version: self.version()?,
            bookmarks: self.switch("allowWatchBookmarks").unwrap_or(false),
            send_initial_events,
            timeout: self.number("timeoutSeconds")?.filter(|t| *t > 0).map(Duration::from_secs),
        })
    }
}

const MATCH: &str = "resourceVersionMatch";

/// A version of this server: a decimal of 64 bits.
pub(crate) fn version(text: &str) -> Result<u64, Status> {
    let decimal = text.bytes().all(|b| b.is_ascii_digit());
    let version = decimal.then(|| text.parse().ok()).flatten();
    version.ok_or_else(|| {
        Status::bad_request(format!(
            "invalid resource version {text:?}: it must be a decimal number of 64 bits"
        ))
    })
}

fn bad_parameter(name: &str, value: &str, why: impl fmt::Display) -> Status {
    Status::bad_request(format!("the parameter {name}={value:?} cannot be read: {why}"))
}

fn forbidden(field: &str, why: &str) -> StatusCause {
    StatusCause::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
}

pub(crate) fn unsupported(field: &str, value: impl Into<Value>, supported: &[&str]) -> StatusCause {
    let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    let message = format!("Unsupported value: {}: supported values: {}", value.into(), supported.join(", "));
    StatusCause::new("FieldValueNotSupported", field, message)
}

pub(crate) fn invalid_options(kind: &str, causes: impl IntoIterator<Item = StatusCause>) -> Status {
    Status::invalid(kind, "meta.k8s.io", "", causes)
}

//! What stands behind the question mark: the options of a list, a watch or a get, read and checked.
//!
//! In: the query of a URL, decoded once ([`Parameters`]). Out: [`ListOptions`] and [`WatchOptions`], after the rules that
//! a server has for what goes together, or a `Status` that names the parameter and what is wrong with it.

use std::{borrow::Cow, fmt, time::Duration};

use informer_model::{FieldSelector, FieldSelectorError, Selector, Status, StatusCause};
use serde_json::Value;

/// The parameters of a request by name. Of several with one name the first counts.
#[derive(Debug, Default)]
pub struct Parameters<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    large_numbers: bool,
}

/// Which version a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requested {
    /// The newest one.
    Unset,
    /// `"0"`: whichever is at hand.
    Any,
    /// This one, or one that is not older.
    At(u64),
}

/// How the version of a list is to be compared with the requested one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// It is the requested one.
    Exact,
    /// It is the requested one or a later one.
    NotOlderThan,
}

/// The options of a list.
#[derive(Debug)]
pub struct ListOptions {
    /// `resourceVersion`
    pub version: Requested,
    /// `resourceVersionMatch`
    pub version_match: Option<Match>,
    /// None: everything.
    pub limit: Option<usize>,
    /// `continue`: where a page begins.
    pub continue_from: Option<String>,
}

/// The options of a watch.
#[derive(Debug)]
pub struct WatchOptions {
    /// `resourceVersion`
    pub version: Requested,
    /// `allowWatchBookmarks`
    pub bookmarks: bool,
    /// `sendInitialEvents`
    pub send_initial_events: Option<bool>,
    /// `timeoutSeconds`; none: as long as the server likes.
    pub timeout: Option<Duration>,
}

impl<'a> Parameters<'a> {
    /// Decodes the query of a URL.
    pub fn new(query: Option<&'a str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect();
        Self { pairs, large_numbers: false }
    }

    /// Takes numbers up to 64 bits. Otherwise one bit is for the sign, as on a real server.
    #[must_use]
    pub fn with_large_numbers(mut self) -> Self {
        self.large_numbers = true;
        self
    }

    /// Takes out those whose names are wanted.
    pub fn take(&mut self, is_wanted: impl Fn(&str) -> bool) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        self.pairs.extract_if(.., |(name, _)| is_wanted(name)).collect()
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// The text of a parameter that is there, empty or not.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// A parameter that is there and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.text(name).filter(|value| !value.is_empty())
    }

    /// A switch: anything but `false` and `0` turns it on, also nothing at all.
    pub fn switch(&self, name: &str) -> Option<bool> {
        Some(!matches!(self.text(name)?, "false" | "False" | "FALSE" | "0" | "f" | "F"))
    }

    /// A number, unless it is negative, which stands for none.
    fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        let Some(text) = self.get(name) else { return Ok(None) };
        if let (true, Ok(number)) = (self.large_numbers, text.parse()) {
            return Ok(Some(number));
        }
        let number: i64 = text.parse().map_err(|e| bad_parameter(name, text, e))?;
        Ok(u64::try_from(number).ok())
    }

    /// How many objects a page has at most; none for all.
    pub fn limit(&self) -> Result<Option<usize>, Status> {
        let limit = self.number("limit")?.filter(|limit| *limit > 0);
        Ok(limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)))
    }

    /// Where a page begins, if it is not the first.
    pub fn continue_from(&self) -> Option<&str> {
        self.get("continue")
    }

    /// The version of a read.
    pub fn version(&self) -> Result<Requested, Status> {
        match self.get("resourceVersion") {
            None => Ok(Requested::Unset),
            Some("0") => Ok(Requested::Any),
            Some(text) => version(text).map(Requested::At),
        }
    }

    /// The label selector; one that selects everything if there is none.
    pub fn labels(&self) -> Result<Selector, Status> {
        let text = self.get("labelSelector").unwrap_or_default();
        Selector::parse(text).map_err(|e| bad_parameter("labelSelector", text, e))
    }

    /// The field selector, in a grammar of [`FieldSelector`]; one that selects everything if there is none.
    pub fn fields(
        &self,
        parse: fn(&str) -> Result<FieldSelector, FieldSelectorError>,
    ) -> Result<FieldSelector, Status> {
        let text = self.get("fieldSelector").unwrap_or_default();
        parse(text).map_err(|e| bad_parameter("fieldSelector", text, e))
    }

    /// The options of a list, after the rules that a server has for what goes together.
    pub fn list(&self) -> Result<ListOptions, Status> {
        let text = self.get("resourceVersion").unwrap_or_default();
        let continue_from = self.continue_from();
        let mut broken = Vec::new();
        let mut version_match = None;
        if let Some(wanted) = self.get(MATCH) {
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
        let limit = self.limit()?;
        Ok(ListOptions {
            version: self.version()?,
            version_match,
            limit,
            continue_from: continue_from.map(Into::into),
        })
    }

    /// The options of a watch, after the rules that a server has for what goes together.
    pub fn watch(&self) -> Result<WatchOptions, Status> {
        let send_initial_events = self.switch("sendInitialEvents");
        let version_match = self.get(MATCH);
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
            if self.continue_from().is_some() {
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

/// A version as servers count them: a decimal of 64 bits.
fn version(text: &str) -> Result<u64, Status> {
    let decimal = text.bytes().all(|b| b.is_ascii_digit());
    let version = decimal.then(|| text.parse().ok()).flatten();
    version.ok_or_else(|| {
        Status::bad_request(format!(
            "invalid resource version {text:?}: it must be a decimal number of 64 bits"
        ))
    })
}

/// 400: a parameter is not what it must be.
pub fn bad_parameter(name: &str, value: &str, why: impl fmt::Display) -> Status {
    Status::bad_request(format!("the parameter {name}={value:?} cannot be read: {why}"))
}

fn forbidden(field: &str, why: &str) -> StatusCause {
    StatusCause::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
}

/// An option has a value that there is not.
pub fn unsupported(field: &str, value: impl Into<Value>, supported: &[&str]) -> StatusCause {
    let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    let message = format!("Unsupported value: {}: supported values: {}", value.into(), supported.join(", "));
    StatusCause::new("FieldValueNotSupported", field, message)
}

/// 422: options break the rules for what goes together.
pub fn invalid_options(kind: &str, causes: impl IntoIterator<Item = StatusCause>) -> Status {
    Status::invalid(kind, "meta.k8s.io", "", causes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(query: &str) -> Parameters<'_> {
        Parameters::new(Some(query))
    }

    #[test]
    fn of_several_with_one_name_the_first_counts() {
        let asked = parameters("limit=1&limit=x&watch&continue=");
        assert_eq!(
            (asked.get("limit"), asked.switch("watch"), asked.get("continue")),
            (Some("1"), Some(true), None)
        );
        assert_eq!((asked.text("continue"), asked.text("else")), (Some(""), None));
        assert_eq!(asked.list().unwrap().limit, Some(1));
    }

    #[test]
    fn a_version_is_none_any_or_a_number_of_64_bits() {
        let version = |query: &str| parameters(query).version();
        assert_eq!(version(""), Ok(Requested::Unset));
        assert_eq!(version("resourceVersion="), Ok(Requested::Unset));
        assert_eq!(version("resourceVersion=0"), Ok(Requested::Any));
        assert_eq!(version("resourceVersion=18446744073709551615"), Ok(Requested::At(u64::MAX)));
        for wrong in ["x", "-1", "%2b1", "18446744073709551616"] {
            assert_eq!(version(&format!("resourceVersion={wrong}")).unwrap_err().code, 400, "{wrong}");
        }
    }

    #[test]
    fn what_does_not_go_together_is_422() {
        for query in [
            "resourceVersionMatch=Exact",
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch=Exact&resourceVersion=1&continue=a",
            "resourceVersionMatch=Later&resourceVersion=1",
            "sendInitialEvents=false",
        ] {
            assert_eq!(parameters(query).list().unwrap_err().code, 422, "{query}");
        }
        for query in [
            "sendInitialEvents=true",
            "resourceVersionMatch=NotOlderThan",
            "sendInitialEvents=true&resourceVersionMatch=Exact",
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=a",
        ] {
            assert_eq!(parameters(query).watch().unwrap_err().code, 422, "{query}");
        }
        let list = parameters("resourceVersionMatch=Exact&resourceVersion=7").list().unwrap();
        assert_eq!((list.version, list.version_match), (Requested::At(7), Some(Match::Exact)));
        let streamed = "sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        let watch = parameters(streamed).watch().unwrap();
        assert_eq!((watch.send_initial_events, watch.bookmarks), (Some(true), true));
    }

    #[test]
    fn numbers_have_a_sign_unless_the_server_takes_large_ones() {
        let timeout =
            |text: &str| parameters(&format!("timeoutSeconds={text}")).watch().map(|watch| watch.timeout);
        assert_eq!(timeout("5"), Ok(Some(Duration::from_secs(5))));
        assert_eq!((timeout("0"), timeout("-5")), (Ok(None), Ok(None)));
        assert_eq!(
            (timeout("soon").unwrap_err().code, timeout("18446744073709551615").unwrap_err().code),
            (400, 400)
        );
        let large = parameters("timeoutSeconds=18446744073709551615&limit=-1").with_large_numbers();
        assert_eq!(large.watch().unwrap().timeout, Some(Duration::from_secs(u64::MAX)));
        assert_eq!(large.list().unwrap().limit, None);
    }

    #[test]
    fn a_selector_that_is_wrong_is_named() {
        let asked = parameters("labelSelector=a+in+(b&fieldSelector=a");
        assert!(
            asked.labels().unwrap_err().message.starts_with("the parameter labelSelector=\"a in (b\" cannot")
        );
        let wrong = asked.fields(FieldSelector::parse).unwrap_err();
        assert!(
            wrong.message.starts_with("the parameter fieldSelector=\"a\" cannot be read"),
            "{}",
            wrong.message
        );
        assert!(parameters("").labels().unwrap().is_everything());
    }
}

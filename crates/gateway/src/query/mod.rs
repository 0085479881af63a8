//! What a request asks for: which objects, in which order, how many, and which part of each.
//!
//! In: the query of a URL. Out: a [`Query`], or a `Status` that names the parameter and what is wrong with it. What
//! comes of it is a [`Selection`](selection::Selection) from one snapshot.

mod fields;
mod order;
mod projection;
mod readable;
mod reader;
pub(crate) mod selection;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use informer_model::{FieldSelector, ResourceVersion, Selector, Status};
use informer_serving::options::{Parameters, bad_parameter};

pub(crate) use fields::FieldFilter;
pub(crate) use order::Order;
pub(crate) use projection::Projection;
pub(crate) use reader::Paths;

use crate::access::Attributes;

/// What is asked for.
#[derive(Debug, Default)]
pub(crate) struct Query {
    /// Those of these namespaces; of all if there is none.
    pub(crate) namespaces: BTreeSet<String>,
    /// Those of this name only.
    pub(crate) name: Option<String>,
    pub(crate) labels: Selector,
    pub(crate) fields: Option<FieldFilter>,
    pub(crate) order: Option<Order>,
    pub(crate) limit: Option<usize>,
    pub(crate) continue_from: Option<String>,
    pub(crate) projection: Option<Arc<Projection>>,
    pub(crate) min_version: Option<ResourceVersion>,
    pub(crate) explain: bool,
    /// Rows instead of objects.
    pub(crate) table: bool,
    /// How often a stream tells of one object at most.
    pub(crate) interval: Option<Duration>,
    /// Where a stream goes on.
    pub(crate) last_event_id: Option<String>,
    /// All that decides what is answered, but for where a page begins. Two queries with the same text select the same.
    pub(crate) text: String,
}

/// Who asks: what else may stand in the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// A list of the gateway's own.
    List,
    /// A stream, which has no pages and no order.
    Stream,
    /// A client of Kubernetes, with parameters that mean something to other servers.
    Kubernetes,
}

/// What every dialect knows.
const LIST: &[&str] = &[
    "as",
    "continue",
    "explain",
    "fields",
    "fieldSelector",
    "labelSelector",
    "limit",
    "minResourceVersion",
    "namespace",
    "sort",
];
const STREAM: &[&str] = &[
    "as",
    "fields",
    "fieldSelector",
    "interval",
    "labelSelector",
    "lastEventId",
    "minResourceVersion",
    "namespace",
];

/// How much one request may ask for. What is answered with costs time for each object, and others wait.
const SORT_KEYS: usize = Order::MOST;
const FIELDS: usize = Projection::MOST;
const TERMS: usize = 256;
const VALUES: usize = 1_024;
const NAMESPACES: usize = 100;

/// The shortest and the longest time for which a stream may hold changes back.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));

impl Query {
    /// Reads the query of a URL.
    pub(crate) fn parse(query: Option<&str>, dialect: Dialect) -> Result<Self, Status> {
        Self::read(&Parameters::new(query), dialect)
    }

    /// Reads a query that has been decoded.
    pub(crate) fn read(parameters: &Parameters<'_>, dialect: Dialect) -> Result<Self, Status> {
        let mut parsed = Self::default();
        for (name, value) in parameters.iter() {
            parsed.parameter(name, value, dialect)?;
        }
        parsed.read_selectors(parameters)?;
        if dialect == Dialect::Kubernetes {
            parsed.limit = parameters.limit()?;
        }
        parsed.continue_from = parameters.continue_from().map(str::to_owned);
        if parsed.table && parsed.projection.is_some() {
            return Err(Status::bad_request(
                "as=table and fields= exclude each other: a table has its own columns",
            ));
        }
        Ok(parsed)
    }

    /// The one name that an object must have, if there is one: who may see only that may ask for it.
    pub(crate) fn only_name(&self) -> Option<&str> {
        self.name.as_deref().or_else(|| self.fields.as_ref()?.name())
    }

    /// What this is, to whoever decides whether it may be done.
    pub(crate) fn attributes<'a>(
        &'a self,
        verb: &'a str,
        group: &'a str,
        resource: &'a str,
    ) -> Attributes<'a> {
        let namespace = self.namespaces.first().filter(|_| self.namespaces.len() == 1);
        Attributes { verb, group, resource, namespace: namespace.map(String::as_str), name: self.only_name() }
    }

    /// The same, for the object of this name only.
    pub(crate) fn named(mut self, name: String) -> Self {
        self.text.push_str(&format!("name={}:{name};", name.len()));
        self.name = Some(name);
        self
    }

    /// The selectors, which are read as every server reads them, but for what paths of fields may be.
    fn read_selectors(&mut self, parameters: &Parameters<'_>) -> Result<(), Status> {
        self.labels = parameters.labels()?;
        let terms = self.labels.requirements();
        at_most("labelSelector", "terms", terms.len(), TERMS)?;
        at_most("labelSelector", "values", terms.iter().map(|term| term.values().len()).sum(), VALUES)?;
        let selector = parameters.fields(FieldSelector::parse_extended)?;
        let terms = selector.requirements();
        at_most("fieldSelector", "terms", terms.len(), TERMS)?;
        at_most("fieldSelector", "values", terms.iter().map(|term| term.values().len()).sum(), VALUES)?;
        self.fields = (!selector.is_everything()).then(|| FieldFilter::new(selector));
        Ok(())
    }

    fn parameter(&mut self, name: &str, value: &str, dialect: Dialect) -> Result<(), Status> {
        let wrong = |why: &dyn std::fmt::Display| bad_parameter(name, value, why);
        let known = if dialect == Dialect::Stream { STREAM } else { LIST };
        if !known.contains(&name) {
            return match dialect {
                Dialect::Kubernetes => Ok(()),
                _ => Err(unknown(name, known)),
            };
        }
        match name {
            // Empty stands for all, as in a path.
            "namespace" if value.is_empty() => {}
            "namespace" => {
                self.namespaces.insert(value.to_owned());
                at_most(name, "namespaces", self.namespaces.len(), NAMESPACES)?;
            }
            "sort" if value.is_empty() => {}
            "sort" => {
                let order = Order::parse(value).map_err(|e| wrong(&e))?;
                at_most(name, "keys", order.len(), SORT_KEYS)?;
                self.order = Some(order);
            }
            "fields" if value.is_empty() => {}
            "fields" => {
                let projection = Projection::parse(value).map_err(|e| wrong(&e))?;
                at_most(name, "paths", projection.len(), FIELDS)?;
                self.projection = Some(Arc::new(projection));
            }
            "limit" if dialect == Dialect::List => {
                let limit = value.parse().map_err(|_| wrong(&"it must be a whole number, 0 for no limit"))?;
                self.limit = Some(limit).filter(|limit| *limit > 0);
            }
            "minResourceVersion" => {
                let version = ResourceVersion::from(value);
                if !version.is_decimal() {
                    return Err(wrong(&"it must be a resource version that is a decimal number"));
                }
                self.min_version = Some(version);
            }
            "explain" => self.explain = !matches!(value, "0" | "false"),
            "as" => match value {
                "table" => self.table = true,
                "object" => {}
                _ if dialect == Dialect::Kubernetes => {}
                _ => return Err(wrong(&"it must be table or object")),
            },
            "interval" => self.interval = Some(interval(value).map_err(|e| wrong(&e))?),
            "lastEventId" => self.last_event_id = Some(value.to_owned()),
            _ => {}
        }
        if !matches!(name, "limit" | "continue" | "explain" | "minResourceVersion" | "lastEventId") {
            // The length tells where one ends, whatever is in it.
            self.text.push_str(&format!("{name}={}:{value};", value.len()));
        }
        Ok(())
    }
}

/// 400 where a parameter has more than there may be.
fn at_most(name: &str, what: &str, count: usize, limit: usize) -> Result<(), Status> {
    if count <= limit {
        return Ok(());
    }
    Err(Status::bad_request(format!("{name}= has more {what} than the {limit} that are allowed")))
}

fn unknown(name: &str, known: &[&str]) -> Status {
    Status::bad_request(format!("there is no parameter {name:?} here; there are {}", known.join(", ")))
}

/// `100ms`, `2s`.
fn interval(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: Option<u64> = number.parse().ok();
    let duration = match (number, unit) {
        (Some(number), "ms") => Duration::from_millis(number),
        (Some(number), "s") => Duration::from_secs(number),
        _ => return Err("it must be a time like 100ms or 2s".to_owned()),
    };
    let (least, most) = INTERVALS;
    if (least..=most).contains(&duration) {
        Ok(duration)
    } else {
        Err(format!("it must be between {least:?} and {most:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(query: &str, dialect: Dialect) -> String {
        let status = Query::parse(Some(query), dialect).expect_err(query);
        assert_eq!(status.code, 400, "{query}");
        status.message
    }

    #[test]
    fn a_query_has_its_parts() {
        let query = Query::parse(
            Some(
                "namespace=a&namespace=b&labelSelector=app%3Dweb&limit=10&continue=x&sort=-a.b&fields=c&explain=1",
            ),
            Dialect::List,
        );
        let query = query.unwrap();
        assert_eq!(query.namespaces, ["a", "b"].map(str::to_owned).into());
        assert_eq!((query.limit, query.continue_from.as_deref(), query.explain), (Some(10), Some("x"), true));
        assert!(
            query.order.is_some() && query.projection.is_some() && query.labels.requirements().len() == 1
        );
        assert!(Query::parse(None, Dialect::List).unwrap().text.is_empty());
    }

    #[test]
    fn where_a_page_begins_does_not_change_what_is_selected() {
        let text = |query| Query::parse(Some(query), Dialect::List).unwrap().text;
        assert_eq!(text("sort=a&limit=1"), text("limit=7&sort=a&continue=z"));
        assert_ne!(text("sort=a"), text("sort=b"));
        assert_ne!(text("namespace=a;sort=1:b;"), text("namespace=a&sort=b"), "no text can pass for another");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (query, words) in [
            ("labelSelector=a%20in%20(b", "labelSelector="),
            ("fieldSelector=a", "fieldSelector="),
            ("limit=-1", "whole number"),
            ("limit=99999999999999999999999", "whole number"),
            ("sort=a..b", "sort="),
            ("fields=a[", "fields="),
            ("minResourceVersion=x", "decimal"),
            ("as=yaml", "table or object"),
            ("as=table&fields=a", "exclude"),
            ("nonsense=1", "there is no parameter \"nonsense\""),
            ("watch=1", "there is no parameter \"watch\""),
        ] {
            let message = refused(query, Dialect::List);
            assert!(message.contains(words), "{query}: {message}");
        }
        for query in
            ["limit=1", "sort=a", "continue=x", "interval=5", "interval=1ms", "interval=99999999999s"]
        {
            refused(query, Dialect::Stream);
        }
    }

    #[test]
    fn a_request_cannot_ask_for_more_than_a_bounded_amount_of_work() {
        let many = |count: usize, separator: &str, part: &dyn Fn(usize) -> String| {
            (0..count).map(part).collect::<Vec<_>>().join(separator)
        };
        let named = |name: &str, count| format!("{name}={}", many(count, ",", &|n| format!("a{n}")));
        let values = |count| format!("labelSelector=a+in+({})", many(count, ",", &|n| n.to_string()));
        let namespaces = |count| many(count, "&", &|n| format!("namespace=n{n}"));
        let selector = |count| format!("fieldSelector={}", many(count, ",", &|n| format!("a{n}!%3Db")));
        for (most, more) in [
            (named("sort", SORT_KEYS), named("sort", SORT_KEYS + 1)),
            (named("fields", FIELDS), named("fields", FIELDS + 1)),
            (named("labelSelector", TERMS), named("labelSelector", TERMS + 1)),
            (values(VALUES), values(VALUES + 1)),
            (selector(TERMS), selector(TERMS + 1)),
            (namespaces(NAMESPACES), namespaces(NAMESPACES + 1)),
        ] {
            assert!(Query::parse(Some(&most), Dialect::List).is_ok(), "{most}");
            let message = refused(&more, Dialect::List);
            assert!(message.contains("are allowed"), "{message}");
        }
        assert!(
            Query::parse(Some(&format!("sort={}", many(9_000, ",", &|_| "a".into()))), Dialect::List).is_ok()
        );
    }

    #[test]
    fn a_field_selector_can_name_the_only_object() {
        let name = |query| Query::parse(Some(query), Dialect::List).unwrap().only_name().map(str::to_owned);
        assert_eq!(name("fieldSelector=metadata.name%3Dweb,status.phase%3DRunning").as_deref(), Some("web"));
        for query in [
            "",
            "fieldSelector=metadata.name!%3Dweb",
            "fieldSelector=metadata.name+in+(a,b)",
            "fieldSelector=status.name%3Dweb",
        ] {
            assert_eq!(name(query), None, "{query}");
        }
    }

    #[test]
    fn clients_of_kubernetes_may_say_what_means_nothing_here() {
        let query = Query::parse(Some("pretty=true&timeoutSeconds=5&limit=3"), Dialect::Kubernetes).unwrap();
        assert_eq!(query.limit, Some(3));
    }
}

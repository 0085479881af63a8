//! The objects of one snapshot that a query asks for, in its order.

use std::{collections::BTreeSet, time::Duration};

use informer::{
    Object, RawObject,
    store::{Plan, Snapshot},
};
use informer_model::ResourceVersion;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Query;
use crate::access::Visible;

/// More objects than this are not looked into on a thread that others wait for.
const QUICK: usize = 1_000;

/// What was selected, at one point in time.
pub(crate) struct Selection {
    pub(crate) objects: Vec<Object<RawObject>>,
    pub(crate) version: ResourceVersion,
    pub(crate) explanation: Explanation,
}

/// How it was found.
#[derive(Debug, Clone)]
pub(crate) struct Explanation {
    plan: Plan,
    matched: usize,
    took: Duration,
}

impl Explanation {
    pub(crate) fn json(&self) -> Value {
        json!({
            "index": self.plan.index,
            "scanned": self.plan.scanned,
            "matched": self.matched,
            "micros": u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX),
        })
    }
}

impl Query {
    /// The objects of a snapshot that are asked for, of those that may be seen.
    pub(crate) fn select(&self, snapshot: &Snapshot<RawObject>, visible: &Visible) -> Selection {
        let began = Instant::now();
        let mut plan = Plan { index: None, scanned: 0 };
        let mut objects = Vec::new();
        let wanted = |object: &&&Object<RawObject>| self.inside_matches(object);
        for namespace in self.scopes(visible) {
            let part = snapshot.plan(namespace, &self.labels);
            plan = Plan { index: part.index, scanned: plan.scanned + part.scanned };
            let found = match namespace {
                Some(namespace) => snapshot.list_namespace(namespace, &self.labels),
                None => snapshot.list(&self.labels),
            };
            objects.extend(found.iter().filter(wanted).map(|object| (*object).clone()));
        }
        if let Some(order) = &self.order {
            order.sort(&mut objects, |object| object.json());
        }
        let explanation = Explanation { plan, matched: objects.len(), took: began.elapsed() };
        Selection { objects, version: snapshot.resource_version().clone(), explanation }
    }

    /// The same, where it takes long, on a thread that may be blocked.
    pub(crate) async fn select_aside(
        self: &std::sync::Arc<Self>,
        snapshot: Snapshot<RawObject>,
        visible: &Visible,
    ) -> Selection {
        let looks_inside = self.fields.is_some() || self.order.is_some();
        if !looks_inside || snapshot.len() <= QUICK {
            return self.select(&snapshot, visible);
        }
        let (query, visible) = (std::sync::Arc::clone(self), visible.clone());
        let work = tokio::task::spawn_blocking(move || query.select(&snapshot, &visible));
        match work.await {
            Ok(selection) => selection,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    /// Whether an object is asked for and may be seen.
    pub(crate) fn matches(&self, object: &Object<RawObject>, visible: &Visible) -> bool {
        let namespace = object.key().namespace();
        (self.namespaces.is_empty() || namespace.is_some_and(|namespace| self.namespaces.contains(namespace)))
            && visible.contains(namespace.unwrap_or_default())
            && self.labels.matches(object.labels())
            && self.inside_matches(object)
    }

    fn inside_matches(&self, object: &Object<RawObject>) -> bool {
        self.name.as_deref().is_none_or(|name| name == object.key().name())
            && self.fields.as_ref().is_none_or(|fields| fields.matches(object.key(), object.json()))
    }

    /// The namespaces to look into; none stands for all at once.
    fn scopes<'a>(&'a self, visible: &'a Visible) -> Vec<Option<&'a str>> {
        let some = |names: &'a BTreeSet<String>| names.iter().map(|name| Some(name.as_str())).collect();
        match visible {
            Visible::All if self.namespaces.is_empty() => vec![None],
            Visible::All => some(&self.namespaces),
            Visible::Only(names) if self.namespaces.is_empty() => some(names),
            Visible::Only(names) => {
                self.namespaces.intersection(names).map(|name| Some(name.as_str())).collect()
            }
        }
    }
}

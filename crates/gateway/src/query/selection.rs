//! The objects of one snapshot that a query asks for, in its order.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use informer::{
    Object, RawObject,
    store::{Plan, Snapshot},
};
use informer_model::{ObjectKey, ResourceVersion, Selector};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{FieldFilter, Query};
use crate::{
    access::Visible,
    work::{Account, Work},
};

/// What was selected, at one point in time.
pub(crate) struct Selection {
    pub(crate) objects: Objects,
    pub(crate) version: ResourceVersion,
    pub(crate) explanation: Explanation,
}

/// Objects in their order.
pub(crate) enum Objects {
    /// All of a snapshot: a handle of each would only take room.
    All(Snapshot<RawObject>),
    Some(Vec<Object<RawObject>>),
}

/// How far somebody has read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mark {
    /// How many objects were before.
    pub(crate) at: usize,
    /// The last of them.
    pub(crate) after: Option<ObjectKey>,
}

impl Objects {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::All(snapshot) => snapshot.len(),
            Self::Some(objects) => objects.len(),
        }
    }

    /// The same, to be read from any number on.
    pub(crate) fn numbered(self) -> Self {
        match self {
            Self::All(snapshot) => Self::Some(snapshot.iter().cloned().collect()),
            Self::Some(objects) => Self::Some(objects),
        }
    }

    /// Reads on up to a number of objects, for as long as the reader wants another one.
    pub(crate) fn read(
        &self,
        mark: &mut Mark,
        to: usize,
        mut reader: impl FnMut(&Object<RawObject>) -> bool,
    ) {
        let (at, count) = (mark.at, to.saturating_sub(mark.at));
        let mut last = None;
        let mut read = |object| {
            mark.at += 1;
            last = Some(object);
            reader(object)
        };
        let _ = match self {
            Self::All(snapshot) => snapshot.iter_after(mark.after.as_ref()).take(count).all(&mut read),
            Self::Some(objects) => objects.iter().skip(at).take(count).all(&mut read),
        };
        if let Some(last) = last {
            mark.after = Some(last.key().clone());
        }
    }
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
    /// The objects of a snapshot that are asked for, of those that may be seen; with `after`, those that come after it in
    /// the order of keys.
    pub(crate) fn select(
        &self,
        after: Option<&ObjectKey>,
        snapshot: &Snapshot<RawObject>,
        visible: &Visible,
    ) -> Selection {
        let began = Instant::now();
        let version = snapshot.resource_version().clone();
        if after.is_none() && self.is_everything(visible) {
            let plan = Plan { index: None, scanned: snapshot.len() };
            let explanation = Explanation { plan, matched: snapshot.len(), took: began.elapsed() };
            return Selection { objects: Objects::All(snapshot.clone()), version, explanation };
        }
        let mut plan = Plan { index: None, scanned: 0 };
        let mut objects = Vec::new();
        let wanted = |object: &&&Object<RawObject>| self.inside_matches(object);
        for namespace in self.scopes(visible) {
            let found = match namespace {
                Some(namespace) => snapshot.list_namespace(namespace, &self.labels),
                None => snapshot.list(&self.labels),
            };
            let part = self.plan(snapshot, namespace, &found, visible);
            plan = Plan { index: part.index, scanned: plan.scanned + part.scanned };
            let is_after = |object: &&&Object<RawObject>| {
                let key = object.key();
                after.is_none_or(|after| match namespace {
                    None => key > after,
                    // One namespace after the other, which is not quite the order of keys.
                    Some(_) => (key.namespace(), key.name()) > (after.namespace(), after.name()),
                })
            };
            objects.extend(found.iter().filter(is_after).filter(wanted).map(|object| (*object).clone()));
        }
        if let Some(order) = &self.order {
            order.sort(&mut objects, |object| object.json());
        }
        let explanation = Explanation { plan, matched: objects.len(), took: began.elapsed() };
        Selection { objects: Objects::Some(objects), version, explanation }
    }

    /// How a part was found, as far as the caller may know. The index of labels counts objects of all namespaces, and who
    /// may see an object because of its name may not see how many others there are.
    fn plan(
        &self,
        snapshot: &Snapshot<RawObject>,
        namespace: Option<&str>,
        found: &[&Object<RawObject>],
        visible: &Visible,
    ) -> Plan {
        let inside = snapshot.plan(namespace, &Selector::default());
        match (self.only_name(), visible) {
            (Some(name), _) => {
                let scanned = found.iter().filter(|object| object.key().name() == name).count();
                Plan { index: inside.index, scanned }
            }
            (None, Visible::All) => snapshot.plan(namespace, &self.labels),
            (None, Visible::Only(_)) => inside,
        }
    }

    /// Whether all objects are asked for, as they come.
    fn is_everything(&self, visible: &Visible) -> bool {
        *visible == Visible::All
            && self.namespaces.is_empty()
            && self.only_name().is_none()
            && self.labels.is_everything()
            && self.fields.is_none()
            && self.order.is_none()
    }

    /// The same, where it takes long, on a thread that may be blocked.
    pub(crate) async fn select_aside(
        self: &Arc<Self>,
        after: Option<ObjectKey>,
        snapshot: Snapshot<RawObject>,
        visible: &Visible,
        work: &Work,
        account: &Account,
    ) -> Selection {
        let micros = if self.is_everything(visible) { 0 } else { self.micros(&snapshot, visible) };
        let (query, visible) = (Arc::clone(self), visible.clone());
        work.run(account, micros, move || query.select(after.as_ref(), &snapshot, &visible)).await
    }

    /// About how long selecting takes, in microseconds.
    fn micros(&self, snapshot: &Snapshot<RawObject>, visible: &Visible) -> usize {
        let scopes = self.scopes(visible);
        let scanned = scopes.iter().map(|scope| snapshot.plan(*scope, &self.labels).scanned).sum::<usize>();
        let reads = self.fields.as_ref().is_some_and(FieldFilter::reads_text) || self.order.is_some();
        let tenths = 1 + self.labels.requirements().len() / 8 + if reads { 50 } else { 0 };
        scopes.len() + scanned * tenths / 10
    }

    /// Whether an object is asked for and may be seen.
    pub(crate) fn matches(&self, object: &Object<RawObject>, visible: &Visible) -> bool {
        self.may_concern(object.key(), visible)
            && self.labels.matches(object.labels())
            && self.inside_matches(object)
    }

    /// Whether the object of a key may be seen, and may be asked for, in some state of it.
    pub(crate) fn may_concern(&self, key: &ObjectKey, visible: &Visible) -> bool {
        let namespace = key.namespace();
        (self.namespaces.is_empty() || namespace.is_some_and(|namespace| self.namespaces.contains(namespace)))
            && visible.contains(namespace.unwrap_or_default())
            && self.only_name().is_none_or(|name| name == key.name())
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

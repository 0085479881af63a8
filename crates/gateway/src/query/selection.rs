//! The objects of one snapshot that a query asks for, in its order.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use informer::{
    Object,
    store::{Plan, Snapshot},
};
use informer_model::{ObjectKey, ResourceVersion, Selector};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{FieldFilter, Query};
use crate::{
    access::Visible,
    cache::Stored,
    work::{AT_ONCE, Account, Work, free_aside},
};

/// Of more objects than this the handles are let go of on a thread of their own: the last handle frees its object.
const MANY: usize = 1_000;

/// What was selected, at one point in time.
pub(crate) struct Selection {
    pub(crate) objects: Objects,
    pub(crate) version: ResourceVersion,
    pub(crate) explanation: Explanation,
}

/// Objects in their order.
pub(crate) struct Objects(Held);

enum Held {
    /// All of a snapshot: a handle of each would only take room.
    All(Snapshot<Stored>),
    Some(Vec<Object<Stored>>),
}

impl Drop for Objects {
    fn drop(&mut self) {
        if self.len() > MANY {
            free_aside(std::mem::replace(&mut self.0, Held::Some(Vec::new())));
        }
    }
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
        match &self.0 {
            Held::All(snapshot) => snapshot.len(),
            Held::Some(objects) => objects.len(),
        }
    }

    /// How many handles of single objects there are.
    pub(crate) fn handles(&self) -> usize {
        match &self.0 {
            Held::All(_) => 0,
            Held::Some(objects) => objects.len(),
        }
    }

    /// The same, to be read from any number on.
    pub(crate) fn numbered(self) -> Self {
        match &self.0 {
            Held::All(snapshot) => Self(Held::Some(snapshot.iter().cloned().collect())),
            Held::Some(_) => self,
        }
    }

    /// About how long it takes to find the end of a part, in microseconds.
    pub(crate) fn micros_to_end(&self, from: &Mark, to: usize) -> usize {
        match &self.0 {
            Held::All(_) => to.saturating_sub(from.at) / 20,
            Held::Some(_) => 0,
        }
    }

    /// The last object of a part that begins at a mark and has this number of objects before its end.
    pub(crate) fn last(&self, mut from: Mark, to: usize) -> Option<ObjectKey> {
        if let Held::Some(objects) = &self.0
            && to > from.at
        {
            return objects.get(to - 1).map(|object| object.key().clone());
        }
        self.read(&mut from, to, |_| true);
        from.after
    }

    /// Reads on up to a number of objects, for as long as the reader wants another one.
    pub(crate) fn read(&self, mark: &mut Mark, to: usize, mut reader: impl FnMut(&Object<Stored>) -> bool) {
        let (at, count) = (mark.at, to.saturating_sub(mark.at));
        let mut last = None;
        let mut read = |object| {
            mark.at += 1;
            last = Some(object);
            reader(object)
        };
        let _ = match &self.0 {
            Held::All(snapshot) => snapshot.iter_after(mark.after.as_ref()).take(count).all(&mut read),
            Held::Some(objects) => objects.iter().skip(at).take(count).all(&mut read),
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
        snapshot: &Snapshot<Stored>,
        visible: &Visible,
    ) -> Selection {
        let began = Instant::now();
        let version = snapshot.resource_version().clone();
        if after.is_none() && self.is_everything(visible) {
            let plan = Plan { index: None, scanned: snapshot.len() };
            let explanation = Explanation { plan, matched: snapshot.len(), took: began.elapsed() };
            return Selection { objects: Objects(Held::All(snapshot.clone())), version, explanation };
        }
        let mut plan = Plan { index: None, scanned: 0 };
        let mut objects = Vec::new();
        let wanted = |object: &&&Object<Stored>| self.inside_matches(object);
        for namespace in self.scopes(visible) {
            let found = match namespace {
                Some(namespace) => snapshot.list_namespace(namespace, &self.labels),
                None => snapshot.list(&self.labels),
            };
            let part = self.plan(snapshot, namespace, &found, visible);
            plan = Plan { index: part.index, scanned: plan.scanned + part.scanned };
            let is_after = |object: &&&Object<Stored>| {
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
            order.sort(&mut objects);
        }
        let explanation = Explanation { plan, matched: objects.len(), took: began.elapsed() };
        Selection { objects: Objects(Held::Some(objects)), version, explanation }
    }

    /// How a part was found, as far as the caller may know. The index of labels counts objects of all namespaces, and who
    /// may see an object because of its name may not see how many others there are.
    fn plan(
        &self,
        snapshot: &Snapshot<Stored>,
        namespace: Option<&str>,
        found: &[&Object<Stored>],
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
        snapshot: Snapshot<Stored>,
        visible: &Visible,
        work: &Work,
        account: &Account,
    ) -> Selection {
        let micros = match after.is_none() && self.is_everything(visible) {
            true => 0,
            false => self.micros(&snapshot, visible),
        };
        let (query, visible) = (Arc::clone(self), visible.clone());
        work.run(account, micros, move || query.select(after.as_ref(), &snapshot, &visible)).await
    }

    /// About how long selecting takes, in microseconds. What takes long to find out takes longer to do: then that is the
    /// answer, and nothing is looked up.
    fn micros(&self, snapshot: &Snapshot<Stored>, visible: &Visible) -> usize {
        let scopes = self.scopes(visible);
        let looked_up: usize = self.labels.requirements().iter().map(|term| 1 + term.values().len()).sum();
        let planning = scopes.len() * (1 + looked_up) / 4;
        if planning > AT_ONCE {
            return planning;
        }
        let scanned = scopes.iter().map(|scope| snapshot.plan(*scope, &self.labels).scanned).sum::<usize>();
        let reads = self.fields.as_ref().is_some_and(FieldFilter::reads_text) || self.order.is_some();
        let tenths = 1 + self.labels.requirements().len() / 8 + if reads { 50 } else { 0 };
        scopes.len() + scanned * tenths / 10
    }

    /// Whether an object is asked for and may be seen.
    pub(crate) fn matches(&self, object: &Object<Stored>, visible: &Visible) -> bool {
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

    fn inside_matches(&self, object: &Object<Stored>) -> bool {
        self.name.as_deref().is_none_or(|name| name == object.key().name())
            && self.fields.as_ref().is_none_or(|fields| fields.matches(object.key(), object))
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use informer::store::{self, Store};

    use super::*;
    use crate::query::Dialect;

    fn mk_store(objects: usize) -> Store<Stored> {
        let (mut writer, store) = store::new::<Stored>();
        writer.write(|batch| {
            for n in 0..objects {
                let json = format!(
                    r#"{{"metadata":{{"namespace":"n","name":"object-{n:05}","labels":{{"a":"b"}}}}}}"#
                );
                batch.insert(Object::new(Stored::plain(informer::RawObject::new(json).unwrap())).unwrap());
            }
        });
        store
    }

    fn mk_query(text: &str) -> Arc<Query> {
        Arc::new(Query::parse(Some(text), Dialect::List).unwrap())
    }

    /// Whether it was done at once, on the thread that asks.
    async fn is_at_once(query: &str, after: Option<&str>, objects: usize, visible: Visible) -> bool {
        let (store, work, account) = (mk_store(objects), Work::default(), Account::at(None));
        let after = after.map(|after| after.parse().unwrap());
        let query = mk_query(query);
        let selection = query.select_aside(after, store.snapshot(), &visible, &work, &account);
        let mut selection = Box::pin(selection);
        let at_once = (&mut selection).now_or_never().is_some();
        if !at_once {
            selection.await;
        }
        at_once
    }

    #[tokio::test]
    async fn what_looks_at_many_objects_is_not_done_on_a_thread_that_answers() {
        assert!(is_at_once("", None, 5_000, Visible::All).await);
        assert!(!is_at_once("", Some("n/object-00007"), 5_000, Visible::All).await, "the rest of a list");
        assert!(!is_at_once("sort=a", None, 5_000, Visible::All).await);
        assert!(is_at_once("sort=a", None, 5, Visible::All).await);
    }

    #[tokio::test]
    async fn what_is_planned_for_many_namespaces_is_not_planned_on_a_thread_that_answers() {
        let namespaces = |count| Visible::Only((0..count).map(|n| format!("n{n}")).collect());
        let values: Vec<String> = (0..500).map(|n| format!("v{n}")).collect();
        let selector = format!("labelSelector=a+in+({})", values.join(","));
        assert!(!is_at_once(&selector, None, 5, namespaces(50)).await);
        assert!(!is_at_once(&selector, None, 5, namespaces(2)).await);
        assert!(is_at_once(&selector, None, 5, namespaces(1)).await);
        assert!(!is_at_once("", None, 5, namespaces(1_000)).await);
    }

    #[test]
    fn the_end_of_a_part_is_the_same_however_objects_are_held() {
        let snapshot = mk_store(50).snapshot();
        let all = Query::default().select(None, &snapshot, &Visible::All).objects;
        let some = mk_query("labelSelector=a").select(None, &snapshot, &Visible::All).objects;
        assert_eq!((all.handles(), some.handles(), all.len()), (0, 50, some.len()));
        let mut mark = Mark::default();
        for to in [1, 7, 49, 50] {
            let last = all.last(mark.clone(), to);
            assert_eq!(last.as_ref().map(ObjectKey::as_str), Some(&*format!("n/object-{:05}", to - 1)));
            assert_eq!(some.last(mark, to), last);
            mark = Mark { at: to, after: last };
        }
    }
}

//! Following a collection: of everything that changes, what a query asks for.
//!
//! An object that begins to match is added, one that no longer does is deleted, to whoever follows: the world that a
//! follower hears of has only the objects that it asked for.

use std::{collections::HashMap, sync::Arc};

use informer::{Object, RawObject};
use informer_model::{ObjectKey, Selector};
use informer_serving::envelope::EventType;

use crate::{
    access::Visible,
    cache::{
        changes::{Change, Cursor, Lost, Place},
        collection::{Collection, InUse},
    },
    query::Query,
};

/// How many changes are looked at in one go.
const AT_ONCE: usize = 1_024;

/// One who follows.
pub(crate) struct Follower {
    collection: Arc<Collection>,
    query: Arc<Query>,
    visible: Visible,
    cursor: Cursor,
    /// There was a moment when nothing waited.
    caught_up: bool,
    _in_use: InUse,
}

/// Something that happened to an object that the follower asked for.
pub(crate) struct Seen {
    pub(crate) event: EventType,
    pub(crate) change: Arc<Change>,
    /// The state to tell of: the new one, or of what is gone the last one.
    pub(crate) object: Object<RawObject>,
}

impl Follower {
    /// Follows from here on.
    pub(crate) fn new(
        cursor: Cursor,
        collection: &Arc<Collection>,
        query: &Arc<Query>,
        visible: &Visible,
    ) -> Self {
        Self {
            cursor,
            caught_up: false,
            _in_use: collection.follow(),
            collection: Arc::clone(collection),
            query: Arc::clone(query),
            visible: visible.clone(),
        }
    }

    /// Sees no more than this from now on, because namespaces have gone: what is in later ones of these names is something
    /// else. Not if the end of what was in them has not been told yet.
    pub(crate) fn narrow(&mut self, visible: &Visible, gone: &[String]) -> bool {
        let is_inside = |key: &ObjectKey| gone.iter().any(|namespace| key.namespace() == Some(namespace));
        let snapshot = self.collection.snapshot();
        let is_empty = |namespace: &String| snapshot.plan(Some(namespace), &Selector::default()).scanned == 0;
        let waiting = self.collection.changes.take(&mut self.cursor.clone(), usize::MAX);
        let is_told = waiting.is_ok_and(|all| !all.iter().filter_map(|change| change.key()).any(is_inside))
            && gone.iter().all(is_empty);
        if is_told {
            self.visible = visible.clone();
        }
        is_told
    }

    /// The place up to which everything has been seen.
    pub(crate) fn seen(&self) -> &Place {
        self.cursor.seen()
    }

    /// Whether so much waits that the follower will soon have lost its place. One that began far behind is not slow
    /// before it has caught up: sent away, it would come back to the same place.
    pub(crate) fn is_slow(&self) -> bool {
        self.caught_up && self.collection.changes.lag(&self.cursor) > 0.5
    }

    /// Waits until something has changed.
    pub(crate) async fn wait(&self) {
        self.collection.changes.ring_for(&self.cursor).await;
    }

    /// What has happened since, without waiting. It may be nothing, although something has changed.
    pub(crate) fn take(&mut self) -> Result<Vec<Seen>, Lost> {
        let changes = self.next_changes()?;
        let judge =
            |change: Arc<Change>| self.judge(change.old.clone().as_ref(), change.is_old_unknown, change);
        Ok(changes.into_iter().filter_map(judge).collect())
    }

    /// The same, with all that happened to one object told as one.
    pub(crate) fn take_merged(&mut self) -> Result<Vec<Seen>, Lost> {
        let changes = self.next_changes()?;
        let mut first: HashMap<ObjectKey, Arc<Change>> = HashMap::new();
        let mut last: HashMap<ObjectKey, usize> = HashMap::new();
        for (at, change) in changes.iter().enumerate() {
            if let Some(key) = change.key() {
                first.entry(key.clone()).or_insert_with(|| Arc::clone(change));
                last.insert(key.clone(), at);
            }
        }
        let is_last =
            |(at, change): &(usize, Arc<Change>)| change.key().is_some_and(|key| last.get(key) == Some(at));
        let merged = changes.into_iter().enumerate().filter(is_last);
        Ok(merged
            .filter_map(|(_, change)| {
                let first = change.key().and_then(|key| first.remove(key))?;
                self.judge(first.old.as_ref(), first.is_old_unknown, change)
            })
            .collect())
    }

    fn next_changes(&mut self) -> Result<Vec<Arc<Change>>, Lost> {
        let changes = self.collection.changes.take(&mut self.cursor, AT_ONCE)?;
        self.caught_up |= changes.len() < AT_ONCE;
        Ok(changes)
    }

    fn judge(
        &self,
        old: Option<&Object<RawObject>>,
        is_old_unknown: bool,
        change: Arc<Change>,
    ) -> Option<Seen> {
        let matching = |object: &&Object<RawObject>| self.query.matches(object, &self.visible);
        let (was, is) = (old.filter(matching).cloned(), change.new.as_ref().filter(matching).cloned());
        let (event, object) = match (was, is) {
            (None, Some(new)) if is_old_unknown => (EventType::Modified, new),
            (None, Some(new)) => (EventType::Added, new),
            (Some(_), Some(new)) => (EventType::Modified, new),
            // The last that is known of it, the same for all who hear of it.
            (Some(old), None) => (EventType::Deleted, change.old.clone().unwrap_or(old)),
            // It may have been one of those that the follower has. Its key says whether it may hear of it.
            (None, None) if is_old_unknown => {
                let last = change.new.as_ref().or(change.old.as_ref());
                let last = last.filter(|object| self.query.may_concern(object.key(), &self.visible))?;
                (EventType::Deleted, last.clone())
            }
            (None, None) => return None,
        };
        Some(Seen { event, change, object })
    }
}

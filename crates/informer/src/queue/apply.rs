//! Deltas become changes of the store, and events for the handlers.

use super::Delta;
use crate::{Event, Object, Tombstone, store::Batch};

/// Applies deltas to the store in their order, and tells what each of them turned out to be.
///
/// The store decides: what it has not is added, what it has is updated, what it has not cannot be deleted or shown
/// again. An object that a list repeats as the store has it is no news. All within one batch, so that readers see none
/// of it before all of it is done. Hand on the events after that.
pub fn apply<K>(deltas: Vec<Delta<K>>, batch: &mut Batch<'_, K>, mut tell: impl FnMut(Event<K>)) {
    FirstList::Over.apply(deltas, batch, |event, _| tell(event));
}

/// Whether the first list of a source is still to come out of its queue, as a whole or object by object: what it adds
/// existed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FirstList {
    #[default]
    ToCome,
    Over,
}

impl FirstList {
    /// Like [`apply`], and tells with each event whether it adds an object of the first list.
    pub(crate) fn apply<K>(
        &mut self,
        deltas: Vec<Delta<K>>,
        batch: &mut Batch<'_, K>,
        mut tell: impl FnMut(Event<K>, bool),
    ) {
        let mut deltas = deltas.into_iter();
        while let next @ [_, ..] = deltas.as_slice() {
            batch.prefetch(next.iter().take(Batch::<K>::AHEAD).filter_map(put));
            for delta in deltas.by_ref().take(Batch::<K>::AHEAD) {
                let listed = matches!(delta, Delta::Replaced(_) | Delta::ReplacedAll(_));
                let initial = listed && *self == Self::ToCome;
                // In both queues this comes behind all that the first list brought.
                if matches!(delta, Delta::ReplacedAll(_) | Delta::Bookmark(_)) {
                    *self = Self::Over;
                }
                apply_one(delta, batch, &mut |event| {
                    if !(listed && event.is_resync()) {
                        let initial = initial && matches!(event, Event::Added(_));
                        tell(event, initial);
                    }
                });
            }
        }
    }
}

/// The object that a delta puts into the store, if it does.
fn put<K>(delta: &Delta<K>) -> Option<&Object<K>> {
    match delta {
        Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) => Some(object),
        _ => None,
    }
}

fn apply_one<K>(delta: Delta<K>, batch: &mut Batch<'_, K>, tell: &mut impl FnMut(Event<K>)) {
    match delta {
        Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) => {
            tell(match batch.insert(new.clone()) {
                Some(old) => Event::Updated { old, new },
                None => Event::Added(new),
            });
        }
        Delta::Sync(shown) => {
            // Since it was queued the object may have changed or gone through another queue of the same store.
            if let Some(stored) = batch.get(shown.key()) {
                tell(Event::Updated { old: stored.clone(), new: stored.clone() });
            }
        }
        Delta::Deleted(tombstone) => {
            if let Some(stored) = batch.remove(tombstone.key()) {
                tell(Event::Deleted(match tombstone {
                    Tombstone::Unknown { key, last_seen: None } => {
                        Tombstone::Unknown { key, last_seen: Some(stored) }
                    }
                    known => known,
                }));
            }
        }
        Delta::ReplacedAll(list) => {
            batch.replace(list).into_iter().for_each(tell);
        }
        Delta::SyncAll => {
            for object in batch.snapshot().iter() {
                tell(Event::Updated { old: object.clone(), new: object.clone() });
            }
        }
        Delta::Bookmark(version) => batch.set_resource_version(version),
    }
}

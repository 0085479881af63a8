//! Deltas become changes of the store, and news for the handlers.

use super::Delta;
use crate::{
    Event, Tombstone,
    store::{Batch, Change},
};

/// Applies deltas to the store in their order, and tells what each of them turned out to be.
///
/// The store decides: what it has not is added, what it has is updated, what it has not cannot be deleted.
/// All within one batch, so that readers see none of it before all of it is done; whoever hands on the
/// events does so after that.
pub fn apply<K>(deltas: Vec<Delta<K>>, batch: &mut Batch<'_, K>, mut tell: impl FnMut(Event<K>)) {
    let mut deltas = deltas.into_iter();
    while let next @ [_, ..] = deltas.as_slice() {
        batch.expect(next.iter().take(Batch::<K>::AHEAD).filter_map(Delta::object));
        deltas.by_ref().take(Batch::<K>::AHEAD).for_each(|delta| apply_one(delta, batch, &mut tell));
    }
}

fn apply_one<K>(delta: Delta<K>, batch: &mut Batch<'_, K>, tell: &mut impl FnMut(Event<K>)) {
    match delta {
        Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) | Delta::Sync(new) => {
            tell(match batch.insert(new.clone()) {
                Some(old) => Event::Updated { old, new },
                None => Event::Added(new),
            });
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
            for change in batch.replace(list) {
                tell(match change {
                    Change::Added(new) => Event::Added(new),
                    Change::Updated { old, new } => Event::Updated { old, new },
                    Change::Deleted(old) => {
                        let key = old.key().clone();
                        Event::Deleted(Tombstone::Unknown { key, last_seen: Some(old) })
                    }
                });
            }
        }
        Delta::SyncAll => {
            for object in batch.snapshot().iter() {
                tell(Event::Updated { old: object.clone(), new: object.clone() });
            }
        }
        Delta::Bookmark(version) => batch.set_resource_version(version),
    }
}

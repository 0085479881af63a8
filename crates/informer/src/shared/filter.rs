//! A handler that hears of some objects only, as if there were no others.

use std::time::Duration;

use hashbrown::HashSet;
use informer_model::ObjectKey;

use super::handler::EventHandler;
use crate::{Object, Tombstone};

/// A handler behind a test; made by [`EventHandler::filter`].
///
/// | told before | passes now | what the handler hears |
/// |---|---|---|
/// | no | no | nothing |
/// | no | yes | an add; not an initial one if an update brought it |
/// | yes | yes | an update |
/// | yes | no | a delete with the old object, the last state that passed |
/// | yes | object gone | the delete as it came, with or without an object |
///
/// The keys that were told are remembered. So each delete reaches the handler exactly if the add did, even
/// where the object stopped passing in an update that was merged into the delete, where the tombstone has no
/// object to test, or where the test answers differently the next time.
pub struct Filtered<H, F> {
    handler: H,
    keep: F,
    told: HashSet<ObjectKey>,
}

impl<H, F> Filtered<H, F> {
    pub(super) fn new(handler: H, keep: F) -> Self {
        Self { handler, keep, told: HashSet::new() }
    }
}

impl<K, H, F> EventHandler<K> for Filtered<H, F>
where
    K: Send + Sync + 'static,
    H: EventHandler<K>,
    F: FnMut(&Object<K>) -> bool + Send + 'static,
{
    async fn on_add(&mut self, object: &Object<K>, initial: bool) {
        if (self.keep)(object) {
            self.told.insert(object.key().clone());
            self.handler.on_add(object, initial).await;
        }
    }

    async fn on_update(&mut self, old: &Object<K>, new: &Object<K>) {
        match (self.told.contains(new.key()), (self.keep)(new)) {
            (false, false) => {}
            (false, true) => {
                self.told.insert(new.key().clone());
                self.handler.on_add(new, false).await;
            }
            (true, true) => self.handler.on_update(old, new).await,
            (true, false) => {
                self.told.remove(new.key());
                self.handler.on_delete(&Tombstone::Final(old.clone())).await;
            }
        }
    }

    async fn on_delete(&mut self, gone: &Tombstone<K>) {
        if self.told.remove(gone.key()) {
            self.handler.on_delete(gone).await;
        }
    }

    fn name(&self) -> Option<&str> {
        self.handler.name()
    }

    fn resync(&self) -> Option<Duration> {
        self.handler.resync()
    }

    fn blocking(&self) -> bool {
        self.handler.blocking()
    }
}

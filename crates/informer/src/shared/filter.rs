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

    fn merges(&self) -> bool {
        self.handler.merges()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    use futures_util::FutureExt;
    use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};

    use crate::Handler;

    /// An object that passes if its version is even.
    fn mk(name: &str, version: u64) -> Object<ConfigMap> {
        let (name, resource_version) = (Some(name.to_owned()), Some(version.to_string()));
        let metadata = ObjectMeta { name, resource_version, ..ObjectMeta::default() };
        Object::new(ConfigMap { metadata, ..ConfigMap::default() }).unwrap()
    }

    struct Rig<H>(H, Arc<Mutex<Vec<String>>>);

    fn rig() -> Rig<impl EventHandler<ConfigMap>> {
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let [added, updated, deleted] = [(); 3].map(|()| Arc::clone(&log));
        let handler = Handler::<ConfigMap>::new()
            .name("even")
            .resync(Duration::from_secs(5))
            .blocking()
            .on_add(move |o, initial| added.lock().unwrap().push(format!("+{o:?} {initial}")))
            .on_update(move |old, new| updated.lock().unwrap().push(format!("{old:?}~{new:?}")))
            .on_delete(move |gone| deleted.lock().unwrap().push(format!("-{:?}", gone.object())))
            .filter(|object| matches!(object.resource_version().to_string().parse(), Ok(0u64 | 2 | 4 | 6)));
        Rig(handler, log)
    }

    impl<H: EventHandler<ConfigMap>> Rig<H> {
        fn add(&mut self, version: u64) -> String {
            self.0.on_add(&mk("a", version), true).now_or_never();
            self.heard()
        }

        fn update(&mut self, old: u64, new: u64) -> String {
            self.0.on_update(&mk("a", old), &mk("a", new)).now_or_never();
            self.heard()
        }

        fn delete(&mut self, tombstone: &Tombstone<ConfigMap>) -> String {
            self.0.on_delete(tombstone).now_or_never();
            self.heard()
        }

        fn heard(&self) -> String {
            std::mem::take(&mut *self.1.lock().unwrap()).join(" ")
        }
    }

    fn unknown(last_seen: Option<u64>) -> Tombstone<ConfigMap> {
        let last_seen = last_seen.map(|version| mk("a", version));
        Tombstone::Unknown { key: mk("a", 1).key().clone(), last_seen }
    }

    #[test]
    fn an_object_that_begins_to_pass_is_added_and_one_that_stops_is_deleted_as_it_was() {
        let mut rig = rig();
        assert_eq!(rig.add(1), "");
        assert_eq!(rig.update(1, 3), "", "neither passes");
        assert_eq!(rig.update(3, 4), "+a@4 false");
        assert_eq!(rig.update(4, 6), "a@4~a@6", "both pass");
        assert_eq!(rig.update(6, 7), "-Some(a@6)");
        assert_eq!(rig.delete(&Tombstone::Final(mk("a", 7))), "", "it is gone already");
        assert_eq!(rig.add(2), "+a@2 true");
    }

    #[test]
    fn a_delete_is_told_exactly_if_the_add_was() {
        let cases = [Tombstone::Final(mk("a", 4)), unknown(Some(4)), unknown(None)];
        for tombstone in cases.iter().chain([&Tombstone::Final(mk("a", 5)), &unknown(Some(5))]) {
            let mut rig = rig();
            assert_eq!(rig.add(1), "");
            assert_eq!(rig.delete(tombstone), "", "{tombstone:?} of an object that never passed");
            assert_eq!(rig.add(2), "+a@2 true");
            assert_eq!(rig.delete(tombstone), format!("-{:?}", tombstone.object()));
        }
    }

    #[test]
    fn the_options_are_those_of_the_handler() {
        let Rig(handler, _) = rig();
        assert_eq!((handler.name(), handler.blocking()), (Some("even"), true));
        assert_eq!(handler.resync(), Some(Duration::from_secs(5)));
    }
}

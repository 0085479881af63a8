//! What holds at every moment of a life, whatever is going wrong: the cache has what the server had at the version
//! that the cache says it has reached.

use std::collections::{BTreeMap, BTreeSet};

use informer::{model::ObjectKey, source::MemorySource};
use k8s_openapi::api::core::v1::ConfigMap;

use super::world::World;

/// What the server had at each version.
#[derive(Default)]
pub(crate) struct Past {
    moments: BTreeMap<String, BTreeMap<ObjectKey, u64>>,
    /// Objects that could not be used at some time: the cache may have an older state of these.
    unusable: BTreeSet<ObjectKey>,
    /// When an object was deleted last.
    deleted: BTreeMap<ObjectKey, u64>,
}

impl Past {
    /// Notes a write, and whether the object can be used.
    pub(crate) fn written(&mut self, server: &MemorySource<ConfigMap>, key: &ObjectKey, usable: bool) {
        if !usable {
            self.unusable.insert(key.clone());
        }
        if server.get(key).is_none() {
            self.deleted.insert(key.clone(), number(&server.version()));
        }
        let objects = server.objects();
        let versions = objects.iter().map(|object| (object.key().clone(), number(object.resource_version())));
        self.moments.insert(server.version().to_string(), versions.collect());
    }
}

fn number(version: &informer::model::ResourceVersion) -> u64 {
    version.to_string().parse().expect("a number")
}

impl World {
    /// Checks the cache against the past. A past that was rewritten or not told is no measure.
    pub(crate) fn check_moment(&self) {
        let snapshot = self.informer.store().snapshot();
        let version = snapshot.resource_version().to_string();
        let Some(moment) = self.past.moments.get(&version).filter(|_| !self.rewound && !self.needs_list)
        else {
            return;
        };
        let counts = |key: &ObjectKey| {
            self.scope.contains(&key.namespace().unwrap_or_default()) && !self.past.unusable.contains(key)
        };
        let cached: BTreeMap<ObjectKey, u64> = snapshot
            .iter()
            .map(|object| (object.key().clone(), number(object.resource_version())))
            .filter(|(key, _)| counts(key))
            .collect();
        let mut had = moment.iter().filter(|(key, _)| counts(key));
        if self.exact {
            assert!(
                had.eq(&cached),
                "at version {version} the server had {moment:?}, the cache has {cached:?}"
            );
            return;
        }
        // A part of the cache may be ahead of the version that all of it has reached.
        let reached = number(snapshot.resource_version());
        let behind = had.find(|(key, version)| match cached.get(*key) {
            Some(cached) => cached < *version,
            None => self.past.deleted.get(*key).is_none_or(|deleted| *deleted <= reached),
        });
        assert_eq!(behind, None, "the cache claims version {version} and has {cached:?}");
    }
}

//! What handlers hear: what became of an object in the cache.

use informer_model::ObjectKey;

use crate::Object;

/// A change of the cache, told after it has happened.
#[derive(Debug)]
pub enum Event<K> {
    /// The object is in the cache and was not before.
    Added(Object<K>),
    /// The object has been in the cache before. With an unchanged version it is a resync: nothing has
    /// happened, and the object is shown again. With another uid it was deleted and made anew in between.
    Updated {
        /// What the cache had.
        old: Object<K>,
        /// What it has now.
        new: Object<K>,
    },
    /// The object is no longer in the cache.
    Deleted(Tombstone<K>),
}

/// An object that is gone.
#[derive(Debug)]
pub enum Tombstone<K> {
    /// The server told of the deletion, with the object's last state.
    Final(Object<K>),
    /// The deletion was missed and noticed later. The last state is not known.
    Unknown {
        /// The object's key.
        key: ObjectKey,
        /// The newest state that was seen, if there was one.
        last_seen: Option<Object<K>>,
    },
    /// The object may still exist: it is the informer that no longer covers it.
    Left {
        /// The newest state that was seen.
        last_seen: Object<K>,
        /// What the informer no longer covers.
        why: Departure,
    },
}

/// Why objects leave a cache that were not deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Departure {
    /// Their namespace is no longer among [those that are followed](crate::Namespaces): it was taken out, does not exist any more,
    /// or has other labels.
    Namespace,
    /// The server no longer serves their kind: its definition is gone, or another one has taken its place.
    Kind,
    /// Their cluster is no longer among those that are [under one roof](crate::clusters).
    Cluster,
}

impl<K> Event<K> {
    /// The key of the object that this is about.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Added(object) | Self::Updated { new: object, .. } => object.key(),
            Self::Deleted(tombstone) => tombstone.key(),
        }
    }

    /// Whether nothing has happened and the object is only shown again.
    pub fn is_resync(&self) -> bool {
        match self {
            Self::Updated { old, new } => old.same_state(new) && !new.resource_version().is_unset(),
            Self::Added(_) | Self::Deleted(_) => false,
        }
    }

    /// The object before and after, as far as there was and is one, and is known.
    pub fn objects(&self) -> (Option<&Object<K>>, Option<&Object<K>>) {
        match self {
            Self::Added(object) => (None, Some(object)),
            Self::Updated { old, new } => (Some(old), Some(new)),
            Self::Deleted(tombstone) => (tombstone.object(), None),
        }
    }
}

impl<K> Tombstone<K> {
    /// The object's key.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Final(object) => object.key(),
            Self::Unknown { key, .. } => key,
            Self::Left { last_seen, .. } => last_seen.key(),
        }
    }

    /// The last state, or the newest one seen.
    pub fn object(&self) -> Option<&Object<K>> {
        match self {
            Self::Final(object) => Some(object),
            Self::Unknown { last_seen, .. } => last_seen.as_ref(),
            Self::Left { last_seen, .. } => Some(last_seen),
        }
    }

    /// Whether [`object`](Self::object) is the object as it was when it was deleted.
    pub fn final_state_known(&self) -> bool {
        matches!(self, Self::Final(_))
    }

    /// What the informer no longer covers, if that is why the object has left the cache: it may still exist.
    pub fn departure(&self) -> Option<Departure> {
        match self {
            Self::Left { why, .. } => Some(*why),
            Self::Final(_) | Self::Unknown { .. } => None,
        }
    }
}

// Derived, these would ask for `K: Clone`; handles are cloned without it.

impl<K> Clone for Event<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(object) => Self::Added(object.clone()),
            Self::Updated { old, new } => Self::Updated { old: old.clone(), new: new.clone() },
            Self::Deleted(tombstone) => Self::Deleted(tombstone.clone()),
        }
    }
}

impl<K> Clone for Tombstone<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Final(object) => Self::Final(object.clone()),
            Self::Unknown { key, last_seen } => {
                Self::Unknown { key: key.clone(), last_seen: last_seen.clone() }
            }
            Self::Left { last_seen, why } => Self::Left { last_seen: last_seen.clone(), why: *why },
        }
    }
}

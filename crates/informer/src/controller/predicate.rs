//! Which events are worth a call.

use std::{fmt, sync::Arc};

use kube::Resource;
use serde::Serialize;

use crate::{Event, Object};

/// Chooses events of a [`Feed`](super::Feed): the others are about nothing.
///
/// Those that ask for a change ([`generation_changed`](Self::generation_changed) and the like) let through what is no update: additions,
/// deletions, an object with another uid, and the mark of a deletion, so that finalizers are heard. A resync changes nothing, and does
/// not pass them.
///
/// ```
/// use informer::controller::Predicate;
/// use k8s_openapi::api::apps::v1::Deployment;
///
/// let scaled = Predicate::<Deployment>::changed(|deployment| deployment.status.as_ref().and_then(|status| status.ready_replicas));
/// let of_note = Predicate::generation_changed().or(scaled);
/// let mine = Predicate::new(|event| event.key().namespace() == Some("shop"));
/// let both = of_note.and(mine);
/// # let _ = both;
/// ```
pub struct Predicate<K>(Arc<Passes<K>>);

type Passes<K> = dyn Fn(&Event<K>) -> bool + Send + Sync;

impl<K: 'static> Predicate<K> {
    /// The events for which a function says yes.
    pub fn new(passes: impl Fn(&Event<K>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(passes))
    }

    /// What passes both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |event| self.passes(event) && other.passes(event))
    }

    /// What passes one of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |event| self.passes(event) || other.passes(event))
    }

    /// What does not pass this one.
    #[must_use]
    #[expect(
        clippy::should_implement_trait,
        reason = "it stands beside `and` and `or`, which no operator has"
    )]
    pub fn not(self) -> Self {
        Self::new(move |event| !self.passes(event))
    }

    pub(super) fn passes(&self, event: &Event<K>) -> bool {
        self.0(event)
    }
}

impl<K: Resource + 'static> Predicate<K> {
    /// Updates that change what a function makes of an object.
    pub fn changed<V: PartialEq>(of: impl Fn(&Object<K>) -> V + Send + Sync + 'static) -> Self {
        Self::differs(move |old, new| of(old) != of(new))
    }

    /// Updates that change `metadata.generation`, as a change of the spec does and one of the status does not. Of objects without a
    /// generation every change passes.
    pub fn generation_changed() -> Self {
        Self::differs(|old, new| match (old.meta().generation, new.meta().generation) {
            (None, None) => !old.same_state(new),
            (old, new) => old != new,
        })
    }

    /// Updates that change the labels.
    pub fn labels_changed() -> Self {
        Self::differs(|old, new| old.labels() != new.labels())
    }

    /// Updates that change the annotations.
    pub fn annotations_changed() -> Self {
        Self::differs(|old, new| old.meta().annotations != new.meta().annotations)
    }

    /// Updates that change the version: everything but resyncs.
    pub fn resource_version_changed() -> Self {
        Self::differs(|old, new| !old.same_state(new))
    }

    /// Updates that change the field at a JSON pointer (RFC 6901), like `/spec/template/metadata/labels`. It is written as JSON for this:
    /// [`changed`](Self::changed) costs less where the type has the field. A text that is no pointer is an error.
    pub fn field_changed(pointer: &str) -> Result<Self, PointerError>
    where
        K: Serialize,
    {
        let escaped = |part: &str| part.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
        if !(pointer.is_empty() || pointer.starts_with('/')) || !escaped(pointer) {
            return Err(PointerError { pointer: pointer.to_owned() });
        }
        let pointer: Box<str> = pointer.into();
        let field = move |object: &Object<K>| {
            let whole = serde_json::to_value(&**object).unwrap_or_default();
            whole.pointer(&pointer).cloned()
        };
        Ok(Self::differs(move |old, new| !old.same_state(new) && field(old) != field(new)))
    }

    fn differs(differ: impl Fn(&Object<K>, &Object<K>) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |event| match event {
            Event::Updated { old, new } => {
                let (before, after) = (old.meta(), new.meta());
                before.uid != after.uid
                    || before.deletion_timestamp.is_some() != after.deletion_timestamp.is_some()
                    || differ(old, new)
            }
            Event::Added(_) | Event::Deleted(_) => true,
        })
    }
}

/// Not a JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{pointer:?} is no JSON pointer: it begins with `/`, like `/spec/replicas`, and has `~0` for `~` and `~1` for `/` in a name"
)]
pub struct PointerError {
    /// What was given.
    pub pointer: String,
}

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> fmt::Debug for Predicate<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

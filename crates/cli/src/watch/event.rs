//! What is told about an object: the event of an informer in the words of this command.

use informer::{Event, Notice, Object, RawObject};
use informer_model::ObjectKey;

/// An event, with the object that it is about.
pub(super) struct Told<'a> {
    pub(super) what: What<'a>,
    pub(super) key: &'a ObjectKey,
    /// The newest state; for a deletion that was noticed late, there may be none.
    pub(super) object: Option<&'a Object<RawObject>>,
}

/// What became of an object.
#[derive(Clone, Copy)]
pub(super) enum What<'a> {
    /// It is there. Initial: it was before the watch began.
    Added { initial: bool },
    /// It was like this before.
    Updated { old: &'a Object<RawObject> },
    /// Nothing; it is shown again.
    Resync,
    /// It is gone. If that was noticed late, the last state that was seen need not be the final one.
    Deleted { final_state_known: bool },
}

impl<'a> Told<'a> {
    pub(super) fn new(notice: &'a Notice<RawObject>) -> Self {
        let (what, object) = match &notice.event {
            Event::Added(object) => (What::Added { initial: notice.initial }, Some(object)),
            Event::Updated { new, .. } if notice.is_resync() => (What::Resync, Some(new)),
            Event::Updated { old, new } => (What::Updated { old }, Some(new)),
            Event::Deleted(gone) => {
                (What::Deleted { final_state_known: gone.final_state_known() }, gone.object())
            }
        };
        Self { what, key: notice.key(), object }
    }
}

impl What<'_> {
    /// The word for it, in every form of output.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Added { .. } => "ADDED",
            Self::Updated { .. } => "UPDATED",
            Self::Resync => "RESYNC",
            Self::Deleted { .. } => "DELETED",
        }
    }
}

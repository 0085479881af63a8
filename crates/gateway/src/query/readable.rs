//! Objects that queries read, however they are kept.

use informer::Object;

use crate::cache::{Stored, beside::Beside};

/// What can be read: something with a JSON text.
pub(crate) trait Readable {
    /// The text, where it is at hand.
    fn text(&self) -> Option<&str>;

    /// What stands beside it, where it is not.
    fn beside(&self) -> Option<&Beside> {
        None
    }

    /// Shows the text.
    fn with_json<R>(&self, read: impl FnMut(&str) -> R) -> R;
}

impl Readable for Object<Stored> {
    fn text(&self) -> Option<&str> {
        Stored::text(self)
    }

    fn beside(&self) -> Option<&Beside> {
        Stored::beside(self)
    }

    fn with_json<R>(&self, read: impl FnMut(&str) -> R) -> R {
        Stored::with_json(self, read)
    }
}

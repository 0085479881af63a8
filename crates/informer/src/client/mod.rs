//! Writes that reads do not miss: a cache is a little behind the server, and what a program has just written is not in it yet.
//!
//! [`Writes`] sends what kube's `Api` sends and remembers the version of each answer, by object; of a deletion the uid. A
//! [`FreshLister`] of it waits, within a limit, until the cache shows what was written to the objects that it is asked for. Other
//! objects, namespaces and kinds are not waited for, and without a write nothing is. client-go has `WroteAt` and `EnsureReady` for that.
//!
//! In a [`Controller`](crate::controller::Controller) nobody has to ask: a call for a key begins when the caches show what the last call for
//! it wrote with a `Writes`. So a plain [`Lister`](crate::Lister) is right there too, until the call writes itself.

mod apply;
mod call;
mod fenced;
mod helpers;
mod ledger;
mod lister;
mod writes;

pub use call::within_call;
pub use helpers::{OperationResult, retry_on_conflict};
pub use ledger::Behind;
pub use lister::{FreshLister, ReadError};
pub use writes::{WriteError, Writes};

pub(crate) use call::Written;

//! Keeps a queue supplied with what happens to the objects of a source: list, watch, and begin anew when
//! something goes wrong.
//!
//! A pure machine decides what to do next, without any I/O. [`Reflector`] does it: it asks the source, keeps the
//! time, and puts objects into a queue. [`ReflectorSettings`] are what can be chosen, [`Problem`] and [`Remedy`] what it
//! tells when something went wrong.

mod audit;
mod driver;
mod list;
mod machine;
mod problem;
mod settings;

pub use crate::backoff::Backoff;
pub use driver::Reflector;
pub use machine::Phase;
#[doc(hidden)]
pub use machine::{Action, Input, Machine};
pub use problem::{Problem, Remedy};
pub use settings::ReflectorSettings;

//! The same scenarios on two servers; see the documentation of the package.

mod cluster;
mod expected;
mod informers;
mod objects;
mod plane;
mod protocol;
mod stage;
mod transcript;
mod watch;

//! Informers of the library, on both.

mod access;
mod changes;
mod disturbances;
mod forms;
mod running;
mod syncing;

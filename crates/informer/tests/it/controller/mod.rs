//! What a controller hears of, and what is around a call.

mod errors;
mod feeds;
mod finalizer;
mod helpers;
mod stage;

use crate::{client, support};

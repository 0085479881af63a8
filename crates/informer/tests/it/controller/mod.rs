//! What a controller hears of, and what is around a call.

mod feeds;
mod stage;

use crate::{client, support};

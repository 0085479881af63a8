//! What the tests share.

pub(crate) mod canned;
pub(crate) mod log_lines;
mod objects;
pub(crate) mod validator;

pub(crate) use objects::*;

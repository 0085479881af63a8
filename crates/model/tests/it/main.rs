//! Tests of the crate from outside, in one binary: each links the whole crate.

mod field_selectors;
mod framing;
mod framing_histories;
mod framing_lists;
mod fuzz_corpus;
mod protobuf;
mod resources;
mod selectors;

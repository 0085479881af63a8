//! Tests of the crate from outside, in one binary: each links the whole crate.

mod access;
mod bad_input;
mod cluster;
mod fuzz_corpus;
mod guard;
mod guide;
mod kubernetes;
mod lists;
mod operations;
mod packed;
mod security_page;
mod streams;
mod support;

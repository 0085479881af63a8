//! Tests of the crate from outside, in one binary: each links the whole crate.

mod bad_input;
mod client;
mod faults;
mod fuzz_corpus;
mod kinds;
mod kube_rs;
mod listener;
mod load;
mod manifests;
mod objects;
mod protocol;

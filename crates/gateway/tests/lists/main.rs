//! Lists over HTTP: the shapes of the original, queries, pages, and how fresh an answer is.

mod answers;
mod original;
mod pages;
mod queries;
#[path = "../support/mod.rs"]
mod support;

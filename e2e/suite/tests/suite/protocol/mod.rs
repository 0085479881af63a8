//! What an API server promises on the wire, asked of both.

mod access;
mod creating;
mod custom;
mod deleting;
mod discovery;
mod formats;
mod managing;
mod pages;
mod patching;
mod reading;
mod selecting;
mod streaming;
mod updating;
mod watching;

//! Each fault that the server can be asked for does what it promises, to the requests and events that its rule
//! names and to no others.
//!
//! Requests go to the server without a socket and in paused time, except where a connection is what breaks.

mod bodies;
mod consistency;
mod corrupt;
mod events;
mod history;
mod open_watches;
mod replica;
mod requests;
mod rules;
mod sockets;

//! The ways in which a user ends a command.

use std::{
    future::{Future, poll_fn},
    task::Poll,
};

#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::ctrl_c;

/// Waits for Ctrl-C or, where there is such a thing, SIGTERM. They are listened to from the call on, not from the first
/// poll: who has been told that the command runs can end it. What cannot be listened to ends the process the default way.
pub(crate) fn interrupt() -> impl Future<Output = ()> {
    #[cfg(unix)]
    let mut signals = [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| signal(kind).ok());
    #[cfg(windows)]
    let mut signals = [ctrl_c().ok()];
    poll_fn(move |context| {
        match signals.iter_mut().flatten().any(|signal| signal.poll_recv(context).is_ready()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
}

//! The ways in which a user, or the kubelet, ends a program.

use std::{future::poll_fn, task::Poll};

#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::ctrl_c;
use tokio_util::sync::CancellationToken;

use super::{Manager, ManagerError};

impl Manager {
    /// [Runs](Self::run) until Ctrl-C or, where there is such a thing, SIGTERM. The second one ends everything [at once](Self::at_once).
    pub async fn run_until_signal(self) -> Result<(), ManagerError> {
        #[cfg(unix)]
        let mut signals = [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| signal(kind).ok());
        #[cfg(windows)]
        let mut signals = [ctrl_c().ok()];
        let mut signalled = async || {
            // What cannot be listened to ends the process the default way.
            poll_fn(|context| {
                match signals.iter_mut().flatten().any(|signal| signal.poll_recv(context).is_ready()) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            })
            .await;
        };
        let (stop, at_once) = (CancellationToken::new(), self.at_once.clone());
        let signalling = async {
            signalled().await;
            stop.cancel();
            signalled().await;
            at_once.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = self.run(stop.clone()) => ended,
            () = signalling => Ok(()),
        }
    }
}

//! Work that takes long, away from the threads that answer: in small pieces, on threads that may be blocked, a few at a
//! time, and each caller in turn.

use std::{future::pending, net::IpAddr, panic::resume_unwind, sync::Arc};

use tokio::task::{JoinError, JoinSet};

use crate::{
    access::Caller,
    fair::{FairLimits, FairQueue},
};

/// What takes fewer microseconds than this is done at once: handing it over would take longer.
const AT_ONCE: usize = 150;

/// On whose account something is done: a user, or else an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Account {
    User(Arc<str>),
    Address(Option<IpAddr>),
}

impl Account {
    pub(crate) fn of(caller: &Caller, address: Option<IpAddr>) -> Self {
        match caller.user() {
            "" => Self::Address(address),
            user => Self::User(user.into()),
        }
    }
}

/// Does what takes long.
#[derive(Clone)]
pub(crate) struct Work(Arc<FairQueue<Account>>);

impl Default for Work {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // Those who wait are held back by the limits on connections and streams.
        Self(FairQueue::new(FairLimits { at_a_time: cores, by_one: cores, waiting: usize::MAX }))
    }
}

impl Work {
    /// Does something that takes about so many microseconds. When nobody waits for it any more it is not begun.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        account: &Account,
        micros: usize,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if micros <= AT_ONCE {
            return job();
        }
        let (queue, account) = (Arc::clone(&self.0), account.clone());
        // A client that does not read would hold a turn that it was given and does not take.
        apart(async move {
            let turn = queue.turn(account).await;
            let work = tokio::task::spawn_blocking(move || {
                let done = job();
                drop(turn);
                done
            });
            done(work.await).await
        })
        .await
    }
}

/// Does something on a task of its own, which ends with who waits for it. What others wait for as well is done so: a caller
/// whose client does not read is not polled, and would hold what it has begun for as long as that lasts.
pub(crate) async fn apart<T: Send + 'static>(job: impl Future<Output = T> + Send + 'static) -> T {
    let mut task = JoinSet::new();
    task.spawn(job);
    match task.join_next().await {
        Some(ended) => done(ended).await,
        None => pending().await,
    }
}

async fn done<T>(ended: Result<T, JoinError>) -> T {
    match ended {
        Ok(done) => done,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        // The runtime ends, and with it whoever waits.
        Err(_) => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn who_stops_to_listen_holds_no_turn() {
        let (work, account) = (Work::default(), Account::Address(None));
        let mut stalled: Vec<_> = (0..64).map(|_| Box::pin(work.run(&account, usize::MAX, || ()))).collect();
        assert!(stalled.iter_mut().all(|one| one.now_or_never().is_none()));
        let done = timeout(Duration::from_secs(60), work.run(&account, usize::MAX, || 7)).await;
        assert_eq!(done, Ok(7));
    }
}

//! Work that takes long, away from the threads that answer: in small pieces, on threads that may be blocked, a few at a
//! time, and each caller in turn.

use std::{
    net::IpAddr,
    sync::{
        Arc, LazyLock,
        mpsc::{Sender, channel},
    },
    thread,
};

use tokio::task::JoinSet;

use crate::{
    access::Caller,
    fair::{FairLimits, FairQueue},
    listener::client_of,
};

/// What takes fewer microseconds than this is done at once: handing it over would take longer.
pub(crate) const AT_ONCE: usize = 150;

/// On whose account something is done: a user, or else a [client's](client_of) address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Account {
    User(Arc<str>),
    Address(Option<IpAddr>),
}

impl Account {
    pub(crate) fn of(caller: &Caller, address: Option<IpAddr>) -> Self {
        match caller.user() {
            "" => Self::at(address),
            user => Self::User(user.into()),
        }
    }

    /// Of whoever is at this address.
    pub(crate) fn at(address: Option<IpAddr>) -> Self {
        Self::Address(address.map(client_of))
    }
}

/// Does what takes long.
#[derive(Clone)]
pub(crate) struct Work(Arc<FairQueue<Account>>);

impl Default for Work {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // However long what one caller asks for takes, the next caller finds a thread. Those who wait are held back by the
        // limits on connections and streams.
        Self(FairQueue::new(FairLimits { at_a_time: cores + 1, by_one: cores, waiting: usize::MAX }))
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
        // On a task of its own, which ends with who waits for it: a client that does not read would hold a turn that it was
        // given and does not take.
        let mut task = JoinSet::new();
        task.spawn(async move {
            let turn = queue.turn(account).await;
            let work = tokio::task::spawn_blocking(move || {
                let done = job();
                drop(turn);
                done
            });
            work.await
        });
        match task.join_next().await {
            Some(Ok(Ok(done))) => done,
            Some(Ok(Err(error)) | Err(error)) if error.is_panic() => {
                std::panic::resume_unwind(error.into_panic())
            }
            // The runtime ends, and with it whoever waits.
            _ => std::future::pending().await,
        }
    }
}

/// Lets go of something that takes long to free, on a thread of its own.
pub(crate) fn free_aside(something: impl Send + 'static) {
    static FREED: LazyLock<Sender<Box<dyn Send>>> = LazyLock::new(|| {
        let (sender, freed) = channel();
        // Without a thread nobody takes it, and it is freed at once.
        let _ = thread::Builder::new().name("freeing".into()).spawn(move || freed.into_iter().for_each(drop));
        sender
    });
    let _ = FREED.send(Box::new(something));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::time::timeout;

    use super::*;
    use crate::access::Access;

    #[tokio::test]
    async fn who_stops_to_listen_holds_no_turn() {
        let (work, account) = (Work::default(), Account::at(None));
        let mut stalled: Vec<_> = (0..64).map(|_| Box::pin(work.run(&account, usize::MAX, || ()))).collect();
        assert!(stalled.iter_mut().all(|one| one.now_or_never().is_none()));
        let done = timeout(Duration::from_secs(60), work.run(&account, usize::MAX, || 7)).await;
        assert_eq!(done, Ok(7));
    }

    #[tokio::test]
    async fn who_asks_for_what_takes_long_does_not_hold_the_threads_of_others() {
        let (work, (eve, ann)) =
            (Work::default(), (Account::User("eve".into()), Account::User("ann".into())));
        let (end, ended) = channel::<()>();
        let ended = Arc::new(std::sync::Mutex::new(ended));
        let mut long: Vec<_> = (0..64)
            .map(|_| {
                let ended = Arc::clone(&ended);
                Box::pin(work.run(&eve, usize::MAX, move || drop(ended.lock().map(|ended| ended.recv()))))
            })
            .collect();
        assert!(long.iter_mut().all(|one| one.now_or_never().is_none()));
        let done = timeout(Duration::from_secs(60), work.run(&ann, usize::MAX, || 7)).await;
        drop(end);
        assert_eq!(done, Ok(7));
    }

    #[tokio::test]
    async fn of_an_ipv6_network_all_addresses_have_one_account() {
        let at = |address: &str| Account::at(Some(address.parse().unwrap()));
        assert_eq!(at("2001:db8:1:2::1"), at("2001:db8:1:2:ffff:1234:5678:9abc"));
        assert_ne!(at("2001:db8:1:2::1"), at("2001:db8:1:3::1"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
        let here = Some("2001:db8::1".parse().unwrap());
        let anybody = Access::Open.identify(&http::HeaderMap::new(), here).await.expect("everybody gets in");
        assert_eq!(
            Account::of(&anybody, here),
            at("2001:db8::2"),
            "who has no name is where the request came from"
        );
    }
}

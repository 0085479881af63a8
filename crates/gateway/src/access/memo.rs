//! Answers that are remembered for some seconds, and each question asked once at a time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use informer_model::Status;
use tokio::{task::JoinSet, time::Instant};

/// How long an answer counts, from the moment it was asked for.
pub(super) const LIFE: Duration = Duration::from_secs(7);

/// How long it counts while it is known that it cannot have changed.
pub(super) const SETTLED_LIFE: Duration = Duration::from_secs(300);

/// A question, as a digest: of the same size whatever was asked, and no token can be read from it.
pub(super) type Key = [u8; 32];

type Asking<V> = Shared<BoxFuture<'static, Result<V, Status>>>;
type WeakAsking<V> = WeakShared<BoxFuture<'static, Result<V, Status>>>;

/// Remembers answers.
pub(super) struct Memo<V: Clone>(Mutex<Recent<Entry<V>>>);

/// As many values as there is room for. When it is full, those go that were not asked for the longest time.
///
/// What is asked for moves to the young ones. When these are many, they are the old ones, and the old ones are gone.
pub(super) struct Recent<V> {
    /// How many a generation has: half of all.
    generation: usize,
    young: HashMap<Key, V>,
    old: HashMap<Key, V>,
}

enum Entry<V: Clone> {
    /// Somebody waits for the answer. When all who wait go away, so does the question.
    Asked(WeakAsking<V>),
    Known {
        answer: V,
        asked: Instant,
        /// What the answer depends on, if that is known.
        epoch: Option<u64>,
    },
}

impl<V: Clone> Entry<V> {
    /// The answer, if it still counts.
    fn answer(&self, now: Option<u64>) -> Option<V> {
        let Self::Known { answer, asked, epoch } = self else { return None };
        let life = if epoch.is_some() && *epoch == now { SETTLED_LIFE } else { LIFE };
        (asked.elapsed() < life).then(|| answer.clone())
    }
}

/// What is there when a question comes.
enum Found<V: Clone> {
    Answer(V),
    Asking(Asking<V>),
}

impl<V: Clone + Send + Sync + 'static> Memo<V> {
    /// A memory for so many answers.
    pub(super) fn new(capacity: usize) -> Self {
        Self(Mutex::new(Recent::new(capacity)))
    }

    /// The answer to a question, which is asked when it is not known and nobody asks it already. Failures are not
    /// remembered. While `epoch` stays the same, an answer cannot have changed.
    pub(super) async fn answer<F>(
        self: &Arc<Self>,
        key: Key,
        epoch: Option<u64>,
        ask: impl FnOnce() -> F,
    ) -> Result<V, Status>
    where
        F: Future<Output = Result<V, Status>> + Send + 'static,
    {
        match self.find(key, epoch, ask) {
            Found::Answer(answer) => Ok(answer),
            Found::Asking(asking) => asking.await,
        }
    }

    fn find<F>(self: &Arc<Self>, key: Key, epoch: Option<u64>, ask: impl FnOnce() -> F) -> Found<V>
    where
        F: Future<Output = Result<V, Status>> + Send + 'static,
    {
        let asked = Instant::now();
        let mut entries = self.lock();
        match entries.get(&key) {
            Some(Entry::Asked(asking)) => {
                if let Some(asking) = asking.upgrade() {
                    return Found::Asking(asking);
                }
            }
            Some(known) => {
                if let Some(answer) = known.answer(epoch) {
                    return Found::Answer(answer);
                }
            }
            None => {}
        }
        let (memo, question) = (Arc::clone(self), ask());
        let asking = async move {
            let answer = question.await;
            match &answer {
                Ok(answer) => memo.lock().put(key, Entry::Known { answer: answer.clone(), asked, epoch }),
                // Somebody may not have taken it yet; whoever comes now asks anew all the same.
                Err(_) => memo.lock().remove(&key),
            }
            answer
        };
        // On a task of its own, which ends with the last who waits: one of them may have stopped to listen, like a client that
        // does not read, and the others wait for the same.
        let mut task = JoinSet::new();
        task.spawn(asking);
        let asking = async move {
            match task.join_next().await {
                Some(Ok(answer)) => answer,
                _ => Err(Status::internal_error("the question was not asked to its end")),
            }
        };
        let asking = asking.boxed().shared();
        if let Some(weak) = asking.downgrade() {
            entries.put(key, Entry::Asked(weak));
        }
        Found::Asking(asking)
    }

    fn lock(&self) -> MutexGuard<'_, Recent<Entry<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Recent<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { generation: capacity.div_ceil(2), young: HashMap::new(), old: HashMap::new() }
    }

    pub(super) fn get(&mut self, key: &Key) -> Option<&V> {
        if let Some(value) = self.old.remove(key) {
            self.put(*key, value);
        }
        self.young.get(key)
    }

    fn remove(&mut self, key: &Key) {
        self.old.remove(key);
        self.young.remove(key);
    }

    pub(super) fn put(&mut self, key: Key, value: V) {
        self.old.remove(&key);
        if self.young.len() >= self.generation && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures_util::future::join_all;
    use informer_testing::Deadline;
    use tokio::{
        sync::{Notify, oneshot},
        time::advance,
    };

    use super::*;

    fn mk_key(number: u8) -> Key {
        [number; 32]
    }

    async fn known(memo: &Arc<Memo<u8>>, key: u8) -> bool {
        memo.answer(mk_key(key), None, || ready(Err(Status::unauthorized("asked again")))).await.is_ok()
    }

    async fn learn(memo: &Arc<Memo<u8>>, key: u8) {
        assert_eq!(memo.answer(mk_key(key), None, || ready(Ok(key))).await, Ok(key));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_as_old_as_its_question() {
        let memo = Arc::new(Memo::new(10));
        let slow = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            Ok(1)
        };
        assert_eq!(memo.answer(mk_key(1), None, || slow).await, Ok(1));
        advance(LIFE - Duration::from_millis(4_001)).await;
        assert!(known(&memo, 1).await);
        advance(Duration::from_millis(1)).await;
        assert!(!known(&memo, 1).await, "though it came only three seconds ago");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_for_longer_while_nothing_that_it_depends_on_changes() {
        let memo = Arc::new(Memo::new(10));
        let ask = async |epoch, answer| memo.answer(mk_key(1), epoch, || ready(Ok(answer))).await.unwrap();
        assert_eq!(ask(Some(4), 1).await, 1);
        advance(SETTLED_LIFE - Duration::from_millis(1)).await;
        assert_eq!(ask(Some(4), 2).await, 1);
        assert_eq!(ask(Some(5), 3).await, 3, "something has changed");
        advance(LIFE).await;
        assert_eq!(ask(None, 4).await, 4, "nobody knows whether something has changed");
        advance(LIFE).await;
        assert_eq!(ask(Some(5), 5).await, 5, "nobody knew it when it was asked");
        advance(SETTLED_LIFE).await;
        assert_eq!(ask(Some(5), 6).await, 6, "not for ever");
    }

    #[tokio::test]
    async fn a_question_is_asked_once_and_all_who_wait_have_the_answer() {
        let (memo, asked) = (Arc::new(Memo::new(10)), AtomicUsize::new(0));
        let (answer, come) = oneshot::channel();
        let mut come = Some(come);
        let waiting: Vec<_> = (0..5)
            .map(|_| {
                let come = come.take();
                let asked = &asked;
                memo.answer(mk_key(1), None, move || {
                    asked.fetch_add(1, Ordering::Relaxed);
                    async move { come.expect("the first asks").await.map_err(|_| Status::bad_request("gone")) }
                })
            })
            .collect();
        let (answers, _) = tokio::join!(join_all(waiting), async { answer.send(7) });
        assert_eq!(answers, vec![Ok(7); 5]);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn who_waits_gets_the_answer_though_the_one_who_asked_goes_away() {
        let memo = Arc::new(Memo::new(10));
        let (answer, come) = oneshot::channel::<u8>();
        let mut first = Box::pin(
            memo.answer(mk_key(1), None, || come.map(|come| come.map_err(|_| Status::bad_request("gone")))),
        );
        assert!((&mut first).now_or_never().is_none());
        let mut second = Box::pin(memo.answer(mk_key(1), None, pending));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        answer.send(3).expect("somebody still waits");
        assert_eq!(second.await, Ok(3));
    }

    #[tokio::test]
    async fn a_failure_that_somebody_has_not_taken_yet_is_not_the_answer_to_others() {
        let memo = Arc::new(Memo::new(10));
        let failing = || async {
            tokio::task::yield_now().await;
            Err(Status::unauthorized("not now"))
        };
        let mut stalled = Box::pin(memo.answer(mk_key(1), None, failing));
        assert!((&mut stalled).now_or_never().is_none());
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        learn(&memo, 1).await;
        assert!(stalled.await.is_err());
    }

    #[tokio::test]
    async fn who_stops_to_listen_keeps_nobody_waiting() {
        let memo = Arc::new(Memo::new(10));
        let asked = Arc::new(Notify::new());
        let go_on = Arc::clone(&asked);
        let slow = || async move {
            go_on.notified().await;
            Ok(1)
        };
        let mut stalled = Box::pin(memo.answer(mk_key(1), None, slow));
        assert!((&mut stalled).now_or_never().is_none());
        asked.notify_one();
        let deadline = Deadline::start();
        while !known(&memo, 1).await {
            deadline.check("the answer is known");
            tokio::task::yield_now().await;
        }
        assert_eq!(stalled.await, Ok(1));
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_is_given_up() {
        let memo = Arc::new(Memo::<u8>::new(10));
        let (answer, come) = oneshot::channel::<u8>();
        let mut only = Box::pin(
            memo.answer(mk_key(1), None, || come.map(|come| come.map_err(|_| Status::bad_request("gone")))),
        );
        assert!((&mut only).now_or_never().is_none());
        drop(only);
        tokio::task::yield_now().await;
        assert!(answer.is_closed());
        learn(&memo, 1).await;
    }

    #[tokio::test]
    async fn a_failure_is_not_remembered() {
        let memo = Arc::new(Memo::new(10));
        assert!(!known(&memo, 1).await);
        learn(&memo, 1).await;
        assert!(known(&memo, 1).await);
    }

    #[tokio::test]
    async fn a_flood_drives_out_what_nobody_asks_for() {
        let memo = Arc::new(Memo::new(8));
        learn(&memo, 0).await;
        learn(&memo, 1).await;
        for flood in 10..200 {
            learn(&memo, flood).await;
            assert!(known(&memo, 0).await, "it is in use");
            let entries = memo.lock();
            assert!(entries.young.len() + entries.old.len() <= 8);
        }
        assert!(!known(&memo, 1).await);
    }
}

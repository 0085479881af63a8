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
use tokio::time::Instant;

/// How long an answer counts, from the moment it was asked for.
pub(super) const LIFE: Duration = Duration::from_secs(7);

/// A question, as a digest: of the same size whatever was asked, and no token can be read from it.
pub(super) type Key = [u8; 32];

type Asking<V> = Shared<BoxFuture<'static, Result<V, Status>>>;
type WeakAsking<V> = WeakShared<BoxFuture<'static, Result<V, Status>>>;

/// Remembers answers. When it is full, those go that were not asked for the longest time.
pub(super) struct Memo<V: Clone> {
    /// How many answers a generation has: half of all.
    generation: usize,
    entries: Mutex<Entries<V>>,
}

/// What is asked for moves to the young ones. When these are many, they are the old ones, and the old ones are gone.
struct Entries<V: Clone> {
    young: HashMap<Key, Entry<V>>,
    old: HashMap<Key, Entry<V>>,
}

enum Entry<V: Clone> {
    /// Somebody waits for the answer. When all who wait go away, so does the question.
    Asked(WeakAsking<V>),
    Known {
        answer: V,
        until: Instant,
    },
}

/// What is there when a question comes.
enum Found<V: Clone> {
    Answer(V),
    Asking(Asking<V>),
}

impl<V: Clone + Send + Sync + 'static> Memo<V> {
    /// A memory for so many answers.
    pub(super) fn new(capacity: usize) -> Self {
        let entries = Entries { young: HashMap::new(), old: HashMap::new() };
        Self { generation: capacity.div_ceil(2), entries: Mutex::new(entries) }
    }

    /// The answer to a question, which is asked when it is not known and nobody asks it already. Failures are not
    /// remembered.
    pub(super) async fn answer<F>(self: &Arc<Self>, key: Key, ask: impl FnOnce() -> F) -> Result<V, Status>
    where
        F: Future<Output = Result<V, Status>> + Send + 'static,
    {
        match self.find(key, ask) {
            Found::Answer(answer) => Ok(answer),
            Found::Asking(asking) => asking.await,
        }
    }

    fn find<F>(self: &Arc<Self>, key: Key, ask: impl FnOnce() -> F) -> Found<V>
    where
        F: Future<Output = Result<V, Status>> + Send + 'static,
    {
        let now = Instant::now();
        let mut entries = self.lock();
        match entries.get(&key, self.generation) {
            Some(Entry::Known { answer, until }) if now < *until => return Found::Answer(answer.clone()),
            Some(Entry::Asked(asking)) => {
                if let Some(asking) = asking.upgrade() {
                    return Found::Asking(asking);
                }
            }
            Some(Entry::Known { .. }) | None => {}
        }
        let (memo, question) = (Arc::clone(self), ask());
        let asking = async move {
            let answer = question.await?;
            let known = Entry::Known { answer: answer.clone(), until: now + LIFE };
            memo.lock().put(key, known, memo.generation);
            Ok(answer)
        };
        let asking = asking.boxed().shared();
        if let Some(weak) = asking.downgrade() {
            entries.put(key, Entry::Asked(weak), self.generation);
        }
        Found::Asking(asking)
    }

    fn lock(&self) -> MutexGuard<'_, Entries<V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V: Clone> Entries<V> {
    fn get(&mut self, key: &Key, generation: usize) -> Option<&Entry<V>> {
        if let Some(entry) = self.old.remove(key) {
            self.put(*key, entry, generation);
        }
        self.young.get(key)
    }

    fn put(&mut self, key: Key, entry: Entry<V>, generation: usize) {
        self.old.remove(&key);
        if self.young.len() >= generation && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, entry);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures_util::future::join_all;
    use tokio::{sync::oneshot, time::advance};

    use super::*;

    fn mk_key(number: u8) -> Key {
        [number; 32]
    }

    async fn known(memo: &Arc<Memo<u8>>, key: u8) -> bool {
        memo.answer(mk_key(key), || ready(Err(Status::unauthorized("asked again")))).await.is_ok()
    }

    async fn learn(memo: &Arc<Memo<u8>>, key: u8) {
        assert_eq!(memo.answer(mk_key(key), || ready(Ok(key))).await, Ok(key));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_as_old_as_its_question() {
        let memo = Arc::new(Memo::new(10));
        let slow = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            Ok(1)
        };
        assert_eq!(memo.answer(mk_key(1), || slow).await, Ok(1));
        advance(LIFE - Duration::from_millis(4_001)).await;
        assert!(known(&memo, 1).await);
        advance(Duration::from_millis(1)).await;
        assert!(!known(&memo, 1).await, "though it came only three seconds ago");
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
                memo.answer(mk_key(1), move || {
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
            memo.answer(mk_key(1), || come.map(|come| come.map_err(|_| Status::bad_request("gone")))),
        );
        assert!((&mut first).now_or_never().is_none());
        let mut second = Box::pin(memo.answer(mk_key(1), pending));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        answer.send(3).expect("somebody still waits");
        assert_eq!(second.await, Ok(3));
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_is_given_up() {
        let memo = Arc::new(Memo::<u8>::new(10));
        let (answer, come) = oneshot::channel::<u8>();
        let mut only = Box::pin(
            memo.answer(mk_key(1), || come.map(|come| come.map_err(|_| Status::bad_request("gone")))),
        );
        assert!((&mut only).now_or_never().is_none());
        drop(only);
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

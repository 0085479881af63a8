mod stage;

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{FutureExt, StreamExt};
use informer_testing::Deadline;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::{runtime::Handle, time};

use self::stage::{Rig, Witness, heard, log, mk, scribe, settle};
use super::*;
use crate::{
    Event, Object, Tombstone,
    queue::Delta,
    shared::{
        handler::{EventHandler, Handler},
        joining::AddHandlerError,
        registration::{HandlerSyncError, Registration, RemoveError},
    },
    sync::Mutex,
};

#[tokio::test(start_paused = true)]
async fn c22_events_come_in_order_and_after_the_cache_has_changed() {
    let mut rig = Rig::listed();
    let (behind, store, log) = (log(), rig.store.clone(), log());
    let faults = Arc::clone(&behind);
    rig.add(scribe(&log));
    rig.add(Handler::new().on_update(move |_, new: &Object<ConfigMap>| {
        if !store.get(new.key()).is_some_and(|stored| stored.ptr_eq(new)) {
            faults.lock().unwrap().push(format!("{new:?}"));
        }
    }));
    for version in 1..=3 {
        rig.put("a", version);
        rig.put("b", version);
        settle().await;
    }
    rig.delete("a", 4);
    settle().await;
    assert_eq!(heard(&log), "+a@1 +b@1 ~a@2<1 ~b@2<1 ~a@3<2 ~b@3<2 -a");
    assert_eq!(heard(&behind), "", "told before the cache had it");
}

#[tokio::test(start_paused = true)]
async fn c22_handlers_do_not_wait_for_one_another() {
    let mut rig = Rig::listed();
    let (stuck, log) = (Witness::gated(), log());
    rig.add(stuck.clone());
    rig.add(scribe(&log));
    rig.add(scribe(&log).name("the same handler again"));
    rig.put("a", 1);
    settle().await;
    assert_eq!((heard(&log).as_str(), stuck.events()), ("+a@1 +a@1", 0));
    stuck.open(1);
    settle().await;
    assert_eq!(stuck.events(), 1);
}

#[tokio::test(start_paused = true)]
async fn c23_a_late_handler_hears_what_exists_then_what_happens_and_is_synced_in_between() {
    let mut rig = Rig::listed();
    rig.apply((0..3_000).map(|n| Delta::Added(mk(&format!("n{n:04}"), 1))).collect(), false);
    let late = Witness::gated();
    let registration = rig.add(late.clone());
    rig.put("n0000", 2);
    rig.put("new", 2);
    assert_eq!(registration.pending(), 3_002);
    late.open(2_999);
    settle().await;
    assert!(!registration.has_synced(), "the last of its adds is not handled");
    assert_eq!((late.events(), registration.pending()), (2_999, 3));
    late.open(1);
    registration.wait_until_synced(Duration::MAX).await.unwrap();
    settle().await;
    assert_eq!(late.events(), 3_000, "synced before the later events");
    late.open(2);
    settle().await;
    late.agrees_with(&rig.store);
    assert_eq!(registration.pending(), 0);
}

#[tokio::test(start_paused = true)]
async fn c23_a_handler_that_came_first_is_synced_when_the_first_list_is_handled() {
    let mut rig = Rig::new(Duration::ZERO);
    let (first, log) = (Witness::gated(), log());
    let registration = rig.add(first.clone());
    let empty = rig.add(scribe(&log));
    rig.apply((0..5_000).map(|n| Delta::Added(mk(&format!("{n}"), 1))).collect(), true);
    settle().await;
    assert!(!empty.has_synced(), "the list may go on");
    rig.processor.initial_list_done();
    // So many that what waits is merged, with the end of the list in the middle of it.
    (2..2_000).for_each(|version| rig.put("later", version));
    first.open(4_999);
    settle().await;
    assert!(empty.has_synced() && !registration.has_synced());
    first.open(1);
    registration.wait_until_synced(Duration::MAX).await.unwrap();
    settle().await;
    assert_eq!(first.events(), 5_000);
    first.open(10);
    settle().await;
    first.agrees_with(&rig.store);
    assert!(heard(&log).starts_with("*0@1 *1@1 "));
}

#[tokio::test(start_paused = true)]
async fn c25_a_resync_goes_to_those_who_are_due_and_what_is_real_to_all() {
    let mut rig = Rig::new(Duration::from_secs(1));
    let logs = [log(), log(), log()];
    for (log, seconds) in logs.iter().zip([0, 2, 3]) {
        rig.joining.add(scribe(log).resync(Duration::from_secs(seconds))).unwrap();
    }
    rig.processor.admit(&rig.store);
    rig.processor.initial_list_done();
    rig.put("a", 1);
    let mut expected = [vec!["+a@1"], vec!["+a@1"], vec!["+a@1"]];
    for second in 1..=12 {
        time::sleep_until(rig.processor.next_check().unwrap()).await;
        if rig.processor.tick(Instant::now()) {
            rig.apply(vec![Delta::SyncAll], false);
        }
        for (of_one, period) in expected.iter_mut().zip([99, 2, 3]) {
            of_one.extend((second % period == 0).then_some(".a@1"));
        }
    }
    rig.apply(vec![Delta::SyncAll, Delta::Updated(mk("a", 2))], false);
    expected[1].push(".a@1");
    expected[2].push(".a@1");
    settle().await;
    for (log, mut expected) in logs.iter().zip(expected) {
        expected.push("~a@2<1");
        assert_eq!(heard(log), expected.join(" "));
    }
}

#[tokio::test(start_paused = true)]
async fn c27_removing_waits_for_the_running_callback_and_drops_what_waits() {
    let mut rig = Rig::listed();
    let witness = Witness::gated();
    let registration = rig.add(witness.clone());
    (1..=3).for_each(|version| rig.put("a", version));
    settle().await;
    let mut removal = Box::pin(registration.remove());
    assert!(removal.as_mut().now_or_never().is_none(), "a callback is running");
    assert_eq!(registration.pending(), 0);
    witness.open(9);
    assert_eq!(removal.await, Ok(()));
    assert!(witness.is_gone(), "the handler is dropped when its removal returns");
    rig.put("a", 4);
    settle().await;
    assert_eq!((witness.events(), rig.processor.members().lags().len()), (1, 0));
    assert_eq!(registration.remove().await, Ok(()), "again");
    rig.processor.stop(None).await;
    assert_eq!(registration.remove().await, Ok(()), "after the stop");
}

#[tokio::test(start_paused = true)]
async fn c27_a_handler_that_was_never_started_is_removed_and_dropped_at_once() {
    let mut rig = Rig::new(Duration::ZERO);
    let witness = Witness::default();
    let registration = rig.joining.add(witness.clone()).unwrap();
    assert_eq!(registration.remove().now_or_never(), Some(Ok(())));
    assert!(witness.is_gone());
    assert_eq!(
        registration.wait_until_synced(Duration::MAX).await,
        Err(HandlerSyncError::Removed { handler: "handler-1".into() })
    );
    rig.processor.admit(&rig.store);
    assert_eq!(rig.processor.members().lags().len(), 0);
}

/// Removes itself at its first event.
struct Leaver {
    own: Arc<Mutex<Option<Registration>>>,
    answers: Arc<Mutex<Vec<Result<(), RemoveError>>>>,
    blocking: bool,
}

impl EventHandler<ConfigMap> for Leaver {
    async fn on_add(&mut self, _: &Object<ConfigMap>, _: bool) {
        let own = self.own.lock().unwrap().clone().unwrap();
        let answer = match self.blocking {
            true => Handle::current().block_on(own.remove()),
            false => own.remove().await,
        };
        self.answers.lock().unwrap().push(answer);
    }

    fn blocking(&self) -> bool {
        self.blocking
    }
}

#[tokio::test(start_paused = true)]
async fn f25_a_handler_that_removes_itself_is_told_so_and_hears_nothing_more() {
    for blocking in [false, true] {
        let mut rig = Rig::listed();
        let (own, answers) = (Arc::default(), Arc::default());
        let registration = rig.add(Leaver { own: Arc::clone(&own), answers: Arc::clone(&answers), blocking });
        *own.lock().unwrap() = Some(registration.clone());
        rig.apply(["a", "b"].map(|name| Delta::Added(mk(name, 1))).into(), false);
        settle().await;
        let inside = RemoveError::InsideHandler { handler: "handler-1".into() };
        assert_eq!(*answers.lock().unwrap(), [Err(inside)]);
        assert_eq!(registration.remove().await, Ok(()), "from outside");
    }
}

#[tokio::test(start_paused = true)]
async fn c27_a_handler_may_remove_another_and_wait_for_it() {
    let (mut rig, mut other) = (Rig::listed(), Rig::listed());
    let witness = Witness::default();
    let (own, answers) = (Arc::default(), Arc::default());
    // Both are the first handler of their informers.
    rig.add(Leaver { own: Arc::clone(&own), answers: Arc::clone(&answers), blocking: false });
    *own.lock().unwrap() = Some(other.add(witness.clone()));
    rig.put("a", 1);
    settle().await;
    assert_eq!(*answers.lock().unwrap(), [Ok(())]);
    assert!(witness.is_gone());
}

#[tokio::test(start_paused = true)]
async fn c28_f25_a_panic_is_counted_and_the_next_event_goes_on() {
    for blocking in [false, true] {
        let mut rig = Rig::listed();
        rig.apply(["a", "b", "c"].map(|name| Delta::Added(mk(name, 1))).into(), false);
        let (log, other) = (log(), log());
        let calls = Arc::clone(&log);
        let mut handler = Handler::new().name("brittle").on_add(move |object: &Object<ConfigMap>, _| {
            calls.lock().unwrap().push(object.key().to_string());
            assert!(object.key().name() != "b", "b is too much");
        });
        if blocking {
            handler = handler.blocking();
        }
        let registration = rig.add(handler);
        rig.add(scribe(&other));
        rig.put("d", 2);
        registration.wait_until_synced(Duration::MAX).await.unwrap();
        settle().await;
        assert_eq!((heard(&log).as_str(), heard(&other).as_str()), ("a b c d", "*a@1 *b@1 *c@1 +d@2"));
        assert_eq!(*rig.panics.0.lock().unwrap(), ["configs/brittle"]);
    }
}

#[tokio::test(start_paused = true)]
async fn c29_f24_f25_a_blocked_handler_costs_one_entry_for_each_key_and_ends_right() {
    let mut rig = Rig::listed();
    let witness = Witness::gated();
    let registration = rig.add(witness.clone());
    let mut slow = rig.joining.subscribe().unwrap();
    rig.processor.admit(&rig.store);
    rig.put("first", 1);
    settle().await;
    let mut version = 1;
    for round in 0..200 {
        let deltas = (0..100).map(|n| {
            version += 1;
            let object = mk(&format!("n{n}"), version);
            match (n + round) % 7 {
                0 => Delta::Deleted(Tombstone::Final(object)),
                _ => Delta::Updated(object),
            }
        });
        rig.apply(deltas.collect(), false);
        for pending in [registration.pending(), slow.registration().pending()] {
            assert!(pending <= 101 + 1_024, "{pending} wait after round {round}");
        }
        if round % 50 == 0 {
            witness.open(30);
            settle().await;
        }
    }
    assert!(registration.pending() <= 101 + 1_024 && version > 20_000);
    witness.open(10_000);
    settle().await;
    witness.agrees_with(&rig.store);
    let mut streamed = Witness::default();
    let waiting = slow.registration().pending();
    assert!(waiting <= 101);
    for _ in 0..waiting {
        let notice = slow.next().await.unwrap();
        match &notice.event {
            Event::Added(object) => streamed.on_add(object, notice.initial).await,
            Event::Updated { old, new } => streamed.on_update(old, new).await,
            Event::Deleted(tombstone) => streamed.on_delete(tombstone).await,
        }
    }
    streamed.agrees_with(&rig.store);
}

#[tokio::test(start_paused = true)]
async fn c29_the_adds_of_a_first_list_are_shared_however_many_wait() {
    let mut rig = Rig::new(Duration::ZERO);
    let witness = Witness::gated();
    let registration = rig.add(witness.clone());
    rig.apply((0..10_000).map(|n| Delta::Added(mk(&format!("{n}"), 1))).collect(), true);
    rig.apply((0..1_000).map(|n| Delta::Updated(mk(&format!("{n}"), 2))).collect(), false);
    assert_eq!(registration.pending(), 11_000, "nothing was merged");
    rig.apply((0..1_000).map(|n| Delta::Updated(mk(&format!("{n}"), 3))).collect(), false);
    assert_eq!(registration.pending(), 10_000, "one for each key");
    witness.open(20_000);
    settle().await;
    witness.agrees_with(&rig.store);
}

/// Counts what it hears, and wants to hear everything.
struct Counter(Arc<AtomicUsize>);

impl EventHandler<ConfigMap> for Counter {
    async fn on_update(&mut self, _: &Object<ConfigMap>, _: &Object<ConfigMap>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn merges(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn c29_a_handler_that_does_not_merge_hears_of_everything() {
    let mut rig = Rig::listed();
    let counts = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let registration = rig.add(Counter(Arc::clone(&counts[0])));
    rig.add(Counter(Arc::clone(&counts[1])).filter(|_| true));
    (0..=5_000).for_each(|version| rig.put("a", version + 1));
    assert_eq!(registration.pending(), 5_001);
    settle().await;
    assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [5_000; 2]);
}

#[tokio::test(start_paused = true)]
async fn c30_stop_returns_after_the_last_callback_and_leaves_no_task() {
    let mut rig = Rig::listed();
    let busy = [Witness::gated(), Witness::gated()];
    let registrations = busy.each_ref().map(|witness| rig.add(witness.clone()));
    let (idle, waiting) = (Witness::default(), Witness::default());
    rig.add(idle.clone());
    (1..=5).for_each(|version| rig.put("a", version));
    settle().await;
    let newcomer = rig.joining.add(waiting.clone()).unwrap();
    let mut stop = Box::pin(rig.processor.stop(None));
    assert!(stop.as_mut().now_or_never().is_none(), "two callbacks are running");
    busy[0].open(9);
    settle().await;
    assert!(stop.as_mut().now_or_never().is_none(), "one callback is running");
    busy[1].open(9);
    stop.await;
    assert!(busy.iter().all(|witness| witness.is_gone() && witness.events() == 1));
    assert!(idle.is_gone() && waiting.is_gone());
    assert!(registrations.iter().all(Registration::has_synced));
    let stopped = HandlerSyncError::Stopped { handler: newcomer.name().to_owned() };
    assert_eq!(newcomer.wait_until_synced(Duration::MAX).await, Err(stopped));
    let refused = rig.joining.add(Handler::new().name("late")).unwrap_err();
    assert_eq!(refused, AddHandlerError::Stopped { handler: "late".into() });
    assert!(refused.to_string().contains("the informer has stopped"), "{refused}");
    assert!(rig.joining.subscribe().is_err());
}

#[tokio::test(start_paused = true)]
async fn c30_dropping_the_processor_or_the_way_in_ends_all_handlers() {
    let mut rig = Rig::listed();
    let (busy, never) = (Witness::gated(), Witness::default());
    let registration = rig.add(busy.clone());
    rig.put("a", 1);
    settle().await;
    drop(rig.processor);
    assert_eq!(registration.remove().await, Ok(()));
    assert!(busy.is_gone());
    let joining = Joining::new();
    let registration = joining.add(never.clone()).unwrap();
    drop(joining);
    assert!(never.is_gone() && registration.wait_until_synced(Duration::MAX).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_the_informer_and_leaves_it_when_dropped() {
    let mut rig = Rig::listed();
    rig.put("a", 1);
    let [mut ends, dropped] = [(); 2].map(|()| rig.joining.subscribe().unwrap());
    rig.processor.admit(&rig.store);
    assert_eq!(rig.processor.members().lags().len(), 2);
    drop(dropped);
    rig.put("b", 2);
    assert_eq!(rig.processor.members().lags(), [("handler-1".to_owned(), 2)]);
    let first = ends.next().await.unwrap();
    assert!(first.initial && first.key().name() == "a" && !ends.registration().has_synced());
    let second = ends.next().await.unwrap();
    assert!(!second.initial && second.key().name() == "b" && ends.registration().has_synced());
    assert!(ends.next().now_or_never().is_none());
    rig.put("c", 3);
    rig.processor.stop(None).await;
    assert!(ends.next().await.is_none(), "what waits at the stop is dropped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f26_handlers_come_and_go_in_a_storm_of_events() {
    let mut rig = Rig::listed();
    let joining = Arc::clone(&rig.joining);
    let stays: Arc<Mutex<Vec<(Witness, Registration)>>> = Arc::default();
    let kept = Arc::clone(&stays);
    let coming = tokio::spawn(async move {
        for n in 0..200 {
            let witness = Witness::default();
            let registration = joining.add(witness.clone()).unwrap();
            if n % 3 == 0 {
                registration.remove().await.unwrap();
                assert!(witness.is_gone());
            } else {
                kept.lock().unwrap().push((witness, registration));
            }
            tokio::task::yield_now().await;
        }
    });
    let mut version = 0;
    let deadline = Deadline::start();
    while !coming.is_finished() {
        deadline.check("all handlers have come");
        rig.processor.admit(&rig.store);
        let deltas = (0..50).map(|n| {
            version += 1;
            let object = mk(&format!("n{}", n * 7 % 20), version);
            if version % 5 == 0 { Delta::Deleted(Tombstone::Final(object)) } else { Delta::Updated(object) }
        });
        rig.apply(deltas.collect(), false);
        tokio::task::yield_now().await;
    }
    coming.await.unwrap();
    rig.processor.admit(&rig.store);
    let stays = std::mem::take(&mut *stays.lock().unwrap());
    for (witness, registration) in &stays {
        registration.wait_until_synced(Duration::MAX).await.unwrap();
        let deadline = Deadline::start();
        while registration.pending() > 0 {
            deadline.check("all is told");
            tokio::task::yield_now().await;
        }
        witness.agrees_with(&rig.store);
    }
    rig.processor.stop(None).await;
    assert!(stays.iter().all(|(witness, _)| witness.is_gone()));
}

//! Stories of the two queues, each named after the promise that it tells.

use std::convert::Infallible;

use crate::support::{Config, key, mk, mk_labelled, show, show_deltas};
use informer::{
    Event, Tombstone,
    model::ResourceVersion,
    queue::{self, Closed, DeltaFifo, InOrderFifo, Queue, Replacement, SharedQueue, Transform},
    store::{self, Store, StoreWriter},
};
use k8s_openapi::api::core::v1::ConfigMap;

fn list(objects: Vec<Config>, version: u64) -> Replacement<ConfigMap> {
    Replacement::new(objects, version)
}

fn gone(object: Config) -> Tombstone<ConfigMap> {
    Tombstone::Final(object)
}

/// A store that has these objects, and a queue in front of it.
fn delta_fifo(stored: Vec<Config>) -> (StoreWriter<ConfigMap>, Store<ConfigMap>, DeltaFifo<ConfigMap>) {
    let (mut writer, store) = store::new();
    writer.write(|batch| batch.replace(Replacement::new(stored, ResourceVersion::UNSET)));
    (writer, store.clone(), DeltaFifo::new(store))
}

/// Pops until nothing is left, `max` at a time, and shows each pop.
fn drain(queue: &mut impl Queue<ConfigMap>, max: usize) -> Vec<String> {
    std::iter::from_fn(|| {
        let deltas = queue.pop(max);
        queue.done();
        (!deltas.is_empty()).then(|| show_deltas(&deltas))
    })
    .collect()
}

/// Applies all that waits, as an informer does it, and shows the events.
fn process(
    queue: &mut impl Queue<ConfigMap>,
    writer: &mut StoreWriter<ConfigMap>,
    max: usize,
) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        let deltas = queue.pop(max);
        if deltas.is_empty() {
            return told;
        }
        writer.write(|batch| queue::apply(deltas, batch, |event| told.push(show_event(&event))));
        queue.done();
    }
}

fn show_event(event: &Event<ConfigMap>) -> String {
    match event {
        Event::Added(new) => format!("+{new:?}"),
        Event::Updated { old, new } => format!("~{old:?}→{new:?}"),
        Event::Deleted(Tombstone::Final(last)) => format!("-{last:?}"),
        Event::Deleted(Tombstone::Unknown { last_seen, .. }) => format!("?{}", show(last_seen)),
        Event::Deleted(Tombstone::Left { last_seen, .. }) => format!("!{last_seen:?}"),
    }
}

#[test]
fn c14_every_event_comes_in_the_order_of_arrival() {
    let mut queue = InOrderFifo::new();
    queue.added(mk("a", 1));
    queue.added(mk("b", 2));
    queue.updated(mk("a", 3));
    queue.deleted(gone(mk("a", 4)));
    assert_eq!(drain(&mut queue, 2), ["+a@1 +b@2 #2", "~a@3 -a@4 #4"]);
}

#[test]
fn c14_a_relist_is_one_step_against_the_cache_at_processing_time() {
    let (mut writer, store) = store::new();
    let mut queue = InOrderFifo::new();
    queue.replace(list(vec![mk("b", 1), mk("a", 1), mk("c", 1)], 5));
    queue.added(mk("d", 6));
    // `d` is in neither the store nor the list when the list arrives, but in the store when its turn comes.
    queue.replace(list(vec![mk("c", 7), mk("b", 8)], 8));
    queue.updated(mk("c", 9));
    let told = process(&mut queue, &mut writer, 100);
    assert_eq!(
        told,
        ["+b@1", "+a@1", "+c@1", "+d@6", "?a@1", "?d@6", "~c@1→c@7", "~b@1→b@8", "~c@7→c@9"],
        "deletions first, then the list in its order"
    );
    assert_eq!((show(store.snapshot().iter()), store.resource_version()), ("b@8 c@9".into(), 9.into()));
}

#[test]
fn c14_the_store_changes_in_one_step_before_anybody_hears_of_it() {
    let (mut writer, store) = store::new();
    let mut queue = InOrderFifo::new();
    queue.replace(list(vec![mk("a", 1), mk("b", 1)], 5));
    let deltas = queue.pop(10);
    let mut events = Vec::new();
    writer.write(|batch| {
        queue::apply(deltas, batch, |event| {
            assert!(store.is_empty(), "no reader sees a half of it");
            events.push(event);
        });
    });
    assert_eq!((events.len(), store.len()), (2, 2));
}

#[test]
fn c14_many_at_once_end_as_one_by_one() {
    // Keys come back within what is looked up together, as updates, as deletions and as newcomers.
    let fill = |queue: &mut InOrderFifo<ConfigMap>| {
        for n in 0..200u64 {
            let name = format!("{}", n * 7 % 40);
            match n % 5 {
                0 => queue.added(mk(&name, n)),
                1 => queue.deleted(gone(mk(&name, n))),
                _ => queue.updated(mk(&name, n)),
            }
        }
    };
    let told = |max| {
        let (mut queue, (mut writer, store)) = (InOrderFifo::new(), store::new());
        fill(&mut queue);
        (process(&mut queue, &mut writer, max), show(store.snapshot().iter()))
    };
    assert_eq!(told(200), told(1));
}

#[test]
fn in_order_synced_when_the_first_list_has_been_processed() {
    let mut queue = InOrderFifo::<ConfigMap>::new();
    queue.added(mk("a", 1));
    drain(&mut queue, 10);
    assert!(!queue.has_synced(), "events alone are no list");
    queue.replace(list(vec![], 2));
    assert!(!queue.has_synced());
    let deltas = queue.pop(10);
    assert!(!queue.has_synced(), "popped is not processed");
    queue.retry(deltas);
    queue.done();
    assert!(!queue.has_synced(), "it failed and comes again");
    assert_eq!(drain(&mut queue, 10), ["=[]#2"]);
    assert!(queue.has_synced());
}

#[test]
fn in_order_bookmarks_and_resyncs_are_separate_and_do_not_pile_up() {
    let mut queue = InOrderFifo::new();
    queue.bookmark(5.into());
    queue.bookmark(6.into());
    queue.resync();
    queue.added(mk("a", 7));
    queue.resync();
    queue.bookmark(8.into());
    assert_eq!(queue.len(), 4);
    assert_eq!(drain(&mut queue, 10), ["#6 .. +a@7 #8"]);
}

#[test]
fn in_order_a_retried_event_is_overtaken_by_nothing() {
    let mut queue = InOrderFifo::new();
    queue.added(mk("a", 1));
    queue.added(mk("b", 2));
    let mut deltas = queue.pop(2);
    queue.updated(mk("a", 3));
    queue.retry(deltas.split_off(1));
    queue.done();
    assert_eq!(drain(&mut queue, 10), ["+b@2 #2 ~a@3 #3"]);
}

#[test]
fn resync_shows_every_object_again_and_changes_nothing() {
    for in_order in [true, false] {
        let (mut writer, store, mut keyed) = delta_fifo(vec![mk("a", 1), mk("b", 2)]);
        let told = if in_order {
            let mut queue = InOrderFifo::new();
            queue.resync();
            process(&mut queue, &mut writer, 100)
        } else {
            keyed.resync();
            process(&mut keyed, &mut writer, 100)
        };
        assert_eq!(told, ["~a@1→a@1", "~b@2→b@2"]);
        assert_eq!(show(store.snapshot().iter()), "a@1 b@2");
    }
}

#[test]
fn c15_one_pop_has_all_that_happened_to_a_key() {
    let (_writer, _store, mut queue) = delta_fifo(vec![]);
    queue.added(mk("a", 1));
    queue.added(mk("b", 2));
    queue.updated(mk("a", 3));
    queue.deleted(gone(mk("a", 4)));
    queue.added(mk("a", 5));
    assert_eq!(drain(&mut queue, 1), ["+a@1 ~a@3 -a@4 +a@5", "+b@2", "#5"], "and no key jumps the line");
}

#[test]
fn c15_only_deletions_in_a_row_collapse_and_the_better_one_stays() {
    let (_writer, _store, mut queue) = delta_fifo(vec![mk("a", 1)]);
    let unknown = |last_seen| Tombstone::Unknown { key: key("a"), last_seen };
    queue.deleted(unknown(None));
    queue.deleted(unknown(Some(mk("a", 2))));
    queue.deleted(gone(mk("a", 3)));
    queue.deleted(unknown(Some(mk("a", 1))));
    queue.added(mk("a", 4));
    queue.updated(mk("a", 5));
    queue.updated(mk("a", 5));
    queue.deleted(unknown(Some(mk("a", 5))));
    queue.deleted(unknown(None));
    assert_eq!(drain(&mut queue, 1)[0], "-a@3 +a@4 ~a@5 ~a@5 ?a@5");
}

#[test]
fn c15_deleting_what_nobody_knows_is_ignored() {
    let (_writer, _store, mut queue) = delta_fifo(vec![mk("stored", 1)]);
    queue.deleted(gone(mk("unknown", 2)));
    assert_eq!(drain(&mut queue, 1), ["#2"], "but for its version");
    queue.deleted(gone(mk("stored", 3)));
    queue.added(mk("queued", 4));
    queue.deleted(gone(mk("queued", 5)));
    assert_eq!(drain(&mut queue, 1), ["-stored@3", "+queued@4 -queued@5", "#5"]);
}

#[test]
fn c15_replace_buries_what_is_missing_with_the_newest_state_known() {
    let (_writer, _store, mut queue) = delta_fifo(vec![mk("both", 1), mk("listed", 1), mk("stored", 1)]);
    queue.updated(mk("both", 2));
    queue.added(mk("queued", 3));
    queue.deleted(gone(mk("listed", 4)));
    let unusable = vec![key("broken")];
    queue.replace(Replacement {
        namespace: None,
        objects: vec![mk("listed", 5)],
        unusable,
        version: 6.into(),
    });
    assert_eq!(
        drain(&mut queue, 1),
        ["~both@2 ?both@2", "+queued@3 ?queued@3", "-listed@4 =listed@5", "?stored@1", "#6"]
    );
}

#[test]
fn c15_what_is_in_flight_counts_as_known() {
    let (mut writer, store, mut queue) = delta_fifo(vec![mk("old", 1)]);
    queue.added(mk("new", 2));
    queue.deleted(gone(mk("old", 3)));
    // Both are popped but not yet in the store when the list arrives.
    let deltas = queue.pop(2);
    queue.replace(list(vec![], 4));
    queue.resync();
    writer.write(|batch| queue::apply(deltas, batch, |_| {}));
    queue.done();
    assert_eq!(process(&mut queue, &mut writer, 100), ["?new@2"]);
    assert!(store.is_empty(), "an object that was in flight is not forgotten");
}

#[test]
fn c15_resync_skips_keys_with_something_pending() {
    let (mut writer, _store, mut queue) = delta_fifo(vec![mk("a", 1), mk("b", 1), mk("c", 1)]);
    queue.updated(mk("b", 2));
    let in_flight = queue.pop(1);
    queue.updated(mk("c", 3));
    queue.resync();
    writer.write(|batch| queue::apply(in_flight, batch, |_| {}));
    queue.done();
    let told = process(&mut queue, &mut writer, 1);
    assert_eq!(
        told,
        ["~c@1→c@3", "~a@1→a@1"],
        "b was in flight, c waits: neither is shown in an older state"
    );
}

#[test]
fn c15_synced_when_all_of_the_first_list_has_been_processed() {
    let (_writer, _store, mut queue) = delta_fifo(vec![mk("stored", 1)]);
    queue.added(mk("other", 2));
    assert!(!queue.has_synced());
    // Twice the same key, a deletion that the list implies, and a key that waits already.
    queue.replace(list(vec![mk("a", 3), mk("b", 3), mk("a", 3), mk("other", 2)], 4));
    for expected in ["+other@2 =other@2", "?stored@1", "=a@3 =a@3"] {
        assert_eq!(show_deltas(&queue.pop(1)), expected);
        queue.done();
        assert!(!queue.has_synced(), "after {expected}");
    }
    let last = queue.pop(1);
    assert!(!queue.has_synced(), "popped is not processed");
    queue.retry(last);
    queue.done();
    assert!(!queue.has_synced(), "it failed and comes again");
    drain(&mut queue, 1);
    assert!(queue.has_synced());
    queue.replace(list(vec![mk("c", 5)], 6));
    assert!(queue.has_synced(), "only the first list counts");
}

#[test]
fn c15_an_empty_first_list_is_a_list() {
    let (_writer, _store, mut queue) = delta_fifo(vec![]);
    assert!(!queue.has_synced());
    queue.replace(list(vec![], 4));
    assert!(queue.has_synced());
    assert_eq!(drain(&mut queue, 1), ["#4"]);
}

#[test]
fn c15_a_failed_item_is_queued_again_unless_a_newer_one_is() {
    let (_writer, _store, mut queue) = delta_fifo(vec![]);
    queue.added(mk("a", 1));
    queue.updated(mk("a", 2));
    queue.added(mk("b", 3));
    let failed = queue.pop(3);
    queue.updated(mk("b", 4));
    queue.retry(failed);
    queue.done();
    assert_eq!(drain(&mut queue, 1), ["#3", "~b@4", "+a@1 ~a@2", "#4"]);
}

#[test]
fn c15_a_bookmark_waits_for_the_keys_before_it() {
    let (_writer, _store, mut queue) = delta_fifo(vec![]);
    queue.added(mk("a", 1));
    queue.bookmark(5.into());
    queue.bookmark(6.into());
    queue.updated(mk("a", 7));
    queue.added(mk("b", 8));
    assert_eq!(drain(&mut queue, 1), ["+a@1 ~a@7", "#6", "+b@8", "#8"]);
}

#[test]
fn c16_a_transform_that_fails_or_panics_names_the_object() {
    let stamp = Transform::new(|object: &mut ConfigMap| {
        let labels = object.metadata.labels.get_or_insert_default();
        if labels.contains_key("refused") {
            return Err("refused");
        }
        assert!(!labels.contains_key("boom"), "this one panics");
        labels.insert("stamped".to_owned(), String::new());
        Ok(())
    });
    assert_eq!(stamp.apply(mk("a", 1)).unwrap().labels().get("stamped"), Some(""));
    let failure = |label| stamp.apply(mk_labelled("b", 2, &[(label, "")])).unwrap_err().to_string();
    assert_eq!(failure("refused"), "the transform failed for b: refused");
    assert_eq!(failure("boom"), "the transform failed for b: it panicked: this one panics");
}

#[tokio::test]
async fn c15_closing_wakes_every_popper_and_drains_first() {
    let queue = SharedQueue::new(InOrderFifo::new());
    let poppers: Vec<_> = (0..10)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut seen = 0;
                while let Some(batch) = queue.pop(1).await {
                    seen += batch.iter().filter(|delta| delta.key().is_some()).count();
                }
                seen
            })
        })
        .collect();
    tokio::task::yield_now().await;
    for version in 1..=25 {
        queue.added(mk("a", version)).unwrap();
    }
    queue.close();
    assert_eq!(queue.added(mk("late", 99)), Err(Closed));
    let mut seen = 0;
    for popper in poppers {
        seen += popper.await.unwrap();
    }
    assert_eq!(seen, 25, "what was queued before the end is still delivered, once");
}

#[tokio::test]
async fn one_batch_is_out_at_a_time() {
    let queue = SharedQueue::new(InOrderFifo::new());
    queue.added(mk("a", 1)).unwrap();
    queue.added(mk("a", 2)).unwrap();
    let mut first = queue.pop(1).await.unwrap();
    let second = tokio::spawn({
        let queue = queue.clone();
        async move { show_deltas(&queue.pop(1).await.unwrap()) }
    });
    tokio::task::yield_now().await;
    assert!(!second.is_finished());
    let again = first.take();
    first.retry(again);
    drop(first);
    assert_eq!(second.await.unwrap(), "+a@1 #1", "what failed comes again first");
}

#[test]
fn a_transform_that_cannot_fail_reads_well() {
    let trim = Transform::new(|object: &mut ConfigMap| {
        object.data = None;
        Ok::<(), Infallible>(())
    });
    assert!(trim.apply(mk("a", 1)).unwrap().data.is_none());
}

#[test]
fn c15_a_deletion_that_is_ignored_moves_the_version_in_its_turn() {
    let (_writer, _store, mut queue) = delta_fifo(vec![]);
    queue.deleted(gone(mk("unknown", 7)));
    assert_eq!(drain(&mut queue, 10), ["#7"]);
    queue.added(mk("a", 8));
    queue.bookmark(9.into());
    queue.deleted(gone(mk("unknown", 10)));
    assert_eq!(drain(&mut queue, 1), ["+a@8", "#10"], "nothing before what waited");
}

#[test]
fn c26_a_resync_shows_what_the_store_has_when_its_turn_comes() {
    let (mut writer, store, mut queue) = delta_fifo(vec![mk("a", 1), mk("b", 1), mk("c", 1)]);
    queue.resync();
    // Another queue in front of the same store was quicker.
    writer.write(|batch| {
        batch.remove(&key("a"));
        batch.insert(mk("b", 2));
    });
    assert_eq!(process(&mut queue, &mut writer, 100), ["~b@2→b@2", "~c@1→c@1"]);
    assert_eq!(show(store.snapshot().iter()), "b@2 c@1");
}

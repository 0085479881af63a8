//! Handlers that are slow, panic, block, come and go; and readers without mercy.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use informer::{
    EventHandler, Handler, Object, Registration, Tombstone,
    model::{ObjectKey, ResourceVersion},
};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::cluster::{in_real_time, over_seeds, until};

type Config = Object<ConfigMap>;

/// A handler that needs a second for an event, and knows what it was told.
struct Slow(Arc<Mutex<BTreeMap<ObjectKey, ResourceVersion>>>);

impl Slow {
    async fn note(&mut self, object: &Config) {
        sleep(Duration::from_secs(1)).await;
        self.0.lock().unwrap().insert(object.key().clone(), object.resource_version().clone());
    }
}

impl EventHandler<ConfigMap> for Slow {
    async fn on_add(&mut self, object: &Config, _: bool) {
        self.note(object).await;
    }

    async fn on_update(&mut self, _: &Config, new: &Config) {
        self.note(new).await;
    }

    async fn on_delete(&mut self, gone: &Tombstone<ConfigMap>) {
        sleep(Duration::from_secs(1)).await;
        self.0.lock().unwrap().remove(gone.key());
    }
}

#[test]
fn f24_a_handler_slower_than_events_for_an_hour_costs_its_keys_and_ends_with_the_right_state() {
    over_seeds(2, async |mut cluster| {
        let watched = cluster.synced().await;
        let told = Arc::new(Mutex::new(BTreeMap::new()));
        let slow = watched.informer.add_handler(Slow(Arc::clone(&told))).expect("it runs");
        let began = Instant::now();
        let mut most = 0;
        while began.elapsed() < Duration::from_secs(3_600) {
            cluster.write_for(20, Duration::from_secs(1)).await;
            most = most.max(slow.pending());
        }
        // So many before it merges, the batch that it is at, and one for each key.
        assert!((1_000..=1_024 + 1_024 + 16).contains(&most), "{most} events waited");
        watched.converges(&cluster).await;
        until(|| slow.pending() == 0, || format!("{} wait", slow.pending())).await;
        assert_eq!(*told.lock().unwrap(), watched.cached());
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f25_a_handler_that_panics_hears_the_next_event_and_troubles_nobody() {
    over_seeds(20, async |mut cluster| {
        cluster.write(20);
        let watched = cluster.watched();
        let heard = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&heard);
        let panics = move |object: &Config| {
            if counted.fetch_add(1, SeqCst).is_multiple_of(3) {
                panic!("no more of {}", object.key());
            }
        };
        let panicking = watched.informer.add_handler(
            Handler::new()
                .on_add({
                    let panics = panics.clone();
                    move |object, _| panics(object)
                })
                .on_update(move |_, new| panics(new)),
        );
        let panicking = panicking.expect("it runs");
        watched.converges(&cluster).await;
        panicking.wait_until_synced(Duration::MAX).await.expect("synced though it panicked");
        let before = heard.load(SeqCst);
        cluster.write(30);
        watched.converges(&cluster).await;
        until(|| panicking.pending() == 0, || "events wait".to_owned()).await;
        assert!(heard.load(SeqCst) > before);
        watched.ends_well(&cluster).await;
    });
}

/// A handler that never comes back, unless it is told to.
struct Blocked(Arc<Notify>);

impl EventHandler<ConfigMap> for Blocked {
    async fn on_add(&mut self, _: &Config, _: bool) {
        self.0.notified().await;
    }
}

#[test]
fn f25_a_handler_that_blocks_for_good_keeps_nobody_else_from_their_events() {
    over_seeds(10, async |mut cluster| {
        cluster.write(20);
        let watched = cluster.watched();
        let release = Arc::new(Notify::new());
        let blocked = watched.informer.add_handler(Blocked(Arc::clone(&release))).expect("it runs");
        for _ in 0..40 {
            cluster.write(100);
            watched.converges(&cluster).await;
        }
        assert!(!blocked.has_synced());
        assert!(blocked.pending() <= 1_024 + 1_024 + 16, "{} events wait", blocked.pending());
        // Removing it waits for the callback, which may be never: whoever removes it decides.
        let removal = tokio::time::timeout(Duration::from_secs(60), blocked.remove()).await;
        assert!(removal.is_err(), "{removal:?}");
        release.notify_waiters();
        blocked.remove().await.expect("removed");
        watched.ends_well(&cluster).await;
    });
}

/// A handler that has had enough after some events.
struct Leaving {
    left: usize,
    registration: Arc<Mutex<Option<Registration>>>,
    outcome: Arc<Mutex<Vec<String>>>,
}

impl EventHandler<ConfigMap> for Leaving {
    async fn on_add(&mut self, _: &Config, _: bool) {
        self.left = self.left.saturating_sub(1);
        let registration = self.registration.lock().unwrap().clone();
        if let (0, Some(registration)) = (self.left, registration) {
            let outcome = format!("{:?}", registration.remove().await);
            self.outcome.lock().unwrap().push(outcome);
        }
    }
}

#[test]
fn f25_a_handler_that_removes_itself_is_told_so_and_hears_nothing_more() {
    over_seeds(20, async |mut cluster| {
        let watched = cluster.synced().await;
        let (registration, outcome) = (Arc::new(Mutex::new(None)), Arc::default());
        let left = 1 + cluster.pick(0..4);
        let leaving =
            Leaving { left, registration: Arc::clone(&registration), outcome: Arc::clone(&outcome) };
        let added = watched.informer.add_handler(leaving).expect("it runs");
        *registration.lock().unwrap() = Some(added.clone());
        cluster.write(60);
        watched.converges(&cluster).await;
        until(|| !outcome.lock().unwrap().is_empty(), || "it has not left".to_owned()).await;
        cluster.write(60);
        watched.converges(&cluster).await;
        let outcome = outcome.lock().unwrap().clone();
        assert!(matches!(&outcome[..], [once] if once.contains("Inside")), "{outcome:?}");
        added.remove().await.expect("removed already");
        *registration.lock().unwrap() = None;
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f26_handlers_come_and_go_in_a_storm_and_each_hears_a_whole_story() {
    over_seeds(30, async |mut cluster| {
        let mut watched = cluster.synced().await;
        for _ in 0..40 {
            let count = cluster.pick(1..30);
            cluster.write(count);
            if cluster.pick(0..3) > 0 {
                watched.join();
            } else if watched.handlers.len() > 1 {
                let at = cluster.pick(1..watched.handlers.len());
                let handler = watched.handlers.swap_remove(at);
                handler.registration.remove().await.expect("removed");
                handler.check();
                let heard = handler.events();
                cluster.write(5);
                sleep(Duration::from_millis(1)).await;
                assert_eq!(handler.events(), heard, "it hears nothing more");
            }
            if cluster.chance() {
                tokio::task::yield_now().await;
            } else {
                cluster.pause(Duration::from_millis(5)).await;
            }
        }
        for handler in &watched.handlers {
            handler.registration.wait_until_synced(Duration::MAX).await.expect("synced");
        }
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f27_readers_that_list_without_a_pause_do_not_starve_the_writer() {
    in_real_time(async |mut cluster| {
        let watched = cluster.synced().await;
        let (done, lists) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let (done, lists, store) = (Arc::clone(&done), Arc::clone(&lists), watched.informer.store());
                std::thread::spawn(move || {
                    let web = "app=web".parse().expect("a selector");
                    while !done.load(SeqCst) {
                        let snapshot = store.snapshot();
                        let listed = store.list(&web).len();
                        assert_eq!(snapshot.iter().count(), snapshot.len());
                        assert!(listed <= 16);
                        lists.fetch_add(1, SeqCst);
                    }
                })
            })
            .collect();
        for _ in 0..100 {
            cluster.write(50);
            watched.converges(&cluster).await;
        }
        let before = lists.load(SeqCst);
        until(|| lists.load(SeqCst) > before, || "nobody reads".to_owned()).await;
        done.store(true, SeqCst);
        for reader in readers {
            reader.join().expect("every list is one point in time");
        }
        watched.ends_well(&cluster).await;
    });
}

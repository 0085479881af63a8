//! Handlers that go.

use std::{sync::Arc, time::Duration};

use informer::{
    EventHandler, Registration,
    shared::{HandlerSyncError, RemoveError},
};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep},
};

use super::{
    handlers::Gated,
    stage::{Log, MINUTE, Stage, informer, put, server, settle},
    support::Config,
};

#[tokio::test(start_paused = true)]
async fn c27_a_removed_handler_hears_nothing_more_and_removing_it_again_does_no_harm() {
    let server = server(&["a/x"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let (gone, stays) = (Log::default(), Log::default());
    let registration = stage.informer.add_handler(gone.handler()).unwrap();
    let twin = stage.informer.add_handler(gone.handler()).unwrap();
    stage.informer.add_handler(stays.handler()).unwrap();
    settle().await;
    assert_eq!(gone.take(), "*a/x@2 *a/x@2", "the same log twice is two handlers");
    for _ in 0..2 {
        registration.remove().await.unwrap();
        twin.remove().await.unwrap();
    }
    put(&server, "a/y");
    settle().await;
    assert_eq!((gone.take().as_str(), stays.take().as_str()), ("", "*a/x@2 +a/y@3"));
    let other = stage.informer.add_handler(gone.handler()).unwrap();
    stage.end().await;
    other.remove().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c27_removing_drops_what_waits_and_waits_for_the_running_callback() {
    let server = server(&["a/x", "a/y", "a/z"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let (gate, log, registration) = Gated::add(&stage.informer);
    settle().await;
    assert_eq!(registration.pending(), 3);
    let removing = tokio::spawn({
        let registration = registration.clone();
        async move { registration.remove().await }
    });
    settle().await;
    assert!(!removing.is_finished(), "the callback is still running");
    assert_eq!(registration.pending(), 0, "what waited is dropped");
    gate.add_permits(10);
    removing.await.unwrap().unwrap();
    assert_eq!(log.take(), "*a/x@2");
    let error = registration.wait_until_synced(MINUTE).await.unwrap_err();
    assert!(matches!(error, HandlerSyncError::Removed { .. }), "{error}");
    stage.end().await;
}

/// A handler that removes itself.
struct Leaving {
    registration: Arc<OnceCell<Registration>>,
    log: Log,
}

impl EventHandler<ConfigMap> for Leaving {
    async fn on_add(&mut self, object: &Config, _: bool) {
        let registration = self.registration.get().expect("it was added");
        let error = registration.remove().await.expect_err("it cannot wait for itself");
        assert!(matches!(error, RemoveError::InsideHandler { .. }));
        sleep(Duration::from_secs(1)).await;
        self.log.note(format!("{object:?} {error}"));
    }
}

#[tokio::test(start_paused = true)]
async fn c27_removing_from_inside_the_callback_says_so_instead_of_waiting_for_ever() {
    let server = server(&["a/x", "a/y"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let (cell, log) = (Arc::new(OnceCell::new()), Log::default());
    let handler = Leaving { registration: Arc::clone(&cell), log: log.clone() };
    let registration = stage.informer.add_handler(handler).unwrap();
    cell.set(registration.clone()).unwrap();
    settle().await;
    let began = Instant::now();
    registration.remove().await.unwrap();
    assert!(began.elapsed() > Duration::from_millis(900), "from outside it waits");
    let heard = log.take();
    assert!(heard.starts_with("a/x@2 ") && heard.contains("from inside its own callback"), "{heard}");
    assert!(!heard.contains("a/y"), "{heard}");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c27_a_handler_removed_before_the_start_never_hears_anything() {
    let (server, log) = (server(&["a/x"]), Log::default());
    let informer = informer(&server);
    let registration = informer.add_handler(log.handler()).unwrap();
    registration.remove().await.unwrap();
    let stage = Stage::synced(&server, informer).await;
    assert_eq!(log.take(), "");
    stage.end().await;
}

/// A handler that removes another one from inside its callback, and notes what came of it.
struct Removes {
    other: Arc<OnceCell<Registration>>,
    log: Log,
}

impl EventHandler<ConfigMap> for Removes {
    async fn on_add(&mut self, _object: &Config, _initial: bool) {
        // Both are in their callbacks before either goes on.
        sleep(Duration::from_secs(1)).await;
        let removed = self.other.get().expect("it was added").remove().await;
        self.log.note(match removed {
            Ok(()) => "waited".to_owned(),
            Err(error) => error.to_string(),
        });
    }
}

#[tokio::test(start_paused = true)]
async fn c27_handlers_that_remove_each_other_in_a_circle_do_not_wait_for_ever() {
    for count in [2, 3] {
        let (server, log) = (server(&["a/x"]), Log::default());
        let stage = Stage::synced(&server, informer(&server)).await;
        let cells: Vec<Arc<OnceCell<Registration>>> = (0..count).map(|_| Arc::default()).collect();
        for (at, cell) in cells.iter().enumerate() {
            let other = Arc::clone(&cells[(at + 1) % count]);
            let registration = stage.informer.add_handler(Removes { other, log: log.clone() }).unwrap();
            cell.set(registration).expect("once");
        }
        sleep(Duration::from_secs(2)).await;
        let heard = log.take();
        assert_eq!(heard.matches("waited").count(), count - 1, "{heard}");
        assert!(heard.contains("which waits for the one that removes it"), "{heard}");
        tokio::time::timeout(Duration::from_secs(60), stage.end()).await.expect("it ends");
    }
}

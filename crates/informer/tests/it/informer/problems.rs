//! What goes wrong with listing and watching: how it is told, and how it ends.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use informer::{
    Handler, SharedInformer, SyncError,
    model::{Reason, ResourceVersion, Status},
    source::{
        ListItem, ListOptions, ListStream, ListWatch, MemorySource, PageEnd, Request, SourceError, WatchItem,
        WatchStream,
    },
};
use k8s_openapi::api::core::v1::ConfigMap;
use tracing::Level;

use super::{
    log_lines::LogLines,
    stage::{Log, MINUTE, QUEUES, Stage, Stuck, builder, forbidden, informer, put, seconds, server, settle},
    support::key,
};

#[tokio::test(start_paused = true)]
async fn c11_a_server_that_went_back_in_time_is_noticed_within_one_probe_period() {
    for queue in QUEUES {
        let (server, log) = (server(&["a/old", "a/restored"]), Log::default());
        let version = server.version();
        server.delete(&key("a/restored"));
        put(&server, "a/new");
        put(&server, "a/old");
        let stage = Stage::synced(&server, builder(&server).queue(queue).build().unwrap()).await;
        stage.informer.add_handler(log.handler()).unwrap();
        settle().await;
        assert_eq!(log.take(), "*a/new@5 *a/old@6");
        server.rewind(&version).unwrap();
        seconds(31).await;
        assert_eq!(stage.cached(), "a/old@2 a/restored@3");
        assert_eq!(log.take(), "?a/new@5 ~a/old@6>2 +a/restored@3", "{queue:?}");
        let health = stage.informer.health().to_string();
        assert!(health.contains("was a backup restored?"), "{health}");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c11_a_version_that_was_given_out_twice_is_no_resync() {
    for queue in QUEUES {
        let (server, log) = (server(&["a/same"]), Log::default());
        let version = server.version();
        put(&server, "a/x");
        put(&server, "a/ahead");
        let stage = Stage::synced(&server, builder(&server).queue(queue).build().unwrap()).await;
        let noted = log.clone();
        let handler = Handler::<ConfigMap>::new().on_update(move |old, new| {
            noted.note(format!("{old:?} {}", old.data == new.data));
        });
        stage.informer.add_handler(handler).unwrap();
        server.rewind(&version).unwrap();
        put(&server, "a/x");
        seconds(31).await;
        assert_eq!(stage.cached(), "a/same@2 a/x@3");
        assert_eq!(log.take(), "a/x@3 false", "the same version, and another state");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c11_fifty_namespaces_ask_for_the_version_of_their_server_once_and_not_each() {
    let names: Vec<String> = (0..50).map(|number| format!("ns-{number}/x")).collect();
    let server = server(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut sources = (0..50).map(|number| server.scoped(&format!("ns-{number}")));
    let builder = SharedInformer::builder(sources.next().unwrap()).seed(1);
    let informer = sources.fold(builder, |all, one| all.source(one)).build().unwrap();
    let stage = Stage::synced(&server, informer).await;
    let before = server.lists();
    seconds(600).await;
    let asked = server.lists() - before;
    // Each counts its objects twice or thrice; beyond that, one every 22.5 to 30 s is enough for all.
    assert!((100..=180).contains(&asked), "{asked} lists in ten minutes");
    server.rewind(&"40".into()).unwrap();
    seconds(31).await;
    assert_eq!(stage.informer.store().len(), 39, "all of them notice");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c11_an_object_that_the_watch_did_not_tell_of_is_noticed_by_counting() {
    let (server, log) = (server(&["a/gone"]), Log::default());
    let stage = Stage::synced(&server, informer(&server)).await;
    stage.informer.add_handler(log.handler()).unwrap();
    settle().await;
    log.take();
    server.lose_next_events(1);
    put(&server, "a/new");
    seconds(400).await;
    assert_eq!(log.take(), "+a/new@3");
    server.lose_next_events(1);
    server.delete(&key("a/gone"));
    seconds(400).await;
    assert_eq!(log.take(), "?a/gone@2");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c12_what_is_unauthorized_forbidden_or_absent_is_named_with_what_to_do() {
    let refusals: [(SourceError, &str, &str); 3] = [
        (Status::unauthorized("who are you?").into(), "who are you?", "check the credentials"),
        (forbidden(), "user \"eve\" cannot list it", "grant the verbs list and watch"),
        (
            Status::failure(Reason::NotFound, "no such thing").into(),
            "no such thing",
            "CustomResourceDefinition",
        ),
    ];
    for streaming in [true, false] {
        for (refusal, cause, advice) in &refusals {
            let server = server(&["a/x"]);
            server.fail_next_lists(10, refusal.clone());
            server.fail_next_watches(if streaming { 10 } else { 0 }, refusal.clone());
            let stage = Stage::start(&server, builder(&server).streaming(streaming).build().unwrap());
            let error = stage.informer.wait_until_synced(Duration::from_secs(10)).await.unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with("not synced within 10s: configs: 0 objects, not synced"), "{text}");
            assert!(text.contains(cause) && text.contains(advice), "{text}");
            assert!(text.contains("ConfigMap objects in memory"), "{text}");
            let SyncError::Deadline { health, .. } = error else { panic!("{error}") };
            let (_, trouble) = health.trouble().expect("there is trouble");
            assert!(trouble.times > 1 && !health.is_healthy(), "{health}");
            stage.informer.wait_until_synced(30 * MINUTE).await.expect("it appears later");
            seconds(11).await;
            let health = stage.informer.health();
            assert!(health.is_healthy() && health.to_string().contains("got over this"), "{health}");
            stage.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c13_the_watch_error_handler_sees_every_failure_and_may_panic() {
    let server = server(&["a/x"]);
    let seen = Log::default();
    let noted = seen.clone();
    let builder = builder(&server).streaming(false).watch_error_handler(move |problem, remedy| {
        noted.note(format!("[{}|{}]", problem.cause(), if remedy.relists() { "list" } else { "watch" }));
        panic!("as planned");
    });
    server.fail_next_lists(1, SourceError::Unreachable("as planned".to_owned()));
    server.cut_list_after(0);
    server.fail_next_watches(1, SourceError::Refused("as planned".to_owned()));
    let stage = Stage::synced(&server, builder.build().unwrap()).await;
    seconds(10).await;
    assert_eq!(seen.take(), "[unreachable|list] [connection broken|list] [connection refused|watch]");
    server.break_watches();
    settle().await;
    assert_eq!(seen.take(), "[connection broken|watch]");
    server.inject(&WatchItem::Error(Box::new(Status::too_many_requests("as planned", 1))));
    seconds(10).await;
    assert_eq!(seen.take(), "[too many requests|watch]");
    server.inject(&WatchItem::Error(Box::new(Status::expired("as planned"))));
    seconds(10).await;
    assert_eq!(seen.take(), "[version expired|list]");
    server.inject(&WatchItem::Error(Box::new(Status::internal_error("as planned"))));
    seconds(20).await;
    assert_eq!(seen.take(), "[server error|list]");
    assert_eq!(stage.cached(), "a/x@2");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_log_has_one_warning_for_each_change_of_state_and_not_one_for_each_retry() {
    let lines = LogLines::default();
    let _listening = lines.listen();
    let server = server(&["a/x"]);
    server.fail_next_lists(30, forbidden());
    server.fail_next_lists(30, SourceError::Refused("nobody there".to_owned()));
    let stage = Stage::start(&server, builder(&server).streaming(false).build().unwrap());
    stage.informer.wait_until_synced(60 * MINUTE).await.unwrap();
    seconds(30).await;
    let warnings = lines.take(Level::WARN);
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    assert!(warnings[0].contains("forbidden") && warnings[0].contains("grant the verbs"), "{warnings:#?}");
    assert!(warnings[1].contains("nobody there"), "{warnings:#?}");
    let notes = lines.take(Level::INFO);
    assert!(notes.iter().any(|note| note.contains("works again") && note.contains("60")), "{notes:#?}");
    for _ in 0..20 {
        server.break_watches();
        seconds(20).await;
        server.close_watches();
        seconds(20).await;
    }
    assert_eq!(
        lines.take(Level::WARN),
        Vec::<String>::new(),
        "a watch that goes on at once is no change of state"
    );
    stage.informer.add_handler(Handler::<ConfigMap>::new().on_add(|_, _| panic!("as planned"))).unwrap();
    settle().await;
    let errors = lines.take(Level::ERROR);
    assert!(errors.len() == 1 && errors[0].contains("a handler panicked"), "{errors:#?}");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c12_health_is_good_again_as_soon_as_what_failed_works() {
    for streaming in [true, false] {
        let server = server(&["a/x"]);
        server.fail_next_lists(3, forbidden());
        server.fail_next_watches(if streaming { 3 } else { 0 }, forbidden());
        let stage = Stage::synced(&server, builder(&server).streaming(streaming).build().unwrap()).await;
        let health = stage.informer.health();
        assert!(health.is_healthy() && health.to_string().contains("got over this"), "{health}");

        // Later the watch cannot be opened, and when it is, the question that follows a lost connection fails.
        seconds(5).await;
        server.fail_next_watches(1, SourceError::Refused("nobody there".to_owned()));
        server.fail_next_lists(1, SourceError::Unreachable("nobody there".to_owned()));
        server.break_watches();
        settle().await;
        let health = stage.informer.health();
        assert!(!health.is_healthy() && health.to_string().contains("; watching again in "), "{health}");
        seconds(9).await;
        let health = stage.informer.health();
        assert!(health.is_healthy() && !health.to_string().contains("watching again"), "{health}");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c12_what_is_being_tried_again_is_not_announced_any_more() {
    let server = server(&["a/x"]);
    let stuck = Stuck { server: server.clone(), lists: true, watches: false };
    server.fail_next_watches(100, SourceError::Refused("nobody there".to_owned()));
    let informer = SharedInformer::builder(stuck).streaming(true).seed(1).build().unwrap();
    let stage = Stage::start(&server, informer);
    settle().await;
    assert!(
        stage.informer.health().to_string().contains("; listing again in "),
        "{}",
        stage.informer.health()
    );
    server.stall_watches(true);
    server.fail_next_watches(1, Status::bad_request("no streaming").into());
    seconds(3_600).await;
    let health = stage.informer.health().to_string();
    assert!(health.contains("listing config maps") && health.contains("in trouble for"), "{health}");
    assert!(!health.contains(" again in "), "{health}");
    stage.end().await;
}

/// A server seen through something that changes its answers.
#[derive(Clone)]
struct Seen {
    server: MemorySource<ConfigMap>,
    /// Lists are always of this version.
    version: Option<ResourceVersion>,
    /// Watches are answered with a list.
    drops_watch: bool,
}

impl ListWatch<ConfigMap> for Seen {
    fn description(&self) -> String {
        "config maps behind a proxy".to_owned()
    }

    fn list(&self, options: ListOptions) -> BoxFuture<'static, Result<ListStream<ConfigMap>, SourceError>> {
        let (opening, version) = (self.server.list(options), self.version.clone());
        let changed = move |item| match (item, &version) {
            (Ok(ListItem::End(end)), Some(version)) => {
                Ok(ListItem::End(PageEnd { version: version.clone(), ..end }))
            }
            (item, _) => item,
        };
        async move { Ok(opening.await?.map(changed).boxed()) }.boxed()
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'static, Result<WatchStream<ConfigMap>, SourceError>> {
        let opening = self.server.watch(options);
        if !self.drops_watch {
            return opening;
        }
        let list = || futures_util::future::ready(Err(SourceError::Malformed("a list".to_owned())));
        async move { opening.await.map(|_| list().into_stream().boxed()) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn c11_lists_that_stay_at_a_version_are_said_once_and_where_everybody_sees_it() {
    let lines = LogLines::default();
    let _listening = lines.listen();
    let server = server(&["a/x"]);
    let seen = Seen { server: server.clone(), version: Some(server.version()), drops_watch: false };
    let informer = SharedInformer::builder(seen).name("configs").streaming(false).seed(1).build().unwrap();
    let stage = Stage::synced(&server, informer).await;
    for _ in 0..20 {
        put(&server, "a/x");
        seconds(40).await;
    }
    let warnings = lines.take(Level::WARN);
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    assert!(warnings[0].contains("was a backup restored?"), "{warnings:#?}");
    let (words, why) = ("a restored backup would not be noticed", "lists stay at version 2");
    assert!(warnings[1].contains(words) && warnings[1].contains(why), "{warnings:#?}");
    assert!(stage.informer.health().is_healthy(), "{}", stage.informer.health());
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c03_c12_a_server_that_answers_watches_with_lists_is_in_trouble_all_the_time() {
    let lines = LogLines::default();
    let _listening = lines.listen();
    let server = server(&["a/x"]);
    let seen = Seen { server: server.clone(), version: None, drops_watch: true };
    let informer = SharedInformer::builder(seen).name("configs").streaming(true).seed(1).build().unwrap();
    let stage = Stage::synced(&server, informer).await;
    for _ in 0..600 {
        let health = stage.informer.health();
        assert!(!health.is_healthy() && health.to_string().contains("a list"), "{health}");
        seconds(1).await;
    }
    let asked = server.requests();
    let streamed =
        |request: &&Request| matches!(request, Request::Watch(options) if options.send_initial_events);
    assert_eq!(asked.iter().filter(streamed).count(), 1, "it is not asked for streaming lists again");
    assert!((20..100).contains(&server.lists()), "{} lists in ten minutes", server.lists());
    let warnings = lines.take(Level::WARN);
    assert!(warnings.len() == 2 && warnings[0].contains("refuses streaming lists"), "{warnings:#?}");
    assert!(warnings[1].contains("the watch failed"), "{warnings:#?}");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c12_watches_that_are_forbidden_are_trouble_although_lists_work() {
    let lines = LogLines::default();
    let _listening = lines.listen();
    let server = server(&["a/x"]);
    server.fail_next_watches(200, forbidden());
    let stage = Stage::synced(&server, builder(&server).streaming(true).build().unwrap()).await;
    for _ in 0..600 {
        assert!(!stage.informer.health().is_healthy(), "{}", stage.informer.health());
        seconds(1).await;
    }
    let warnings = lines.take(Level::WARN);
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    stage.end().await;
}

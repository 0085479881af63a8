//! What is in the cache: transforms, objects that cannot be used, indexes, versions.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use informer::{
    Handler, SharedInformer,
    queue::Transform,
    shared::BuildError,
    source::{MemorySource, Unusable, WatchChange, WatchItem},
    store::{IndexError, WaitError},
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use tokio_util::sync::CancellationToken;

use super::{
    stage::{
        Log, MINUTE, QUEUES, Stage, builder, force_list, informer, put, put_with, seconds, server, settle,
    },
    support::{Config, data_keys, key, mk},
};

/// Marks an object each time it is transformed.
fn marking() -> Transform<ConfigMap> {
    Transform::new(|object: &mut ConfigMap| {
        *object.data.get_or_insert_default().entry("marks".to_owned()).or_default() += "I";
        Ok::<(), Infallible>(())
    })
}

fn marks(object: &Config) -> String {
    object.data.as_ref().and_then(|data| data.get("marks").cloned()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn c09_ten_broken_objects_of_a_thousand_leave_990_in_the_cache_and_are_named() {
    for streaming in [true, false] {
        let names: Vec<String> = (0..1_000).map(|number| format!("a/{number:03}")).collect();
        let server = server(&names.iter().map(String::as_str).collect::<Vec<_>>());
        for name in names.iter().step_by(100) {
            server.spoil(&key(name), "data: expected a map").unwrap();
        }
        let log = Log::default();
        let stage = Stage::synced(&server, builder(&server).streaming(streaming).build().unwrap()).await;
        assert_eq!(stage.informer.store().len(), 990);
        let quarantined = stage.informer.quarantined();
        assert_eq!(quarantined.len(), 10);
        assert_eq!(quarantined[1].name, "a/100");
        assert_eq!(quarantined[1].error, "data: expected a map");
        assert!(
            stage.informer.health().to_string().contains("10 quarantined"),
            "{}",
            stage.informer.health()
        );
        stage.informer.add_handler(log.handler()).unwrap();
        settle().await;
        log.take();
        put(&server, "a/100");
        server.delete(&key("a/200"));
        settle().await;
        assert_eq!((stage.informer.store().len(), stage.informer.quarantined().len()), (991, 8));
        assert_eq!(log.take(), "+a/100@1012");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c09_an_object_that_breaks_stays_in_the_cache_as_it_was_until_its_next_good_version() {
    for queue in QUEUES {
        let (server, log) = (server(&["a/x"]), Log::default());
        let stage = Stage::synced(&server, builder(&server).queue(queue).build().unwrap()).await;
        stage.informer.add_handler(log.handler()).unwrap();
        server.spoil(&key("a/x"), "broken");
        settle().await;
        assert_eq!((stage.cached().as_str(), stage.informer.quarantined().len()), ("a/x@2", 1));
        force_list(&server, || ());
        seconds(2).await;
        assert_eq!((stage.cached().as_str(), stage.informer.quarantined().len()), ("a/x@2 zz/forced@4", 1));
        assert_eq!(log.take(), "*a/x@2 +zz/forced@4", "nobody hears of a deletion that did not happen");
        put(&server, "a/x");
        settle().await;
        assert_eq!((log.take().as_str(), stage.informer.quarantined().len()), ("~a/x@2>5", 0));
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c16_every_object_is_transformed_once_wherever_it_comes_from() {
    for queue in QUEUES {
        for streaming in [true, false] {
            let (server, log) = (server(&["a/listed", "a/changed", "a/gone"]), Log::default());
            let noted = log.clone();
            let (changed, gone) = (log.clone(), log.clone());
            let handler = Handler::new()
                .on_add(move |object: &Config, _| noted.note(marks(object)))
                .on_update(move |old: &Config, new: &Config| {
                    changed.note(format!("{}{}", marks(old), marks(new)));
                })
                .on_delete(move |tombstone: &informer::Tombstone<ConfigMap>| {
                    gone.note(marks(tombstone.object().expect("an object")));
                });
            let builder = builder(&server)
                .queue(queue)
                .streaming(streaming)
                .transform(marking())
                .resync(Duration::from_secs(30));
            let informer = builder.build().unwrap();
            informer.add_handler(handler).unwrap();
            let stage = Stage::synced(&server, informer).await;
            assert_eq!(log.take(), "I I I", "listed");
            put(&server, "a/watched");
            put(&server, "a/changed");
            server.delete(&key("a/gone"));
            settle().await;
            assert_eq!(log.take(), "I II I", "watched: added, updated, deleted");
            force_list(&server, || put(&server, "a/changed"));
            seconds(100).await;
            let all = |snapshot: Vec<Config>| snapshot.iter().all(|object| marks(object) == "I");
            assert!(
                all(stage.informer.store().snapshot().iter().cloned().collect()),
                "listed again and resynced"
            );
            stage.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c16_an_object_whose_transform_fails_is_quarantined_and_its_next_good_version_clears_it() {
    let picky = Transform::new(|object: &mut ConfigMap| {
        match object.data.as_ref().is_some_and(|d| d.contains_key("bad")) {
            true => Err("it is bad"),
            false => Ok(()),
        }
    });
    for streaming in [true, false] {
        let (server, log) = (server(&["a/good"]), Log::default());
        put_with(&server, "a/x", &[("bad", "")]);
        let builder = builder(&server).streaming(streaming).transform(picky.clone());
        let stage = Stage::synced(&server, builder.build().unwrap()).await;
        stage.informer.add_handler(log.handler()).unwrap();
        assert_eq!(stage.cached(), "a/good@2");
        assert!(stage.informer.quarantined()[0].error.contains("it is bad"));
        put(&server, "a/x");
        settle().await;
        put_with(&server, "a/x", &[("bad", "")]);
        settle().await;
        assert_eq!((stage.cached().as_str(), stage.informer.quarantined().len()), ("a/good@2 a/x@4", 1));
        server.delete(&key("a/x"));
        settle().await;
        assert_eq!((stage.cached().as_str(), stage.informer.quarantined().len()), ("a/good@2", 0));
        assert_eq!(log.take(), "*a/good@2 +a/x@4 ?a/x@4");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c17_an_index_added_before_or_after_the_start_has_what_is_there_at_once() {
    let server = server(&[]);
    put_with(&server, "a/x", &[("red", ""), ("round", "")]);
    put_with(&server, "a/y", &[("red", "")]);
    let informer = builder(&server).index("built", data_keys).build().unwrap();
    let early = informer.add_index("early", data_keys).unwrap();
    assert!(matches!(informer.add_index("early", data_keys), Err(IndexError::Conflict { .. })));
    let stage = Stage::synced(&server, informer).await;
    let late = stage.informer.add_index("late", data_keys).unwrap();
    let built = stage.informer.indexer().index("built").unwrap();
    for index in [&built, &early, &late] {
        assert_eq!((index.count("red"), index.count("round"), index.values().len()), (2, 1, 2));
    }
    server.delete(&key("a/x"));
    settle().await;
    for index in [&built, &early, &late] {
        assert_eq!(index.values(), ["red"], "empty sets vanish");
    }
    stage.end().await;
    assert!(builder(&server).index("one", data_keys).index("one", data_keys).build().is_err());
    assert_eq!(builder(&server).page_size(0).build().unwrap_err(), BuildError::PageSize);
}

#[tokio::test(start_paused = true)]
async fn c17_an_index_function_that_panics_does_not_stop_the_informer() {
    let server = server(&["a/x"]);
    let informer = informer(&server);
    informer
        .add_index("bad", |object| {
            assert!(object.key().name() != "x", "as planned");
            Some("fine".to_owned())
        })
        .unwrap();
    let stage = Stage::synced(&server, informer).await;
    put(&server, "a/y");
    settle().await;
    let failures = stage.informer.store().index_failures();
    assert_eq!((stage.informer.store().len(), failures.len()), (2, 1), "{failures:?}");
    assert_eq!(stage.informer.store().index("bad").unwrap().count("fine"), 1);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c21_a_wait_for_a_version_ends_when_the_cache_has_it_and_bookmarks_count() {
    for queue in QUEUES {
        let server = server(&["a/x"]);
        let informer = informer::SharedInformer::builder(server.scoped("a")).queue(queue).build().unwrap();
        let stage = Stage::synced(&server, informer).await;
        put(&server, "a/x");
        let version = server.version();
        let reached = stage.informer.wait_for_resource_version(&version, MINUTE).await.unwrap();
        assert_eq!((&reached, stage.cached().as_str()), (&version, "a/x@3"));
        assert_eq!(stage.informer.last_sync_resource_version(), version);
        put(&server, "elsewhere/y");
        let version = server.version();
        stage.informer.wait_for_resource_version(&version, 2 * MINUTE).await.expect("a bookmark tells");
        let error = stage.informer.wait_for_resource_version(&"99".into(), MINUTE).await.unwrap_err();
        assert!(matches!(error, WaitError::Deadline { .. }), "{error}");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c21_the_deletion_of_what_was_never_usable_is_a_version_that_is_reached() {
    for queue in QUEUES {
        let server = server(&["a/x"]);
        let alive = Arc::new(AtomicBool::new(true));
        let refusing = Arc::clone(&alive);
        let transform = Transform::new(move |object: &mut ConfigMap| {
            let refuse = object.metadata.name.as_deref() == Some("y") && refusing.load(Ordering::SeqCst);
            if refuse { Err("not while it lives") } else { Ok(()) }
        });
        let builder = builder(&server).queue(queue).transform(transform);
        let stage = Stage::synced(&server, builder.build().unwrap()).await;
        put(&server, "a/y");
        settle().await;
        alive.store(false, Ordering::SeqCst);
        let deleted = server.delete(&key("a/y")).unwrap();
        let reached = stage.informer.wait_for_resource_version(&deleted, Duration::from_secs(1)).await;
        assert_eq!(reached, Ok(deleted), "{queue:?}");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c07_an_event_that_comes_late_counts_if_the_cache_has_an_older_state_of_its_object() {
    for queue in QUEUES {
        let (server, log) = (server(&["a/x", "a/y"]), Log::default());
        let stage = Stage::synced(&server, builder(&server).queue(queue).build().unwrap()).await;
        stage.informer.add_handler(log.handler()).unwrap();
        settle().await;
        log.take();
        let tell = |change, key, version| server.inject(&WatchItem::Object(change, mk(key, version)));
        server.inject(&WatchItem::Bookmark { version: 100.into(), initial_events_end: false });
        tell(WatchChange::Modified, "a/x", 99);
        tell(WatchChange::Modified, "a/x", 98);
        tell(WatchChange::Deleted, "a/y", 97);
        tell(WatchChange::Added, "a/y", 96);
        tell(WatchChange::Added, "a/never", 95);
        settle().await;
        assert_eq!(log.take(), "~a/x@2>99 -a/y@97", "{queue:?}");
        assert_eq!(stage.cached(), "a/x@99", "{queue:?}: what was deleted does not come back");
        assert_eq!(stage.informer.last_sync_resource_version(), 100.into(), "{queue:?}");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c09_an_event_that_comes_late_and_does_not_decode_is_told_if_it_is_news_about_its_object() {
    for queue in QUEUES {
        let (server, log) = (server(&["a/x", "a/y", "a/z"]), Log::default());
        let stage = Stage::synced(&server, builder(&server).queue(queue).build().unwrap()).await;
        stage.informer.add_handler(log.handler()).unwrap();
        settle().await;
        log.take();
        let tell = |change, key_text: &str, version: u64| {
            let (key, version, error) = (Some(key(key_text)), version.into(), "no good".to_owned());
            server.inject(&WatchItem::Unusable(
                change,
                Unusable { key, name: key_text.to_owned(), version, error },
            ));
        };
        server.inject(&WatchItem::Bookmark { version: 100.into(), initial_events_end: false });
        tell(WatchChange::Modified, "a/x", 99);
        tell(WatchChange::Modified, "a/y", 2);
        tell(WatchChange::Added, "a/never", 95);
        tell(WatchChange::Deleted, "a/z", 97);
        settle().await;
        let quarantined: Vec<String> = stage.informer.quarantined().into_iter().map(|one| one.name).collect();
        assert_eq!(quarantined, ["a/x"], "{queue:?}: a/y is older than what is there, a/never may be gone");
        assert_eq!(log.take(), "?a/z@4", "{queue:?}");
        assert_eq!(stage.cached(), "a/x@2 a/y@3", "{queue:?}");
        assert_eq!(stage.informer.last_sync_resource_version(), 100.into(), "{queue:?}");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c11_a_deletion_that_comes_late_is_not_taken_for_one_that_was_not_told() {
    for queue in QUEUES {
        let (server, told) = (server(&["a/x", "a/y"]), Log::default());
        let noted = told.clone();
        let builder =
            builder(&server).queue(queue).watch_error_handler(move |problem, _| noted.note(problem.cause()));
        let stage = Stage::synced(&server, builder.build().unwrap()).await;
        server.lose_next_events(1);
        let deleted = server.delete(&key("a/y")).unwrap();
        put(&server, "a/x");
        server.inject(&WatchItem::Object(
            WatchChange::Deleted,
            mk("a/y", deleted.to_string().parse().unwrap()),
        ));
        seconds(3_000).await;
        assert_eq!((stage.cached().as_str(), told.take().as_str()), ("a/x@5", ""), "{queue:?}");
        stage.end().await;
    }
}

/// An object that can be counted while anybody has it.
#[derive(Clone)]
struct Counted {
    metadata: ObjectMeta,
    _alive: Arc<()>,
}

informer::projection!(Counted of ConfigMap);

#[tokio::test(start_paused = true)]
async fn what_only_a_snapshot_had_goes_with_it() {
    for shared in [true, false] {
        let (server, alive) = (MemorySource::new(), Arc::new(()));
        for name in 0..1_000 {
            let metadata = ObjectMeta { name: Some(format!("o{name}")), ..ObjectMeta::default() };
            server.put(Counted { metadata, _alive: Arc::clone(&alive) }).unwrap();
        }
        let (builder, stop) = (SharedInformer::builder(server.clone()), CancellationToken::new());
        let (store, running) = if shared {
            let (informer, stop) = (builder.build().unwrap(), stop.clone());
            (informer.store(), tokio::spawn(async move { informer.run(stop).await.unwrap() }))
        } else {
            let informer = builder.build_unshared(Handler::new()).unwrap();
            (informer.store(), tokio::spawn(informer.run(stop.clone())))
        };
        seconds(5).await;
        let snapshot = store.snapshot();
        // A list brings all of it in one step.
        server.break_watches();
        for name in 0..900 {
            server.delete(&key(&format!("o{name}")));
        }
        server.compact();
        seconds(5).await;
        assert_eq!((store.len(), snapshot.len()), (100, 1_000));
        drop(snapshot);
        seconds(5).await;
        let left = server.objects().len();
        assert_eq!(Arc::strong_count(&alive), left + 1, "what is left, and ours (shared: {shared})");
        stop.cancel();
        running.await.unwrap();
    }
}

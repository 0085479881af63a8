//! What a client may rely on.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use informer::{
    model::Status,
    source::{ListOptions, ListWatch, PageEnd, Request, SourceError, VersionMatch, WatchChange, WatchItem},
};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{
    client::{
        Server, at, code, continued, filled, labelled, limited, listed, matching, page, put, put_labelled,
        short, streaming, told, watch, with_bookmarks,
    },
    support::{Config, key, mk, show},
};

#[test]
fn a_write_gets_the_next_version_and_an_object_its_uid() {
    let server = Server::new();
    let uid = |key_text: &str| server.get(&key(key_text)).unwrap().metadata.uid.clone().unwrap();
    assert_eq!((put(&server, "ns/a"), put(&server, "ns/b")), ("2".into(), "3".into()));
    let (a, b) = (uid("ns/a"), uid("ns/b"));
    assert_ne!(a, b);
    put(&server, "ns/a");
    assert_eq!(uid("ns/a"), a, "a changed object stays the same one");
    assert_eq!(server.delete(&key("ns/a")), Some("5".into()));
    assert_eq!(server.delete(&key("ns/a")), None, "it is gone");
    put(&server, "ns/a");
    assert_ne!(uid("ns/a"), a, "a new object of the same name is another one");
    assert_eq!((show(&server.objects()), server.version()), ("ns/a@6 ns/b@3".into(), "6".into()));

    let mut own = (*mk("ns/own", 0)).clone();
    own.metadata.uid = Some("mine".into());
    server.put(own).unwrap();
    assert_eq!(uid("ns/own"), "mine");
    assert!(server.put(ConfigMap::default()).is_err(), "an object needs a name");
    assert_eq!(server.version(), "7".into(), "what is refused has no version");
}

#[tokio::test(start_paused = true)]
async fn a_list_is_read_at_the_version_that_its_options_mean() {
    let server = filled();
    put(&server, "a/1");
    let (then, now) = ("a/1@2 b/1@3 #3", "a/1@5 b/1@3 b/2@4 #5");
    use VersionMatch::{Exact, NotOlderThan};
    for (options, expected) in [
        (at(""), now),
        (at("0"), now),
        (limited(at("0"), 1), now),
        (matching(at("0"), NotOlderThan), now),
        (at("3"), now),
        (limited(at("3"), 9), then),
        (limited(at("3"), 0), now),
        (matching(at("3"), Exact), then),
        (matching(at("3"), NotOlderThan), now),
        (matching(limited(at("3"), 9), NotOlderThan), now),
        (matching(at("5"), Exact), now),
        (matching(at("1"), Exact), " #1"),
    ] {
        assert_eq!(listed(&server, options.clone()).await, Ok(expected.into()), "{options:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_go_together_is_refused() {
    let server = filled();
    use VersionMatch::{Exact, NotOlderThan};
    let field = |selector: &str| ListOptions { field_selector: Some(selector.into()), ..at("") };
    for (options, expected) in [
        (matching(at(""), NotOlderThan), 422),
        (matching(at("0"), Exact), 422),
        (matching(ListOptions { resource_version: "3".into(), ..continued("3:a/1") }, Exact), 422),
        (streaming(""), 422),
        (at("x7"), 400),
        (at("007"), 400),
        (continued("not a token"), 400),
        (continued("x:a/1"), 400),
        (continued("3:a/1/1"), 400),
        (ListOptions { resource_version: "3".into(), ..continued("3:a/1") }, 400),
        (labelled(at(""), "a in"), 400),
        (field("status.phase=Running"), 400),
        (field("metadata.name"), 400),
        (matching(at("5"), Exact), 504),
        (at("5"), 504),
        (continued("5:a/1"), 504),
        (at("99999999999999999999999999"), 504),
    ] {
        assert_eq!(listed(&server, options.clone()).await, Err(expected), "{options:?}");
    }
    for (options, expected) in [
        (ListOptions { resource_version_match: None, ..streaming("") }, 422),
        (matching(streaming("3"), Exact), 422),
        (matching(at("3"), NotOlderThan), 422),
        (streaming("5"), 504),
        (at("x7"), 400),
        (labelled(at(""), "a in"), 400),
    ] {
        assert_eq!(code(server.watch(options.clone()).await), Some(expected), "{options:?}");
    }
    let too_large = page(&server, at("5")).await.unwrap_err();
    assert!(too_large.status().is_some_and(Status::is_too_large_version));
}

#[tokio::test(start_paused = true)]
async fn all_pages_of_a_list_have_one_version() {
    let server = filled();
    let (objects, first) = page(&server, limited(at(""), 2)).await.unwrap();
    assert_eq!((objects.as_str(), &first.version, first.remaining), ("a/1@2 b/1@3", &"4".into(), Some(1)));
    put(&server, "b/2");
    put(&server, "c/1");
    let token = first.continue_token.expect("a token");
    let (objects, last) = page(&server, limited(continued(token.clone()), 2)).await.unwrap();
    assert_eq!(objects, "b/2@4");
    assert_eq!(last, PageEnd { version: "4".into(), continue_token: None, remaining: None });

    server.compact();
    let expired = page(&server, limited(continued(token), 2)).await.unwrap_err();
    let status = expired.status().expect("an answer");
    assert!(status.is_expired() && status.code == 410);
    let fresh = continued(status.metadata.continue_token.clone());
    assert_eq!(listed(&server, fresh).await, Ok("b/2@5 c/1@6 #6".into()), "the rest, at the newest version");
}

#[tokio::test(start_paused = true)]
async fn selectors_and_scope_say_what_is_listed() {
    let server = filled();
    put_labelled(&server, "b/3", &[("app", "web")]);
    put_labelled(&server, "c/3", &[("app", "web")]);
    let scoped = server.scoped("b");
    assert_eq!((scoped.namespace(), server.namespace()), (Some("b"), None));
    assert_eq!(scoped.description(), "ConfigMap objects in memory, in namespace \"b\"");
    assert_eq!(show(&scoped.objects()), "b/1@3 b/2@4 b/3@5");
    assert_eq!(listed(&scoped, at("")).await, Ok("b/1@3 b/2@4 b/3@5 #6".into()));
    assert_eq!(listed(&scoped, labelled(at(""), "app=web")).await, Ok("b/3@5 #6".into()));
    assert_eq!(listed(&server, labelled(at(""), "!app")).await, Ok("a/1@2 b/1@3 b/2@4 #6".into()));
    let field = |selector: &str| ListOptions { field_selector: Some(selector.into()), ..at("") };
    assert_eq!(listed(&server, field("metadata.name=3,metadata.namespace!=c")).await, Ok("b/3@5 #6".into()));

    let (_, end) = page(&scoped, limited(at(""), 1)).await.unwrap();
    assert_eq!(end.remaining, Some(2), "a namespace is counted");
    let (_, end) = page(&server, limited(labelled(at(""), "app"), 1)).await.unwrap();
    assert!(end.continue_token.is_some() && end.remaining.is_none(), "a selection is not");
}

#[tokio::test(start_paused = true)]
async fn a_watch_begins_where_its_version_says() {
    let server = filled();
    server.delete(&key("b/1"));
    for version in ["", "0"] {
        assert_eq!(told(&mut watch(&server, at(version)).await), "+a/1@2 +b/2@4");
    }
    assert_eq!(told(&mut watch(&server, at("3")).await), "+b/2@4 -b/1@5");
    assert_eq!(told(&mut watch(&server, at("5")).await), "");

    let mut ahead = watch(&server, with_bookmarks(at("7"))).await;
    put(&server, "a/1");
    put(&server, "a/2");
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(told(&mut ahead), "#7", "it is silent until its version is reached");
    put(&server, "a/3");
    assert_eq!(told(&mut ahead), "+a/3@8");
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_the_future_is_silent() {
    let server = filled();
    let mut ahead = watch(&server, with_bookmarks(at("1000"))).await;
    put(&server, "a/9");
    tokio::time::advance(Duration::from_secs(601)).await;
    assert_eq!(told(&mut ahead), "", "not even a bookmark");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_is_one_error_in_the_watch() {
    let server = filled();
    let mut open = watch(&server, at("2")).await;
    server.compact();
    put(&server, "a/2");
    assert_eq!(told(&mut open), "+b/1@3 +b/2@4 +a/2@5", "an open watch goes on");
    assert_eq!(told(&mut watch(&server, at("3")).await), "!410 end");
    assert_eq!(told(&mut watch(&server, at("4")).await), "+a/2@5");
    assert_eq!(listed(&server, matching(at("3"), VersionMatch::Exact)).await, Err(410));
    assert!(listed(&server, at("3")).await.is_ok(), "not older than 3 is what there is now");
}

#[tokio::test(start_paused = true)]
async fn what_starts_or_stops_to_match_is_added_or_deleted() {
    let server = Server::new();
    let mut web = watch(&server, labelled(at(""), "app=web")).await;
    let mut scoped = watch(&server.scoped("b"), at("")).await;
    put_labelled(&server, "a/1", &[("app", "db")]);
    put_labelled(&server, "a/1", &[("app", "web"), ("tier", "front")]);
    put_labelled(&server, "a/1", &[("app", "web")]);
    put_labelled(&server, "a/1", &[]);
    put_labelled(&server, "b/1", &[("app", "web")]);
    server.delete(&key("b/1"));
    let mut gone = None;
    let mut texts = Vec::new();
    while let Some(Some(item)) = web.next().now_or_never() {
        if let Ok(WatchItem::Object(WatchChange::Deleted, object)) = &item {
            gone.get_or_insert(object.clone());
        }
        texts.push(short(item));
    }
    assert_eq!(texts.join(" "), "+a/1@3 ~a/1@4 -a/1@5 +b/1@6 -b/1@7");
    let gone: Config = gone.expect("a deletion");
    assert_eq!(gone.labels().get("app"), Some("web"), "the last state that matched");
    assert_eq!(gone.metadata.resource_version.as_deref(), Some("5"), "with the version of its end");
    assert_eq!(told(&mut scoped), "+b/1@6 -b/1@7");
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_ends_with_its_bookmark_and_goes_on_as_a_watch() {
    let server = filled();
    let mut stream = watch(&server, streaming("3")).await;
    put(&server, "a/1");
    assert_eq!(told(&mut stream), "+a/1@2 +b/1@3 +b/2@4 ##4 ~a/1@5");
    let silent = ListOptions { allow_watch_bookmarks: false, ..streaming("") };
    assert_eq!(told(&mut watch(&server, silent).await), "+a/1@5 +b/1@3 +b/2@4");

    server.omit_initial_events_end(true);
    assert_eq!(told(&mut watch(&server, streaming("")).await), "+a/1@5 +b/1@3 +b/2@4");
    server.omit_initial_events_end(false);
    assert_eq!(told(&mut watch(&server.scoped("a"), streaming("")).await), "+a/1@5 ##5");

    server.refuse_streaming(true);
    let refusal = server.watch(streaming("")).await.err().expect("a refusal");
    assert!(refusal.status().is_some_and(|status| status.is_invalid() && status.code == 422));
    assert!(refusal.to_string().contains("sendInitialEvents is forbidden for watch"), "{refusal}");
    assert!(server.watch(at("")).await.is_ok(), "other watches are not refused");
    server.refuse_streaming(false);
    assert!(server.watch(streaming("")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_the_end_with_the_timeout() {
    let server = filled();
    let timed = |options| ListOptions { timeout: Some(Duration::from_secs(150)), ..options };
    let mut marked = watch(&server, timed(with_bookmarks(at("4")))).await;
    let mut plain = watch(&server, timed(at("4"))).await;
    let started = tokio::time::Instant::now();
    assert_eq!(short(marked.next().await.unwrap()), "#4");
    assert_eq!(started.elapsed().as_secs(), 60);
    put(&server, "a/1");
    assert_eq!(short(marked.next().await.unwrap()), "~a/1@5");
    assert_eq!(short(marked.next().await.unwrap()), "#5");
    assert_eq!(started.elapsed().as_secs(), 120);
    assert!(marked.next().await.is_none());
    assert_eq!(started.elapsed().as_secs(), 150);
    assert_eq!(told(&mut plain), "~a/1@5 end", "without bookmarks, and not without what happened");

    let mut endless = watch(&server, ListOptions { timeout: Some(Duration::MAX), ..at("") }).await;
    tokio::time::advance(Duration::from_secs(86_399)).await;
    assert_eq!(told(&mut endless), "+a/1@5 +b/1@3 +b/2@4");
    assert!(endless.next().await.is_none(), "a day is enough");
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_and_a_dropped_watch_is_over() {
    let server = filled();
    let scoped = server.scoped("a");
    server.fail_next_lists(1, SourceError::Refused("here".into()));
    page(&scoped, at("")).await.unwrap_err();
    drop(server.list(at("7")));
    let (one, mut two) = (watch(&server, at("2")).await, watch(&scoped, at("3")).await);
    page(&server, at("0")).await.unwrap();
    assert_eq!((server.lists(), server.watches(), server.open_watches()), (2, 2, 2));
    let expected =
        [Request::List(at("")), Request::Watch(at("2")), Request::Watch(at("3")), Request::List(at("0"))];
    assert_eq!(server.requests(), expected, "what is never awaited is never asked");
    drop(one);
    assert_eq!(server.open_watches(), 1);
    server.close_watches();
    assert_eq!((server.open_watches(), told(&mut two)), (0, "end".into()));
    assert_eq!(format!("{server:?}"), "MemorySource(3 objects at version 4)");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_watch_is_woken_by_a_write() {
    let server = filled();
    let mut open = watch(&server, at("4")).await;
    let waiting = tokio::spawn(async move { open.next().await.map(short) });
    tokio::task::yield_now().await;
    put(&server, "c/1");
    assert_eq!(waiting.await.unwrap(), Some("+c/1@5".into()));
}

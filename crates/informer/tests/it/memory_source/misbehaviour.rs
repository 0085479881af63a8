//! What a client has to live with.

use std::time::Duration;

use futures_util::StreamExt;
use informer::{
    model::Status,
    source::{ListItem, ListOptions, ListWatch, SourceError, Unusable, WatchChange, WatchItem},
};

use super::{
    client::{at, code, filled, listed, page, put, streaming, told, watch, with_bookmarks},
    support::{key, mk, show},
};

#[tokio::test(start_paused = true)]
async fn a_restored_backup_gives_out_versions_again() {
    let server = filled();
    let mut open = watch(&server, at("4")).await;
    put(&server, "c/1");
    server.delete(&key("a/1"));
    let uid = server.get(&key("c/1")).unwrap().metadata.uid.clone();
    server.rewind(&"3".into()).unwrap();
    assert_eq!(told(&mut open), "+c/1@5 -a/1@6 end");
    assert_eq!((show(&server.objects()), server.version()), ("a/1@2 b/1@3".into(), "3".into()));
    assert_eq!(listed(&server, at("6")).await, Err(504));
    let mut ahead = watch(&server, at("6")).await;
    assert_eq!(put(&server, "c/1"), "4".into());
    assert_eq!(told(&mut ahead), "", "what happens below its version is not told");
    assert_ne!(server.get(&key("c/1")).unwrap().metadata.uid, uid, "it is another object");
    assert_eq!(told(&mut watch(&server, at("2")).await), "+b/1@3 +c/1@4", "history is what it was then");

    assert_eq!(server.rewind(&"9".into()).unwrap_err().code, 504);
    server.compact();
    assert_eq!(server.rewind(&"3".into()).unwrap_err().code, 410);
    assert_eq!(server.rewind(&"".into()).unwrap_err().code, 400);
    assert_eq!(server.version(), "4".into());
}

#[tokio::test(start_paused = true)]
async fn watches_are_closed_and_broken_after_what_they_have_to_tell() {
    let server = filled();
    let (mut one, mut two) = (watch(&server, at("3")).await, watch(&server, at("4")).await);
    server.close_watches();
    put(&server, "c/1");
    assert_eq!((told(&mut one), told(&mut two)), ("+b/2@4 end".into(), "end".into()));
    let mut broken = watch(&server, at("4")).await;
    server.break_watches();
    put(&server, "c/2");
    assert_eq!(told(&mut broken), "+c/1@5 the connection broke: cut, as asked for end");
    assert_eq!(told(&mut watch(&server, at("5")).await), "+c/2@6", "later ones are well");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_watch_is_silent_past_its_own_end() {
    let server = filled();
    let timed = ListOptions { timeout: Some(Duration::from_secs(90)), ..with_bookmarks(at("3")) };
    server.stall_watches(true);
    let mut stalled = watch(&server, timed).await;
    put(&server, "c/1");
    tokio::time::advance(Duration::from_secs(1_000)).await;
    assert_eq!((told(&mut stalled), server.open_watches()), (String::new(), 1));
    server.stall_watches(false);
    assert_eq!(told(&mut stalled), "+b/2@4 +c/1@5 end", "then all that was held up arrives");
}

#[tokio::test(start_paused = true)]
async fn the_next_requests_fail_as_often_as_asked_for() {
    let server = filled();
    server.fail_next_lists(0, SourceError::Malformed("never".into()));
    server.fail_next_lists(2, SourceError::Refused("here".into()));
    server.fail_next_lists(1, Status::service_unavailable("later").into());
    server.fail_next_watches(1, Status::too_many_requests("later", 3).into());
    for _ in 0..2 {
        assert_eq!(page(&server, at("")).await.unwrap_err(), SourceError::Refused("here".into()));
    }
    assert_eq!(code(page(&server, at("")).await), Some(503));
    assert!(page(&server, at("")).await.is_ok());
    assert_eq!(code(server.watch(at("")).await), Some(429));
    assert!(server.watch(at("")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_cut_list_breaks_before_its_end() {
    let server = filled();
    for (after, objects) in [(0, 0), (2, 2), (99, 3)] {
        server.cut_list_after(after);
        let items: Vec<_> = server.list(at("")).await.unwrap().collect().await;
        assert_eq!(items.len(), objects + 1);
        assert!(items[..objects].iter().all(|item| matches!(item, Ok(ListItem::Object(_)))));
        assert!(matches!(items[objects], Err(SourceError::Broken(_))));
    }
    assert!(page(&server, at("")).await.is_ok(), "only the next list is cut");
}

#[tokio::test(start_paused = true)]
async fn what_is_injected_is_in_every_open_watch() {
    let server = filled();
    let mut all = watch(&server, at("3")).await;
    let mut scoped = watch(&server.scoped("nowhere"), at("3")).await;
    let unusable =
        Unusable { key: None, name: "odd".into(), version: "".into(), error: "no metadata".into() };
    for item in [
        WatchItem::Object(WatchChange::Modified, mk("b/1", 3)),
        WatchItem::Unusable(WatchChange::Added, unusable),
        WatchItem::Foreign("a Table".into()),
        WatchItem::Bookmark { version: "9".into(), initial_events_end: true },
        WatchItem::Error(Box::new(Status::internal_error("etcd"))),
        WatchItem::Foreign("after the end".into()),
    ] {
        server.inject(&item);
    }
    let injected = "~b/1@3 +?odd@ foreign a Table ##9 !500 end";
    assert_eq!((told(&mut all), told(&mut scoped)), (format!("+b/2@4 {injected}"), injected.into()));
}

#[tokio::test(start_paused = true)]
async fn lost_events_are_in_lists_and_in_no_watch() {
    let server = filled();
    let mut open = watch(&server, with_bookmarks(at("4"))).await;
    server.lose_next_events(2);
    put(&server, "c/1");
    server.delete(&key("a/1"));
    put(&server, "c/1");
    assert_eq!(told(&mut open), "~c/1@7");
    assert_eq!(told(&mut watch(&server, at("4")).await), "~c/1@7", "nor in one that is opened later");
    assert_eq!(listed(&server, at("")).await, Ok("b/1@3 b/2@4 c/1@7 #7".into()));
}

#[tokio::test(start_paused = true)]
async fn a_spoiled_object_is_unusable_until_it_is_put_anew() {
    let server = filled();
    let mut open = watch(&server, at("4")).await;
    assert_eq!(server.spoil(&key("b/1"), "data must be a map"), Some("5".into()));
    assert_eq!(server.spoil(&key("b/9"), "not there"), None);
    assert_eq!(listed(&server, at("")).await, Ok("a/1@2 ?b/1@5 b/2@4 #5".into()));
    assert_eq!(told(&mut watch(&server, streaming("")).await), "+a/1@2 +?b/1@5 +b/2@4 ##5");
    put(&server, "b/1");
    server.spoil(&key("b/1"), "again");
    server.delete(&key("b/1"));
    assert_eq!(told(&mut open), "~?b/1@5 ~b/1@6 ~?b/1@7 -?b/1@8");
}

//! HTTP/2: many answers over one connection.

use futures_util::{FutureExt, future::join_all};
use http_body_util::BodyExt;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::TokioExecutor;

use super::*;

/// A connection of HTTP/2, and its end.
async fn connect(served: &Served, tls: &Tls) -> (SendRequest<Body>, JoinHandle<()>) {
    let stream = connect_tls(served, tls, &[b"h2", b"http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (sender, connection) =
        handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("a connection");
    // However it ends.
    let ended = tokio::spawn(async move { drop(connection.await) });
    (sender, ended)
}

async fn mk_multiplexed(limits: Limits) -> (Served, Tls) {
    let tls = mk_tls();
    (mk_server(limits, Some(tls.clone())).await, tls)
}

async fn get(sender: &SendRequest<Body>, path: &str) -> Response<Incoming> {
    let request = Request::get(format!("https://localhost{path}")).body(Body::empty()).expect("a request");
    sender.clone().send_request(request).await.expect("an answer")
}

#[tokio::test]
async fn a_connection_carries_many_answers_at_a_time() {
    let (mut served, tls) = mk_multiplexed(Limits::default()).await;
    let (sender, _) = connect(&served, &tls).await;
    let silent = get(&sender, "/silent").await;
    let waiting = tokio::spawn({
        let sender = sender.clone();
        async move { join_all((0..50).map(|_| get(&sender, "/wait"))).await }
    });
    for _ in 0..50 {
        assert_eq!(served.news.recv().await, Some("begun"));
    }
    let hello = get(&sender, "/").await.into_body().collect().await.expect("a body").to_bytes();
    assert_eq!(hello, "hello", "it does not wait for the others");
    // Each has begun, and may not have begun to wait.
    let deadline = Deadline::start();
    while !waiting.is_finished() {
        deadline.check("the answers");
        served.go_on.notify_waiters();
        tokio::task::yield_now().await;
    }
    assert!(waiting.await.expect("answers").iter().all(|answer| answer.status() == 200));
    assert_eq!(silent.status(), 200);
}

#[tokio::test]
async fn every_answer_counts_as_a_connection() {
    let (mut served, tls) = mk_multiplexed(Limits { by_address: 3, ..Limits::default() }).await;
    let (sender, _) = connect(&served, &tls).await;
    let silent = [get(&sender, "/silent").await, get(&sender, "/silent").await];
    assert_eq!(get(&sender, "/").await.status(), 503);
    drop(silent);
    let deadline = Deadline::start();
    while get(&sender, "/").await.status() != 200 {
        deadline.check("a place");
        tokio::task::yield_now().await;
    }
    drop(sender);
    served.news.close();
}

#[tokio::test]
async fn a_connection_that_asks_for_nothing_ends() {
    let (served, tls) = mk_multiplexed(Limits::default()).await;
    let (sender, ended) = connect(&served, &tls).await;
    assert_eq!(get(&sender, "/").await.status(), 200);
    let busy = connect(&served, &tls).await;
    let silent = get(&busy.0, "/silent").await;
    tokio::time::pause();
    ended.await.expect("it ends");
    assert!(!busy.1.is_finished(), "the other one has an answer that goes on");
    drop(silent);
}

#[tokio::test]
async fn an_answer_that_nobody_takes_is_reset_and_the_others_of_its_connection_go_on() {
    let (mut served, tls) = mk_multiplexed(Limits::default()).await;
    let (sender, ended) = connect(&served, &tls).await;
    let endless = get(&sender, "/endless").await;
    assert_eq!(served.news.recv().await, Some("begun"));
    let mut silent = get(&sender, "/silent").await.into_body();
    assert_eq!(silent.frame().await.expect("a piece").expect("no cut").into_data().expect("data"), "x");
    tokio::time::pause();
    let dropped = tokio::time::timeout(Duration::from_secs(600), served.news.recv()).await;
    assert_eq!(dropped, Ok(Some("dropped")));
    tokio::time::resume();
    assert!(endless.into_body().collect().await.is_err(), "it is reset");
    assert!(silent.frame().now_or_never().is_none(), "the other one goes on");
    assert_eq!(get(&sender, "/").await.status(), 200, "and there is room for more");
    assert!(!ended.is_finished());
}

#[tokio::test]
async fn a_shutdown_lets_answers_end() {
    let (mut served, tls) = mk_multiplexed(Limits::default()).await;
    let (sender, ended) = connect(&served, &tls).await;
    let waiting = tokio::spawn({
        let sender = sender.clone();
        async move { get(&sender, "/wait").await.status() }
    });
    assert_eq!(served.news.recv().await, Some("begun"));
    served.shutdown.cancel();
    let deadline = Deadline::start();
    while !waiting.is_finished() {
        deadline.check("the answers");
        served.go_on.notify_waiters();
        tokio::task::yield_now().await;
    }
    assert_eq!(waiting.await.expect("an answer"), 200);
    drop(sender);
    ended.await.expect("it ends");
    served.ended.await.expect("it ends");
}

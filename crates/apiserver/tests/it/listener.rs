//! A port for other programs: who may have one, who is answered, and how it ends.

use std::{io::ErrorKind, net::SocketAddr, pin::pin, time::Duration};

use futures_util::TryStreamExt;
use informer_apiserver::{ApiServer, Fault, ListenError, Listener, Rule};
use informer_testing::socket;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ListParams, PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use tokio::{net::TcpStream, time::timeout};

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

async fn mk_listener() -> (ApiServer, Listener) {
    let server = ApiServer::builder().seed(1).build();
    let listener = server.listen(loopback()).await.expect("a port");
    (server, listener)
}

async fn client(listener: &Listener) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&listener.kubeconfig()).expect("a kubeconfig");
    let config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("a config");
    Client::try_from(config).expect("a client")
}

fn mk_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name } })).expect("a ConfigMap")
}

/// Waits until nobody listens there any more.
async fn until_closed(address: SocketAddr) {
    let closing = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), closing).await.expect("the port is closed");
}

#[tokio::test]
async fn port_0_is_a_free_port_and_each_listener_has_its_own() {
    let (server, first) = mk_listener().await;
    let second = server.listen(loopback()).await.expect("another port");
    assert_ne!(first.address(), second.address());
    assert!(first.address().port() != 0 && first.address().ip().is_loopback());
    assert_eq!(first.url(), format!("http://127.0.0.1:{}", first.address().port()));
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&first).await);
    maps.create(&PostParams::default(), &mk_map("a")).await.expect("created");
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&second).await);
    assert!(maps.get("a").await.is_ok(), "both serve the same objects");
}

#[tokio::test]
async fn a_client_lists_writes_and_watches_by_the_kubeconfig() {
    let (server, listener) = mk_listener().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&listener).await);
    let version = maps
        .list(&ListParams::default())
        .await
        .expect("a list")
        .metadata
        .resource_version
        .expect("a version");
    let mut events = pin!(maps.watch(&WatchParams::default(), &version).await.expect("a watch"));
    for name in ["a", "b"] {
        maps.create(&PostParams::default(), &mk_map(name)).await.expect("created");
        let event = events.try_next().await.expect("an event");
        assert!(matches!(event, Some(WatchEvent::Added(map)) if map.name_any() == name));
    }
    assert_eq!(server.size().version, version.parse::<u64>().expect("a number") + 2);
}

#[tokio::test]
async fn only_loopback_is_listened_on() {
    let server = ApiServer::builder().build();
    for address in ["0.0.0.0:0", "192.0.2.1:0", "[::]:0", "[2001:db8::1]:6443"] {
        let address = address.parse().expect("an address");
        match server.listen(address).await {
            Err(error @ ListenError::NotLoopback(refused)) => {
                assert_eq!(refused, address);
                assert!(error.to_string().contains("127.0.0.1 or [::1]"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_that_names_it() {
    let (server, listener) = mk_listener().await;
    match server.listen(listener.address()).await {
        Err(error @ ListenError::Bind { .. }) => {
            assert!(error.to_string().contains(&listener.address().to_string()), "{error}");
            assert!(
                matches!(error, ListenError::Bind { source, .. } if source.kind() == ErrorKind::AddrInUse)
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_shutdown_ends_watches_and_closes_the_port() {
    let (server, listener) = mk_listener().await;
    let address = listener.address();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&listener).await);
    let mut events = pin!(maps.watch(&WatchParams::default(), "0").await.expect("a watch"));
    maps.create(&PostParams::default(), &mk_map("a")).await.expect("created");
    assert!(matches!(events.try_next().await, Ok(Some(WatchEvent::Added(_)))));
    server.shutdown();
    assert!(matches!(events.try_next().await, Ok(None)), "the watch ends well");
    listener.closed().await;
    let refused = TcpStream::connect(address).await.expect_err("nobody listens");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert!(server.listen(address).await.is_ok(), "the port is free again");
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_idle_connections() {
    let (server, listener) = mk_listener().await;
    let address = listener.address();
    // One that has sent nothing, one that has an answer and is kept for the next request.
    let silent = TcpStream::connect(address).await.expect("a connection");
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&listener).await);
    maps.list(&ListParams::default()).await.expect("a list");
    server.shutdown();
    listener.closed().await;
    drop(silent);
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_stalled_answer() {
    let (server, listener) = mk_listener().await;
    server.faults().add(Rule::new(Fault::StallAfter(3)));
    let stream = TcpStream::connect(listener.address()).await.expect("a connection");
    stream.try_write(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    stream.readable().await.expect("the head");
    tokio::time::pause();
    server.shutdown();
    listener.closed().await;
}

#[tokio::test]
async fn a_listener_that_is_dropped_closes_the_port_and_its_connections() {
    let (server, listener) = mk_listener().await;
    let address = listener.address();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&listener).await);
    let mut events = pin!(maps.watch(&WatchParams::default(), "0").await.expect("a watch"));
    drop(listener);
    until_closed(address).await;
    assert!(!matches!(events.try_next().await, Ok(Some(_))), "nothing more comes");
    assert_eq!(server.version(), server.size().version, "the server itself goes on");
    assert!(server.listen(address).await.is_ok());
}

#[tokio::test]
async fn a_request_under_a_foreign_name_is_forbidden() {
    let (_server, listener) = mk_listener().await;
    let port = listener.address().port();
    let ask = async |host: &str| {
        let request = socket::get_request(host, "/version", &[]);
        let answer = socket::exchange(listener.address(), request.as_bytes(), false).await;
        String::from_utf8(answer).expect("text")
    };
    for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "[::1]"] {
        for host in [host.to_owned(), format!("{host}:{port}"), format!("{host}:1")] {
            assert!(ask(&host).await.starts_with("HTTP/1.1 200"), "{host}");
        }
    }
    for host in [
        "example.com",
        "localhost.example.com",
        "127.0.0.1.example.com",
        "10.0.0.1",
        "[2001:db8::1]",
        "",
        "a:b",
    ] {
        let answer = ask(host).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{host}: {answer}");
        assert!(answer.contains(r#""kind":"Status""#) && answer.contains("localhost"), "{host}: {answer}");
    }
}

#[tokio::test]
async fn ipv6_is_listened_on_and_has_its_brackets() {
    let server = ApiServer::builder().build();
    let address = "[::1]:0".parse().expect("an address");
    // A machine may have no IPv6 at all.
    let Ok(listener) = server.listen(address).await else { return };
    assert_eq!(listener.url(), format!("http://[::1]:{}", listener.address().port()));
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&listener).await);
    assert!(maps.list(&ListParams::default()).await.is_ok());
}

//! Where a gateway listens, and how it ends.

use std::net::SocketAddr;

use informer_gateway::{Gateway, ServeError};
use tokio::net::{TcpListener, TcpStream};

use crate::support::*;

#[tokio::test]
async fn a_gateway_that_stops_tells_its_streams_and_returns() {
    let stage = Stage::open(mk_demo(5)).await;
    let address = stage.address;
    let stream = stage.stream("/_stream/core/v1/pods", &[]).await;
    let watch = stage.stream("/api/v1/pods?watch=true&resourceVersion=0", &[]).await;
    // A connection on which nothing is asked does not hold it up.
    let idle = TcpStream::connect(address).await.expect("a connection");
    stage.close().await;
    let told = stream.rest().await;
    assert!(told.contains("event: synced\n"), "{told}");
    assert!(
        told.ends_with("event: end\ndata: {\"reason\":\"shutting down\",\"retryAfterMs\":1000}\n\n"),
        "{told}"
    );
    assert_eq!(watch.rest().await.lines().count(), 5, "a watch just ends");
    drop(idle);
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens there any more");
}

#[tokio::test]
async fn a_gateway_that_stops_is_not_ready() {
    let stage = Stage::inside(mk_demo(5), |builder| builder);
    assert_eq!(stage.get("/readyz").await.code, 200);
    stage.gateway.stop();
    assert_eq!((stage.get("/readyz").await.code, stage.get("/livez").await.code), (503, 200));
    stage.gateway.stopped().await;
}

#[tokio::test]
async fn an_address_that_others_can_reach_is_refused_without_protection() {
    let gateway = Gateway::builder(mk_server().client()).build().expect("a gateway");
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
    let error = gateway.serve(listener).await.expect_err("refused");
    assert!(matches!(error, ServeError::Exposed(_)));
    assert!(
        error.to_string().contains("--auth kubernetes") && error.to_string().contains("--tls-"),
        "{error}"
    );
    let others = SocketAddr::from(([192, 0, 2, 1], 8888));
    assert!(gateway.check_address(others).is_err() && gateway.router(others).is_err());
    assert!(gateway.check_address(SocketAddr::from(([127, 0, 0, 1], 8888))).is_ok());
}

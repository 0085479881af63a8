//! How many streams there may be.

use informer_testing::Deadline;

use super::events::{MAPS, Rig, mk_cluster};
use crate::support::Stage;

#[tokio::test]
async fn there_are_only_so_many_streams_of_one_client() {
    let stage = Stage::open_with(mk_cluster(), |builder| builder.max_streams(10, 2)).await;
    let mut streams = Vec::new();
    for _ in 0..2 {
        let stream = stage.stream(MAPS, &[]).await;
        assert_eq!(stream.code, 200);
        streams.push(stream);
    }
    let answer = stage.get(MAPS).await;
    assert!(answer.fails(429).contains("of this client"));
    assert!(!answer.header("retry-after").is_empty());
    let watch = stage.get("/api/v1/configmaps?watch=1").await;
    assert!(watch.fails(429).contains("of this client"), "a watch is a stream, too");
    assert_eq!(stage.get("/core/v1/configmaps").await.code, 200, "a list is none");
    streams.pop();
    // The gateway notices by and by that the client is gone.
    let deadline = Deadline::start();
    while stage.stream(MAPS, &[]).await.code != 200 {
        deadline.check("there is room again");
        tokio::task::yield_now().await;
    }
    drop(streams);
    stage.close().await;
}

#[tokio::test]
async fn there_are_only_so_many_streams_in_all() {
    let rig = Rig::with(|builder| builder.max_streams(2, 10));
    let mut open = vec![rig.open(MAPS, &[]).await, rig.open(MAPS, &[]).await];
    let (code, headers, status) = rig.try_open(MAPS, &[]).await.err().expect("one too many");
    assert_eq!((code.as_u16(), &status["kind"]), (429, &"Status".into()));
    assert!(status["message"].as_str().unwrap().contains("2 streams in all"), "{status}");
    assert!(headers.contains_key("retry-after"));
    open.pop();
    rig.open(MAPS, &[]).await;
}

//! A watch that is open, of which every event is written down.

use std::time::Duration;

use http_body_util::BodyExt;
use informer_model::{FrameDecoder, Framing};
use kube::client::Body;
use serde_json::Value;
use tokio::time::timeout;

use crate::stage::Stage;

/// An event that was written for comes within this time.
const SOON: Duration = Duration::from_secs(20);
/// What has not come by then does not come.
const SILENCE: Duration = Duration::from_millis(500);

/// A watch.
pub(crate) struct Watch<'a> {
    stage: &'a Stage,
    body: Body,
    frames: FrameDecoder,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(stage: &'a Stage, body: Body) -> Self {
        Self { stage, body, frames: FrameDecoder::new(Framing::Json) }
    }

    /// The next event; none at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(frame) = self.frames.next_frame().expect("a frame") {
                return Some(serde_json::from_slice(&frame).expect("JSON"));
            }
            let frame = self.body.frame().await?.expect("no failure of the stream");
            self.frames.push(frame.into_data().unwrap_or_default());
        }
    }

    /// The next event that is not a bookmark which may come at any time.
    async fn next_expected(&mut self) -> Option<Value> {
        loop {
            let event = self.next().await?;
            // In a table it is somewhere else.
            let ends_a_list = || event["object"].to_string().contains("k8s.io/initial-events-end");
            if event["type"] != "BOOKMARK" || ends_a_list() {
                return Some(event);
            }
        }
    }

    fn line(&self, mut event: Value) -> String {
        let r#type = event["type"].as_str().unwrap_or("no type").to_owned();
        let mut transcript = self.stage.transcript();
        let object = event["object"].take();
        let object =
            if r#type == "BOOKMARK" { transcript.bookmark(object) } else { transcript.stable(object) };
        format!("  {type} {object}")
    }

    /// Writes down so many events that must come.
    pub(crate) async fn events(&mut self, count: usize) {
        for _ in 0..count {
            let event = timeout(SOON, self.next_expected()).await.ok();
            self.must_have_come(event);
        }
    }

    /// Writes down a bookmark, or whatever comes instead of it.
    pub(crate) async fn bookmark(&mut self) {
        let event = timeout(SOON, self.next()).await.ok();
        self.must_have_come(event);
    }

    fn must_have_come(&self, event: Option<Option<Value>>) {
        self.stage.note(match event {
            Some(Some(event)) => self.line(event),
            Some(None) => "  the end, too early".to_owned(),
            None => "  nothing, where an event should come".to_owned(),
        });
    }

    /// Writes down so many events that come in any order.
    pub(crate) async fn unordered(&mut self, count: usize) {
        let from = self.stage.transcript().lines.len();
        self.events(count).await;
        self.stage.transcript().lines[from..].sort();
    }

    /// Writes down whether nothing comes.
    pub(crate) async fn silence(&mut self) {
        let line = match timeout(SILENCE, self.next_expected()).await {
            Ok(Some(event)) => self.line(event),
            Ok(None) => "  the end".to_owned(),
            Err(_) => "  silence".to_owned(),
        };
        self.stage.note(line);
    }

    /// Writes down what comes until the watch ends, which it must.
    pub(crate) async fn rest(&mut self) {
        loop {
            match timeout(SOON, self.next_expected()).await {
                Ok(Some(event)) => {
                    let line = self.line(event);
                    self.stage.note(line);
                }
                Ok(None) => return self.stage.note("  the end"),
                Err(_) => return self.stage.note("  nothing, where the watch should end"),
            }
        }
    }
}

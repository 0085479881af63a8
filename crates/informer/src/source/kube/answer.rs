//! An answer of an API server, from its first byte to its last.

use std::{
    future::poll_fn,
    task::{Context, Poll, ready},
};

use ::kube::{Client, Resource, client::Body};
use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyDataStream, BodyExt};
use informer_model::{FrameDecoder, FrameError, Framing, Status};
use serde::de::DeserializeOwned;

use super::failure;
use crate::{
    source::{ListItem, PageEnd, SourceError, WatchItem},
    wire::{self, Wire},
};

/// How much of an error is read.
const LARGEST_ERROR: usize = 64 << 10;
/// How much of the beginning is kept, to be shown if it turns out to be something else than JSON.
const KEPT: usize = 400;

/// Sends a request, and waits for the beginning of an answer that is worth reading.
pub(super) async fn open(
    client: Client,
    request: Request<Body>,
    decoder: FrameDecoder,
) -> Result<Answer, SourceError> {
    let (head, body) = client.send(request).await?.into_parts();
    let mut body = body.into_data_stream();
    let gzip = is_gzip(&head.headers);
    let code = head.status.as_u16();
    if code >= 400 {
        let text = read_error(&mut body, gzip).await;
        return Err(status(code, &head.headers, &text).into());
    }
    let content_type =
        head.headers.get(header::CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let is_json = content_type.as_deref().is_none_or(|value| {
        value.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
    });
    if !matches!(code, 200 | 201) || !is_json {
        let text = read_error(&mut body, gzip).await;
        let content_type = content_type.unwrap_or_default();
        return Err(SourceError::Malformed(format!(
            "HTTP code {code} and content type {content_type:?}: {}",
            wire::beginning(&text)
        )));
    }
    let decoder = if gzip { decoder.gzip() } else { decoder };
    Ok(Answer { body, decoder, gzip, beginning: Vec::new(), page_end: None, state: State::Open })
}

/// Sends a request whose answer is one JSON document, and reads up to `limit` bytes of it.
pub(crate) async fn read_document(
    client: Client,
    request: Request<Body>,
    limit: usize,
) -> Result<Bytes, SourceError> {
    let mut answer = open(client, request, FrameDecoder::new(Framing::Json).with_limit(limit)).await?;
    let mut document = None;
    while let Some(part) = poll_fn(|cx| answer.poll_part(cx)).await {
        match part? {
            Part::Frame(frame) if document.is_none() => document = Some(frame),
            _ => return Err(SourceError::Malformed("it goes on after a JSON document".to_owned())),
        }
    }
    document.ok_or_else(|| SourceError::Malformed("it is empty".to_owned()))
}

/// The body of an answer.
pub(super) struct Answer {
    body: BodyDataStream<Body>,
    decoder: FrameDecoder,
    gzip: bool,
    /// The first bytes, if they are not compressed.
    beginning: Vec<u8>,
    /// Kept from the envelope of a list to the end of the answer: a page is complete when all of it came, and
    /// only then is the connection free for the next request.
    page_end: Option<PageEnd>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// More bytes may come.
    Open,
    /// All bytes have come; some may not be read yet.
    Ended,
    /// There is nothing more to tell.
    Over,
}

/// A part of an answer.
enum Part {
    Frame(Bytes),
    Envelope(Bytes),
    Skipped { beginning: Bytes, reason: Box<FrameError> },
}

impl Answer {
    /// The next part of a list.
    pub(super) fn poll_list<K: Resource + DeserializeOwned>(
        &mut self,
        cx: &mut Context<'_>,
        wire: &Wire<K>,
    ) -> Poll<Option<Result<ListItem<K>, SourceError>>> {
        loop {
            return Poll::Ready(match ready!(self.poll_part(cx)) {
                Some(Ok(Part::Frame(frame))) => Some(Ok(wire.list_item(&frame))),
                Some(Ok(Part::Skipped { beginning, reason })) => {
                    Some(Ok(wire.skipped_item(&beginning, &reason)))
                }
                Some(Ok(Part::Envelope(envelope))) => match wire.page_end(&envelope) {
                    Ok(page_end) => {
                        self.page_end = Some(page_end);
                        continue;
                    }
                    Err(error) => Some(Err(self.fail(error))),
                },
                Some(Err(error)) => Some(Err(error)),
                None => self.page_end.take().map(|end| Ok(ListItem::End(end))),
            });
        }
    }

    /// The next item of a watch.
    pub(super) fn poll_watch<K: Resource + DeserializeOwned>(
        &mut self,
        cx: &mut Context<'_>,
        wire: &Wire<K>,
    ) -> Poll<Option<Result<WatchItem<K>, SourceError>>> {
        Poll::Ready(ready!(self.poll_part(cx)).map(|part| match part? {
            Part::Frame(frame) | Part::Envelope(frame) => {
                wire.watch_item(&frame).map_err(|error| self.fail(error))
            }
            Part::Skipped { beginning, reason } => {
                wire.skipped_event(&beginning, &reason).map_err(|error| self.fail(error))
            }
        }))
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Part, SourceError>>> {
        loop {
            let frame = match self.state {
                State::Open => self.decoder.next_frame(),
                State::Ended => self.decoder.finish(),
                State::Over => return Poll::Ready(None),
            };
            match frame {
                Ok(Some(frame)) if self.decoder.is_envelope() => {
                    return Poll::Ready(Some(Ok(Part::Envelope(frame))));
                }
                Ok(Some(frame)) => return Poll::Ready(Some(Ok(Part::Frame(frame)))),
                Err(FrameError::Skipped { beginning, reason }) => {
                    return Poll::Ready(Some(Ok(Part::Skipped { beginning, reason })));
                }
                Err(error) => {
                    let error = self.unreadable(&error);
                    return Poll::Ready(Some(Err(self.fail(error))));
                }
                Ok(None) if self.state == State::Ended => self.state = State::Over,
                Ok(None) => match ready!(self.body.poll_next_unpin(cx)) {
                    Some(Ok(chunk)) => {
                        self.keep_beginning(&chunk);
                        self.decoder.push(chunk);
                    }
                    Some(Err(error)) => {
                        let error = SourceError::Broken(failure::in_words(&error));
                        return Poll::Ready(Some(Err(self.fail(error))));
                    }
                    None => self.state = State::Ended,
                },
            }
        }
    }

    /// Nothing comes after an error.
    fn fail(&mut self, error: SourceError) -> SourceError {
        (self.state, self.page_end) = (State::Over, None);
        error
    }

    fn keep_beginning(&mut self, chunk: &[u8]) {
        let room = if self.gzip { 0 } else { KEPT - self.beginning.len() };
        self.beginning.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }

    fn unreadable(&self, error: &FrameError) -> SourceError {
        if error.is_truncated() {
            return SourceError::Broken(error.to_string());
        }
        let begins = match &self.beginning[..] {
            [] => String::new(),
            bytes => format!("; it begins with {}", wire::beginning(bytes)),
        };
        SourceError::Malformed(format!("{error}{begins}"))
    }
}

fn is_gzip(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_ENCODING).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"gzip"))
}

/// What an error says, as far as it comes.
async fn read_error(body: &mut BodyDataStream<Body>, gzip: bool) -> Vec<u8> {
    let mut text = Vec::new();
    while text.len() < LARGEST_ERROR
        && let Some(Ok(chunk)) = body.next().await
    {
        let room = LARGEST_ERROR - text.len();
        text.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    if gzip {
        let mut decoder = FrameDecoder::new(Framing::Json).with_limit(LARGEST_ERROR).gzip();
        decoder.push(text);
        return decoder.next_frame().ok().flatten().unwrap_or_default().into();
    }
    text
}

/// The `Status` that an error is, or one that shows what came instead.
fn status(code: u16, headers: &HeaderMap, text: &[u8]) -> Status {
    let mut status = match serde_json::from_slice::<Status>(text) {
        Ok(status) if !status.is_success() => status,
        _ => Status::from_response(code, String::from_utf8_lossy(text)),
    };
    if status.code == 0 {
        status.code = code;
    }
    let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    match (seconds, &status.details) {
        (Some(_), Some(details)) if details.retry_after_seconds > 0 => status,
        (Some(seconds), _) => status.with_retry_after(seconds),
        (None, _) => status,
    }
}

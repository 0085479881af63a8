//! An answer of an API server, from its first byte to its last.

use std::{
    future::poll_fn,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyDataStream, BodyExt};
use informer_model::{FrameDecoder, FrameError, Framing, ProtobufObject, Status};
use kube::{Client, client::Body};

use super::{SourceError, failure};
use crate::{beginning, wire::Codec};

/// How much of an error is read.
const LARGEST_ERROR: usize = 64 << 10;
/// How much of the beginning is kept, to be shown if it turns out to be something else than JSON.
const KEPT: usize = 400;

/// Sends a request, and waits for the beginning of an answer that is worth reading, with the decoder for its form.
pub(crate) async fn open(
    client: Client,
    request: Request<Body>,
    decoder: impl FnOnce(Codec) -> FrameDecoder,
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
    let media = content_type.as_deref().map(|value| value.split(';').next().unwrap_or_default().trim());
    let codec = match media.map(str::to_ascii_lowercase).as_deref() {
        None | Some("application/json") => Some(Codec::Json),
        Some("application/vnd.kubernetes.protobuf") => Some(Codec::Protobuf),
        Some(_) => None,
    };
    let Some(codec) = codec.filter(|_| matches!(code, 200 | 201)) else {
        let text = read_error(&mut body, gzip).await;
        let content_type = content_type.unwrap_or_default();
        return Err(SourceError::Malformed(format!(
            "HTTP code {code} and content type {content_type:?}: {}",
            beginning(&text)
        )));
    };
    let decoder = decoder(codec);
    let decoder = if gzip { decoder.gzip() } else { decoder };
    Ok(Answer { body, codec, decoder, gzip, beginning: Vec::new(), state: State::Open })
}

/// Sends a request whose answer is one JSON document, and reads up to `limit` bytes of it.
pub(crate) async fn read_document(
    client: Client,
    request: Request<Body>,
    limit: usize,
) -> Result<Bytes, SourceError> {
    let decoder = |_| FrameDecoder::new(Framing::Json).with_limit(limit);
    let mut answer = open(client, request, decoder).await?;
    let mut document = None;
    while let Some(part) = poll_fn(|cx| answer.poll_part(cx)).await {
        match part? {
            Part::Frame if document.is_none() => document = Some(Bytes::copy_from_slice(answer.frame())),
            _ => return Err(SourceError::Malformed("it goes on after a JSON document".to_owned())),
        }
    }
    document.ok_or_else(|| SourceError::Malformed("it is empty".to_owned()))
}

/// The body of an answer.
pub(crate) struct Answer {
    body: BodyDataStream<Body>,
    codec: Codec,
    decoder: FrameDecoder,
    gzip: bool,
    /// The first bytes, if they are not compressed.
    beginning: Vec<u8>,
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

/// A part of an answer. The bytes of a message are where [`Answer::frame`] shows them, until the next part is asked for.
pub(crate) enum Part {
    Frame,
    Envelope,
    Skipped { beginning: Bytes, reason: Box<FrameError> },
}

impl Answer {
    /// In which form it comes.
    pub(crate) fn codec(&self) -> Codec {
        self.codec
    }

    /// The message that came last.
    pub(crate) fn frame(&self) -> &[u8] {
        self.decoder.frame()
    }

    /// The next part. Nothing comes after an error.
    pub(crate) fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Part, SourceError>>> {
        loop {
            if self.state == State::Over {
                return Poll::Ready(None);
            }
            match self.decoder.advance(self.state == State::Ended) {
                Ok(true) if self.decoder.is_envelope() => return Poll::Ready(Some(Ok(Part::Envelope))),
                Ok(true) => return Poll::Ready(Some(Ok(Part::Frame))),
                Err(FrameError::Skipped { beginning, reason }) => {
                    return Poll::Ready(Some(Ok(Part::Skipped { beginning, reason })));
                }
                Err(error) => {
                    let error = self.unreadable(&error);
                    return Poll::Ready(Some(Err(self.fail(error))));
                }
                Ok(false) if self.state == State::Ended => self.state = State::Over,
                Ok(false) => match ready!(self.body.poll_next_unpin(cx)) {
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

    /// Ends it: what came cannot be used.
    pub(crate) fn fail(&mut self, error: SourceError) -> SourceError {
        self.state = State::Over;
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
            bytes => format!("; it begins with {}", beginning(bytes)),
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
    let read = match text {
        [b'k', b'8', b's', 0, ..] => ProtobufObject::new(text).and_then(|status| status.decode()).ok(),
        _ => serde_json::from_slice::<Status>(text).ok(),
    };
    let mut status = match read {
        Some(status) if !status.is_success() => status,
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

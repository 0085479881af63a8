//! What is sent back: lists that are written while they are sent, errors as `Status` objects, and the headers that
//! tell how fresh it all is.

use std::convert::Infallible;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use informer_model::Status;
use serde_json::{Value, json};

use crate::{guard::accompany, pages::Page, present::Presentation};

/// A list is sent in pieces of about this size.
const PIECE: usize = 256 * 1024;

pub(crate) const RESOURCE_VERSION: HeaderName = HeaderName::from_static("x-resource-version");
pub(crate) const TOTAL: HeaderName = HeaderName::from_static("x-total-count");
pub(crate) const CACHE_AGE: HeaderName = HeaderName::from_static("x-cache-age");
pub(crate) const CONTINUE: HeaderName = HeaderName::from_static("x-continue");
pub(crate) const EXPLAIN: HeaderName = HeaderName::from_static("x-explain");

/// An answer that may be compressed, because it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compressible;

/// An error in the shape of Kubernetes.
pub(crate) struct Refusal(pub(crate) Status);

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self(status)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self(status) = self;
        let body = serde_json::to_string(&status).unwrap_or_default();
        refused(&status, body)
    }
}

/// An error in the shape of the original's routes.
pub(crate) struct Msg(pub(crate) Status);

impl From<Status> for Msg {
    fn from(status: Status) -> Self {
        Self(status)
    }
}

impl IntoResponse for Msg {
    fn into_response(self) -> Response {
        let Self(status) = self;
        let body = json!({"msg": status.message}).to_string();
        refused(&status, body)
    }
}

fn refused(status: &Status, body: String) -> Response {
    let mut response = json_text(body);
    *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    accompany(status, response.headers_mut());
    response
}

/// A document.
pub(crate) fn document(value: &Value) -> Response {
    json_text(value.to_string())
}

pub(crate) fn json_text(text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.extensions_mut().insert(Compressible);
    response
}

/// What stands around the items of a list.
pub(crate) struct Frame {
    pub(crate) before: String,
    pub(crate) after: String,
}

/// A page of a list: what stands before it, the items, and what stands after it.
pub(crate) fn list(frame: Frame, page: Page, presentation: Presentation) -> Response {
    let length = length(&frame, &page, &presentation);
    let mut response = if length.is_some_and(|length| length <= PIECE) {
        let mut pieces = Pieces::new(frame, page, presentation);
        json_text(pieces.next().unwrap_or_default())
    } else {
        json_text(Body::from_stream(stream::iter(
            Pieces::new(frame, page, presentation).map(Ok::<_, Infallible>),
        )))
    };
    if let Some(length) = length {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

fn length(frame: &Frame, page: &Page, presentation: &Presentation) -> Option<usize> {
    let objects = page.selection.objects.get(page.from..page.to)?;
    let items = objects.iter().map(|object| presentation.length(object)).sum::<Option<usize>>()?;
    let commas = objects.len().saturating_sub(1);
    Some(frame.before.len() + items + commas + frame.after.len())
}

/// The pieces of a list, written when they are asked for: nothing that is not about to be sent is in memory twice.
struct Pieces {
    frame: Frame,
    page: Page,
    presentation: Presentation,
    at: usize,
    ended: bool,
}

impl Pieces {
    fn new(frame: Frame, page: Page, presentation: Presentation) -> Self {
        Self { at: page.from, frame, page, presentation, ended: false }
    }
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let mut piece = Vec::with_capacity(PIECE + PIECE / 8);
        piece.extend_from_slice(std::mem::take(&mut self.frame.before).as_bytes());
        let full = self.presentation.piece(PIECE);
        while self.at < self.page.to && piece.len() < full {
            if self.at > self.page.from {
                piece.push(b',');
            }
            if let Some(object) = self.page.selection.objects.get(self.at) {
                self.presentation.write(object, &mut piece);
            }
            self.at += 1;
        }
        if self.at >= self.page.to && piece.len() < full {
            piece.extend_from_slice(std::mem::take(&mut self.frame.after).as_bytes());
            self.ended = true;
        }
        Some(piece.into())
    }
}

/// What an answer is known by: the same tag is the same answer.
pub(crate) fn etag(parts: &[&str]) -> HeaderValue {
    use std::hash::{BuildHasher, RandomState};
    static HASHES: std::sync::LazyLock<[RandomState; 2]> = std::sync::LazyLock::new(Default::default);
    let [one, two] = [0, 1].map(|n| HASHES.get(n).map_or(0, |hashes| hashes.hash_one(parts)));
    // Hexadecimal digits in quotes are a header's value.
    HeaderValue::from_str(&format!("W/\"{one:016x}{two:016x}\""))
        .unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// Whether the client has what this tag stands for.
pub(crate) fn is_known(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let Ok(etag) = etag.to_str() else { return false };
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|tag| tag.trim() == "*" || bare(tag) == bare(etag))
}

/// The client has it.
pub(crate) fn not_modified() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

/// A header's value of a text that the cluster may have made.
pub(crate) fn header_text(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("?"))
}

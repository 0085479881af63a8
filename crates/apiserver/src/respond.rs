//! Answers: bodies, and the headers that go with them.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use informer_model::Status;
use serde_json::Value;

/// What a body can fail with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A body that is all there.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// JSON that is encoded already.
pub(crate) fn json(code: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    with_type(code, JSON, full(body))
}

/// A JSON document.
pub(crate) fn document(value: &Value) -> Response<Body> {
    json(StatusCode::OK, value.to_string())
}

/// JSON that comes in pieces.
pub(crate) fn stream(pieces: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static) -> Response<Body> {
    use futures_util::TryStreamExt;
    with_type(StatusCode::OK, JSON, StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync())
}

/// Plain text.
pub(crate) fn text(body: &'static str) -> Response<Body> {
    with_type(StatusCode::OK, HeaderValue::from_static("text/plain; charset=utf-8"), full(body))
}

/// The answer of a server that is not to be asked yet.
pub(crate) fn not_ready() -> Response<Body> {
    let mut response = text("[-]loading failed: not all objects are there yet\nreadyz check failed\n");
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// The answer to a path under which there is nothing.
pub(crate) fn no_page() -> Response<Body> {
    let mut response = text("404 page not found\n");
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// A failure, or a success that has nothing else to say. `Retry-After` says what the details say.
pub(crate) fn status(status: &Status) -> Response<Body> {
    let code = if status.is_success() { 200 } else { status.code };
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(code, serde_json::to_vec(status).unwrap_or_default());
    if let Some(wait) = status.retry_after().map(|wait| wait.as_secs()).filter(|wait| *wait > 0) {
        response.headers_mut().insert(header::RETRY_AFTER, wait.into());
    }
    response
}

fn with_type(code: StatusCode, r#type: HeaderValue, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, r#type);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

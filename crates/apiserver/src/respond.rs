//! Answers: bodies, and the headers that go with them.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use informer_model::{Status, encode_protobuf};
use informer_serving::media::{self, Encoding};
use serde_json::Value;

/// What a body can fail with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROTOBUF: HeaderValue = HeaderValue::from_static(media::PROTOBUF);
const PROTOBUF_WATCH: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch");

/// A body that is all there.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// A body that comes in pieces.
pub(crate) fn pieces(pieces: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static) -> Body {
    StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync()
}

/// An object that is encoded already.
pub(crate) fn object(code: StatusCode, encoding: Encoding, body: impl Into<Bytes>) -> Response<Body> {
    with_type(code, media_type(encoding), full(body))
}

/// A JSON document.
pub(crate) fn document(value: &Value) -> Response<Body> {
    object(StatusCode::OK, Encoding::Json, value.to_string())
}

/// A list in pieces.
pub(crate) fn list(
    encoding: Encoding,
    list: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
) -> Response<Body> {
    with_type(StatusCode::OK, media_type(encoding), pieces(list))
}

/// The events of a watch.
pub(crate) fn watch(
    encoding: Encoding,
    events: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
) -> Response<Body> {
    let r#type = match encoding {
        Encoding::Json => JSON,
        Encoding::Protobuf => PROTOBUF_WATCH,
    };
    with_type(StatusCode::OK, r#type, pieces(events))
}

fn media_type(encoding: Encoding) -> HeaderValue {
    match encoding {
        Encoding::Json => JSON,
        Encoding::Protobuf => PROTOBUF,
    }
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
pub(crate) fn status(status: &Status, encoding: Encoding) -> Response<Body> {
    let code = if status.is_success() { 200 } else { status.code };
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let protobuf = match encoding {
        Encoding::Json => None,
        Encoding::Protobuf => {
            serde_json::to_value(status).ok().and_then(|status| encode_protobuf(&status).ok())
        }
    };
    let mut response = match protobuf {
        Some(body) => object(code, Encoding::Protobuf, body),
        None => object(code, Encoding::Json, serde_json::to_vec(status).unwrap_or_default()),
    };
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

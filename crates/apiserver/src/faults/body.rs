//! Bodies that break.

use std::io::{ErrorKind, Write};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderValue, Response, header};
use http_body::Frame;
use http_body_util::{BodyDataStream, BodyExt, StreamBody};

use super::Fault;
use crate::respond::{Body, BoxError};

/// What a proxy says that has lost its server.
pub(crate) const HTML: &str =
    "<html><head><title>Gateway</title></head><body><h1>It works!</h1></body></html>\n";

/// An answer after a fault has been at it.
pub(crate) fn broken(response: Response<Body>, fault: &Fault) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let pieces = body.into_data_stream();
    let body = match fault {
        Fault::Reset => boxed(ending_after(pieces, 0, End::Error(ErrorKind::ConnectionReset))),
        Fault::CutAfter(bytes) => boxed(ending_after(pieces, *bytes, End::Error(ErrorKind::UnexpectedEof))),
        Fault::StallAfter(bytes) => boxed(ending_after(pieces, *bytes, End::Never)),
        Fault::OneByteAtATime => boxed(pieces.flat_map(|piece| {
            stream::iter(match piece {
                Ok(piece) => (0..piece.len()).map(|at| Ok(piece.slice(at..=at))).collect(),
                Err(e) => vec![Err(e)],
            })
        })),
        Fault::Gzip => {
            parts.headers.remove(header::CONTENT_LENGTH);
            parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            boxed(pieces.map(|piece| piece.and_then(|piece| Ok(member(&piece)?))))
        }
        _ => boxed(pieces),
    };
    Response::from_parts(parts, body)
}

fn boxed(pieces: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static) -> Body {
    StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync()
}

/// What comes after the last byte that is let through.
#[derive(Debug, Clone, Copy)]
enum End {
    /// An error, which ends the connection.
    Error(ErrorKind),
    /// Nothing, not even an end.
    Never,
}

/// The first so many bytes of a body, and then `end`, without waiting for more. A body that is shorter is left
/// as it is.
fn ending_after(
    pieces: BodyDataStream<Body>,
    bytes: usize,
    end: End,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
    stream::unfold(Some((pieces, bytes)), move |rest| async move {
        let (mut pieces, left) = rest?;
        if left > 0 {
            let piece = pieces.next().await?;
            let piece = piece.map(|piece| piece.slice(..piece.len().min(left)));
            let left = left - piece.as_ref().map_or(0, Bytes::len);
            return Some((piece, Some((pieces, left))));
        }
        let End::Error(kind) = end else { return std::future::pending().await };
        // A connection that fails throws away what it has not sent: let it send the bytes before the end.
        tokio::task::yield_now().await;
        Some((Err(std::io::Error::new(kind, "the connection was broken by a fault").into()), None))
    })
}

/// One gzip member.
fn member(piece: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(piece)?;
    Ok(encoder.finish()?.into())
}

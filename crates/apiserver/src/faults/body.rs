//! Bodies that break.

use std::io::ErrorKind;

use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use http::{Response, header};
use http_body_util::{BodyDataStream, BodyExt};

use super::{Fault, OpenWatch};
use crate::{
    compress,
    respond::{Body, BoxError, pieces as boxed},
};

/// What a proxy says that has lost its server.
pub(crate) const HTML: &str =
    "<html><head><title>Gateway</title></head><body><h1>It works!</h1></body></html>\n";

/// An answer after a fault has been at it.
pub(crate) fn broken(response: Response<Body>, fault: &Fault) -> Response<Body> {
    if *fault == Fault::Gzip {
        // What the client has asked for is not compressed twice.
        let is_packed = response.headers().contains_key(header::CONTENT_ENCODING);
        return if is_packed { response } else { compress::flushed(response) };
    }
    let (parts, body) = response.into_parts();
    let pieces = body.into_data_stream();
    let body = match fault {
        Fault::Reset | Fault::CutAfter(_) | Fault::StallAfter(_) => {
            boxed(ending(pieces, Break::by(fault), None))
        }
        Fault::OneByteAtATime => boxed(pieces.flat_map(|piece| {
            stream::iter(match piece {
                Ok(piece) => (0..piece.len()).map(|at| Ok(piece.slice(at..=at))).collect(),
                Err(e) => vec![Err(e)],
            })
        })),
        _ => boxed(pieces),
    };
    Response::from_parts(parts, body)
}

/// The same answer, which breaks when its watch is told to.
pub(crate) fn breakable(response: Response<Body>, watch: OpenWatch) -> Response<Body> {
    response.map(|body| boxed(ending(body.into_data_stream(), None, Some(watch))))
}

/// How a connection breaks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Break {
    /// After so many bytes. None: after all that is there to be sent.
    after: Option<usize>,
    /// With this error, or with nothing more, not even an end.
    error: Option<ErrorKind>,
}

impl Break {
    /// After what is there, as a connection does that is lost between two events.
    pub(super) const NEXT: Self = Self { after: None, error: Some(ErrorKind::UnexpectedEof) };

    /// What a fault does to a connection, if it breaks it.
    pub(super) fn by(fault: &Fault) -> Option<Self> {
        let (after, error) = match fault {
            Fault::Reset => (0, Some(ErrorKind::ConnectionReset)),
            Fault::CutAfter(bytes) => (*bytes, Some(ErrorKind::UnexpectedEof)),
            Fault::StallAfter(bytes) => (*bytes, None),
            _ => return None,
        };
        Some(Self { after: Some(after), error })
    }
}

/// A body that breaks, now or when its watch is told to. One that is over before is left as it is.
fn ending(
    pieces: BodyDataStream<Body>,
    broken: Option<Break>,
    watch: Option<OpenWatch>,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
    stream::unfold(Some((pieces, broken, watch)), move |rest| async move {
        let (mut pieces, mut broken, mut watch) = rest?;
        loop {
            let is_over = match broken {
                Some(Break { after: Some(0), .. }) => true,
                Some(Break { after: None, .. }) => {
                    match tokio::task::unconstrained(pieces.next()).now_or_never() {
                        Some(piece) => return Some((piece?, Some((pieces, broken, watch)))),
                        None => true,
                    }
                }
                _ => false,
            };
            if is_over && let Some(kind) = broken.and_then(|broken| broken.error) {
                // A connection that fails throws away what it has not sent: let it send the bytes before the end.
                tokio::task::yield_now().await;
                return Some((
                    Err(std::io::Error::new(kind, "the connection was broken by a fault").into()),
                    None,
                ));
            }
            tokio::select! {
                biased;
                told = told(&mut watch) => broken = Some(told),
                piece = pieces.next(), if !is_over => {
                    let mut piece = piece?;
                    if let (Ok(piece), Some(Break { after: Some(left), .. })) = (&mut piece, &mut broken) {
                        piece.truncate(*left);
                        *left -= piece.len();
                    }
                    return Some((piece, Some((pieces, broken, watch))));
                }
            }
        }
    })
}

/// Waits until a watch is told to break.
async fn told(watch: &mut Option<OpenWatch>) -> Break {
    let told = match watch {
        Some(watch) => watch.told.recv().await,
        None => None,
    };
    match told {
        Some(told) => told,
        None => std::future::pending().await,
    }
}

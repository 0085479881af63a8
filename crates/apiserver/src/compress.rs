//! Gzip, for clients that take it: in one member what is long, in one for each flush what is a streaming list.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::Body as _;
use http_body_util::BodyExt;

use crate::respond::{Body, BoxError, pieces};

/// What is not longer than this is left as it is, as by a real server.
const SHORT: usize = 128 * 1024;

/// Whether a client takes gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|entry| {
        let (name, parameters) = entry.split_once(';').unwrap_or((entry, ""));
        let quality = parameters.trim().strip_prefix("q=").map(|quality| quality.parse::<f32>());
        name.trim() == "gzip" && !matches!(quality, Some(Ok(0.0)))
    })
}

/// An answer in one member, if it is long enough.
pub(crate) async fn long(response: Response<Body>) -> Response<Body> {
    if response.body().size_hint().exact().is_some_and(|length| length <= SHORT as u64) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let mut rest = body.into_data_stream();
    let (mut first, mut length) = (Vec::new(), 0);
    while length <= SHORT {
        match rest.next().await {
            Some(piece) => {
                length += piece.as_ref().map_or(0, Bytes::len);
                first.push(piece);
            }
            None => return Response::from_parts(parts, pieces(stream::iter(first))),
        }
    }
    mark(&mut parts.headers);
    let plain = stream::iter(first).chain(rest);
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let packed = stream::unfold(Some((plain, encoder)), async |state| {
        let (mut plain, mut encoder) = state?;
        loop {
            match plain.next().await {
                Some(piece) => {
                    let packed = piece.and_then(|piece| Ok(encoder.write_all(&piece)?));
                    let packed = packed.map(|()| std::mem::take(encoder.get_mut()));
                    if packed.as_ref().is_ok_and(Vec::is_empty) {
                        continue;
                    }
                    return Some((packed.map(Bytes::from), Some((plain, encoder))));
                }
                None => return Some((encoder.finish().map(Bytes::from).map_err(BoxError::from), None)),
            }
        }
    });
    Response::from_parts(parts, pieces(packed))
}

/// An answer that has a member for each piece, so that the client can read what has come so far.
pub(crate) fn flushed(response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    mark(&mut parts.headers);
    let packed = body.into_data_stream().map(|piece| piece.and_then(|piece| Ok(member(&piece)?)));
    Response::from_parts(parts, pieces(packed))
}

fn mark(headers: &mut HeaderMap) {
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// What is in it can be read before its end is: Go's reader, having met that, waits for the next member.
fn member(piece: &[u8]) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(piece)?;
    encoder.flush()?;
    Ok(encoder.finish()?.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_member_can_be_read_before_its_end_is() {
        let piece = b"{\"type\":\"BOOKMARK\"}".repeat(9);
        let packed = member(&piece).unwrap();
        // The last block, which is empty, the checksum and the length.
        let begun = &packed[..packed.len() - 10];
        let mut plain = Vec::new();
        let outcome = flate2::read::GzDecoder::new(begun).read_to_end(&mut plain);
        assert_eq!((plain, outcome.is_err()), (piece, true));
    }

    #[test]
    fn gzip_is_taken_by_those_who_say_so() {
        let accepts = |value: &'static str| {
            accepts_gzip(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]))
        };
        assert!(accepts("gzip") && accepts("br, gzip") && accepts("gzip;q=0.5, deflate"));
        assert!(!accepts("br") && !accepts("gzip;q=0") && !accepts("gzip; q=0.0") && !accepts("identity"));
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}

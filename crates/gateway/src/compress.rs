//! Compression of answers that end: piece by piece, away from the threads that answer.

use std::io::Write;

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use http_body::Body as _;
use http_body_util::BodyExt;

use crate::{
    answer::Compressible,
    listener::Peer,
    work::{Account, Work},
};

/// What is shorter is sent as it is.
const WORTHWHILE: u64 = 512;
/// How many bytes are compressed in a microsecond, about.
const BYTES_PER_MICRO: usize = 150;

/// A way to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Zstd,
}

impl Coding {
    const ALL: [Self; 2] = [Self::Zstd, Self::Gzip];

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// The one that a client likes best, if it likes one as much as none.
    fn wanted(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        let entries: Vec<(String, f32)> = values.flat_map(|value| value.split(',')).map(entry).collect();
        let quality =
            |name: &str| entries.iter().find(|(known, _)| known == name).map(|(_, quality)| *quality);
        let any = quality("*");
        let rated = Self::ALL.map(|coding| (coding, quality(coding.name()).or(any).unwrap_or(0.0)));
        let (best, rating) =
            rated.into_iter().reduce(|best, other| if other.1 > best.1 { other } else { best })?;
        (rating > 0.0 && rating >= quality("identity").unwrap_or(0.0)).then_some(best)
    }
}

/// `gzip;q=0.5`
fn entry(text: &str) -> (String, f32) {
    let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
    let quality = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
    let quality = quality.map_or(1.0, |quality| quality.trim().parse().unwrap_or(0.0));
    (name.trim().to_ascii_lowercase(), quality)
}

enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    fn new(coding: Coding) -> std::io::Result<Self> {
        Ok(match coding {
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast())),
            Coding::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), 1)?),
        })
    }

    /// What comes out when this goes in: it may be nothing.
    fn feed(&mut self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(bytes).map(|()| std::mem::take(encoder.get_mut())),
            Self::Zstd(encoder) => encoder.write_all(bytes).map(|()| std::mem::take(encoder.get_mut())),
        }
    }

    /// The rest.
    fn finish(self) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// Compresses what was marked so: a stream would wait for the compressor.
pub(crate) async fn compress(State(work): State<Work>, request: Request, next: Next) -> Response {
    let coding = Coding::wanted(request.headers());
    let address = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
    let mut response = next.run(request).await;
    if response.extensions().get::<Compressible>().is_none()
        || response.body().size_hint().upper().is_some_and(|length| length < WORTHWHILE)
    {
        return response;
    }
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let Some((coding, encoder)) = coding.and_then(|coding| Some((coding, Encoder::new(coding).ok()?))) else {
        return response;
    };
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    headers.remove(header::CONTENT_LENGTH);
    let account = response.extensions().get::<Account>().cloned().unwrap_or(Account::Address(address));
    response.map(|body| compressed(body, encoder, work, account))
}

fn compressed(body: Body, encoder: Encoder, work: Work, account: Account) -> Body {
    let state = (body, Some(encoder), work, account);
    let pieces = stream::try_unfold(state, |(mut body, encoder, work, account)| async move {
        let Some(mut encoder) = encoder else { return Ok::<_, axum::Error>(None) };
        loop {
            let bytes: Bytes = match body.frame().await {
                Some(frame) => frame?.into_data().unwrap_or_default(),
                None => {
                    let rest = encoder.finish().map_err(axum::Error::new)?;
                    return Ok(Some((Bytes::from(rest), (body, None, work, account))));
                }
            };
            let micros = bytes.len() / BYTES_PER_MICRO;
            let feed = move || {
                let fed = encoder.feed(&bytes);
                (fed, encoder)
            };
            let (fed, fed_encoder) = work.run(&account, micros, feed).await;
            let piece = fed.map_err(axum::Error::new)?;
            if !piece.is_empty() {
                return Ok(Some((Bytes::from(piece), (body, Some(fed_encoder), work, account))));
            }
            encoder = fed_encoder;
        }
    });
    Body::from_stream(pieces)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn wanted(values: &[&str]) -> Option<Coding> {
        let values = values.iter().map(|value| (header::ACCEPT_ENCODING, value.parse().unwrap()));
        Coding::wanted(&HeaderMap::from_iter(values))
    }

    #[test]
    fn a_client_gets_what_it_likes_best() {
        for (values, expected) in [
            (&["gzip"][..], Some(Coding::Gzip)),
            (&["gzip, deflate, br, zstd"], Some(Coding::Zstd)),
            (&["deflate", "GZIP"], Some(Coding::Gzip)),
            (&["gzip;q=1.0, zstd;q=0.5"], Some(Coding::Gzip)),
            (&["*"], Some(Coding::Zstd)),
            (&["*;q=0.5, zstd;q=0"], Some(Coding::Gzip)),
            (&["gzip;q=0.5, identity"], None),
            (&["gzip;q=0"], None),
            (&["gzip;q=much"], None),
            (&["br"], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(wanted(values), expected, "{values:?}");
        }
    }

    #[tokio::test]
    async fn what_comes_in_pieces_comes_out_whole() {
        for coding in Coding::ALL {
            let pieces: Vec<Vec<u8>> = (0u8..50).map(|n| vec![n; 40_000]).collect();
            let body = Body::from_stream(stream::iter(pieces.clone().into_iter().map(Ok::<_, Infallible>)));
            let encoder = Encoder::new(coding).unwrap();
            let body = compressed(body, encoder, Work::default(), Account::Address(None));
            let bytes = body.collect().await.unwrap().to_bytes();
            let mut decoded = Vec::new();
            match coding {
                Coding::Gzip => {
                    std::io::copy(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut decoded).unwrap()
                }
                Coding::Zstd => zstd::stream::copy_decode(&bytes[..], &mut decoded).map(|()| 0).unwrap(),
            };
            assert!(decoded == pieces.concat() && bytes.len() < 100_000, "{coding:?}");
        }
    }
}

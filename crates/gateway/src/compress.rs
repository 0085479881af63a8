//! Compression of answers that end: piece by piece, away from the threads that answer.

use std::{io::Write, sync::Arc};

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
    share::{Limits, Share, Shares},
    work::{Account, Work},
};

/// What is shorter is sent as it is.
const WORTHWHILE: u64 = 512;
/// How many bytes are compressed in a microsecond, about.
const BYTES_PER_MICRO: usize = 150;
/// How far back zstd looks for what it has seen, as a power of two. What it holds grows with it: half a megabyte here.
const WINDOW_LOG: u32 = 17;
/// How many answers are being compressed at a time: of one caller, and in all. Each holds memory for as long as its client
/// reads. The others are sent as they are.
const ENCODERS: Limits = Limits { of_one: 32, in_all: 128 };

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

/// Compresses answers.
#[derive(Clone)]
pub(crate) struct Compressor {
    work: Work,
    encoders: Arc<Shares>,
}

impl Compressor {
    pub(crate) fn new(work: Work) -> Self {
        Self { work, encoders: Shares::new(ENCODERS) }
    }
}

enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    fn new(coding: Coding) -> std::io::Result<Self> {
        Ok(match coding {
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast())),
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1)?;
                encoder.window_log(WINDOW_LOG)?;
                Self::Zstd(encoder)
            }
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
pub(crate) async fn compress(State(compressor): State<Compressor>, request: Request, next: Next) -> Response {
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
    let Some(coding) = coding else { return response };
    let account = response.extensions().get::<Account>().cloned().unwrap_or_else(|| Account::at(address));
    let Ok(share) = compressor.encoders.take(&account, 1) else { return response };
    let Ok(encoder) = Encoder::new(coding) else { return response };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    headers.remove(header::CONTENT_LENGTH);
    response.map(|body| compressed(body, (encoder, share), compressor.work, account))
}

fn compressed(body: Body, encoder: (Encoder, Share), work: Work, account: Account) -> Body {
    let state = (body, Some(encoder), work, account);
    let pieces = stream::try_unfold(state, |(mut body, encoder, work, account)| async move {
        let Some((mut encoder, share)) = encoder else { return Ok::<_, axum::Error>(None) };
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
                return Ok(Some((Bytes::from(piece), (body, Some((fed_encoder, share)), work, account))));
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
            let account = Account::at(None);
            let share = Shares::new(ENCODERS).take(&account, 1).ok().unwrap();
            let body = compressed(body, (Encoder::new(coding).unwrap(), share), Work::default(), account);
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

    #[tokio::test]
    async fn beyond_what_is_compressed_at_a_time_an_answer_is_sent_as_it_is() {
        use axum::{Router, middleware::from_fn_with_state, routing::get};
        use tower_service::Service;

        let text = "text ".repeat(1_000);
        let answer = crate::answer::json_text(text.clone()).into_parts();
        let (head, body) = (answer.0, axum::body::to_bytes(answer.1, usize::MAX).await.unwrap());
        let handler = move || {
            let response = Response::from_parts(head.clone(), Body::from(body.clone()));
            async { response }
        };
        let compressor = Compressor::new(Work::default());
        let router = Router::new().route("/", get(handler)).layer(from_fn_with_state(compressor, compress));
        let ask = async || {
            let request = Request::builder().uri("/").header("accept-encoding", "zstd");
            router.clone().call(request.body(Body::empty()).unwrap()).await.unwrap()
        };
        let mut unread = Vec::new();
        for _ in 0..ENCODERS.of_one {
            let answer = ask().await;
            assert_eq!(answer.headers()["content-encoding"], "zstd");
            unread.push(answer);
        }
        let plain = ask().await;
        assert!(plain.headers().get("content-encoding").is_none());
        assert_eq!(plain.headers()["vary"], "accept-encoding");
        assert_eq!(plain.into_body().collect().await.unwrap().to_bytes(), text);
        unread.pop();
        assert!(ask().await.headers().contains_key("content-encoding"), "one has ended");
    }
}

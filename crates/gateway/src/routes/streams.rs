//! Several streams over one connection.
//!
//! A browser has six HTTP/1.1 connections for a server, whatever number of tabs it has open, and a stream holds one for as
//! long as it lasts. Here each of them sends its events as it would alone, and before those of another one stands whose they
//! are. What happens to one, a refusal or its end, does not concern the others.

use std::{convert::Infallible, future::ready, sync::Arc};

use axum::{
    Extension,
    body::Body,
    extract::{RawQuery, State},
    response::Response,
};
use bytes::Bytes;
use futures_util::{
    FutureExt, StreamExt,
    stream::{self, BoxStream, select_all},
};
use http::{HeaderValue, header};
use informer_model::{Reason, Status};

use super::stream::Live;
use crate::{
    answer::Refusal,
    app::{App, Asker},
};

/// How many streams one connection carries.
const MOST: usize = 32;

/// `GET /_streams?of=core/v1/pods?as=table&of=…`, each percent-encoded.
pub(crate) async fn open(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let wanted = wanted(query.as_deref())?;
    let streams = wanted.into_iter().enumerate().map(|(number, of)| {
        let pieces = begin(Arc::clone(&app), asker.clone(), of).into_stream().flatten();
        pieces.map(move |piece| (number, piece)).boxed()
    });
    let mut last = None;
    let pieces = select_all(streams).map(move |(number, piece)| {
        if last.replace(number) == Some(number) {
            return Ok::<_, Infallible>(piece);
        }
        let of = format!("event: of\ndata: {{\"stream\":{number}}}\n\n");
        Ok([of.as_bytes(), &piece].concat().into())
    });
    let mut response = Response::new(Body::from_stream(pieces));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// What one stream sends. It begins while the others go on.
async fn begin(app: Arc<App>, asker: Asker, of: String) -> BoxStream<'static, Bytes> {
    let (path, query) = of.split_once('?').map_or((of.as_str(), None), |(path, query)| (path, Some(query)));
    let parts: Result<[&str; 3], _> = path.split('/').collect::<Vec<_>>().try_into();
    let opened = match parts {
        Ok(parts) => Live::open(app, asker, parts, query, None).await,
        Err(_) => Err(Status::failure(
            Reason::NotFound,
            format!("of={of:?} must be group/version/resource, with the query of a stream behind it"),
        )),
    };
    opened.map_or_else(|status| stream::once(ready(refused(&status))).boxed(), |live| live.pieces().boxed())
}

fn refused(status: &Status) -> Bytes {
    let status = serde_json::to_string(status).unwrap_or_default();
    format!("event: refused\ndata: {status}\n\n").into()
}

fn wanted(query: Option<&str>) -> Result<Vec<String>, Status> {
    let mut wanted = Vec::new();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "of" => wanted.push(value.into_owned()),
            _ => {
                return Err(Status::bad_request(format!("there is no parameter {name:?} here; there is of")));
            }
        }
    }
    match wanted.len() {
        0 => Err(Status::bad_request("of= is missing: it names a stream, as of=core/v1/pods")),
        1..=MOST => Ok(wanted),
        count => Err(Status::bad_request(format!("of= names {count} streams, {MOST} are allowed"))),
    }
}

//! What is sent back: lists that are written while they are sent, errors as `Status` objects, and the headers that
//! tell how fresh it all is.

use std::io;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use informer_model::Status;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    app::{App, Asker},
    guard::accompany,
    lease::READ_WITHIN,
    pages::Page,
    present::Presentation,
    query::selection::Mark,
    share::Share,
    work::{Account, Work},
};

/// What has no end known beforehand is sent in pieces of about this size. A client that does not read holds two of them.
pub(crate) const PIECE: usize = 32 * 1024;
/// The same of a list whose client has shown that it reads: in pieces of 32 KiB a long list costs nearly twice the CPU.
const LIST_PIECE: usize = 128 * 1024;
/// So many bytes show it.
const READS: usize = 512 * 1024;
/// A list that is no longer is sent in large pieces from the beginning: not much of it can wait for a client.
const MODEST: usize = 1024 * 1024;
/// So many objects are looked at beforehand to say how long an answer will be.
const MEASURED: usize = 2_000;
/// How long writing a piece may take, in microseconds: others get their turn after it.
const PIECE_MICROS: usize = 2_000;

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

/// An error in the shape of the routes in `plain_lists`.
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
pub(crate) fn list(
    frame: Frame,
    page: Page,
    presentation: Presentation,
    app: &App,
    asker: &Asker,
) -> Result<Response, Status> {
    let objects = page.to.saturating_sub(page.from.at);
    let mut pieces = Pieces::new(frame, page, presentation);
    let length = if objects <= MEASURED { pieces.length() } else { None };
    if length.is_some_and(|length| length <= MODEST) {
        pieces.sent = READS;
    }
    let mut response = if length.is_some_and(|length| length <= LIST_PIECE) {
        // A short one is a single piece.
        json_text(pieces.next().unwrap_or_default())
    } else {
        let share = app.answer(asker, pieces.page.selection.objects.handles())?;
        json_text(pieces.into_body(app.work.clone(), asker.account.clone(), share))
    };
    if let Some(length) = length {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(response)
}

/// The pieces of a list, written when they are asked for: nothing that is not about to be sent is in memory twice.
struct Pieces {
    frame: Frame,
    page: Page,
    presentation: Presentation,
    mark: Mark,
    sent: usize,
    ended: bool,
}

impl Pieces {
    fn new(frame: Frame, page: Page, presentation: Presentation) -> Self {
        Self { mark: page.from.clone(), frame, page, presentation, sent: 0, ended: false }
    }

    /// How many bytes there will be, where that is known beforehand.
    fn length(&self) -> Option<usize> {
        let Self { frame, page, presentation, .. } = self;
        let (mut mark, mut items, mut known) = (page.from.clone(), 0, true);
        page.selection.objects.read(&mut mark, page.to, |object| {
            let length = presentation.length(object);
            items += length.unwrap_or_default();
            known &= length.is_some();
            known
        });
        let commas = (mark.at - page.from.at).saturating_sub(1);
        known.then(|| frame.before.len() + items + commas + frame.after.len())
    }

    /// How many objects one piece has at most.
    fn at_most(&self) -> usize {
        PIECE_MICROS / self.presentation.micros().max(1)
    }

    /// Each piece when it is asked for, and others get their turn in between. A client that takes a byte now and then does
    /// not hold what is long over.
    fn into_body(self, work: Work, account: Account, share: Share) -> Body {
        let ends = Instant::now() + READ_WITHIN;
        let pieces = stream::try_unfold(
            (self, share, work, account),
            move |(mut pieces, share, work, account)| async move {
                tokio::task::yield_now().await;
                if Instant::now() >= ends {
                    return Err(io::Error::other("the list was not read within five minutes"));
                }
                let objects = pieces.at_most().min(pieces.page.to.saturating_sub(pieces.mark.at));
                let micros = objects * pieces.presentation.micros();
                let (piece, pieces) = work.run(&account, micros, move || (pieces.next(), pieces)).await;
                Ok(piece.map(|piece| (piece, (pieces, share, work, account))))
            },
        );
        Body::from_stream(pieces)
    }
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let size = if self.sent < READS { PIECE } else { LIST_PIECE };
        let mut piece = Vec::with_capacity(size + size / 8);
        piece.extend_from_slice(std::mem::take(&mut self.frame.before).as_bytes());
        let to = self.page.to.min(self.mark.at.saturating_add(self.at_most()));
        let mut is_first = self.mark.at == self.page.from.at;
        self.page.selection.objects.read(&mut self.mark, to, |object| {
            if !std::mem::take(&mut is_first) {
                piece.push(b',');
            }
            self.presentation.write(object, &mut piece);
            piece.len() < size
        });
        if self.mark.at >= self.page.to {
            piece.extend_from_slice(std::mem::take(&mut self.frame.after).as_bytes());
            self.ended = true;
        }
        self.sent += piece.len();
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

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use axum::Router;
    use http::Request;
    use http_body_util::BodyExt;
    use informer_apiserver::ApiServer;
    use tokio::time::advance;
    use tower_service::Service;

    use super::*;
    use crate::{
        Gateway,
        share::{Limits, Shares},
    };

    /// A gateway to a cluster with many config maps, one answer about which is long.
    async fn mk_router(limits: Limits) -> Router {
        let server = ApiServer::builder().build();
        for number in 0..2_000 {
            let metadata =
                json!({"namespace": "default", "name": format!("map-{number}"), "labels": {"app": "web"}});
            let data = json!({"text": "x".repeat(100)});
            server
                .put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
                .expect("a config map");
        }
        let mut gateway = Gateway::builder(server.client()).build().expect("a gateway");
        Arc::get_mut(&mut gateway.app).expect("nobody has it yet").answers = Shares::new(limits);
        gateway.router(([127, 0, 0, 1], 8888).into()).expect("an address of this machine")
    }

    async fn get(router: &mut Router, path: &str) -> Response {
        let request = Request::get(path).header("host", "127.0.0.1:8888").body(Body::empty());
        router.call(request.expect("a request")).await.expect("an answer")
    }

    const SELECTED: &str = "/api/v1/configmaps?labelSelector=app%21%3Dx";

    #[tokio::test]
    async fn answers_that_are_not_read_are_bounded_and_others_are_not_kept_from_theirs() {
        let mut router = mk_router(Limits { of_one: 5_000, in_all: 100_000 }).await;
        let first = get(&mut router, SELECTED).await;
        let second = get(&mut router, SELECTED).await;
        assert_eq!((first.status(), second.status()), (StatusCode::OK, StatusCode::OK));
        let third = get(&mut router, SELECTED).await;
        assert_eq!(
            (third.status(), &third.headers()["retry-after"]),
            (StatusCode::TOO_MANY_REQUESTS, &"5".parse().unwrap())
        );
        for small in ["/api/v1/configmaps", &format!("{SELECTED}&limit=1")] {
            assert_eq!(get(&mut router, small).await.status(), StatusCode::OK, "{small} takes no room");
        }
        drop(first);
        assert_eq!(get(&mut router, SELECTED).await.status(), StatusCode::OK, "one has ended");
        let text = second.into_body().collect().await.expect("all of it").to_bytes();
        let list: Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(list["items"].as_array().map(Vec::len), Some(2_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_not_read_in_time_ends_before_its_end() {
        let mut router = mk_router(Limits { of_one: 5_000, in_all: 100_000 }).await;
        let mut body = get(&mut router, "/api/v1/configmaps").await.into_body();
        assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
        advance(READ_WITHIN - Duration::from_secs(1)).await;
        assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
        advance(Duration::from_secs(2)).await;
        assert!(
            body.frame().await.is_some_and(|frame| frame.is_err()),
            "the client learns that it has not all"
        );
        assert!(body.frame().await.is_none());
    }
}

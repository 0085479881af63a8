//! What answers which path.

mod catalog;
mod kubernetes;
mod operations;
mod original;
mod owned;
mod page;
mod stream;
mod watch;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use informer_model::Status;
use tower_http::{
    CompressionLevel,
    compression::{CompressionLayer, predicate::Predicate},
};

use crate::{
    answer::{Compressible, Refusal},
    app::{App, Asker},
    guard::{Content, Guard},
    listener::Peer,
};

/// The gateway as a service. Nothing gets in that the guard does not let in.
pub(crate) fn router(app: &Arc<App>, guard: Arc<Guard>) -> Router {
    let compression = CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(ThatEnds);
    Router::new()
        .route("/_resources", get(catalog::resources))
        .route("/_informers", get(operations::informers))
        .route("/_owned/{uid}", get(owned::owned))
        .route("/_stream/{group}/{version}/{resource}", get(stream::open))
        .route("/api", get(kubernetes::answer))
        .route("/api/{*rest}", get(kubernetes::answer))
        .route("/apis", get(kubernetes::answer))
        .route("/apis/{*rest}", get(kubernetes::answer))
        .route("/deploy", get(original::deployments))
        .route("/{group}/{version}/{resource}", get(original::resource))
        .route("/metrics", get(operations::metrics))
        .route("/version", get(operations::version))
        .layer(middleware::from_fn_with_state(Arc::clone(app), identify))
        // Anybody may have these: they say nothing about the cluster.
        .route("/", get(page::index))
        .route("/_page/{file}", get(page::file))
        .route("/livez", get(operations::alive))
        .route("/healthz", get(operations::alive))
        .route("/readyz", get(operations::ready))
        .route("/openapi.json", get(operations::openapi))
        .fallback(nothing)
        .layer(compression)
        .layer(middleware::from_fn_with_state((Arc::clone(app), guard), protect))
        .with_state(Arc::clone(app))
}

/// Only what was marked so is compressed: a stream would wait for the compressor.
#[derive(Clone, Copy)]
struct ThatEnds;

impl Predicate for ThatEnds {
    fn should_compress<B: http_body::Body>(&self, response: &http::Response<B>) -> bool {
        response.extensions().get::<Compressible>().is_some()
            && http_body::Body::size_hint(response.body()).upper().is_none_or(|length| length >= 512)
    }
}

async fn nothing(request: Request) -> Refusal {
    Refusal(Status::failure(
        informer_model::Reason::NotFound,
        format!(
            "there is nothing at {}; / is a page, /openapi.json says what there is",
            request.uri().path()
        ),
    ))
}

/// Finds out who asks.
async fn identify(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    match app.access.identify(request.headers()).await {
        Ok(caller) => {
            let address = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
            request.extensions_mut().insert(Asker { caller, address });
            next.run(request).await
        }
        Err(status) => Refusal(status).into_response(),
    }
}

/// Lets in what may come in, and puts on every answer what keeps it where it belongs.
async fn protect(
    State((app, guard)): State<(Arc<App>, Arc<Guard>)>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let mut response = match guard.check(&parts) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(status) => Refusal(status).into_response(),
    };
    let content = if path == "/" || path.starts_with("/_page/") { Content::Page } else { Content::Data };
    guard.harden(response.headers_mut(), content);
    app.metrics.answered(&path, response.status().as_u16());
    response
}

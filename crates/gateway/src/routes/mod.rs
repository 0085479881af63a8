//! What answers which path.

mod catalog;
mod kubernetes;
mod operations;
mod owned;
mod page;
mod plain_lists;
mod stream;
mod streams;
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
use tokio::time::Instant;

use crate::{
    answer::Refusal,
    app::{App, Asker},
    compress::{Compressor, compress},
    guard::{Content, Guard},
    listener::Peer,
    work::Account,
};

/// The gateway as a service. Nothing gets in that the guard does not let in.
pub(crate) fn router(app: &Arc<App>, guard: Arc<Guard>) -> Router {
    Router::new()
        .route("/_resources", get(catalog::resources))
        .route("/_informers", get(operations::informers))
        .route("/_owned/{uid}", get(owned::owned))
        .route("/_stream/{group}/{version}/{resource}", get(stream::open))
        .route("/_streams", get(streams::open))
        // Kubernetes has its first documents with and without a slash at the end.
        .route("/api", get(kubernetes::answer))
        .route("/api/", get(kubernetes::answer))
        .route("/api/{*rest}", get(kubernetes::answer))
        .route("/apis", get(kubernetes::answer))
        .route("/apis/", get(kubernetes::answer))
        .route("/apis/{*rest}", get(kubernetes::answer))
        .route("/deploy", get(plain_lists::deployments))
        .route("/{group}/{version}/{resource}", get(plain_lists::resource))
        .route("/metrics", get(operations::metrics))
        .route("/version", get(operations::version))
        .route("/version/", get(operations::version))
        .layer(middleware::from_fn_with_state(Arc::clone(app), identify))
        // Anybody may have these: they say nothing about the cluster.
        .route("/", get(page::index))
        .route("/_page/{file}", get(page::file))
        .route("/livez", get(operations::alive))
        .route("/healthz", get(operations::alive))
        .route("/readyz", get(operations::ready))
        .route("/openapi.json", get(operations::openapi))
        .fallback(nothing)
        .layer(middleware::from_fn_with_state(Compressor::new(app.work.clone()), compress))
        .layer(middleware::from_fn_with_state((Arc::clone(app), guard), protect))
        .with_state(Arc::clone(app))
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
    let address = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
    match app.access.identify(request.headers(), address).await {
        Ok(caller) => {
            let account = Account::of(&caller, address);
            request.extensions_mut().insert(Asker { caller, account: account.clone() });
            let mut response = next.run(request).await;
            response.extensions_mut().insert(account);
            response
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
    let began = Instant::now();
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let mut response = match guard.check(&parts) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(status) => Refusal(status).into_response(),
    };
    let content = if path == "/" || path.starts_with("/_page/") { Content::Page } else { Content::Data };
    guard.harden(response.headers_mut(), content);
    app.metrics.answered(&path, response.status().as_u16(), began.elapsed());
    response
}

//! How the gateway is doing: for probes, for Prometheus, and for people.

use std::{
    fmt::Write as _,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::{
    Extension,
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use informer_model::Status;
use serde_json::{Value, json};

use crate::{
    answer::{self, Compressible, Refusal},
    app::{App, Asker},
    cache::collection::Collection,
    listener::Peer,
    metrics::prometheus_text,
    process,
};

/// The path of what is told about each informer, which is what a caller must be allowed to get to hear it.
const ABOUT_INFORMERS: &str = "/_informers";
const OPEN_METRICS: &str = "application/openmetrics-text";

/// How long the cluster is waited for when it is asked for its version.
const VERSION_WITHIN: Duration = Duration::from_secs(5);

/// `GET /livez`, `/healthz`: the process answers.
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: what was to be in memory from the start is, and can be asked for. How each resource is doing is for those
/// who may see `/_informers`, where it stands as well; a probe has no token.
pub(crate) async fn ready(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> Response {
    let is_ready = app.preloaded.load(Ordering::Acquire) && !app.is_stopping();
    let verbose = form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .any(|(name, value)| name == "verbose" && !matches!(&*value, "0" | "false"));
    let mut text = String::new();
    if verbose || !is_ready {
        let sign = |good| if good { '+' } else { '-' };
        let _ = writeln!(text, "[{}] preloaded", sign(app.preloaded.load(Ordering::Acquire)));
        let may_see = async {
            let caller = app.access.identify(&headers, peer.map(|peer| peer.0.0.ip())).await?;
            app.access.require_path(&caller, ABOUT_INFORMERS).await
        };
        if may_see.await.is_ok() {
            for collection in app.cache.all() {
                let health = collection.informer.health();
                let _ = writeln!(text, "[{}] {health}", sign(health.is_healthy()));
            }
        } else {
            let _ = writeln!(text, "details need a token that may get {ABOUT_INFORMERS}");
        }
    }
    text.push_str(if is_ready { "ok\n" } else { "not ready\n" });
    let code = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, text).into_response()
}

/// `GET /metrics`: as OpenMetrics for those who ask for that, else in the text format of Prometheus.
pub(crate) async fn metrics(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    app.access.require_path(&asker.caller, "/metrics").await?;
    let (work, objects) = (app.work.clone(), app.cache.objects());
    let encode = move || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &app.registry).map(|()| text)
    };
    // It counts the bytes of each object.
    let text = work.run(&asker.account, objects / 50, encode).await.map_err(Status::internal_error)?;
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|accepted| accepted.to_str().ok());
    let (text, r#type) = match accepted.any(|accepted| accepted.contains(OPEN_METRICS)) {
        true => (text, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        false => (prometheus_text(&text), "text/plain; version=0.0.4; charset=utf-8"),
    };
    let mut response = text.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(r#type));
    response.extensions_mut().insert(Compressible);
    Ok(response)
}

/// `GET /version`: the cluster's, so that its clients know what to expect, and the gateway's own.
pub(crate) async fn version(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, Refusal> {
    app.access.require_path(&asker.caller, "/version").await?;
    let client = app.cache.client();
    let asked = tokio::time::timeout(VERSION_WITHIN, client.apiserver_version()).await;
    let mut version = match asked {
        Ok(Ok(version)) => serde_json::to_value(version).unwrap_or_default(),
        Ok(Err(error)) => {
            return Err(Status::service_unavailable(format!(
                "the cluster does not tell its version: {error}"
            ))
            .into());
        }
        Err(_) => {
            return Err(Status::service_unavailable("the cluster does not tell its version in time").into());
        }
    };
    version["informer"] = env!("CARGO_PKG_VERSION").into();
    Ok(answer::document(&version))
}

/// `GET /openapi.json`
pub(crate) async fn openapi() -> Response {
    answer::json_text(include_str!("../../openapi.json"))
}

/// `GET /_informers`
pub(crate) async fn informers(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, Refusal> {
    app.access.require_path(&asker.caller, ABOUT_INFORMERS).await?;
    let collections = app.cache.all();
    let objects = app.cache.objects();
    let (work, account) = (app.work.clone(), asker.account);
    let document = move || {
        let informers: Vec<Value> = collections.iter().map(|collection| informer(&app, collection)).collect();
        let limit = app.cache.limits().memory;
        let memory = json!({"resident": process::resident(), "limit": limit, "objects": objects});
        json!({"memory": memory, "streams": app.streams.held(), "informers": informers}).to_string()
    };
    // It counts the bytes of each object.
    Ok(answer::json_text(work.run(&account, objects / 50, document).await))
}

fn informer(app: &App, collection: &Collection) -> Value {
    let health = collection.informer.health();
    let quarantined: Vec<Value> = collection
        .informer
        .quarantined()
        .into_iter()
        .map(|unusable| json!({"name": unusable.name, "error": unusable.error}))
        .collect();
    let snapshot = collection.snapshot();
    let sizes = collection.sizes();
    json!({
        "path": collection.path,
        "kind": collection.served.api.kind,
        "objects": snapshot.len(),
        "bytes": sizes.plain,
        "keptBytes": sizes.kept,
        "packed": sizes.packed,
        "resourceVersion": snapshot.resource_version(),
        "state": collection.state(),
        "reason": health.trouble().map(|(_, trouble)| trouble.to_string()),
        "lagSeconds": collection.age().as_secs_f64(),
        "ageSeconds": collection.since().as_secs_f64(),
        "eventsTotal": collection.changes.total(),
        "relists": app.tally.relists(collection.informer.name()),
        "quarantined": quarantined,
        "streams": collection.users(),
        "idleSeconds": collection.idle().unwrap_or_default().as_secs(),
    })
}

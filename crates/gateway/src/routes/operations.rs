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
use http::{HeaderValue, StatusCode, header};
use informer_model::Status;
use serde_json::{Value, json};

use crate::{
    answer::{self, Refusal},
    app::{App, Asker},
    cache::{collection::Collection, memory},
};

/// How long the cluster is waited for when it is asked for its version.
const VERSION_WITHIN: Duration = Duration::from_secs(5);

/// `GET /livez`, `/healthz`: the process answers.
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: what was to be in memory from the start is, and can be asked for.
pub(crate) async fn ready(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response {
    let is_ready = app.preloaded.load(Ordering::Acquire) && !app.is_stopping();
    let verbose = form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .any(|(name, value)| name == "verbose" && !matches!(&*value, "0" | "false"));
    let mut text = String::new();
    if verbose || !is_ready {
        let sign = |good| if good { '+' } else { '-' };
        let _ = writeln!(text, "[{}] preloaded", sign(app.preloaded.load(Ordering::Acquire)));
        for collection in app.cache.all() {
            let health = collection.informer.health();
            let _ = writeln!(text, "[{}] {health}", sign(health.is_healthy()));
        }
    }
    text.push_str(if is_ready { "ok\n" } else { "not ready\n" });
    let code = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, text).into_response()
}

/// `GET /metrics`
pub(crate) async fn metrics(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, Refusal> {
    app.access.require_path(&asker.caller, "/metrics").await?;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &app.registry).map_err(Status::internal_error)?;
    let mut response = text.into_response();
    let r#type = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, r#type);
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
    app.access.require_path(&asker.caller, "/_informers").await?;
    let collections = app.cache.all();
    let informers: Vec<Value> = collections.iter().map(|collection| informer(&app, collection)).collect();
    let objects: usize = collections.iter().map(|collection| collection.store.len()).sum();
    Ok(answer::document(&json!({
        "memory": {"resident": memory::resident(), "limit": app.cache.limits().memory, "objects": objects},
        "streams": app.streams.open(),
        "informers": informers,
    })))
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
    json!({
        "path": collection.path,
        "kind": collection.served.api.kind,
        "objects": snapshot.len(),
        "bytes": collection.bytes(),
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

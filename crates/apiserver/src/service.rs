//! From a request to an answer: reading the body, finding out what is meant, and the faults on the way.

use std::{
    collections::BTreeSet,
    future::Future,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt;
use informer_model::Status;
use informer_serving::{
    discovery::server_address,
    media::{AGGREGATED_DISCOVERY, aggregated_discovery, status_encoding},
    options::Parameters,
    path::{self, Place, Target, no_such_path},
};
use serde_json::json;
use tower_service::Service;

use crate::{
    catalog::Catalog,
    compress, discovery,
    faults::{self, Fault, Requested},
    media::BODY_LIMIT,
    openapi,
    replica::Replica,
    respond::{self, Body, BoxError},
    server::Server,
    verbs::{Answer, Call, Verb, not_allowed},
};

/// A body that is too long is read on and thrown away up to this length, so that the client, which is still
/// sending, gets to see the answer.
const MOST_DISCARDED: usize = 64 * 1024 * 1024;

/// The server as a service: what a client in this process and a connection talk to.
#[derive(Clone)]
pub struct Connection {
    pub(crate) server: Arc<Server>,
    pub(crate) replica: Option<Arc<Replica>>,
    /// The client that it is for, if that has a name.
    pub(crate) agent: Option<HeaderValue>,
}

/// A fault took the connection away before there was an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection was refused by a fault")]
pub struct Refused;

impl<B> Service<Request<B>> for Connection
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Refused;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Refused>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let connection = self.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            if let Some(agent) = &connection.agent {
                parts.headers.insert(header::USER_AGENT, agent.clone());
            }
            let path = parts.uri.path().to_owned();
            let encoding = status_encoding(&parts.headers);
            let answer = AssertUnwindSafe(connection.answer(parts, body)).catch_unwind().await;
            answer.unwrap_or_else(|_| {
                tracing::error!(path, "the server panicked while it answered a request");
                let status = Status::internal_error(format!("the server panicked while it answered {path}"));
                Ok(respond::status(&status, encoding))
            })
        })
    }
}

impl Connection {
    async fn answer<B>(mut self, parts: Parts, body: B) -> Result<Response<Body>, Refused>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let encoding = status_encoding(&parts.headers);
        let body = match read(body).await {
            Ok(body) => body,
            Err(status) => return Ok(respond::status(&status, encoding)),
        };
        let query = Parameters::new(parts.uri.query());
        let target = path::target(parts.uri.path());
        let objects = match &target {
            Ok(Target::Objects(place)) => {
                Verb::of(&parts.method, place, &query).map(|verb| (verb, place.clone()))
            }
            _ => None,
        };
        self.server.count(objects.as_ref());
        let verb = objects.as_ref().map(|(verb, _)| *verb);
        let agent = parts.headers.get(header::USER_AGENT);
        let agent = agent.map(|agent| String::from_utf8_lossy(agent.as_bytes()).into_owned());
        let requested = Arc::new(Requested { objects, agent });
        let (struck, watch) = self.server.faults.request(&requested);
        for fault in &struck {
            match fault {
                Fault::Refuse => return Err(Refused),
                Fault::Status(status) => return Ok(respond::status(status, encoding)),
                Fault::Html => return Ok(html()),
                Fault::Delay(delay) => tokio::time::sleep(*delay).await,
                Fault::Stale => self.replica = Some(Arc::clone(&self.server.replica)),
                Fault::Compact => self.server.store.write(|state| state.compact(u64::MAX)),
                _ => {}
            }
        }
        if self.is_nowhere(parts.uri.path()) {
            return Ok(respond::no_page());
        }
        let is_streaming_list = query.switch("sendInitialEvents") == Some(true);
        let answer = match &target {
            Err(status) => Err(status.clone()),
            Ok(Target::Objects(place)) => {
                self.objects(place, verb, query, &parts.headers, body, &requested).await
            }
            Ok(other) => self.about(other, &parts.method, &parts.headers),
        };
        let response = match (answer, verb) {
            (Err(status), _) => respond::status(&status, encoding),
            (Ok(response), Some(verb)) if compress::accepts_gzip(&parts.headers) => match verb {
                Verb::Watch if is_streaming_list => compress::flushed(response),
                Verb::Watch => response,
                _ => compress::long(response).await,
            },
            (Ok(response), _) => response,
        };
        let response = struck.iter().fold(response, faults::broken);
        Ok(match watch {
            Some(watch) => faults::breakable(response, watch),
            None => response,
        })
    }

    /// Whether nothing at all is served under a path: not a group that there is, and not the server itself. Such a
    /// path is not answered by a `Status`.
    fn is_nowhere(&self, path: &str) -> bool {
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        match (segments.next(), segments.next()) {
            (Some("apis"), Some(group)) => {
                !self.server.store.catalog().iter().any(|resource| resource.group == group)
            }
            (Some("api" | "apis" | "version" | "healthz" | "livez" | "readyz" | "openapi") | None, _) => {
                false
            }
            _ => true,
        }
    }

    async fn objects(
        self,
        place: &Place,
        verb: Option<Verb>,
        query: Parameters<'_>,
        headers: &HeaderMap,
        body: Bytes,
        requested: &Arc<Requested>,
    ) -> Answer {
        let call = Call::new(&self.server, place, query, headers, body, self.replica.clone(), requested)?;
        match verb {
            Some(verb) => call.answer(verb).await,
            None => Err(not_allowed()),
        }
    }

    /// What the server says about itself.
    fn about(&self, target: &Target, method: &Method, headers: &HeaderMap) -> Answer {
        if method != Method::GET && method != Method::HEAD {
            return Err(Status::method_not_allowed("this path", "", "anything but GET"));
        }
        let catalog = self.server.store.catalog();
        let aggregated_json = |document: serde_json::Value| {
            let mut response = respond::document(&document);
            let r#type = http::HeaderValue::from_static(AGGREGATED_DISCOVERY);
            response.headers_mut().insert(http::header::CONTENT_TYPE, r#type);
            response
        };
        let document = match target {
            Target::Ready if !self.server.is_ready() => return Ok(respond::not_ready()),
            Target::Health | Target::Ready => return Ok(respond::text("ok")),
            Target::Version => discovery::version(),
            Target::Root => json!({ "paths": paths(&catalog) }),
            Target::Core if aggregated_discovery(headers)? => {
                return Ok(aggregated_json(discovery::groups(&catalog).aggregated_core()));
            }
            Target::Groups if aggregated_discovery(headers)? => {
                return Ok(aggregated_json(discovery::groups(&catalog).aggregated_groups()));
            }
            Target::Core => discovery::groups(&catalog).api_versions(server_address(headers)),
            Target::Groups => discovery::groups(&catalog).api_group_list(),
            Target::Group(group) => discovery::groups(&catalog).api_group(group).ok_or_else(no_such_path)?,
            Target::GroupVersion { group, version } => {
                discovery::groups(&catalog).api_resource_list(group, version).ok_or_else(no_such_path)?
            }
            Target::OpenApi => openapi::root(&catalog),
            Target::OpenApiOf { group, version } => {
                openapi::group_version(&catalog, group, version).ok_or_else(no_such_path)?
            }
            Target::Objects(_) => return Err(no_such_path()),
        };
        Ok(respond::document(&document))
    }
}

fn html() -> Response<Body> {
    let mut response = Response::new(respond::full(faults::HTML));
    *response.status_mut() = StatusCode::OK;
    let r#type = http::HeaderValue::from_static("text/html");
    response.headers_mut().insert(http::header::CONTENT_TYPE, r#type);
    response
}

/// Everything that can be asked for without a name.
fn paths(catalog: &Catalog) -> Vec<String> {
    let fixed = ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"];
    let mut paths: BTreeSet<String> = fixed.into_iter().map(Into::into).collect();
    for resource in catalog {
        for version in &resource.versions {
            if resource.group.is_empty() {
                paths.insert(format!("/api/{}", version.name));
            } else {
                paths.insert(format!("/apis/{}", resource.group));
                paths.insert(format!("/apis/{}/{}", resource.group, version.name));
            }
        }
    }
    paths.into_iter().collect()
}

/// The whole body of a request.
async fn read<B>(body: B) -> Result<Bytes, Status>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let (mut read, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| {
            Status::bad_request(format!("the body of the request cannot be read: {}", e.into()))
        })?;
        let Ok(mut data) = frame.into_data() else { continue };
        length += data.remaining();
        if length > MOST_DISCARDED {
            break;
        }
        if length <= BODY_LIMIT {
            while data.has_remaining() {
                let chunk = data.chunk();
                let taken = chunk.len();
                read.extend_from_slice(chunk);
                data.advance(taken);
            }
        }
    }
    if length > BODY_LIMIT {
        return Err(Status::request_entity_too_large(format!("limit is {BODY_LIMIT}")));
    }
    Ok(read.into())
}

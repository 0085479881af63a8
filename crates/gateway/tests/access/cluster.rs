//! The embedded API server with reviews: tokens `ann-token` and `root-token`, and rules that can be taken away.

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll},
};

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use informer_apiserver::{ApiServer, Refused};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tower_service::Service;

type Answer = Response<
    http_body_util::combinators::UnsyncBoxBody<bytes::Bytes, Box<dyn std::error::Error + Send + Sync>>,
>;

#[derive(Clone)]
pub(crate) struct Cluster {
    server: ApiServer,
    rules: Arc<Mutex<Rules>>,
}

#[derive(Default)]
struct Rules {
    /// User, resource and namespace; `*` and an empty namespace stand for all.
    grants: BTreeSet<[&'static str; 3]>,
    no_tokens: bool,
    broken: bool,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self { server: ApiServer::builder().seed(1).build(), rules: Arc::default() }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    pub(crate) fn put(&self, object: Value) {
        self.server.put(object).expect("an object");
    }

    pub(crate) fn grant(&self, user: &'static str, resource: &'static str, namespace: &'static str) {
        self.rules().grants.insert([user, resource, namespace]);
    }

    pub(crate) fn revoke_all(&self) {
        self.rules().grants.clear();
    }

    pub(crate) fn end_tokens(&self) {
        self.rules().no_tokens = true;
    }

    /// From now on reviews fail.
    pub(crate) fn break_reviews(&self) {
        self.rules().broken = true;
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().expect("rules")
    }
}

impl Rules {
    fn user(&self, spec: &Value) -> Value {
        match spec["token"].as_str() {
            Some(token @ ("ann-token" | "root-token")) if !self.no_tokens => {
                let name = token.trim_end_matches("-token");
                json!({"authenticated": true, "user": {"username": name, "groups": ["system:authenticated"]}})
            }
            _ => json!({"authenticated": false}),
        }
    }

    fn allowed(&self, spec: &Value) -> Value {
        let what = &spec["resourceAttributes"];
        let [resource, namespace] =
            ["resource", "namespace"].map(|field| what[field].as_str().unwrap_or_default());
        let allowed = self.grants.iter().any(|[user, granted, place]| {
            *user == spec["user"]
                && (*granted == "*" || *granted == resource)
                && (place.is_empty() || *place == namespace)
        });
        json!({"allowed": allowed})
    }
}

impl Service<Request<Body>> for Cluster {
    type Response = Answer;
    type Error = Refused;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Refused>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let judge = match request.uri().path() {
            "/apis/authentication.k8s.io/v1/tokenreviews" => Rules::user,
            "/apis/authorization.k8s.io/v1/subjectaccessreviews" => Rules::allowed,
            _ => return self.server.service().call(request),
        };
        let cluster = self.clone();
        Box::pin(async move {
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            let mut review: Value = serde_json::from_slice(&body).expect("JSON");
            let rules = cluster.rules();
            review["status"] = judge(&rules, &review["spec"]);
            let body = Full::from(review.to_string()).map_err(|never| match never {}).boxed_unsync();
            let mut response = Response::new(body);
            *response.status_mut() =
                if rules.broken { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::CREATED };
            Ok(response)
        })
    }
}

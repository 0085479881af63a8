//! The embedded API server with reviews: tokens like `ann-token` for the user `ann`, and rules that can be taken away.

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

/// From the spec of a review to its status.
pub(crate) type Judge = Box<dyn Fn(&Value) -> Value + Send>;

#[derive(Clone)]
pub(crate) struct Cluster {
    server: ApiServer,
    rules: Arc<Mutex<Rules>>,
}

#[derive(Default)]
struct Rules {
    /// User, resource, namespace and name; `*` and an empty namespace or name stand for all.
    grants: BTreeSet<[String; 4]>,
    /// Decide instead of the grants, if there are any.
    judges: Option<[Judge; 2]>,
    no_tokens: bool,
    broken: bool,
    /// Whether the cluster says that it can list all rules.
    lists_rules: bool,
    /// Whether it fails to say so.
    fails_to_list: bool,
    /// How many reviews there were: of tokens, and of access.
    asked: [usize; 2],
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

    pub(crate) fn grant(&self, user: &str, resource: &str, namespace: &str) {
        self.grant_named(user, resource, namespace, "");
    }

    pub(crate) fn grant_named(&self, user: &str, resource: &str, namespace: &str, name: &str) {
        self.rules().grants.insert([user, resource, namespace, name].map(str::to_owned));
    }

    pub(crate) fn revoke(&self, user: &str, resource: &str, namespace: &str) {
        self.rules().grants.remove(&[user, resource, namespace, ""].map(str::to_owned));
    }

    /// The same grant, and the RBAC objects that say so.
    pub(crate) fn bind(&self, user: &str, resource: &str, namespace: &str) {
        self.grant(user, resource, namespace);
        let metadata = json!({"namespace": namespace, "name": format!("{user}-{resource}")});
        let api = "rbac.authorization.k8s.io";
        self.put(json!({
            "apiVersion": format!("{api}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get", "list", "watch"]}],
        }));
        self.put(json!({
            "apiVersion": format!("{api}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "subjects": [{"apiGroup": api, "kind": "User", "name": user}],
            "roleRef": {"apiGroup": api, "kind": "Role", "name": metadata["name"]},
        }));
    }

    /// Takes the objects of [`bind`](Self::bind) away.
    pub(crate) fn unbind(&self, user: &str, resource: &str, namespace: &str) {
        let key = format!("{namespace}/{user}-{resource}").parse().expect("a key");
        assert!(self.server.discard("rbac.authorization.k8s.io", "rolebindings", &key));
    }

    /// From now on these decide, about tokens and about access, and nothing else does.
    pub(crate) fn decide_by(&self, judges: [Judge; 2]) {
        self.rules().judges = Some(judges);
    }

    /// The newest version.
    pub(crate) fn version(&self) -> u64 {
        self.server.version()
    }

    pub(crate) fn discard(&self, group: &str, resource: &str, key: &str) {
        assert!(self.server.discard(group, resource, &key.parse().expect("a key")), "{resource} {key}");
    }

    /// RBAC alone decides, and the cluster says so.
    pub(crate) fn list_rules(&self) {
        self.rules().lists_rules = true;
    }

    /// From now on the cluster does not answer whether that is so, or does again.
    pub(crate) fn fail_to_list_rules(&self, fails: bool) {
        self.rules().fails_to_list = fails;
    }

    /// How many reviews there have been: of tokens, and of access.
    pub(crate) fn asked(&self) -> [usize; 2] {
        self.rules().asked
    }

    pub(crate) fn remove(&self, resource: &str, key: &str) {
        self.discard("", resource, key);
    }

    pub(crate) fn revoke_all(&self) {
        self.rules().grants.clear();
    }

    pub(crate) fn end_tokens(&self) {
        self.rules().no_tokens = true;
    }

    /// From now on reviews fail, or no longer do.
    pub(crate) fn break_reviews(&self, broken: bool) {
        self.rules().broken = broken;
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().expect("rules")
    }
}

impl Rules {
    fn user(&mut self, spec: &Value) -> Value {
        self.asked[0] += 1;
        if let Some([judge, _]) = &self.judges {
            return judge(spec);
        }
        match spec["token"].as_str().and_then(|token| token.strip_suffix("-token")) {
            Some(name) if name != "bad" && !self.no_tokens => {
                json!({"authenticated": true, "user": {"username": name, "groups": ["system:authenticated"]}})
            }
            _ => json!({"authenticated": false}),
        }
    }

    fn allowed(&mut self, spec: &Value) -> Value {
        self.asked[1] += 1;
        if let Some([_, judge]) = &self.judges {
            return judge(spec);
        }
        let what = &spec["resourceAttributes"];
        let [resource, namespace, name] =
            ["resource", "namespace", "name"].map(|field| what[field].as_str().unwrap_or_default());
        let user = spec["user"].as_str().unwrap_or_default();
        let of_user = [user, "", "", ""].map(str::to_owned);
        let allowed = self.grants.range(of_user..).take_while(|grant| grant[0] == user).any(|grant| {
            let [_, granted, place, only] = grant;
            (granted == "*" || granted == resource)
                && (place.is_empty() || place == namespace)
                && (only.is_empty() || only == name)
        });
        json!({"allowed": allowed})
    }

    fn listed(&mut self, _: &Value) -> Value {
        json!({"resourceRules": [], "nonResourceRules": [], "incomplete": !self.lists_rules})
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
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews" => Rules::listed,
            _ => return self.server.service().call(request),
        };
        let lists = request.uri().path().ends_with("selfsubjectrulesreviews");
        let cluster = self.clone();
        Box::pin(async move {
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            let mut review: Value = serde_json::from_slice(&body).expect("JSON");
            let mut rules = cluster.rules();
            review["status"] = judge(&mut rules, &review["spec"]);
            let body = Full::from(review.to_string()).map_err(|never| match never {}).boxed_unsync();
            let mut response = Response::new(body);
            *response.status_mut() = if rules.broken || (lists && rules.fails_to_list) {
                StatusCode::INTERNAL_SERVER_ERROR
            } else {
                StatusCode::CREATED
            };
            Ok(response)
        })
    }
}

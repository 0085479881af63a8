use std::{
    collections::BTreeMap,
    convert::Infallible,
    pin::Pin,
    sync::{Mutex, MutexGuard},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{FutureExt, future::join_all};
use http::{HeaderValue, Request, Response, header::AUTHORIZATION};
use http_body_util::{BodyExt, Full};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::advance};
use tower_service::Service;

use super::*;

/// A cluster that answers reviews and nothing else.
#[derive(Clone)]
struct Cluster(Arc<State>);

struct State {
    rules: Mutex<Rules>,
    /// Reviews are answered while there are permits here.
    answering: Semaphore,
}

#[derive(Default)]
struct Rules {
    /// Users by token.
    tokens: BTreeMap<&'static str, Value>,
    /// `user verb resource.group namespace/name` or `user path`.
    grants: BTreeSet<String>,
    /// What is answered instead.
    failure: Option<(u16, Value)>,
    asked: Vec<Value>,
    at_a_time: usize,
    most_at_a_time: usize,
}

impl Cluster {
    fn new() -> Self {
        let rules =
            Rules { tokens: [("ann-token", json!({ "username": "ann" }))].into(), ..Rules::default() };
        let answering = Semaphore::new(Semaphore::MAX_PERMITS);
        Self(Arc::new(State { rules: Mutex::new(rules), answering }))
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.0.rules.lock().expect("rules")
    }

    fn grant(&self, grant: &str) {
        self.rules().grants.insert(grant.to_owned());
    }

    fn fail(&self, code: u16, answer: Value) {
        self.rules().failure = Some((code, answer));
    }

    /// How many reviews were asked for.
    fn asked(&self) -> usize {
        self.rules().asked.len()
    }

    fn stop_answering(&self) {
        self.0.answering.forget_permits(Semaphore::MAX_PERMITS);
    }

    fn access(&self) -> Access {
        Access::Kubernetes(Arc::new(Reviewer::new(
            Client::new(self.clone(), "default"),
            UnknownTokens::default(),
        )))
    }
}

impl Rules {
    fn answer(&mut self, path: &str, mut review: Value) -> (u16, Value) {
        self.asked.push(review.clone());
        if let Some(failure) = self.failure.clone() {
            return failure;
        }
        let spec = &review["spec"];
        review["status"] = match path {
            "/apis/authentication.k8s.io/v1/tokenreviews" => {
                match spec["token"].as_str().and_then(|t| self.tokens.get(t)) {
                    Some(user) => json!({ "authenticated": true, "user": user }),
                    None => json!({ "authenticated": false, "error": "no such token" }),
                }
            }
            "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let user = text(&spec["user"]);
                let what = &spec["resourceAttributes"];
                let grant = match &spec["nonResourceAttributes"] {
                    Value::Null => {
                        let [verb, resource, group, namespace, name] =
                            ["verb", "resource", "group", "namespace", "name"]
                                .map(|field| text(&what[field]));
                        format!("{user} {verb} {resource}.{group} {namespace}/{name}")
                    }
                    path => format!("{user} {} {}", text(&path["verb"]), text(&path["path"])),
                };
                json!({ "allowed": self.grants.contains(&grant) })
            }
            other => panic!("{other} is no review"),
        };
        (201, review)
    }
}

impl Service<Request<Body>> for Cluster {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let cluster = self.clone();
        Box::pin(async move {
            {
                let mut rules = cluster.rules();
                rules.at_a_time += 1;
                rules.most_at_a_time = rules.most_at_a_time.max(rules.at_a_time);
            }
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            tokio::task::yield_now().await;
            drop(cluster.0.answering.acquire().await.expect("open"));
            let mut rules = cluster.rules();
            rules.at_a_time -= 1;
            let (code, answer) = rules.answer(&path, serde_json::from_slice(&body).expect("JSON"));
            let response = Response::builder().status(code).body(Full::from(answer.to_string()));
            Ok(response.expect("a response"))
        })
    }
}

fn mk_headers(token: &str) -> HeaderMap {
    let value = HeaderValue::from_str(&format!("Bearer {token}")).expect("a value");
    HeaderMap::from_iter([(AUTHORIZATION, value)])
}

fn mk_list(namespace: Option<&str>) -> Attributes<'_> {
    Attributes { verb: "list", group: "", resource: "pods", namespace, name: None }
}

async fn ann(access: &Access) -> Caller {
    access.identify(&mk_headers("ann-token"), None).await.expect("ann")
}

async fn visible(access: &Access, caller: &Caller, candidates: &[&str]) -> Result<Visible, Status> {
    let candidates = candidates.iter().map(|name| (*name).to_owned()).collect();
    match access.allows(caller, &mk_list(None)).await? {
        true => Ok(Visible::All),
        false => access.visible(caller, &mk_list(None), candidates).await,
    }
}

#[tokio::test]
async fn without_a_cluster_to_ask_everybody_may_see_everything() {
    let everybody = Access::Open.identify(&HeaderMap::new(), None).await.expect("everybody");
    assert_eq!(Access::Open.require(&everybody, &mk_list(None)).await, Ok(()));
    assert_eq!(Access::Open.require_path(&everybody, "/metrics").await, Ok(()));
    assert_eq!(visible(&Access::Open, &everybody, &["shop"]).await, Ok(Visible::All));
    assert!(Access::Open.renew(&everybody).await.is_ok());
    assert_eq!(everybody.user(), "");
}

#[tokio::test]
async fn a_caller_without_a_good_token_is_unauthorized() {
    let cluster = Cluster::new();
    let access = cluster.access();
    assert_eq!(access.identify(&HeaderMap::new(), None).await.expect_err("nobody").code, 401);
    assert_eq!(cluster.asked(), 0, "there is nothing to ask");
    assert_eq!(access.identify(&mk_headers("bad"), None).await.expect_err("nobody").code, 401);
    assert_eq!(ann(&access).await.user(), "ann");
}

#[tokio::test]
async fn a_user_without_a_name_or_a_word_of_the_cluster_is_nobody() {
    let cluster = Cluster::new();
    let access = cluster.access();
    cluster.rules().tokens =
        [("a", json!({ "username": "" })), ("b", json!({ "groups": ["admins"] }))].into();
    for token in ["a", "b"] {
        assert_eq!(access.identify(&mk_headers(token), None).await.expect_err(token).code, 401);
    }
    let review = |status| json!({ "metadata": {}, "spec": {}, "status": status });
    for status in [
        json!({ "user": { "username": "ann" } }),
        json!({ "authenticated": false, "user": { "username": "ann" } }),
        json!({ "authenticated": true }),
    ] {
        cluster.fail(201, review(status));
        assert_eq!(
            cluster.access().identify(&mk_headers("ann-token"), None).await.expect_err("nobody").code,
            401
        );
    }
    cluster.fail(201, json!({ "metadata": {}, "spec": {} }));
    assert_eq!(
        cluster.access().identify(&mk_headers("ann-token"), None).await.expect_err("no word").code,
        503
    );
}

#[tokio::test]
async fn the_cluster_is_told_everything_it_knows_about_the_user() {
    let cluster = Cluster::new();
    let user =
        json!({ "username": "ann", "uid": "7", "groups": ["dev", "ops"], "extra": { "scopes": ["a", "b"] } });
    cluster.rules().tokens = [("ann-token", user)].into();
    let access = cluster.access();
    let caller = ann(&access).await;
    let what = Attributes {
        verb: "get",
        group: "apps",
        resource: "deployments",
        namespace: Some("shop"),
        name: Some("web"),
    };
    assert_eq!(access.allows(&caller, &what).await, Ok(false));
    let spec = cluster.rules().asked.pop().expect("a review")["spec"].clone();
    assert_eq!(
        spec,
        json!({
            "user": "ann", "uid": "7", "groups": ["dev", "ops"], "extra": { "scopes": ["a", "b"] },
            "resourceAttributes": {
                "verb": "get", "group": "apps", "resource": "deployments", "namespace": "shop", "name": "web"
            }
        })
    );
}

#[tokio::test]
async fn what_is_not_granted_is_forbidden_in_the_words_of_kubernetes() {
    let cluster = Cluster::new();
    cluster.grant("ann list pods. shop/");
    cluster.grant("ann get /metrics");
    let access = cluster.access();
    let caller = ann(&access).await;
    assert_eq!(access.require(&caller, &mk_list(Some("shop"))).await, Ok(()));
    let message = async |what: Attributes<'_>| {
        let status = access.require(&caller, &what).await.expect_err("forbidden");
        assert_eq!(status.code, 403);
        status.message
    };
    assert_eq!(
        message(mk_list(Some("bank"))).await,
        r#"pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the namespace "bank""#
    );
    let one = Attributes {
        verb: "get",
        group: "apps",
        resource: "deployments",
        namespace: None,
        name: Some("web"),
    };
    assert_eq!(
        message(one).await,
        r#"deployments.apps "web" is forbidden: User "ann" cannot get resource "deployments" in API group "apps" at the cluster scope"#
    );
    assert_eq!(access.require_path(&caller, "/metrics").await, Ok(()));
    let status = access.require_path(&caller, "/_informers").await.expect_err("forbidden");
    assert_eq!(
        (status.code, &*status.message),
        (403, r#"forbidden: User "ann" cannot get path "/_informers""#)
    );
}

#[tokio::test]
async fn a_namespace_is_in_itself() {
    let cluster = Cluster::new();
    cluster.grant("ann get namespaces. shop/shop");
    let access = cluster.access();
    let caller = ann(&access).await;
    let get = |name| Attributes {
        verb: "get",
        group: "",
        resource: "namespaces",
        namespace: None,
        name: Some(name),
    };
    assert_eq!(access.require(&caller, &get("shop")).await, Ok(()));
    let status = access.require(&caller, &get("bank")).await.expect_err("forbidden");
    assert!(status.message.ends_with(r#"in the namespace "bank""#), "{}", status.message);
    for verb in ["list", "watch"] {
        cluster.grant(&format!("ann {verb} namespaces. shop/shop"));
        let by_name = Attributes { verb, ..get("shop") };
        assert_eq!(
            access.require(&caller, &by_name).await.expect_err(verb).code,
            403,
            "it is of the cluster"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_for_seconds_whatever_it_is() {
    let cluster = Cluster::new();
    cluster.grant("ann list pods. shop/");
    let access = cluster.access();
    for round in 1..=3 {
        for _ in 0..3 {
            let caller = ann(&access).await;
            assert_eq!(access.allows(&caller, &mk_list(Some("shop"))).await, Ok(true));
            assert_eq!(access.allows(&caller, &mk_list(Some("bank"))).await, Ok(false));
            assert_eq!(access.identify(&mk_headers("bad"), None).await.expect_err("nobody").code, 401);
        }
        assert_eq!(cluster.asked(), 4 * round);
        advance(memo::LIFE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_away_is_gone_within_ten_seconds() {
    assert!(memo::LIFE + RECHECK <= Duration::from_secs(10));
    let cluster = Cluster::new();
    cluster.grant("ann list pods. shop/");
    let access = cluster.access();
    let caller = ann(&access).await;
    assert_eq!(access.require(&caller, &mk_list(Some("shop"))).await, Ok(()));
    cluster.rules().grants.clear();
    let mut passed = Duration::ZERO;
    loop {
        let caller = access.renew(&caller).await.expect("ann");
        if access.require(&caller, &mk_list(Some("shop"))).await.is_err() {
            break;
        }
        advance(RECHECK).await;
        passed += RECHECK;
    }
    assert!(passed <= Duration::from_secs(10), "{passed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_is_renewed_until_the_token_ends() {
    let cluster = Cluster::new();
    cluster.grant("bob list pods. shop/");
    let access = cluster.access();
    let caller = ann(&access).await;
    assert_eq!(access.allows(&caller, &mk_list(Some("shop"))).await, Ok(false));
    cluster.rules().tokens.insert("ann-token", json!({ "username": "bob" }));
    assert_eq!(access.renew(&caller).await.expect("known").user(), "ann");
    advance(memo::LIFE).await;
    let caller = access.renew(&caller).await.expect("known");
    assert_eq!((caller.user(), access.allows(&caller, &mk_list(Some("shop"))).await), ("bob", Ok(true)));
    cluster.rules().tokens.clear();
    advance(memo::LIFE).await;
    assert_eq!(access.renew(&caller).await.expect_err("ended").code, 401);
}

#[tokio::test]
async fn users_of_one_name_and_other_groups_do_not_share_answers() {
    let cluster = Cluster::new();
    let user = |group: &str| json!({ "username": "ann", "groups": [group] });
    cluster.rules().tokens = [("a", user("dev")), ("b", user("ops"))].into();
    let access = cluster.access();
    for token in ["a", "b"] {
        let caller = access.identify(&mk_headers(token), None).await.expect("ann");
        assert_eq!(access.allows(&caller, &mk_list(None)).await, Ok(false));
    }
    assert_eq!(cluster.asked(), 4);
}

#[tokio::test]
async fn a_failing_cluster_allows_nothing() {
    let cluster = Cluster::new();
    cluster.grant("ann list pods. /");
    let access = cluster.access();
    let caller = ann(&access).await;
    let status = |code: u16| json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no" });
    for (code, answer) in [
        (500, status(500)),
        (403, status(403)),
        (401, status(401)),
        (429, status(429)),
        (200, json!("nonsense")),
        (201, json!({ "metadata": {}, "spec": {} })),
        (404, json!("nonsense")),
    ] {
        cluster.fail(code, answer);
        let refused = access.require(&caller, &mk_list(None)).await.expect_err("no answer");
        assert_eq!(refused.code, 503, "{code}");
        assert_eq!(access.identify(&mk_headers("other"), None).await.expect_err("no answer").code, 503);
        assert_eq!(visible(&access, &caller, &["shop"]).await.expect_err("no answer").code, 503);
    }
    cluster.rules().failure = None;
    assert_eq!(access.require(&caller, &mk_list(None)).await, Ok(()), "a failure is not remembered");
}

#[tokio::test(start_paused = true)]
async fn a_silent_cluster_allows_nothing_after_five_seconds() {
    let cluster = Cluster::new();
    let access = cluster.access();
    cluster.stop_answering();
    let begun = tokio::time::Instant::now();
    assert_eq!(access.identify(&mk_headers("ann-token"), None).await.expect_err("silent").code, 503);
    assert_eq!(begun.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_bad_tokens_is_a_trickle_for_the_cluster() {
    let cluster = Cluster::new();
    let access = cluster.access();
    let flood: Vec<_> = (0..900).map(|number| mk_headers(&format!("bad-{number}"))).collect();
    let eve = Some("192.0.2.1".parse().expect("an address"));
    let refused = join_all(flood.iter().map(|headers| access.identify(headers, eve))).await;
    let with =
        |code| refused.iter().filter(|refused| refused.as_ref().is_err_and(|s| s.code == code)).count();
    assert_eq!((with(401), with(429)), (50, 850), "so many tries are enough");
    assert_eq!((cluster.asked(), cluster.rules().most_at_a_time), (50, 8));
    assert_eq!(access.identify(&flood[0], eve).await.expect_err("bad").code, 401, "it is remembered");
    assert_eq!(cluster.asked(), 50);
    assert!(access.identify(&mk_headers("ann-token"), None).await.is_ok(), "another address");
    advance(Duration::from_secs(1)).await;
    assert!(access.identify(&mk_headers("ann-token"), eve).await.is_ok(), "and this one, a little later");
}

/// Lets both get as far as they do while the cluster does not answer.
async fn wait_at_cluster(first: &mut (impl Future + Unpin), then: &mut (impl Future + Unpin)) {
    for _ in 0..200 {
        assert!(first.now_or_never().is_none() && then.now_or_never().is_none());
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_was_known_before_does_not_wait_behind_strangers_of_the_same_address() {
    let cluster = Cluster::new();
    let (access, here) = (cluster.access(), Some("192.0.2.1".parse().expect("an address")));
    assert!(access.identify(&mk_headers("ann-token"), here).await.is_ok());
    advance(memo::LIFE).await;
    cluster.stop_answering();
    let flood: Vec<_> = (0..900).map(|number| mk_headers(&format!("bad-{number}"))).collect();
    let mut flood = Box::pin(join_all(flood.iter().map(|headers| access.identify(headers, here))));
    let ann_token = mk_headers("ann-token");
    let mut ann = Box::pin(access.identify(&ann_token, here));
    wait_at_cluster(&mut flood, &mut ann).await;
    assert_eq!(cluster.rules().at_a_time, 9, "eight strangers and ann");
    cluster.0.answering.add_permits(Semaphore::MAX_PERMITS);
    assert!(ann.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_user_with_many_questions_leaves_room_for_others() {
    let cluster = Cluster::new();
    cluster.rules().tokens.insert("bob-token", json!({ "username": "bob" }));
    cluster.grant("bob list pods. shop/");
    let access = cluster.access();
    let (ann, bob) =
        (ann(&access).await, access.identify(&mk_headers("bob-token"), None).await.expect("bob"));
    cluster.stop_answering();
    let names: Vec<String> = (0..800).map(|number| format!("ns-{number}")).collect();
    let places: Vec<_> = names.iter().map(|name| mk_list(Some(name))).collect();
    let mut many = Box::pin(join_all(places.iter().map(|there| access.allows(&ann, there))));
    let there = mk_list(Some("shop"));
    let mut one = Box::pin(access.allows(&bob, &there));
    wait_at_cluster(&mut many, &mut one).await;
    assert_eq!(cluster.rules().at_a_time, 9, "eight of ann's, and bob's");
    cluster.0.answering.add_permits(Semaphore::MAX_PERMITS);
    assert_eq!(one.await, Ok(true));
    let answers = many.await;
    let refused = answers.iter().filter(|answer| answer.as_ref().is_err_and(|status| status.code == 429));
    assert_eq!(refused.count(), 800 - 8 - 512, "more than so many do not even wait");
}

#[tokio::test]
async fn a_list_over_all_namespaces_is_of_those_that_may_be_seen() {
    let cluster = Cluster::new();
    cluster.grant("ann list pods. shop/");
    cluster.grant("ann list pods. web/");
    let access = cluster.access();
    let caller = ann(&access).await;
    let only = |names: &[&str]| Ok(Visible::Only(names.iter().map(|name| (*name).to_owned()).collect()));
    assert_eq!(visible(&access, &caller, &["bank", "shop", "web", ""]).await, only(&["shop", "web"]));
    assert_eq!(visible(&access, &caller, &["bank", "web"]).await, only(&["web"]));
    for candidates in [&["bank"][..], &[]] {
        let status = visible(&access, &caller, candidates).await.expect_err("nothing");
        assert_eq!(status.code, 403);
        assert!(status.message.ends_with("at the cluster scope"), "{}", status.message);
    }
    let seen = visible(&access, &caller, &["shop"]).await.expect("shop");
    assert!(seen.contains("shop") && !seen.contains("web") && Visible::All.contains("web"));
}

#[tokio::test]
async fn who_may_see_all_namespaces_is_asked_about_once() {
    let cluster = Cluster::new();
    cluster.grant("ann list pods. /");
    let access = cluster.access();
    let caller = ann(&access).await;
    assert_eq!(visible(&access, &caller, &["a", "b", "c"]).await, Ok(Visible::All));
    assert_eq!(cluster.asked(), 2);
}

#[tokio::test]
async fn many_namespaces_are_reviewed_a_few_at_a_time() {
    let cluster = Cluster::new();
    let names: Vec<String> = (0..200).map(|number| format!("ns-{number}")).collect();
    names.iter().for_each(|name| cluster.grant(&format!("ann list pods. {name}/")));
    let access = cluster.access();
    let caller = ann(&access).await;
    let seen = access.visible(&caller, &mk_list(None), names.clone()).await;
    assert_eq!(seen, Ok(Visible::Only(names.into_iter().collect())));
    let most = cluster.rules().most_at_a_time;
    assert!((2..=NAMESPACES_AT_A_TIME).contains(&most), "{most}");
}

#[tokio::test]
async fn nobody_is_impersonated() {
    let cluster = Cluster::new();
    for access in [Access::Open, cluster.access()] {
        for header in ["impersonate-user", "impersonate-group", "impersonate-extra-scopes"] {
            let mut headers = mk_headers("ann-token");
            headers.insert(header, HeaderValue::from_static("admin"));
            let status = access.identify(&headers, None).await.expect_err(header);
            assert!(status.code == 400 && status.message.contains(header), "{status}");
        }
    }
}

#[tokio::test]
async fn a_caller_is_printed_without_the_token() {
    let caller = ann(&Cluster::new().access()).await;
    assert_eq!(format!("{caller:?}"), r#"Caller("ann")"#);
}

#[tokio::test]
async fn a_caller_of_an_open_gateway_is_nobody_to_a_cluster() {
    let everybody = Access::Open.identify(&HeaderMap::new(), None).await.expect("everybody");
    let access = Cluster::new().access();
    assert_eq!(access.require(&everybody, &mk_list(None)).await.expect_err("nobody").code, 401);
    assert_eq!(access.renew(&everybody).await.expect_err("nobody").code, 401);
}

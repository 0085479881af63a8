//! How often the cluster is asked about users who may not see everything.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use informer_gateway::{Auth, Gateway, GatewayBuilder};
use tokio::task::JoinSet;
use tower_service::Service;

use super::{
    mk_pod,
    model::{Binding, Policy, Rule, Subject, User},
};
use crate::{cluster::Cluster, support::Served};

/// So many users and namespaces; each user may see the pods of three of them.
async fn mk_crowd(users: usize, namespaces: usize) -> (Cluster, Served) {
    mk_crowd_with(users, namespaces, |builder| builder).await
}

async fn mk_crowd_with(
    users: usize,
    namespaces: usize,
    configure: fn(GatewayBuilder) -> GatewayBuilder,
) -> (Cluster, Served) {
    let cluster = Cluster::new();
    for namespace in 0..namespaces {
        let name = format!("ns-{namespace}");
        cluster.put(serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        cluster.put(mk_pod(&name, "web-0"));
    }
    for user in 0..users {
        for n in 0..3 {
            cluster.bind(&format!("user-{user}"), "pods", &format!("ns-{}", (user + 7 * n) % namespaces));
        }
    }
    let gateway = configure(Gateway::builder(cluster.client()).auth(Auth::Kubernetes)).build();
    let gateway = gateway.expect("a gateway");
    (cluster, Served::of(gateway).await)
}

/// How long reviews are counted: twice the time in which every answer is asked for again, which is three checks of a
/// stream, the first that is later than seven seconds. Reviews a minute are that many times more.
const STRETCH: Duration = Duration::from_secs(18);

/// Every user follows the pods, after some seconds to begin with. How many reviews that takes in a minute, of tokens and
/// of access.
///
/// Without sockets: paused time would pass while somebody waits for one, and all who follow would check again.
async fn reviews_in_a_minute(cluster: &Cluster, served: &Served, users: usize) -> [usize; 2] {
    tokio::time::pause();
    let router = served.gateway.router(served.address).expect("a router");
    let mut reading = JoinSet::new();
    let seen = Arc::new(AtomicUsize::new(0));
    for user in 0..users {
        let request = Request::get("/_stream/core/v1/pods?as=table")
            .header("host", served.address.to_string())
            .header("authorization", format!("Bearer user-{user}-token"));
        let request = request.body(Body::empty()).expect("a request");
        let answer = router.clone().call(request).await.expect("an answer");
        assert_eq!(answer.status(), 200);
        let (mut body, seen) = (answer.into_body(), Arc::clone(&seen));
        reading.spawn(async move {
            while let Some(Ok(frame)) = body.frame().await {
                let text = String::from_utf8(frame.into_data().expect("data").to_vec()).expect("text");
                seen.fetch_add(text.matches("\"name\":\"web-0\"").count(), Relaxed);
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    let before = cluster.asked();
    tokio::time::sleep(STRETCH).await;
    let after = cluster.asked();
    assert_eq!(seen.load(Relaxed), 3 * users, "each sees three namespaces");
    assert!(reading.try_join_next().is_none(), "nobody is sent away");
    tokio::time::resume();
    [0, 1].map(|sort| (after[sort] - before[sort]) * 60 / STRETCH.as_secs() as usize)
}

/// `INFORMER_REVIEW_USERS=1000` and `INFORMER_REVIEW_NAMESPACES=200` for the figures of docs/security.md.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

#[tokio::test]
async fn with_readable_rules_the_reviews_do_not_grow_with_users_and_namespaces() {
    let users = number("INFORMER_REVIEW_USERS", 50);
    let namespaces = number("INFORMER_REVIEW_NAMESPACES", 200);
    let (cluster, served) = mk_crowd(users, namespaces).await;
    let [_, without] = reviews_in_a_minute(&cluster, &served, users).await;
    let (cluster, served) = mk_crowd(users, namespaces).await;
    cluster.list_rules();
    let [tokens, with] = reviews_in_a_minute(&cluster, &served, users).await;
    println!(
        "{users} users, {namespaces} namespaces: {without} access reviews a minute, {with} with readable rules; {tokens} of tokens"
    );
    assert!(without >= users * namespaces * 6, "each namespace every few seconds: {without}");
    assert!(without < users * namespaces * 9, "but not before an answer is seven seconds old: {without}");
    assert!(with <= users, "only where something could have changed: {with}");
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_for_a_moment_is_not_asked_more_than_before() {
    let (cluster, served) = mk_crowd(1, 3).await;
    cluster.list_rules();
    tokio::time::pause();
    let router = served.gateway.router(served.address).expect("a router");
    let get = async || {
        let request = Request::get("/core/v1/pods").header("host", served.address.to_string());
        let request = request.header("authorization", "Bearer user-0-token").body(Body::empty());
        let answer = router.clone().call(request.expect("a request")).await.expect("an answer");
        assert_eq!(answer.status(), 200);
        cluster.asked()[1]
    };
    let ask_for = async |seconds: u64| {
        let before = get().await;
        for _ in 0..seconds / 5 {
            tokio::time::sleep(Duration::from_secs(5)).await;
            get().await;
        }
        get().await - before
    };
    ask_for(30).await;
    cluster.fail_to_list_rules(true);
    assert_eq!(ask_for(80).await, 0, "what it said last still counts");
    assert!(ask_for(60).await > 0, "but not for ever");
    cluster.fail_to_list_rules(false);
    ask_for(30).await;
    assert_eq!(ask_for(60).await, 0, "it is soon asked again");
}

#[tokio::test]
async fn a_right_that_is_taken_away_is_noticed_though_answers_count_for_longer() {
    let (cluster, served) = mk_crowd(1, 3).await;
    cluster.list_rules();
    assert_eq!(served.code("/core/v1/pods", "user-0-token").await, 200);
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(served.code("/core/v1/pods", "user-0-token").await, 200);
    let asked = cluster.asked()[1];
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(served.code("/core/v1/pods", "user-0-token").await, 200);
    assert_eq!(cluster.asked()[1], asked, "nothing has changed, so nothing is asked");
    for namespace in 0..3 {
        cluster.revoke("user-0", "pods", &format!("ns-{namespace}"));
        cluster.unbind("user-0", "pods", &format!("ns-{namespace}"));
    }
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(served.code("/core/v1/pods", "user-0-token").await, 403);
}

#[tokio::test]
async fn answers_do_not_count_for_longer_when_nobody_watches_the_rules_any_more() {
    let idle = |builder: GatewayBuilder| builder.idle_timeout(Duration::from_secs(20));
    let (cluster, served) = mk_crowd_with(1, 3, idle).await;
    cluster.list_rules();
    tokio::time::pause();
    assert_eq!(served.code("/core/v1/pods", "user-0-token").await, 200, "the rules are read");
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(served.code("/core/v1/pods?namespace=ns-0", "user-0-token").await, 200);
    tokio::time::sleep(Duration::from_secs(40)).await;
    cluster.revoke("user-0", "pods", "ns-0");
    cluster.unbind("user-0", "pods", "ns-0");
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(served.code("/core/v1/pods?namespace=ns-0", "user-0-token").await, 403);
}

#[tokio::test]
async fn a_right_to_one_document_of_discovery_is_none_to_another() {
    let cluster = Cluster::new();
    let mut policy = Policy::default();
    let owned = |text: &str| text.to_owned();
    let user = User { token: owned("t"), name: owned("ann"), groups: Vec::new(), known: true };
    policy.users.push(user);
    let rule = Rule {
        verbs: vec![owned("get")],
        urls: vec![owned("/api"), owned("/apis/apps/*")],
        ..Rule::default()
    };
    policy.roles.insert((String::new(), owned("read")), vec![rule]);
    let binding = Binding { subject: Subject::User(owned("ann")), role: (true, owned("read")) };
    policy.bindings.insert((String::new(), owned("ann")), binding);
    cluster.decide_by(policy.judges());
    let gateway = Gateway::builder(cluster.client()).auth(Auth::Kubernetes).build().expect("a gateway");
    let served = Served::of(gateway).await;
    for (path, code) in [
        ("/api", 200),
        ("/apis/apps/v1", 200),
        ("/apis/apps", 403),
        ("/apis", 403),
        ("/api/v1", 403),
        ("/_resources", 403),
    ] {
        assert_eq!(served.code(path, "t").await, code, "{path}");
    }
}

#[tokio::test]
async fn a_request_for_many_namespaces_is_refused() {
    let (cluster, served) = mk_crowd(1, 3).await;
    let many: Vec<String> = (0..800).map(|n| format!("namespace=x{n}")).collect();
    let (code, _, body) = served.get(&format!("/core/v1/pods?{}", many.join("&")), "user-0-token").await;
    assert_eq!(code, 400, "{body}");
    assert!(cluster.asked()[1] == 0);
}

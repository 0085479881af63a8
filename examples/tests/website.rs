//! The controller of `website.rs`, twice, against one server in this process. Time is paused: it moves when everybody waits.

#[allow(dead_code, reason = "the test has a main of its own")]
#[path = "../website.rs"]
mod website;

use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::Request;
use informer::model::{Reason, Status};
use informer_apiserver::{ApiServer, Connection, Fault, Rule, Verb};
use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::Service, events::v1::Event};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use serde_json::json;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;
use tower_service::Service as HttpService;
use website::{Website, WebsiteSpec, WebsiteStatus};

/// A way to a server that remembers which answers said that something was not there, or was not as it had been read.
#[derive(Clone)]
struct Noting {
    connection: Connection,
    outdated: Arc<Mutex<Vec<String>>>,
}

impl Noting {
    fn new(server: &ApiServer) -> Self {
        Self { connection: server.service(), outdated: Arc::default() }
    }

    fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// What was answered so for the kinds that the controller writes.
    fn outdated(&self) -> Vec<String> {
        let kinds = ["/websites", "/deployments", "/services"];
        let answers = self.outdated.lock().unwrap();
        answers.iter().filter(|answer| kinds.iter().any(|kind| answer.contains(kind))).cloned().collect()
    }
}

impl HttpService<Request<Body>> for Noting {
    type Response = <Connection as HttpService<Request<Body>>>::Response;
    type Error = <Connection as HttpService<Request<Body>>>::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        HttpService::<Request<Body>>::poll_ready(&mut self.connection, context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (asked, outdated) =
            (format!("{} {}", request.method(), request.uri().path()), Arc::clone(&self.outdated));
        let answer = self.connection.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            if [404, 409].contains(&answer.status().as_u16()) {
                outdated.lock().unwrap().push(format!("{} to {asked}", answer.status()));
            }
            Ok(answer)
        })
    }
}

/// An instance of the controller.
struct Instance {
    stop: CancellationToken,
    running: JoinHandle<anyhow::Result<()>>,
}

impl Instance {
    fn start(client: &Client, identity: &str) -> Self {
        let stop = CancellationToken::new();
        let (client, identity, until) = (client.clone(), identity.to_owned(), stop.clone());
        let running = tokio::spawn(async move {
            let manager = website::manager(client, identity).await?;
            Ok(manager.run(until).await?)
        });
        Self { stop, running }
    }

    async fn end(self) {
        self.stop.cancel();
        self.running.await.expect("no panic").expect("a good end");
    }

    /// As if the process were killed: nothing is given back.
    async fn kill(self) {
        self.running.abort();
        assert!(self.running.await.unwrap_err().is_cancelled());
    }
}

fn spec(image: &str, replicas: i32) -> WebsiteSpec {
    WebsiteSpec { image: image.to_owned(), replicas }
}

async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}

/// In this many seconds every candidate has looked at the lease: at the latest after 2.2 times the retry period of 2 s.
const LOOK: u64 = 5;
/// How long a lease is valid after the last sign of life.
const LEASE: u64 = 15;

/// The token of the leader that wrote a deployment.
fn token(deployment: &Deployment) -> u64 {
    deployment.annotations()["website.default.lease.informer/fence"].parse().unwrap()
}

/// The cluster as a user sees it.
struct Cluster(Client);

impl Cluster {
    fn websites(&self) -> Api<Website> {
        Api::namespaced(self.0.clone(), "default")
    }

    async fn deployment(&self) -> Option<Deployment> {
        Api::namespaced(self.0.clone(), "default").get_opt("blog").await.unwrap()
    }

    async fn service(&self) -> Option<Service> {
        Api::namespaced(self.0.clone(), "default").get_opt("blog").await.unwrap()
    }

    /// Who leads, and the number of the term.
    async fn leader(&self) -> (String, i32) {
        let lease = Api::<Lease>::namespaced(self.0.clone(), "default").get("website").await.unwrap();
        let spec = lease.spec.unwrap();
        (spec.holder_identity.unwrap_or_default(), spec.lease_transitions.unwrap())
    }

    async fn create(&self, name: &str, spec: WebsiteSpec) {
        self.websites().create(&PostParams::default(), &Website::new(name, spec)).await.unwrap();
    }

    /// What events say.
    async fn notes(&self) -> Vec<String> {
        let events = Api::<Event>::namespaced(self.0.clone(), "default");
        events
            .list(&ListParams::default())
            .await
            .unwrap()
            .into_iter()
            .filter_map(|event| event.note)
            .collect()
    }

    async fn set_image(&self, image: &str) {
        let change = Patch::Merge(json!({ "spec": { "image": image } }));
        self.websites().patch("blog", &PatchParams::default(), &change).await.unwrap();
    }

    async fn image(&self) -> String {
        let spec = self.deployment().await.unwrap().spec.template.spec.unwrap();
        spec.containers[0].image.clone().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn two_instances_one_leader_and_a_website_from_its_beginning_to_its_end() {
    let server = ApiServer::builder().seed(1).build();
    let (cluster, noting) = (Cluster(server.client()), Noting::new(&server));
    let client = noting.client();
    let first = Instance::start(&client, "first");
    seconds(LOOK).await;
    let second = Instance::start(&client, "second");
    seconds(LOOK).await;
    assert_eq!(cluster.leader().await, ("first".to_owned(), 1));

    // A website is made: its deployment, its service, its finalizer.
    cluster.create("blog", spec("blog:1", 3)).await;
    seconds(1).await;
    let deployment = cluster.deployment().await.unwrap();
    assert_eq!(deployment.spec.replicas, Some(3));
    assert_eq!(deployment.owner_references()[0].kind, "Website");
    let first_term = token(&deployment);
    assert_eq!(cluster.service().await.unwrap().spec.unwrap().selector.unwrap()["website"], "blog");
    let site = cluster.websites().get("blog").await.unwrap();
    assert_eq!(site.finalizers(), ["example.com/website"]);
    assert_eq!(site.status, Some(WebsiteStatus { ready_replicas: 0, observed_generation: Some(1) }));

    // Its pods become ready: the status says so.
    let ready = Patch::Merge(json!({ "status": { "replicas": 3, "readyReplicas": 2 } }));
    let deployments = Api::<Deployment>::namespaced(server.client(), "default");
    deployments.patch_status("blog", &PatchParams::default(), &ready).await.unwrap();
    seconds(1).await;
    assert_eq!(cluster.websites().get("blog").await.unwrap().status.unwrap().ready_replicas, 2);

    // Somebody changes the deployment: it is changed back. What is not the controller's stays.
    let meddling = Patch::Merge(json!({ "spec": { "replicas": 9, "minReadySeconds": 5 } }));
    deployments.patch("blog", &PatchParams::default(), &meddling).await.unwrap();
    seconds(1).await;
    let spec = cluster.deployment().await.unwrap().spec;
    assert_eq!((spec.replicas, spec.min_ready_seconds), (Some(3), Some(5)));

    // The leader dies. Nobody works until its lease is over, then the other one does, in the next term: it sees the last
    // sign of life with its next look, and the end of the lease with the one after that end.
    first.kill().await;
    cluster.set_image("blog:2").await;
    seconds(10).await;
    assert_eq!((cluster.image().await, cluster.leader().await.1), ("blog:1".to_owned(), 1));
    seconds(LOOK + LEASE + LOOK - 10).await;
    assert_eq!(cluster.leader().await, ("second".to_owned(), 2));
    assert_eq!(cluster.image().await, "blog:2");
    assert!(token(&cluster.deployment().await.unwrap()) > first_term);

    // The leader is told to end and gives its lease back: a third one goes on at once.
    let third = Instance::start(&client, "third");
    seconds(LOOK).await;
    second.end().await;
    seconds(LOOK).await;
    assert_eq!(cluster.leader().await, ("third".to_owned(), 3));

    // The website is deleted: first what belongs to it, then itself.
    cluster.websites().delete("blog", &DeleteParams::default()).await.unwrap();
    seconds(1).await;
    assert!(cluster.deployment().await.is_none() && cluster.service().await.is_none());
    assert!(cluster.websites().get_opt("blog").await.unwrap().is_none());
    third.end().await;
    assert_eq!(cluster.leader().await, (String::new(), 3));

    // Nobody has decided by what was out of date.
    assert_eq!(noting.outdated(), [""; 0]);

    // What happened can be read afterwards.
    let notes = cluster.notes().await;
    for image in ["blog:1", "blog:2"] {
        assert!(notes.iter().any(|note| note.contains(image)), "{notes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_new_websites_at_once_cost_no_conflict() {
    let server = ApiServer::builder().seed(6).build();
    let (cluster, noting) = (Cluster(server.client()), Noting::new(&server));
    let instance = Instance::start(&noting.client(), "only");
    seconds(LOOK).await;
    for nth in 0..50 {
        cluster.create(&format!("blog-{nth}"), spec("blog:1", 1)).await;
    }
    seconds(5).await;
    let deployments = Api::<Deployment>::namespaced(server.client(), "default");
    assert_eq!(deployments.list(&ListParams::default()).await.unwrap().items.len(), 50);
    let sites = cluster.websites().list(&ListParams::default()).await.unwrap();
    assert!(sites.iter().all(|site| site.status.is_some()));
    assert_eq!(noting.outdated(), [""; 0]);
    instance.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_comes_too_late_is_made_again_although_no_event_follows() {
    let server = ApiServer::builder().seed(4).build();
    let (cluster, noting) = (Cluster(server.client()), Noting::new(&server));
    let instance = Instance::start(&noting.client(), "only");
    seconds(LOOK).await;
    cluster.create("blog", spec("blog:1", 1)).await;
    seconds(1).await;
    let conflict = Fault::Status(Status::failure(Reason::Conflict, "the object has been modified"));
    server.faults().add(Rule::new(conflict).resource("deployments").verb(Verb::Update).times(3));
    cluster.set_image("blog:2").await;
    seconds(1).await;
    assert_eq!(cluster.image().await, "blog:2");
    assert_eq!(noting.outdated().len(), 3);
    instance.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deposed_leader_cannot_undo_what_the_next_one_wrote() {
    let client = ApiServer::builder().seed(2).build().client();
    let cluster = Cluster(client.clone());
    let instance = Instance::start(&client, "only");
    seconds(LOOK).await;
    cluster.create("blog", spec("blog:1", 1)).await;
    seconds(1).await;
    // A leader of a later term has written the deployment.
    let written = json!({ "metadata": { "annotations": { "website.default.lease.informer/fence": "1000000" } }, "spec": { "replicas": 5 } });
    let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
    deployments.patch("blog", &PatchParams::default(), &Patch::Merge(written)).await.unwrap();
    seconds(60).await;
    assert_eq!(cluster.deployment().await.unwrap().spec.replicas, Some(5));
    instance.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_call_records_after_the_stop_is_sent() {
    let server = ApiServer::builder().seed(5).build();
    let cluster = Cluster(server.client());
    let instance = Instance::start(&cluster.0, "only");
    seconds(LOOK).await;
    // The call takes longer than events are sent for after a stop.
    let slow = Fault::Delay(Duration::from_secs(12));
    server.faults().add(Rule::new(slow).resource("services").verb(Verb::Create));
    cluster.create("blog", spec("blog:1", 1)).await;
    seconds(1).await;
    instance.end().await;
    assert!(cluster.service().await.is_some(), "the call has ended");
    assert!(cluster.notes().await.iter().any(|note| note.contains("blog:1")));
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_may_not_define_websites_ends_and_says_so() {
    let server = ApiServer::builder().seed(3).build();
    let forbidden = Status::forbidden("customresourcedefinitions", "apiextensions.k8s.io", "", "no right");
    server.faults().add(Rule::new(Fault::Status(forbidden)).resource("customresourcedefinitions"));
    let instance = Instance::start(&server.client(), "only");
    let problem = instance.running.await.expect("no panic").expect_err("it cannot work");
    assert!(problem.to_string().contains("forbidden"), "{problem}");
}

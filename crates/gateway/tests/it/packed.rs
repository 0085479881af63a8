//! What a gateway that packs its objects answers: byte for byte what one answers that keeps their text.

use std::time::Duration;

use informer::source::WireOptions;
use informer_apiserver::{ApiServer, Churn, DemoCluster};
use informer_gateway::Packing;
use informer_testing::seed;
use jiff::Timestamp;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use serde_json::{Value, json, value::RawValue};

use crate::support::*;

/// Enough for a dictionary, which is trained while they come.
const PODS: usize = 800;
/// How many random queries are asked.
const QUERIES: usize = 60;
/// An answer that shows ages may be another one a second later.
const TRIES: usize = 5;

/// When the demo cluster was made.
const NEW_YEAR: Timestamp = Timestamp::constant(1_767_225_600, 0);

const TABLE: (&str, &str) = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
const METADATA: (&str, &str) = ("accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");

/// Gateways to one cluster: the first keeps text.
struct Pair {
    server: ApiServer,
    demo: DemoCluster,
    stages: Vec<Stage>,
}

impl Pair {
    /// Over protobuf, or JSON.
    fn new(wire: WireOptions) -> Self {
        let (server, demo) = (mk_server(), DemoCluster::new(1, PODS));
        server.load_demo(&demo).expect("a demo cluster");
        let packings = [Packing::Never, Packing::Auto, Packing::Always];
        let stage = |packing| Stage::inside(server.clone(), |builder| builder.wire(wire).packing(packing));
        Self { stages: packings.map(stage).into(), server, demo }
    }

    /// Lets something happen in the cluster for so many seconds.
    fn change(&self, (churn, now): &mut (Churn, Timestamp), seconds: usize) {
        for _ in 0..seconds {
            *now += Duration::from_secs(1);
            if let Some(change) = churn.next(*now, &self.server) {
                self.server.apply(change).expect("it applies");
            }
        }
    }

    /// Waits until all have heard of the last change of a resource, which is made here.
    async fn settle(&self, resource: &str, round: u32) {
        let name = format!("last-{round}");
        let last = match resource {
            "core/v1/pods" => mk_pod("default", &name, json!({})),
            "core/v1/nodes" => json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}),
            _ => {
                let metadata = json!({"namespace": "default", "name": name});
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {}})
            }
        };
        self.server.put(last).expect("an object");
        let path = format!("/{resource}?limit=1&minResourceVersion={}", self.server.version());
        for stage in &self.stages {
            assert_eq!(stage.get(&path).await.code, 200, "{path}");
        }
    }

    /// Compares what all answer. What is in the headers belongs to the answer, but for what is each gateway's own.
    async fn compare(&self, path: &str, headers: &[(&str, &str)]) {
        let mut answers = Vec::new();
        for _ in 0..TRIES {
            answers.clear();
            for stage in &self.stages {
                let mut answer = stage.get_with(path, headers).await;
                for own in ["etag", "x-cache-age", "x-continue", "date"] {
                    answer.headers.remove(own);
                }
                answers.push((answer.code, answer.headers.clone(), answer.text()));
            }
            if answers.iter().all(|answer| *answer == answers[0]) {
                return;
            }
        }
        for (answer, packing) in answers.iter().zip(["text", "auto", "always"]).skip(1) {
            assert_eq!(*answer, answers[0], "{packing}: {path} {headers:?}");
        }
    }

    /// How many objects of a resource each of them keeps packed, and what they take.
    async fn kept(&self, path: &str) -> Vec<(u64, u64, u64)> {
        let mut kept = Vec::new();
        for stage in &self.stages {
            let about = stage.get("/_informers").await.ok();
            let informers = about["informers"].as_array().expect("informers");
            let pods = informers.iter().find(|informer| informer["path"] == path).expect("it is in memory");
            let number = |member: &str| pods[member].as_u64().expect("a number");
            kept.push((number("packed"), number("bytes"), number("keptBytes")));
        }
        kept
    }
}

/// A query of a bit of everything.
fn mk_query(random: &mut Pcg32) -> String {
    const PATHS: [&str; 14] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.labels['app']",
        "metadata.ownerReferences[*].kind",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.containers[*].name",
        "spec.containers[0].resources.requests.cpu",
        "status.phase",
        "status.startTime",
        "status.conditions[1].lastTransitionTime",
        "status",
        "nothing.there",
    ];
    const VALUES: [&str; 5] = ["Running", "Pending", "Always", "", "app"];
    let mut any = |of: &[&'static str]| of[random.random_range(0..of.len())];
    let selector = format!("{}{}{},{}!=x", any(&PATHS), any(&["=", "!="]), any(&VALUES), any(&PATHS));
    let order = format!("{}{},{}", any(&["", "-"]), any(&PATHS), any(&PATHS));
    let fields = format!("{},{}", any(&PATHS), any(&PATHS));
    let mut parameters = Vec::new();
    for (name, value) in [("fieldSelector", &selector), ("sort", &order), ("fields", &fields)] {
        if any(&["yes", "no"]) == "yes" {
            parameters.push((name, value.as_str()));
        }
    }
    query("/core/v1/pods", &parameters)
}

const PATHS: [&str; 11] = [
    "/core/v1/pods",
    "/core/v1/pods?as=table",
    "/core/v1/pods?sort=-status.startTime&as=table",
    "/core/v1/pods?sort=spec.containers[0].image,metadata.annotations",
    "/core/v1/pods?labelSelector=app",
    "/core/v1/pods?fieldSelector=status.phase%3DRunning,spec.containers[*].name",
    "/api/v1/pods",
    "/api/v1/namespaces/kube-system/pods",
    "/apis/apps/v1/deployments",
    "/deploy",
    "/core/v1/nodes?as=table",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_the_same_packed_and_not_packed() {
    for wire in [WireOptions::default(), WireOptions::default().json()] {
        let pair = Pair::new(wire);
        let mut random = Pcg32::seed_from_u64(seed());
        let mut churn = (pair.demo.churn(), NEW_YEAR);
        for round in 0..3 {
            for path in PATHS {
                pair.compare(path, &[]).await;
            }
            for form in [TABLE, METADATA] {
                pair.compare("/api/v1/pods", &[form]).await;
            }
            for _ in 0..QUERIES / 3 {
                pair.compare(&mk_query(&mut random), &[]).await;
            }
            let list = pair.stages[0].get("/core/v1/pods?limit=5").await.items();
            for pod in list {
                let text =
                    |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).expect("a text").to_owned();
                let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
                for form in [&[][..], &[("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")]] {
                    pair.compare(&format!("/api/v1/namespaces/{namespace}/pods/{name}"), form).await;
                }
                for owner in pod["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
                    pair.compare(&format!("/_owned/{}", owner["uid"].as_str().expect("a uid")), &[]).await;
                }
            }
            if round < 2 {
                pair.change(&mut churn, 200);
                for resource in ["core/v1/pods", "core/v1/nodes", "apps/v1/deployments"] {
                    pair.settle(resource, round).await;
                }
            }
        }
        let kept = pair.kept("core/v1/pods").await;
        let [(0, text, as_text), (auto, same, smaller), (always, _, smallest)] = kept[..] else {
            panic!("one is not packed: {kept:?}")
        };
        assert!(text == same && as_text == text, "{kept:?}");
        assert!(auto > 200 && smaller < text * 4 / 5, "a dictionary was trained meanwhile: {kept:?}");
        assert!(always as usize + 5 > PODS && smallest < text / 2, "{kept:?}");
        // What is small is packed only where everything is.
        let nodes = pair.kept("core/v1/nodes").await;
        assert!(nodes[1].0 == 0 && nodes[2].0 > 0, "{nodes:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_follows_hears_the_same_of_packed_objects() {
    let pair = Pair::new(WireOptions::default());
    let version = pair.server.version();
    let paths = [
        "/_stream/core/v1/pods".to_owned(),
        "/_stream/core/v1/pods?fields=metadata.name,status.phase,spec.containers[0].image".to_owned(),
        "/_stream/core/v1/pods?fieldSelector=status.phase%3DRunning".to_owned(),
        "/_stream/core/v1/pods?fieldSelector=spec.containers[0].image%20exists".to_owned(),
        format!("/api/v1/pods?watch=1&resourceVersion={version}"),
        "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true".to_owned(),
    ];
    let mut streams = Vec::new();
    for path in &paths {
        for stage in &pair.stages {
            stage.get("/core/v1/pods?limit=1").await.ok();
            let stream = stage.stream(path, &[]).await;
            assert_eq!(stream.code, 200, "{path}");
            streams.push(stream);
        }
    }
    // The last of all says that all has been told.
    pair.change(&mut (pair.demo.churn(), NEW_YEAR), 100);
    let mut last = mk_pod("default", "the-last-one", json!({"app": "web"}));
    last["spec"]["containers"][0]["image"] = json!("nginx");
    pair.server.put(last).expect("a pod");
    let mut heard = Vec::new();
    for mut stream in streams {
        let mut text = String::new();
        while !text.contains("the-last-one") {
            let piece = stream.next().await.expect("it goes on");
            text.push_str(std::str::from_utf8(&piece).expect("text"));
        }
        heard.push(events(&text));
    }
    for (path, heard) in paths.iter().zip(heard.chunks(pair.stages.len())) {
        assert!(!heard[0].is_empty(), "{path}");
        for other in &heard[1..] {
            assert_eq!(other.len(), heard[0].len(), "{path}");
            for (one, other) in heard[0].iter().zip(other) {
                assert_eq!(other, one, "{path}");
            }
        }
    }
}

/// The items and events of a text, however they were put into pieces.
fn events(text: &str) -> Vec<String> {
    let mut events = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with(':')) {
        match line.strip_prefix("data: {\"items\":[").and_then(|line| line.strip_suffix("]}")) {
            Some(items) => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(&format!("[{items}]")).expect("items");
                events.extend(items.iter().map(|item| item.get().to_owned()));
            }
            None if line != "event: items" && !line.is_empty() => events.push(line.to_owned()),
            None => {}
        }
    }
    events
}

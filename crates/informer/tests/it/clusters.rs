//! Several clusters in one program: added, removed and lost while it runs.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use informer::{
    Departure, Event, SharedInformerFactory,
    clusters::{
        AddClusterError, ClusterInformers, ClusterKey, ClusterProvider, Clusters, KubeconfigContexts,
        KubeconfigSecrets, ProviderError,
    },
    controller::{Action, Controller},
};
use informer_apiserver::{ApiServer, Fault, Rule};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use serde_json::json;
use tokio::{runtime::Handle, sync::mpsc};
use tokio_util::sync::CancellationToken;

const SOON: Duration = Duration::from_secs(60);

/// A server with a namespace and these config maps in it.
fn mk_server(maps: &[&str]) -> ApiServer {
    let server = ApiServer::builder().seed(1).build();
    server
        .put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } }))
        .expect("written");
    maps.iter().for_each(|name| put(&server, name));
    server
}

fn put(server: &ApiServer, name: &str) {
    let metadata = json!({ "name": name, "namespace": "shop" });
    server.put(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })).expect("written");
}

fn discard(server: &ApiServer, name: &str) {
    assert!(server.discard("", "configmaps", &format!("shop/{name}").parse().expect("a key")));
}

/// What was heard or reconciled, in the order of the text where clusters have none.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: String) {
        self.0.lock().expect("no panic").push(what);
    }

    fn take(&self) -> String {
        let mut lines = std::mem::take(&mut *self.0.lock().expect("no panic"));
        lines.sort();
        lines.join(", ")
    }

    fn listen(&self, maps: &ClusterInformers<ConfigMap>) {
        let log = self.clone();
        maps.add_handler("log", move |cluster, event, initial| {
            let name = event.key().name();
            log.note(match event {
                Event::Added(_) => format!("{}{cluster}/{name}", if initial { '*' } else { '+' }),
                Event::Updated { .. } => format!("~{cluster}/{name}"),
                Event::Deleted(gone) if gone.departure() == Some(Departure::Cluster) => {
                    format!("!{cluster}/{name}")
                }
                Event::Deleted(_) => format!("-{cluster}/{name}"),
            });
        });
    }
}

fn maps_of(clusters: &Clusters) -> ClusterInformers<ConfigMap> {
    clusters.informers(|factory| factory.informer_for::<ConfigMap>())
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// Waits for a condition in paused time.
async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it never came to this: {what}");
}

#[tokio::test(start_paused = true)]
async fn c46_one_handler_hears_of_all_clusters_also_of_those_that_come_later() {
    let (east, west) = (mk_server(&["a"]), mk_server(&["a", "b"]));
    let (clusters, log) = (Clusters::new(), Log::default());
    let maps = maps_of(&clusters);
    log.listen(&maps);
    assert_eq!(clusters.add("east", east.client()).await, Ok(true));
    assert_eq!(clusters.add("east", west.client()).await, Ok(false), "the one that is there stays");
    clusters.start();
    let synced = clusters.wait_for_cache_sync(SOON).await;
    assert!(synced.len() == 1 && synced["east"].is_ok());
    settle().await;
    assert_eq!(log.take(), "*east/a");
    clusters.add("west", west.client()).await.unwrap();
    assert!(clusters.wait_for_cache_sync(SOON).await.values().all(Result::is_ok));
    settle().await;
    assert_eq!(log.take(), "*west/a, *west/b");
    let (late, other) = (Log::default(), maps_of(&clusters));
    late.listen(&maps);
    settle().await;
    assert_eq!(late.take(), "*east/a, *west/a, *west/b", "one that comes late hears of all");
    assert!(other.get("west").unwrap().ptr_eq(&maps.get("west").unwrap()), "one informer in each cluster");
    put(&east, "c");
    discard(&west, "b");
    settle().await;
    assert_eq!(log.take(), "+east/c, -west/b");
    assert_eq!(maps.all().values().map(|maps| maps.store().len()).sum::<usize>(), 3);
    clusters.shutdown().await;
    let refused = clusters.add("north", east.client()).await.unwrap_err();
    assert_eq!(refused, AddClusterError::ShutDown { cluster: "north".to_owned() });
}

#[tokio::test(start_paused = true)]
async fn c46_one_that_is_removed_is_told_as_deletions_and_one_of_its_name_comes_after_them() {
    let (east, west) = (mk_server(&["a"]), mk_server(&["a", "b"]));
    let (clusters, log) = (Clusters::new(), Log::default());
    let maps = maps_of(&clusters);
    log.listen(&maps);
    clusters.start();
    clusters.add("east", east.client()).await.unwrap();
    clusters.add("west", west.client()).await.unwrap();
    settle().await;
    log.take();
    let held = maps.get("west").unwrap();
    // Not waited for: whoever adds one of this name waits.
    let removal = clusters.remove("west");
    let (was_there, is_new) = tokio::join!(removal, clusters.add("west", east.client()));
    assert_eq!((was_there, is_new), (true, Ok(true)));
    settle().await;
    assert_eq!(log.take(), "!west/a, !west/b, *west/a");
    assert!(held.is_stopped() && held.store().len() == 2, "whoever holds it keeps its cache");
    assert!(!clusters.remove("north").await, "there is none");
    assert!(clusters.remove("west").await && maps.get("west").is_none() && clusters.get("west").is_none());
    assert_eq!(log.take(), "!west/a");
    let asked = west.requests();
    put(&west, "c");
    put(&east, "c");
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(log.take(), "+east/c");
    assert_eq!(west.requests(), asked, "requests to what is gone");
    assert_eq!(clusters.names(), ["east"]);
    clusters.shutdown().await;
    assert_eq!(log.take(), "", "the end of all is no deletion");
}

#[tokio::test(start_paused = true)]
async fn c46_a_cluster_that_is_lost_harms_no_other() {
    let (east, west, lost) = (mk_server(&["a"]), mk_server(&["a"]), mk_server(&["a"]));
    let (clusters, log) = (Clusters::new(), Log::default());
    let maps = maps_of(&clusters);
    let controller = Controller::<ClusterKey>::new("maps").workers(2);
    maps.feed(&controller);
    clusters.start();
    lost.faults().add(Rule::new(Fault::Refuse));
    for (name, server) in [("east", &east), ("lost", &lost), ("west", &west)] {
        clusters.add(name, server.client()).await.unwrap();
    }
    let (stop, reconciled) = (CancellationToken::new(), log.clone());
    let running = tokio::spawn(controller.run(stop.clone(), move |key: ClusterKey| {
        reconciled.note(key.to_string());
        async { Ok::<_, kube::Error>(Action::AwaitChange) }
    }));
    settle().await;
    assert_eq!(log.take(), "east: shop/a, west: shop/a", "nobody waits for the one that is lost");
    let synced = clusters.wait_for_cache_sync(Duration::from_secs(5)).await;
    let words = synced["lost"].as_ref().unwrap_err().to_string();
    assert!(words.contains("refused") && synced["east"].is_ok() && synced["west"].is_ok(), "{words}");
    let health = clusters.health();
    assert!(health["lost"].iter().any(|it| it.trouble().is_some()));
    assert!(health["east"].iter().chain(&health["west"]).all(informer::Health::is_healthy));
    put(&east, "b");
    settle().await;
    assert_eq!(log.take(), "east: shop/b");
    // Found again, it joins; lost again, it keeps what it had.
    lost.faults().clear();
    until("it is found", || maps.get("lost").unwrap().has_synced()).await;
    settle().await;
    assert_eq!(log.take(), "lost: shop/a");
    lost.faults().add(Rule::new(Fault::Refuse));
    lost.break_watches();
    settle().await;
    put(&lost, "unseen");
    tokio::time::sleep(Duration::from_secs(600)).await;
    put(&west, "b");
    settle().await;
    assert_eq!(log.take(), "west: shop/b");
    assert_eq!(maps.get("lost").unwrap().store().len(), 1);
    // Also its removal needs no answer of it.
    assert!(clusters.remove("lost").await);
    settle().await;
    assert_eq!(log.take(), "lost: shop/a", "its keys are queued once more");
    stop.cancel();
    running.await.unwrap().unwrap();
    clusters.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn c46_a_controller_hears_nothing_of_a_cluster_before_all_its_caches_are_complete() {
    let server = mk_server(&["a"]);
    server.faults().add(Rule::new(Fault::Refuse).resource("secrets"));
    let (clusters, log) = (Clusters::new(), Log::default());
    let maps = maps_of(&clusters);
    let secrets = clusters.informers(|factory| factory.core().v1().secrets().informer());
    let controller = Controller::<String>::new("both");
    maps.feed_with(&controller, |cluster, event| [format!("{cluster} {}", event.key().name())]);
    secrets.feed_with(&controller, |_, _| None::<String>);
    clusters.start();
    clusters.add("east", server.client()).await.unwrap();
    let (stop, reconciled) = (CancellationToken::new(), log.clone());
    let running = tokio::spawn(controller.run(stop.clone(), move |key: String| {
        reconciled.note(key);
        async { Ok::<_, kube::Error>(Action::AwaitChange) }
    }));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(maps.get("east").unwrap().has_synced());
    assert_eq!(log.take(), "", "its secrets are not there");
    server.faults().clear();
    until("all are there", || secrets.get("east").unwrap().has_synced()).await;
    settle().await;
    assert_eq!(log.take(), "east a");
    stop.cancel();
    running.await.unwrap().unwrap();
    clusters.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn c46_clusters_that_come_and_go_leave_nothing_behind() {
    let (home, away) = (mk_server(&["a"]), mk_server(&["a"]));
    let (clusters, log) = (Clusters::new(), Log::default());
    let maps = maps_of(&clusters);
    log.listen(&maps);
    let controller = Controller::<ClusterKey>::new("maps");
    maps.feed(&controller);
    clusters.start();
    clusters.add("home", home.client()).await.unwrap();
    clusters.wait_for_cache_sync(SOON).await;
    settle().await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    for cycle in 0..1_000 {
        clusters.add("away", away.client()).await.unwrap();
        if cycle % 3 > 0 {
            until("it is there", || maps.get("away").unwrap().has_synced()).await;
        }
        assert!(clusters.remove("away").await);
    }
    settle().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks, "tasks are left");
    assert!(log.take().matches("!away/a").count() > 600);
    let asked = away.requests();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(away.requests(), asked, "requests to what is gone");
    assert_eq!(maps.all().len(), 1);
    clusters.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn c46_a_panicking_handler_and_a_factory_that_cannot_be_built_are_named() {
    let server = mk_server(&["a"]);
    let clusters = Clusters::with_factories(|name, client| {
        SharedInformerFactory::builder(client).namespace(name.replace("east", "shop")).build()
    });
    let (maps, log) = (maps_of(&clusters), Log::default());
    maps.add_handler("bad", |_, _, _| panic!("on purpose"));
    log.listen(&maps);
    clusters.start();
    clusters.add("east", server.client()).await.unwrap();
    let error = clusters.add("NO/WHERE", server.client()).await.unwrap_err().to_string();
    assert!(
        error.starts_with("cluster \"NO/WHERE\" cannot be added: \"NO/WHERE\" is not the name"),
        "{error}"
    );
    settle().await;
    assert_eq!(log.take(), "*east/a");
    clusters.remove("east").await;
    assert_eq!(log.take(), "!east/a");
    assert!(clusters.names().is_empty());
    clusters.shutdown().await;
}

/// A kubeconfig with these contexts, each of a cluster at an address of its name.
fn kubeconfig(contexts: &[(&str, &str)]) -> String {
    let named = |name: &str, what: &str, value: serde_json::Value| json!({ "name": name, what: value });
    let clusters = contexts.iter().map(|(name, server)| named(name, "cluster", json!({ "server": server })));
    let users = contexts.iter().map(|(name, _)| named(name, "user", json!({ "token": format!("{name}'s") })));
    let all =
        contexts.iter().map(|(name, _)| named(name, "context", json!({ "cluster": name, "user": name })));
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters.collect::<Vec<_>>(),
        "users": users.collect::<Vec<_>>(),
        "contexts": all.collect::<Vec<_>>(),
        "current-context": contexts.first().map(|(name, _)| name),
    })
    .to_string()
}

/// Connects to servers of this test by the host of their address.
fn by_host(
    servers: &BTreeMap<&'static str, ApiServer>,
) -> impl Fn(kube::Config) -> Result<Client, String> + use<> {
    let servers = servers.clone();
    move |config| {
        let host = config.cluster_url.host().unwrap_or_default();
        servers.get(host).map(ApiServer::client).ok_or_else(|| format!("no such host: {host:?}"))
    }
}

/// A file of this test, which goes with it.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        Self(path.join(format!("{name}-{}", std::process::id())))
    }

    fn write(&self, text: &str) {
        fs::write(&self.0, text).expect("written");
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[tokio::test(start_paused = true)]
async fn c46_the_contexts_of_a_kubeconfig_are_clusters_while_they_are_in_it() {
    let servers: BTreeMap<_, _> = ["one", "two"].into_iter().map(|name| (name, mk_server(&[name]))).collect();
    let (file, clusters, stop) = (File::new("contexts"), Clusters::new(), CancellationToken::new());
    let provider =
        || KubeconfigContexts::of(&file.0).read_every(Duration::from_secs(1)).connect_with(by_host(&servers));
    let none = clusters.follow(provider(), stop.clone()).await.unwrap_err().to_string();
    assert!(
        none.starts_with("the clusters are not followed any more: ") && none.contains("contexts-"),
        "{none}"
    );

    file.write(&kubeconfig(&[
        ("a", "http://one"),
        ("b", "http://two"),
        ("c", "http://nowhere"),
        ("by-hand", "http://two"),
    ]));
    clusters.add("by-hand", servers["one"].client()).await.unwrap();
    let maps = maps_of(&clusters);
    clusters.start();
    let following = tokio::spawn({
        let (clusters, provider, stop) = (clusters.clone(), provider(), stop.clone());
        async move { clusters.follow(provider, stop).await }
    });
    let has = |cluster: &str, map: &str| {
        let maps = maps.get(cluster);
        maps.is_some_and(|maps| maps.store().get(&format!("shop/{map}").parse().unwrap()).is_some())
    };
    let names = |expected: &[&str]| clusters.names() == expected;
    until("both are there", || has("a", "one") && has("b", "two") && names(&["a", "b", "by-hand"])).await;
    file.write("nothing that makes sense: [");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(names(&["a", "b", "by-hand"]), "what cannot be read changes nothing");
    file.write(&kubeconfig(&[("b", "http://one"), ("d", "http://two")]));
    until("what changed is", || has("b", "one") && has("d", "two") && names(&["b", "by-hand", "d"])).await;
    assert!(has("by-hand", "one"), "what somebody else has added stays as it is");
    stop.cancel();
    following.await.unwrap().unwrap();
    settle().await;
    assert!(names(&["b", "by-hand", "d"]), "they stay when nobody follows the file");
    clusters.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn c46_secrets_with_a_kubeconfig_are_clusters_while_they_are_there() {
    let servers: BTreeMap<_, _> = ["one", "two"].into_iter().map(|name| (name, mk_server(&[name]))).collect();
    let home = mk_server(&[]);
    let put_secret = |name: &str, kubeconfig: &str| {
        let labels = json!({ "sigs.k8s.io/multicluster-runtime-kubeconfig": "true" });
        let metadata = json!({ "name": name, "namespace": "shop", "labels": labels });
        let data = json!({ "kubeconfig": k8s_openapi::ByteString(kubeconfig.as_bytes().to_vec()) });
        home.put(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data }))
            .unwrap();
    };
    put_secret("a", &kubeconfig(&[("x", "http://one")]));
    put_secret("bad", "no kubeconfig: [");
    home.put(
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "other", "namespace": "shop" } }),
    )
    .unwrap();
    let (clusters, stop) = (Clusters::new(), CancellationToken::new());
    let maps = maps_of(&clusters);
    clusters.start();
    let provider = KubeconfigSecrets::of(home.client(), "shop").connect_with(by_host(&servers));
    let following = tokio::spawn({
        let (clusters, stop) = (clusters.clone(), stop.clone());
        async move { clusters.follow(provider, stop).await }
    });
    let has = |cluster: &str, map: &str| {
        let maps = maps.get(cluster);
        maps.is_some_and(|maps| maps.store().get(&format!("shop/{map}").parse().unwrap()).is_some())
    };
    until("the first", || has("a", "one") && clusters.names() == ["a"]).await;
    put_secret("bad", &kubeconfig(&[("x", "http://two")]));
    until("the second, which is good now", || has("bad", "two")).await;
    for broken in [
        "broken: [".to_owned(),
        kubeconfig(&[("x", "http://two")]).replace("\"token\":\"x's\"", "\"exec\":{\"command\":\"sh\"}"),
        kubeconfig(&[("x", "http://two")]).replace("\"token\":", "\"tokenFile\":"),
        kubeconfig(&[("x", "http://two")])
            .replace("\"server\":", "\"certificate-authority\":\"/ca\",\"server\":"),
    ] {
        put_secret("a", &broken);
        settle().await;
        assert!(has("a", "one"), "what cannot be read, or runs programs, changes nothing: {broken}");
    }
    put_secret("a", &kubeconfig(&[("x", "http://two")]));
    until("another in its place", || has("a", "two")).await;
    assert!(home.discard("", "secrets", &"shop/bad".parse().unwrap()));
    until("it is gone", || clusters.names() == ["a"]).await;
    stop.cancel();
    following.await.unwrap().unwrap();
    clusters.shutdown().await;
}

/// Tells of clusters over a channel.
struct Told(mpsc::Receiver<(&'static str, Option<Client>)>);

impl ClusterProvider for Told {
    async fn run(mut self, clusters: Clusters, stop: CancellationToken) -> Result<(), ProviderError> {
        while let Some(Some((name, client))) = stop.run_until_cancelled(self.0.recv()).await {
            match client {
                Some(client) => drop(clusters.add(name, client).await.map_err(ProviderError::new)?),
                None => drop(clusters.remove(name).await),
            }
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn c46_a_provider_of_ones_own_adds_and_removes() {
    let server = mk_server(&["a"]);
    let (clusters, (send, told)) = (Clusters::new(), mpsc::channel(1));
    let maps = maps_of(&clusters);
    clusters.start();
    let following = tokio::spawn({
        let (clusters, stop) = (clusters.clone(), CancellationToken::new());
        async move { clusters.follow(Told(told), stop).await }
    });
    send.send(("east", Some(server.client()))).await.unwrap();
    until("it is there", || maps.get("east").is_some_and(|maps| maps.store().len() == 1)).await;
    send.send(("east", None)).await.unwrap();
    until("it is gone", || clusters.names().is_empty()).await;
    clusters.shutdown().await;
    send.send(("west", Some(server.client()))).await.unwrap();
    let error = following.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("cluster \"west\" was not added: the clusters are shut down"), "{error}");
}

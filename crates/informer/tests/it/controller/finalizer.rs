//! An object that must not go before it is cleaned up, wherever a process ends.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use informer::{
    client::Writes,
    controller::{Action, Controller, FinalizerEvent, finalizer},
    leader::LeaderElection,
    model::ObjectKey,
};
use informer_apiserver::{Fault, Rule, Verb};
use informer_testing::number;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    client::stage::{Stage, mk},
    stage::{Log, Running},
    support::key,
};

const NAME: &str = "example.com/files";
const LIVES: u64 = 200;

/// What was made outside of the cluster.
type World = Arc<Mutex<BTreeSet<String>>>;

/// Makes something in the world for each object, and takes a moment before and after.
fn worker(stage: &Stage, world: &World, pause: Duration) -> Running {
    let (maps, cache, world) =
        (Writes::new(stage.server.client(), &stage.informer), stage.informer.store(), Arc::clone(world));
    let controller = Controller::new("files").of(&stage.informer).workers(2);
    Running::start(controller, move |key: ObjectKey| {
        let (maps, cache, world) = (maps.clone(), cache.clone(), Arc::clone(&world));
        async move {
            let Some(map) = cache.get(&key) else { return Ok(Action::AwaitChange) };
            let work = async |event: FinalizerEvent<ConfigMap>| {
                sleep(pause).await;
                match event {
                    FinalizerEvent::Apply(map) => drop(world.lock().unwrap().insert(map.name_any())),
                    FinalizerEvent::Cleanup(map) => drop(world.lock().unwrap().remove(&map.name_any())),
                }
                sleep(pause).await;
                Ok::<_, String>(Action::AwaitChange)
            };
            finalizer(&maps, NAME, &map, work).await.map_err(|error| error.to_string())
        }
    })
}

async fn objects(stage: &Stage) -> Vec<ConfigMap> {
    let maps = Api::<ConfigMap>::namespaced(stage.server.client(), "shop");
    maps.list(&Default::default()).await.unwrap().items
}

/// Whatever is in the world has an object that knows of it.
async fn check(stage: &Stage, world: &World, seed: u64) {
    // What is in the world now, not later: the list comes after it.
    let there = world.lock().unwrap().clone();
    let objects = objects(stage).await;
    let is_there = |name: &String| world.lock().unwrap().contains(name);
    for name in there.iter().filter(|name| is_there(name)) {
        let knows =
            |map: &&ConfigMap| map.name_any() == *name && map.finalizers().iter().any(|name| name == NAME);
        assert!(objects.iter().any(|map| knows(&map)), "INFORMER_SIM_SEED={seed}: {name} is left behind");
    }
}

async fn play(seed: u64) -> usize {
    let mut chance = Pcg64Mcg::seed_from_u64(seed);
    let (stage, world) = (Stage::new().await, World::default());
    // So that a process can end while a request is on its way, there or back.
    let slow = Duration::from_millis(chance.random_range(0..20));
    let mut crashes = 0;
    for fault in [Fault::Reset, Fault::Refuse, Fault::Delay(slow)] {
        stage.server.faults().add(Rule::new(fault).resource("configmaps").verb(Verb::Patch).probability(0.3));
    }
    let users = Api::<ConfigMap>::namespaced(stage.server.client(), "shop");
    for _ in 0..chance.random_range(5..25) {
        let name = format!("m{}", chance.random_range(0..4));
        match chance.random_range(0..3) {
            0 => drop(users.create(&PostParams::default(), &mk(&format!("shop/{name}"))).await),
            1 => drop(users.delete(&name, &DeleteParams::default()).await),
            _ => {
                let patch = Patch::Strategic(json!({ "data": { "at": crashes.to_string() } }));
                drop(users.patch(&name, &PatchParams::default(), &patch).await);
            }
        }
        let running = worker(&stage, &world, Duration::from_millis(chance.random_range(0..10)));
        for _ in 0..chance.random_range(0..12) {
            sleep(Duration::from_millis(chance.random_range(0..15))).await;
            check(&stage, &world, seed).await;
        }
        running.kill().await;
        crashes += 1;
        check(&stage, &world, seed).await;
    }
    stage.server.faults().clear();
    let running = worker(&stage, &world, Duration::ZERO);
    sleep(Duration::from_secs(60)).await;
    let names: BTreeSet<String> = objects(&stage).await.iter().map(ResourceExt::name_any).collect();
    assert_eq!(*world.lock().unwrap(), names, "INFORMER_SIM_SEED={seed}");
    for name in names {
        users.delete(&name, &DeleteParams::default()).await.unwrap();
    }
    sleep(Duration::from_secs(60)).await;
    assert!(world.lock().unwrap().is_empty() && objects(&stage).await.is_empty(), "INFORMER_SIM_SEED={seed}");
    running.end().await.unwrap();
    stage.end().await;
    crashes
}

#[test]
fn c40_nothing_is_left_behind_wherever_a_process_ends() {
    let seeds = match number("INFORMER_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("INFORMER_SIM_SEEDS").unwrap_or(LIVES),
    };
    let mut crashes = 0;
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        crashes += runtime.unwrap().block_on(play(seed));
    }
    println!("{crashes} processes ended in the middle");
    assert!(crashes > 0, "nothing was tried");
}

#[tokio::test(start_paused = true)]
async fn c40_the_finalizer_is_there_before_the_work_and_goes_after_it_and_others_stay() {
    let stage = Stage::new().await;
    let log = Log::default();
    let other = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "a", "namespace": "shop", "finalizers": ["example.com/other"] } });
    stage.server.put(other).unwrap();
    stage.settle().await;
    let call = async |action: Action| {
        let map = stage.maps.lister().get("shop/a").await.unwrap();
        let work = async |event: FinalizerEvent<ConfigMap>| {
            let (what, map) = match event {
                FinalizerEvent::Apply(map) => ("apply", map),
                FinalizerEvent::Cleanup(map) => ("cleanup", map),
            };
            log.note(format!("{what}:{}", map.finalizers().len()));
            Ok::<_, String>(action)
        };
        finalizer(&stage.maps, NAME, &map, work).await.unwrap()
    };
    let finalizers = async || objects(&stage).await[0].finalizers().join(" ");
    call(Action::AwaitChange).await;
    call(Action::AwaitChange).await;
    assert_eq!(
        (log.take().as_str(), finalizers().await.as_str()),
        ("apply:2 apply:2", "example.com/other example.com/files")
    );
    stage.maps.delete(&key("shop/a"), &DeleteParams::default()).await.unwrap();
    let later = Action::after(Duration::from_secs(5));
    assert_eq!(call(later).await, later);
    assert_eq!(finalizers().await, "example.com/other example.com/files", "it is not clean yet");
    call(Action::AwaitChange).await;
    assert_eq!(
        (log.take().as_str(), finalizers().await.as_str()),
        ("cleanup:2 cleanup:2", "example.com/other")
    );
    call(Action::AwaitChange).await;
    assert_eq!(log.take(), "", "it is not ours any more");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c40_a_finalizer_of_somebody_else_is_not_overwritten_and_no_server_is_asked_with_a_wrong_name() {
    let stage = Stage::new().await;
    stage.create("shop/a").await;
    let seen = stage.maps.lister().get("shop/a").await.unwrap();
    // Somebody is faster than the cache.
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/other"] } }));
    let users = Api::<ConfigMap>::namespaced(stage.server.client(), "shop");
    users.patch("a", &PatchParams::default(), &patch).await.unwrap();
    let work = async |_| Ok::<_, String>(Action::AwaitChange);
    let error = finalizer(&stage.maps, NAME, &seen, work).await.unwrap_err();
    let informer::controller::FinalizerError::Write(why) = &error else { panic!("{error}") };
    assert!(why.is_conflict(), "{error}");
    assert_eq!(objects(&stage).await[0].finalizers(), ["example.com/other"]);
    for wrong in ["files", "", "a b/c", "example.com/"] {
        let error = finalizer(&stage.maps, wrong, &seen, work).await.unwrap_err().to_string();
        assert!(error.contains("no name of a finalizer"), "{error}");
    }
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c40_a_leader_whose_cache_is_behind_does_no_work_for_what_an_earlier_one_has_cleaned_up() {
    let stage = Stage::new().await;
    let put = |name: &str| {
        let metadata = json!({ "name": name, "namespace": "shop", "finalizers": [NAME] });
        stage.server.put(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })).unwrap();
    };
    ["a", "b", "c"].into_iter().for_each(put);
    stage.settle().await;
    let users = Api::<ConfigMap>::namespaced(stage.server.client(), "shop");
    let patches = || stage.server.requests().get(&("patch", "configmaps".to_owned())).copied().unwrap_or(0);
    let election = LeaderElection::builder(stage.server.client(), "default", "files").build().unwrap();
    let led = election.run_while_leader(CancellationToken::new(), async |leadership| {
        let maps = Writes::new(stage.server.client(), &stage.informer).fenced(leadership);
        let log = Log::default();
        let call = async |name: &str| {
            let map = maps.lister().get(&format!("shop/{name}")).await.unwrap();
            let work = async |event: FinalizerEvent<ConfigMap>| {
                let FinalizerEvent::Apply(map) = event else { panic!("it is not being deleted") };
                log.note(map.name_any());
                Ok::<_, String>(Action::AwaitChange)
            };
            finalizer(&maps, NAME, &map, work).await
        };
        stage.lateness.hold(true);
        users.delete("a", &DeleteParams::default()).await.unwrap();
        let cleaned = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        users.patch("a", &PatchParams::default(), &cleaned).await.unwrap();
        let before = patches();
        assert!(call("a").await.is_err());
        call("b").await.unwrap();
        assert_eq!((log.take().as_str(), patches() - before), ("b", 2));
        // What the term has written vouches for all that came before, as soon as the cache shows it.
        stage.lateness.hold(false);
        stage.settle().await;
        for name in ["b", "c"] {
            call(name).await.unwrap();
        }
        assert_eq!((log.take().as_str(), patches() - before), ("b c", 2));
    });
    led.await.unwrap();
    stage.end().await;
}

//! A server of one map, and what must hold after every change to it.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Change, Churn, View};
use crate::demo::{
    DemoCluster,
    chance::{Chance, Subject},
    field::{list, number, put, text},
    tests::{check_metadata, decode, resource},
};

type Key = (String, String, String, String);

#[derive(Default)]
struct Server {
    objects: BTreeMap<Key, Value>,
}

impl View for Server {
    fn get(&self, (group, plural): (&str, &str), namespace: &str, name: &str) -> Option<Value> {
        self.objects.get(&key(group, plural, namespace, name)).cloned()
    }
}

fn key(group: &str, plural: &str, namespace: &str, name: &str) -> Key {
    (group.to_owned(), plural.to_owned(), namespace.to_owned(), name.to_owned())
}

fn key_of(object: &Value) -> Key {
    let (group, plural) = resource(object);
    key(&group, &plural, text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

impl Server {
    fn new(cluster: &DemoCluster) -> Self {
        Self { objects: cluster.objects().map(|object| (key_of(&object), object)).collect() }
    }

    /// Creates what is new, changes and deletes what is there.
    fn write(&mut self, change: Change) {
        match change {
            Change::Create(object) => {
                let key = key_of(&object);
                assert!(self.objects.insert(key.clone(), object).is_none(), "again: {key:?}");
            }
            Change::Update(object) => {
                let key = key_of(&object);
                let uid = text(&object, "/metadata/uid").to_owned();
                let before = self.objects.insert(key.clone(), object);
                let before = before.unwrap_or_else(|| panic!("not there: {key:?}"));
                assert_eq!(text(&before, "/metadata/uid"), uid);
            }
            Change::Delete { group, plural, namespace, name } => {
                let key = key(group, plural, &namespace, &name);
                assert!(self.objects.remove(&key).is_some(), "not there: {key:?}");
            }
        }
    }

    fn of<'a>(&'a self, plural: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |(key, _)| key.1 == plural).map(|(_, object)| object)
    }

    fn assert_owned(&self) {
        let uids: HashSet<&str> = self.objects.values().map(|object| text(object, "/metadata/uid")).collect();
        for object in self.objects.values() {
            for owner in list(object, "/metadata/ownerReferences") {
                assert!(uids.contains(text(owner, "/uid")), "no owner: {object}");
            }
        }
    }

    /// Deletes an object and, as the garbage collector would, all that it owns.
    fn delete(&mut self, key: &Key) {
        let Some(object) = self.objects.remove(key) else { return };
        let uid = text(&object, "/metadata/uid");
        let owned: Vec<Key> = self
            .objects
            .iter()
            .filter(|(_, other)| {
                list(other, "/metadata/ownerReferences").iter().any(|owner| text(owner, "/uid") == uid)
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in owned {
            self.delete(&key);
        }
    }
}

struct World {
    server: Server,
    churn: Churn,
    now: Timestamp,
}

impl World {
    fn new(seed: u64, pods: usize) -> Self {
        let cluster = DemoCluster::new(seed, pods);
        Self { server: Server::new(&cluster), churn: cluster.churn(), now: cluster.now }
    }

    /// The next change, which is not made yet.
    fn next(&mut self) -> Change {
        self.now = self.now.checked_add(SignedDuration::from_millis(50)).unwrap();
        self.churn.next(self.now, &self.server).expect("life goes on")
    }

    fn step(&mut self) {
        let change = self.next();
        self.server.write(change);
    }
}

/// What a change is: `create pods`, `update deployments`.
fn name_of(change: &Change) -> String {
    match change {
        Change::Create(object) => format!("create {}", resource(object).1),
        Change::Update(object) => format!("update {}", resource(object).1),
        Change::Delete { plural, .. } => format!("delete {plural}"),
    }
}

#[test]
fn life_goes_on_and_the_cluster_stays_whole() {
    let mut world = World::new(1, 400);
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut pods = 400_usize;
    for step in 0..20_000 {
        let change = world.next();
        let name = name_of(&change);
        match name.as_str() {
            "create pods" => pods += 1,
            "delete pods" => pods -= 1,
            _ => {}
        }
        *seen.entry(name).or_default() += 1;
        assert!((360..=440).contains(&pods), "{pods} pods after {step} steps");
        if let Change::Create(object) | Change::Update(object) = &change
            && step % 25 == 0
        {
            decode(object);
            check_metadata(object);
        }
        world.server.write(change);
        if step % 1_000 == 0 {
            world.server.assert_owned();
        }
    }
    world.server.assert_owned();
    assert_eq!(world.server.of("pods").count(), pods);
    assert!(world.server.of("events").count() <= 41);
    for name in [
        "create pods",
        "update pods",
        "delete pods",
        "create replicasets",
        "update replicasets",
        "delete replicasets",
        "update deployments",
        "update statefulsets",
        "update daemonsets",
        "update endpointslices",
        "update nodes",
        "update leases",
        "create jobs",
        "update jobs",
        "delete jobs",
        "update cronjobs",
        "update horizontalpodautoscalers",
        "create events",
        "delete events",
    ] {
        assert!(seen.get(name).is_some_and(|&times| times >= 10), "{name}: {seen:?}");
    }
    let most = |plural: &str, limit: usize| assert!(world.server.of(plural).count() <= limit, "{plural}");
    most("replicasets", 3 * world.server.of("deployments").count() + 10);
    most("jobs", 200);
}

#[test]
fn the_same_seed_lives_the_same_life() {
    let life = |seed| {
        let mut world = World::new(seed, 60);
        let mut step = || {
            let change = world.next();
            world.server.write(change.clone());
            change
        };
        (0..500).map(|_| step()).collect::<Vec<_>>()
    };
    assert_eq!(life(1), life(1));
    assert_ne!(life(1), life(2));
}

#[test]
fn small_clusters_live_too() {
    for pods in [0, 1, 2, 7, 10, 31] {
        let mut world = World::new(3, pods);
        for _ in 0..1_000 {
            world.step();
            let there = world.server.of("pods").count();
            assert!(there.abs_diff(pods) <= (pods / 10).max(1), "{there} of {pods} pods");
        }
        world.server.assert_owned();
    }
}

/// Deletes something at random, now and then with all that it owns.
fn sabotage(world: &mut World, chance: &mut Chance) {
    let index = chance.below(world.server.objects.len() as u64) as usize;
    let Some(key) = world.server.objects.keys().nth(index).cloned() else { return };
    if chance.percent(70) {
        world.server.delete(&key);
    } else if chance.percent(50) {
        world.server.objects.remove(&key);
    } else if let Some(object) = world.server.objects.get_mut(&key) {
        // Somebody leaves an object without what everybody expects.
        for field in ["status", "spec"] {
            if object.get(field).is_some() {
                put(object, &[field], json!({"replicas": -5, "containers": 3, "template": "odd"}));
            }
        }
    }
}

#[test]
fn whatever_users_delete_or_break_life_goes_on() {
    let mut chance = DemoCluster::new(7, 0).seed().chance(Subject::Plan, 99, 99);
    let mut world = World::new(7, 300);
    for _ in 0..5_000 {
        if chance.percent(5) {
            sabotage(&mut world, &mut chance);
        }
        world.step();
    }
}

#[test]
fn when_everything_is_deleted_nothing_is_left_to_do() {
    let mut world = World::new(7, 100);
    for _ in 0..50 {
        world.step();
    }
    world.server.objects.clear();
    for _ in 0..50 {
        assert_eq!(world.churn.next(world.now, &world.server), None);
    }
}

/// A Deployment of the plan with some pods, to play with.
fn some_deployment(world: &World) -> Key {
    let is_fit = |object: &&Value| {
        let pods = number(object, "/spec/replicas");
        (3..10).contains(&pods) && pods == number(object, "/status/readyReplicas")
    };
    key_of(world.server.of("deployments").find(is_fit).unwrap())
}

fn ready_replicas(world: &World, key: &Key) -> (i64, i64) {
    let deployment = &world.server.objects[key];
    (number(deployment, "/spec/replicas"), number(deployment, "/status/readyReplicas"))
}

fn live_until(world: &mut World, done: impl Fn(&World) -> bool) {
    for _ in 0..20_000 {
        if done(world) {
            return;
        }
        world.step();
    }
    panic!("it never happened");
}

#[test]
fn deleted_pods_are_replaced() {
    let mut world = World::new(2, 100);
    let deployment = some_deployment(&world);
    let prefix = format!("{}-", deployment.3);
    let pods = |world: &World| -> Vec<Key> {
        let of_it = |key: &&Key| key.1 == "pods" && key.2 == deployment.2 && key.3.starts_with(&prefix);
        world.server.objects.keys().filter(of_it).cloned().collect()
    };
    let before = pods(&world);
    for key in &before {
        world.server.delete(key);
    }
    live_until(&mut world, |world| {
        let (wanted, ready) = ready_replicas(world, &deployment);
        wanted == ready && pods(world).len() as i64 == wanted
    });
    assert!(pods(&world).iter().all(|key| !before.contains(key)));
}

#[test]
fn a_deployment_that_a_user_scales_gets_its_pods() {
    let mut world = World::new(2, 100);
    let deployment = some_deployment(&world);
    put(world.server.objects.get_mut(&deployment).unwrap(), &["spec", "replicas"], 12);
    live_until(&mut world, |world| ready_replicas(world, &deployment) == (12, 12));
}

#[test]
fn an_image_that_a_user_sets_is_rolled_out() {
    let mut world = World::new(2, 100);
    // Its first visit shows what was there before.
    for _ in 0..500 {
        world.step();
    }
    let deployment = some_deployment(&world);
    let object = world.server.objects.get_mut(&deployment).unwrap();
    put(
        object.pointer_mut("/spec/template/spec/containers/0").unwrap(),
        &["image"],
        "registry.example.com/mine:1.0",
    );
    let name = text(object, "/metadata/name").to_owned();
    live_until(&mut world, |world| {
        let pods = world.server.of("pods").filter(|pod| {
            text(pod, "/metadata/labels/app.kubernetes.io~1name") == name
                && text(pod, "/spec/containers/0/image").starts_with("registry.example.com/mine:")
                && text(pod, "/metadata/namespace") == deployment.2
        });
        let (wanted, ready) = ready_replicas(world, &deployment);
        pods.count() as i64 == wanted && ready == wanted
    });
}

#[test]
fn a_cordoned_node_gets_no_new_pods() {
    let mut world = World::new(5, 100);
    let nodes: Vec<Key> = world.server.objects.keys().filter(|key| key.1 == "nodes").cloned().collect();
    let cordoned = nodes.last().unwrap();
    put(world.server.objects.get_mut(cordoned).unwrap(), &["spec", "unschedulable"], true);
    for _ in 0..5_000 {
        let change = world.next();
        if let Change::Update(pod) = &change
            && resource(pod).1 == "pods"
            && text(pod, "/metadata/ownerReferences/0/kind") != "DaemonSet"
            && text(&world.server.objects[&key_of(pod)], "/spec/nodeName").is_empty()
        {
            assert_ne!(text(pod, "/spec/nodeName"), cordoned.3);
        }
        world.server.write(change);
    }
}

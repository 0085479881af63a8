//! Controllers whose caches are late, each made by a seed: owners want a number of children and a colour for them, users change that, watches
//! break. A call looks at the cache, makes the children that are missing and deletes those that are too many.
//!
//! `INFORMER_SIM_SEEDS=N` plays N of them, `INFORMER_SIM_SEED=x` plays the one of that seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use informer::{
    KubeListWatch, SharedInformer,
    client::Writes,
    controller::{Action, Controller},
    model::{ObjectKey, ResourceVersion},
    store::Store,
};
use informer_apiserver::{Fault, Rule, Verb};
use informer_testing::number;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    stage::{Late, Lateness, mk, mk_server},
    support::key,
};

const LIVES: u64 = 150;
const OWNERS: usize = 4;
/// Events wait for those before them: the last of many is later than one alone.
const PATIENCE: Duration = Duration::from_secs(300);

/// What calls have seen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Seen {
    calls: u64,
    writes: u64,
    /// Calls whose cache did not show what the call before had written.
    stale: u64,
    /// Children too many, at any time.
    doubles: u64,
    conflicts: u64,
}

/// What the last call of each owner has written: versions, and uids that are gone.
#[derive(Default)]
struct Last {
    written: BTreeMap<ObjectKey, ResourceVersion>,
    gone: BTreeSet<(ObjectKey, String)>,
}

impl Last {
    fn is_shown(&self, cache: &Store<Secret>) -> bool {
        let written = self.written.iter().all(|(key, version)| {
            let gone = self.gone.iter().any(|(other, _)| other == key);
            gone || cache.get(key).is_some_and(|child| child.resource_version() >= version)
        });
        let uid = |key: &ObjectKey| cache.get(key).and_then(|child| child.uid());
        written && self.gone.iter().all(|(key, gone)| uid(key).as_ref() != Some(gone))
    }
}

/// One life of a controller. Without `remembering`, its writes are those of a plain `Api`.
async fn play(seed: u64, remembering: bool) -> Seen {
    let mut chance = Pcg64Mcg::seed_from_u64(seed);
    let server = mk_server(seed);
    let lateness = |nth: u64, most: u64| Lateness::new(seed ^ nth, Duration::from_millis(most));
    let (of_owners, of_children) =
        (lateness(1, chance.random_range(0..500)), lateness(2, chance.random_range(1..3_000)));
    let owners = Late(KubeListWatch::<ConfigMap>::all(server.client()), of_owners);
    let owners = SharedInformer::builder(owners).seed(seed).build().unwrap();
    let children = Late(KubeListWatch::<Secret>::all(server.client()), of_children);
    let children = SharedInformer::builder(children).seed(seed).build().unwrap();
    owners.start().unwrap();
    children.start().unwrap();
    if chance.random_bool(0.5) {
        server.faults().add(Rule::new(Fault::CutAfter(2_000)).verb(Verb::Watch).probability(0.5));
    }

    let seen = Arc::new(Mutex::new(Seen::default()));
    let last: Arc<Mutex<BTreeMap<ObjectKey, Last>>> = Arc::default();
    let stop = CancellationToken::new();
    let controller = Controller::new("owners").of(&owners).workers(2).watches(&children, |child| {
        let owner = child.labels().get("owner")?;
        ObjectKey::new(Some("shop"), owner).ok()
    });
    let (noted, wrote) = (Arc::clone(&seen), Arc::clone(&last));
    let (wanted, cache) = (owners.store(), children.store());
    let (remembered, api) = (
        Writes::new(server.client(), &children).within(PATIENCE),
        Api::<Secret>::namespaced(server.client(), "shop"),
    );
    let running = tokio::spawn(controller.run(stop.clone(), move |owner: ObjectKey| {
        let (seen, last) = (Arc::clone(&noted), Arc::clone(&wrote));
        let (wanted, cache, remembered, api) = (wanted.clone(), cache.clone(), remembered.clone(), api.clone());
        async move {
            let fresh = last.lock().unwrap().remove(&owner).is_none_or(|last| last.is_shown(&cache));
            {
                let mut seen = seen.lock().unwrap();
                seen.calls += 1;
                seen.stale += u64::from(!fresh);
            }
            let Some(config) = wanted.get(&owner) else { return Ok(Action::AwaitChange) };
            let data = config.data.clone().unwrap_or_default();
            let (count, colour): (usize, _) = (data["count"].parse().unwrap(), data["colour"].clone());
            let mine: Vec<_> = cache.list(&format!("owner={}", owner.name()).parse().unwrap());
            let mut written = Last::default();
            let params = PostParams::default();
            for nth in mine.len()..count {
                let child = json!({ "metadata": { "generateName": format!("{}-", owner.name()), "namespace": "shop",
                    "labels": { "owner": owner.name() }, "annotations": { "colour": colour, "nth": nth.to_string() } } });
                let child: Secret = serde_json::from_value(child).unwrap();
                let answer = match remembering {
                    true => remembered.create(&params, &child).await.map_err(|error| error.to_string()),
                    false => api.create(&params, &child).await.map_err(|error| error.to_string()),
                }?;
                written.written.insert(key(&format!("shop/{}", answer.name_any())), answer.resource_version().unwrap().into());
            }
            for child in mine.iter().take(count).filter(|child| child.annotations()["colour"] != colour) {
                let mut changed = Secret::clone(child);
                changed.annotations_mut().insert("colour".to_owned(), colour.clone());
                let answer = match remembering {
                    true => remembered.replace(&params, &changed).await.map_err(|error| error.is_conflict()),
                    false => api.replace(&changed.name_any(), &params, &changed).await.map_err(|error| matches!(error, kube::Error::Api(status) if status.code == 409)),
                };
                match answer {
                    Ok(answer) => drop(written.written.insert(child.key().clone(), answer.resource_version().unwrap().into())),
                    Err(conflict) => seen.lock().unwrap().conflicts += u64::from(conflict),
                }
            }
            for child in mine.iter().skip(count) {
                let only = Preconditions { uid: child.uid(), resource_version: None };
                let params = DeleteParams::default().preconditions(only);
                let deleted = match remembering {
                    true => remembered.delete(child.key(), &params).await.map(drop).map_err(|error| error.to_string()),
                    false => api.delete(child.key().name(), &params).await.map(drop).map_err(|error| error.to_string()),
                };
                if deleted.is_ok() {
                    written.gone.insert((child.key().clone(), child.uid().unwrap()));
                } else {
                    seen.lock().unwrap().conflicts += 1;
                }
            }
            seen.lock().unwrap().writes += (written.written.len() + written.gone.len()) as u64;
            last.lock().unwrap().insert(owner, written);
            Ok::<_, String>(Action::AwaitChange)
        }
    }));

    let all = Api::<Secret>::namespaced(server.client(), "shop");
    let maps = Api::<ConfigMap>::namespaced(server.client(), "shop");
    let mut most = [0; OWNERS];
    let count_all = async |most: &mut [usize; OWNERS], seen: &Mutex<Seen>| {
        let children = all.list(&Default::default()).await.unwrap();
        for (owner, most) in most.iter().enumerate() {
            let count =
                children.iter().filter(|child| child.labels()["owner"] == format!("o{owner}")).count();
            seen.lock().unwrap().doubles += count.saturating_sub(*most) as u64;
        }
        children.items
    };
    for _ in 0..25 {
        let owner = chance.random_range(0..OWNERS);
        let (name, count) = (format!("o{owner}"), chance.random_range(0..5_usize));
        let colour = ["red", "green", "blue"][chance.random_range(0..3_usize)];
        let mut map = mk(&format!("shop/{name}"));
        map.data =
            Some([("count".to_owned(), count.to_string()), ("colour".to_owned(), colour.to_owned())].into());
        if maps.create(&PostParams::default(), &map).await.is_err() {
            let patch = Patch::Merge(json!({ "data": map.data }));
            maps.patch(&name, &PatchParams::default(), &patch).await.unwrap();
        }
        most[owner] = most[owner].max(count);
        sleep(Duration::from_millis(chance.random_range(0..4_000))).await;
        count_all(&mut most, &seen).await;
    }
    sleep(Duration::from_secs(120)).await;
    // In the end the world is what users want.
    let children_now = count_all(&mut most, &seen).await;
    for map in maps.list(&Default::default()).await.unwrap() {
        let data = map.data.clone().unwrap();
        let mine = children_now.iter().filter(|child| child.labels()["owner"] == map.name_any());
        let colours: Vec<_> = mine.map(|child| child.annotations()["colour"].as_str()).collect();
        assert_eq!(colours, vec![data["colour"].as_str(); data["count"].parse().unwrap()], "seed {seed}");
    }
    stop.cancel();
    running.await.unwrap().unwrap();
    owners.stop().await.unwrap();
    children.stop().await.unwrap();
    *seen.lock().unwrap()
}

fn played(seed: u64, remembering: bool) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(play(seed, remembering))
}

#[test]
fn c38_no_call_reads_what_was_before_its_own_writes_however_late_the_cache_is() {
    let seeds = match number("INFORMER_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("INFORMER_SIM_SEEDS").unwrap_or(LIVES),
    };
    let mut all = Seen::default();
    for seed in seeds {
        let seen = played(seed, true);
        assert_eq!(
            (seen.stale, seen.doubles, seen.conflicts),
            (0, 0, 0),
            "INFORMER_SIM_SEED={seed}: {seen:?}"
        );
        all.calls += seen.calls;
        all.writes += seen.writes;
    }
    println!("{} calls, {} writes", all.calls, all.writes);
    assert!(all.writes > 0, "nothing was tried");
}

#[test]
fn without_remembering_the_same_lives_have_stale_reads_and_children_too_many() {
    let lives: Vec<Seen> = (0..5).map(|seed| played(seed, false)).collect();
    let sum = |of: fn(&Seen) -> u64| lives.iter().map(of).sum::<u64>();
    println!("{lives:?}");
    assert!(
        sum(|seen| seen.stale) > 0 && sum(|seen| seen.doubles) > 0 && sum(|seen| seen.conflicts) > 0,
        "{lives:?}"
    );
}

#[test]
fn a_seed_tells_the_same_every_time() {
    assert_eq!(played(7, true), played(7, true));
}

//! All objects of a cluster in the beginning, in an order in which they can be created.

use serde_json::Value;

use super::{
    DemoCluster,
    batch::{cron_job, ended, finish, lone_job, minute, run_job},
    belongings::{namespace, namespace_contents, workload_contents},
    chance::{Chance, Subject},
    event::first_event,
    field::{before, list_mut, put},
    network::{endpoint_slice, ingress, service},
    node::{lease, node, node_name},
    origin::{self, FirstPod, Health},
    plan::{KUBE_SYSTEM, Kind, Workload},
    pod::{self, Birth},
    upkeep::{autoscaler, disruption_budget, volume},
    workload::{daemon_set, deployment, pod_template, replica_sets, stateful_set},
};

type Objects<'a> = Box<dyn Iterator<Item = Value> + Send + 'a>;

pub(super) fn objects(cluster: &DemoCluster) -> Objects<'_> {
    let plan = &cluster.plan;
    let namespaces = || (0_u16..).zip(&plan.namespaces);
    Box::new(
        namespaces()
            .filter(|(number, _)| *number != KUBE_SYSTEM)
            .map(|(number, name)| namespace(cluster, number, name))
            .chain((0..plan.nodes).flat_map(|number| {
                let node = node(cluster, number);
                let lease = lease(cluster, number, &node);
                [node, lease]
            }))
            .chain(namespaces().flat_map(|(number, name)| namespace_contents(cluster, number, name)))
            .chain(plan.workloads.iter().flat_map(|workload| of_workload(cluster, workload))),
    )
}

/// A workload with all that belongs to it. Pods are made one by one, there may be many.
fn of_workload<'a>(cluster: &'a DemoCluster, workload: &'a Workload) -> Objects<'a> {
    let contents = workload_contents(cluster, workload).into_iter();
    match workload.kind {
        Kind::Deployment | Kind::CoreDns => Box::new(contents.chain(of_deployment(cluster, workload))),
        Kind::StatefulSet => Box::new(contents.chain(of_stateful_set(cluster, workload))),
        Kind::Daemon(_) => {
            let set = daemon_set(cluster, workload);
            Box::new(contents.chain([set.clone()]).chain(pods(cluster, workload, set, 0)))
        }
        Kind::Job => {
            let mut job = lone_job(cluster, workload);
            finish(&mut job, before(origin::created(cluster, workload), -90));
            Box::new(contents.chain([job.clone()]).chain(pods(cluster, workload, job, 0)))
        }
        Kind::CronJob => Box::new(contents.chain(of_cron_job(cluster, workload))),
    }
}

fn of_deployment<'a>(
    cluster: &'a DemoCluster,
    workload: &'a Workload,
) -> impl Iterator<Item = Value> + Send + 'a {
    let deployment = deployment(cluster, workload);
    let service = service(cluster, workload, &deployment["spec"]["template"]);
    let hash = origin::current_hash(cluster, workload);
    let slice = endpoint_slice(cluster, workload, &service, hash);
    let sets = replica_sets(cluster, workload, &deployment);
    let current = sets.last().cloned().unwrap_or_default();
    let around =
        [ingress(cluster, workload), autoscaler(cluster, workload), disruption_budget(cluster, workload)];
    [service, deployment]
        .into_iter()
        .chain(sets)
        .chain(pods(cluster, workload, current, hash))
        .chain([slice])
        .chain(around.into_iter().flatten())
}

fn of_stateful_set<'a>(
    cluster: &'a DemoCluster,
    workload: &'a Workload,
) -> impl Iterator<Item = Value> + Send + 'a {
    let set = stateful_set(cluster, workload);
    let service = service(cluster, workload, &set["spec"]["template"]);
    let slice = endpoint_slice(cluster, workload, &service, 0);
    let at = origin::created(cluster, workload);
    [service, set.clone()]
        .into_iter()
        .chain((0..workload.pods).flat_map(move |ordinal| volume(cluster, workload, ordinal, at)))
        .chain(pods(cluster, workload, set, 0))
        .chain([slice])
        .chain(disruption_budget(cluster, workload))
}

fn of_cron_job<'a>(
    cluster: &'a DemoCluster,
    workload: &'a Workload,
) -> impl Iterator<Item = Value> + Send + 'a {
    let cron_job = cron_job(cluster, workload);
    let runs = {
        let cron_job = cron_job.clone();
        (0..workload.pods).flat_map(move |ordinal| {
            let run = origin::run(cluster, workload, ordinal);
            let uid = cluster.seed().uid(Subject::Revision, workload.number.into(), u64::from(run) + 100);
            let mut job = run_job(&cron_job, run, uid, minute(run));
            finish(&mut job, ended(run));
            let pod = first_pod(cluster, workload, &job, run, ordinal);
            [job].into_iter().chain(pod)
        })
    };
    [cron_job].into_iter().chain(runs)
}

fn pods<'a>(
    cluster: &'a DemoCluster,
    workload: &'a Workload,
    owner: Value,
    group: u32,
) -> impl Iterator<Item = Value> + Send + 'a {
    (0..workload.pods).flat_map(move |ordinal| first_pod(cluster, workload, &owner, group, ordinal))
}

/// A pod as it is in the beginning, and what happened to it of late.
fn first_pod(
    cluster: &DemoCluster,
    workload: &Workload,
    owner: &Value,
    group: u32,
    ordinal: u32,
) -> impl Iterator<Item = Value> + Send + use<> {
    let first = origin::first_pod(cluster, workload, group, ordinal);
    let number = workload.first_pod + ordinal as usize;
    let mut chance =
        cluster.seed().chance(Subject::Pod, workload.number.into(), u64::from(ordinal) | 1 << 41);
    let node = node_name(first.place.node);
    let template = pod_template(owner, &first.name, ordinal, Some(&node));
    let birth = Birth {
        namespace: cluster.plan.namespace_of(workload),
        name: first.name.clone(),
        uid: first.uid.clone(),
        owner,
        at: first.created,
    };
    let mut pod = pod::create(&template, birth, &mut chance);
    live(&mut pod, cluster, &first, &mut chance);
    let event = first_event(cluster, number, &first, &pod);
    [pod].into_iter().chain(event)
}

/// What has happened to the pod so far.
fn live(pod: &mut Value, cluster: &DemoCluster, first: &FirstPod, chance: &mut Chance) {
    let nodes = cluster.plan.nodes;
    let started = before(first.created, -(chance.between(1, 12) as i64));
    if first.health == Health::Unschedulable {
        return pod::reject(pod, nodes, started);
    }
    pod::schedule(pod, first.place.node, first.created);
    match first.health {
        Health::UnknownImage => pod::fail_to_pull(pod, first.place, started, chance),
        Health::Crashing => {
            pod::start(pod, first.place, started, chance);
            let recently = before(cluster.now, chance.below(280) as i64);
            pod::crash(pod, recently.max(started), chance);
            let restarts = chance.between(2, 60);
            if let Some(status) = list_mut(pod, "/status/containerStatuses").first_mut() {
                put(status, &["restartCount"], restarts);
            }
        }
        Health::Completed => {
            pod::start(pod, first.place, started, chance);
            pod::complete(pod, before(started, -(chance.between(10, 80) as i64)));
        }
        Health::Running | Health::Unschedulable => pod::start(pod, first.place, started, chance),
    }
}

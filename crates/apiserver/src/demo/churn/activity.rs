//! What begins of itself: releases, load, failures, schedules.

use super::{
    Churn, Scene, Script,
    converge::batch,
    step::{PodId, Step},
};
use crate::demo::{
    event::Reason,
    field::{is_staying, number, text},
    plan::{Kind, Workload},
    pod::is_ready,
};

impl Churn {
    /// Something begins with a workload that nothing goes on with, or not.
    pub(super) fn begin(&mut self, scene: Scene<'_>) {
        let workloads = &self.cluster.plan.workloads;
        let index = self.chance.below(workloads.len() as u64) as usize;
        let Some(&workload) = workloads.get(index) else { return };
        if self.is_busy(&workload) {
            return;
        }
        match (workload.kind, self.chance.below(100)) {
            (Kind::Deployment, 0..25) => self.release(workload, scene),
            (Kind::Deployment, 25..50) => self.resize(workload, scene),
            (Kind::StatefulSet, 0..15) if self.room_below() > 0 => {
                self.start_replacing(workload, vec![Step::Release, Step::Converge]);
            }
            (Kind::Daemon(_), 0..50) if self.room_below() > 0 => self.replace_daemon(workload),
            (Kind::CronJob, _) => self.run(workload, scene),
            (Kind::Job, _) => {}
            (_, 0..80) => self.fail(workload, scene),
            _ => self.falter(workload, scene),
        }
    }

    /// How far the number of pods may go from what was asked for: not quite a tenth, but at least one.
    fn play(&self) -> usize {
        (self.cluster.plan.pods / 12).max(1)
    }

    /// How many pods more there may be.
    fn room_above(&self) -> usize {
        let coming: usize = self.scripts.iter().map(|script| script.more).sum();
        (self.cluster.plan.pods + self.play()).saturating_sub(self.pods + coming)
    }

    /// How many pods less there may be.
    fn room_below(&self) -> usize {
        let going: usize = self.scripts.iter().map(|script| script.less).sum();
        (self.pods + self.play()).saturating_sub(self.cluster.plan.pods + going)
    }

    fn release(&mut self, workload: Workload, scene: Scene<'_>) {
        if self.room_above() == 0 {
            return;
        }
        let Some(deployment) = self.owner(&workload, scene) else { return };
        let replicas = number(&deployment, "/spec/replicas").clamp(0, 500) as u32;
        let more = batch(replicas) as usize;
        if more <= self.room_above() {
            let steps = [Step::Release, Step::Converge].into();
            self.scripts.push(Script { workload, steps, more, less: 0 });
        }
    }

    /// Load comes or goes: a workload never gets far from the size it was planned with.
    fn resize(&mut self, workload: Workload, scene: Scene<'_>) {
        let Some(deployment) = self.owner(&workload, scene) else { return };
        let replicas = number(&deployment, "/spec/replicas").clamp(0, 500) as u32;
        let planned = workload.pods;
        let step = self.chance.between(1, u64::from(batch(replicas))) as u32;
        let grow = self.pods < self.cluster.plan.pods
            || self.pods == self.cluster.plan.pods && self.chance.percent(50);
        let (target, more, less) = if grow {
            let target = (replicas + step).min(planned.saturating_mul(2));
            (target, target.saturating_sub(replicas) as usize, 0)
        } else {
            let target = replicas.saturating_sub(step).max(planned / 2).max(1);
            (target, 0, replicas.saturating_sub(target) as usize)
        };
        if more + less == 0 || more > self.room_above() || less > self.room_below() {
            return;
        }
        let steps = [Step::NoteScaling(target), Step::Resize(target), Step::Converge].into();
        self.scripts.push(Script { workload, steps, more, less });
    }

    /// A container ends, is started again, perhaps ends again.
    fn fail(&mut self, workload: Workload, scene: Scene<'_>) {
        let Some(id) = self.any_pod(&workload, scene, |_| true) else { return };
        let counts = self.counts(&workload);
        let mut steps = vec![Step::Crash(id), Step::Tell(id, Reason::BackOff)];
        steps.extend(&counts);
        for _ in 0..self.chance.below(4) {
            steps.push(Step::Crash(id));
        }
        steps.push(Step::Recover(id));
        steps.extend(counts);
        self.start(workload, steps);
    }

    /// A probe fails for a while.
    fn falter(&mut self, workload: Workload, scene: Scene<'_>) {
        let Some(id) = self.any_pod(&workload, scene, is_ready) else { return };
        let counts = self.counts(&workload);
        let mut steps = vec![Step::LoseReadiness(id)];
        if self.chance.percent(50) {
            steps.push(Step::Tell(id, Reason::Unhealthy));
        }
        steps.extend(&counts);
        steps.push(Step::Recover(id));
        steps.extend(counts);
        self.start(workload, steps);
    }

    /// The pod of one node is replaced by a new one.
    fn replace_daemon(&mut self, workload: Workload) {
        let group = &mut self.slot(&workload).pods;
        let (old, new) = (group.first, group.end);
        group.first = old.saturating_add(1);
        group.end = new.saturating_add(1);
        let [old, new] = [old, new].map(|ordinal| PodId { group: 0, ordinal });
        let mut steps = vec![
            Step::Terminate(old),
            Step::Tell(old, Reason::Killing),
            Step::CountDaemonSet(false),
            Step::Remove(old),
        ];
        self.bring_up(&[new], &mut steps);
        steps.push(Step::CountDaemonSet(true));
        self.start_replacing(workload, steps);
    }

    /// A pod goes before another comes in its place: there is room for that, and the place is kept free.
    fn start_replacing(&mut self, workload: Workload, steps: Vec<Step>) {
        self.scripts.push(Script { workload, steps: steps.into(), more: 1, less: 1 });
    }

    /// A CronJob runs, and its oldest run is forgotten.
    fn run(&mut self, workload: Workload, scene: Scene<'_>) {
        let Some(cron_job) = self.owner(&workload, scene) else {
            return self.know(&workload, 0);
        };
        let suspended = cron_job.pointer("/spec/suspend").and_then(serde_json::Value::as_bool);
        if suspended == Some(true) || self.room_above() == 0 {
            return;
        }
        let minute = u32::try_from(scene.now.as_second().div_euclid(60).max(0)).unwrap_or(u32::MAX);
        let slot = self.slot(&workload);
        let run = slot.groups.last().map_or(minute, |last| minute.max(last.saturating_add(1)));
        slot.groups.push(run);
        let too_many = slot.groups.len().saturating_sub(workload.pods as usize);
        let oldest: Vec<u32> = slot.groups.drain(..too_many).collect();
        let id = PodId { group: run, ordinal: 0 };
        let mut steps = vec![Step::CreateJob(run), Step::NoteStart(run)];
        self.bring_up(&[id], &mut steps);
        steps.extend([
            Step::Complete(id),
            Step::FinishJob(run),
            Step::NoteEnd,
            Step::Tell(id, Reason::Completed),
        ]);
        for run in oldest {
            steps.extend([Step::Remove(PodId { group: run, ordinal: 0 }), Step::RemoveJob(run)]);
        }
        self.scripts.push(Script { workload, steps: steps.into(), more: 1, less: 0 });
    }

    /// One of the current pods that was started, if it is as wished.
    fn any_pod(
        &mut self,
        workload: &Workload,
        scene: Scene<'_>,
        wish: impl Fn(&serde_json::Value) -> bool,
    ) -> Option<PodId> {
        let group = self.slot(workload).pods;
        let ordinal = group.first + self.chance.below((group.end - group.first).into()) as u32;
        let pod = self.pod(workload, group.id, ordinal, scene)?;
        let runs = is_staying(&pod) && !text(&pod, "/status/podIP").is_empty();
        (runs && wish(&pod)).then_some(PodId { group: group.id, ordinal })
    }

    /// What changes when a pod becomes ready or unready.
    fn counts(&mut self, workload: &Workload) -> Vec<Step> {
        match workload.kind {
            Kind::Deployment | Kind::CoreDns => {
                let group = self.slot(workload).pods;
                vec![Step::CountReplicaSet(group), Step::CountDeployment(None), Step::Endpoints(None)]
            }
            Kind::StatefulSet => vec![Step::CountStatefulSet, Step::Endpoints(None)],
            Kind::Daemon(_) | Kind::CronJob | Kind::Job => Vec::new(),
        }
    }
}

//! What is to be reached, beside what was.

use crate::{
    figures::{
        BUSY_WALL, Column, EARLY, EVENT_CPU, FANOUT, FEW_CPU, FEW_MEMORY, Figures, LABEL_CPU, LABELS, LATE,
        LIST_CPU, MANY_CPU, MANY_MEMORY, MEMORY, Of, PAIR_WALL, PEAK, Place, SERVER_CPU, SINGLE, SYNC_CPU,
        SYNC_WALL, Table, WIRE, WRITE_ALONE, WRITE_BESIDE,
    },
    scenario::{FIELDS, METADATA, OURS, PACKED, PROJECTION, RAW, TYPED, TYPED_PAGED},
};

/// Something to be reached.
pub(crate) struct Goal {
    pub(crate) what: &'static str,
    pub(crate) limit: f64,
    /// The best of the runs, and their median.
    pub(crate) best: f64,
    pub(crate) median: f64,
    pub(crate) must: Must,
}

/// Whether a run fails that does not reach it. The best of the runs counts then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Must {
    /// It is an aim.
    Aim,
    /// With many pods.
    InFull,
    Always,
}

impl Goal {
    pub(crate) fn is_reached(&self) -> bool {
        self.median <= self.limit
    }

    /// Whether a run, a full one or not, fails for it.
    pub(crate) fn fails(&self, full: bool) -> bool {
        let must = match self.must {
            Must::Aim => false,
            Must::InFull => full,
            Must::Always => true,
        };
        must && self.best > self.limit
    }
}

/// All goals for which there are figures.
pub(crate) fn goals(figures: &Figures) -> Vec<Goal> {
    let mut goals = Vec::new();
    let mut add = |what, limit, must, value: &dyn Fn(Of) -> Option<f64>| {
        if let (Some(best), Some(median)) = (value(Of::Best), value(Of::Median)) {
            goals.push(Goal { what, limit, best, median, must });
        }
    };
    let value = |table, who, column, of| figures.value(Place { table, who, column }, of);
    let ratio = |table, who, column: Column| move |of: Of| figures.ratio(Place { table, who, column }, of);
    for (what, limit, who, column) in [
        ("sync CPU, packed", 0.25, PACKED, SYNC_CPU),
        ("sync CPU, typed", 0.60, TYPED, SYNC_CPU),
        ("sync CPU, projection", 0.15, PROJECTION, SYNC_CPU),
        ("sync wall clock, packed", 1.0, PACKED, SYNC_WALL),
        ("API server CPU for the sync, packed", 1.05, PACKED, SERVER_CPU),
        ("bytes on the wire, packed", 1.1, PACKED, WIRE),
        ("memory after sync, packed", 0.10, PACKED, MEMORY),
        ("memory after sync, projection, metadata dropped", 0.10, FIELDS, MEMORY),
        ("memory after sync, typed", 2.0, TYPED, MEMORY),
    ] {
        add(what, limit, Must::Aim, &ratio(Table::Sync, who, column));
    }
    add("peak of memory / memory after, the worst of ours", 1.2, Must::Always, &|of| {
        [TYPED_PAGED, TYPED, RAW, PACKED, PROJECTION, FIELDS, METADATA]
            .into_iter()
            .map(|who| Some(value(Table::Sync, who, PEAK, of)? / value(Table::Sync, who, MEMORY, of)?))
            .try_fold(0.0, |worst: f64, ratio| Some(worst.max(ratio?)))
    });
    add("memory after many relists / after a tenth of them", 1.1, Must::Always, &|of| {
        Some(value(Table::Relists, OURS, LATE, of)? / value(Table::Relists, OURS, EARLY, of)?)
    });
    add("CPU per watch event, packed", 0.20, Must::Aim, &ratio(Table::Watch, PACKED, EVENT_CPU));
    add("CPU per watch event, typed", 0.5, Must::Aim, &ratio(Table::Watch, TYPED, EVENT_CPU));
    let fanout = [("CPU per event, 1 handler", 0.25), ("10 handlers", 0.1), ("100 handlers", 0.1)];
    for ((what, limit), column) in fanout.into_iter().zip(FANOUT) {
        add(what, limit, Must::Aim, &ratio(Table::Fanout, OURS, column));
    }
    add("list 100 of 100,000 by label", 0.002, Must::Aim, &ratio(Table::Labels, OURS, LABELS[2]));
    add("write throughput lost to one reader that lists without pause", 0.10, Must::Aim, &|of| {
        Some(1.0 - value(Table::Reads, OURS, WRITE_ALONE, of)? / value(Table::Reads, OURS, WRITE_BESIDE, of)?)
    });
    add("gateway: CPU to list all pods", 0.03, Must::InFull, &ratio(Table::Gateway, OURS, LIST_CPU));
    add("gateway: CPU to list by label", 0.01, Must::InFull, &ratio(Table::Gateway, OURS, LABEL_CPU));
    add("gateway: memory", 0.10, Must::Aim, &ratio(Table::Gateway, OURS, MEMORY));
    add("gateway: memory, at most", 0.25, Must::InFull, &ratio(Table::Gateway, OURS, MEMORY));
    add("work queue: µs of CPU for an item, one at a time", 0.3, Must::InFull, &|of| {
        value(Table::Queue, OURS, SINGLE, of)
    });
    let to = |table, from, to| move |of| Some(value(table, OURS, to, of)? / value(table, OURS, from, of)?);
    let busy = to(Table::Queue, PAIR_WALL, BUSY_WALL);
    // Nothing fails by wall clock: how long two cores take for sixty tasks is chance.
    add("work queue: wall clock, 50 producers and 10 workers / one of each", 1.5, Must::Aim, &busy);
    let (cpu, memory) = (to(Table::Delays, FEW_CPU, MANY_CPU), to(Table::Delays, FEW_MEMORY, MANY_MEMORY));
    add("delayed items: CPU of each, many / few", 3.0, Must::Aim, &cpu);
    add("delayed items: memory of each, many / few", 1.2, Must::InFull, &memory);
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_fails_for_what_must_be_reached_and_not_for_an_aim() {
        let mut figures = Figures::default();
        for (who, memory, peak) in [("theirs", 100.0, 200.0), (TYPED, 250.0, 250.0), (RAW, 50.0, 51.0)] {
            figures.add(Table::Sync, who, MEMORY, memory);
            figures.add(Table::Sync, who, PEAK, peak);
        }
        figures.add(Table::Relists, OURS, EARLY, 100.0);
        figures.add(Table::Relists, OURS, LATE, 120.0);
        figures.add(Table::Gateway, "theirs", LIST_CPU, 100.0);
        figures.add(Table::Gateway, OURS, LIST_CPU, 11.0);
        // The peak is of all of ours.
        assert!(!goals(&figures).iter().any(|goal| goal.what.starts_with("peak")));
        for (who, peak) in
            [(TYPED_PAGED, 13.0), (PACKED, 10.0), (PROJECTION, 10.0), (FIELDS, 10.0), (METADATA, 10.0)]
        {
            figures.add(Table::Sync, who, MEMORY, 10.0);
            figures.add(Table::Sync, who, PEAK, peak);
        }
        let goals = goals(&figures);
        let failing = |full| goals.iter().filter(move |goal| goal.fails(full)).map(|goal| goal.what);
        let always = [
            "peak of memory / memory after, the worst of ours",
            "memory after many relists / after a tenth of them",
        ];
        assert!(failing(true).eq(always.into_iter().chain(["gateway: CPU to list all pods"])));
        assert!(failing(false).eq(always));
        assert!(goals.iter().any(|goal| goal.what == "memory after sync, typed" && !goal.is_reached()));
    }
}

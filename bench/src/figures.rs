//! What was measured: samples of figures, each of one participant in one table, and their ratios to the reference.
//!
//! Less is better in every column.

use std::collections::BTreeMap;

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Table {
    Sync,
    Watch,
    Fanout,
    Labels,
    Reads,
    Gateway,
    Relists,
    Queue,
    Delays,
}

impl Table {
    pub(crate) const ALL: [Self; 9] = [
        Self::Sync,
        Self::Watch,
        Self::Fanout,
        Self::Labels,
        Self::Reads,
        Self::Gateway,
        Self::Relists,
        Self::Queue,
        Self::Delays,
    ];

    /// Its name in keys and on the terminal.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Watch => "watch",
            Self::Fanout => "fan-out",
            Self::Labels => "labels",
            Self::Reads => "reads",
            Self::Gateway => "gateway",
            Self::Relists => "relists",
            Self::Queue => "queue",
            Self::Delays => "delays",
        }
    }

    /// What is measured, in the order of its columns.
    pub(crate) fn columns(self) -> &'static [Column] {
        match self {
            Self::Sync => &[SYNC_CPU, SYNC_WALL, MEMORY, PEAK, WIRE, SERVER_CPU],
            Self::Watch => &[EVENT_CPU, EVENT_WALL],
            Self::Fanout => &FANOUT,
            Self::Labels => &LABELS,
            Self::Reads => &[WRITE_ALONE, WRITE_BESIDE, LIST_BESIDE],
            Self::Gateway => &[LIST_WALL, LIST_CPU, LABEL_WALL, LABEL_CPU, MEMORY],
            Self::Relists => &[EARLY, LATE],
            Self::Queue => &[SINGLE, CROWD, PAIR, PAIR_WALL, BUSY, BUSY_WALL, RETRY],
            Self::Delays => &[FEW_CPU, FEW_MEMORY, MANY_CPU, MANY_MEMORY, SHUT_DOWN, LEFT],
        }
    }
}

/// What is measured of every participant of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    /// Whether a ratio that gets worse is a fault. Wall-clock time says too much about what else a machine does.
    pub(crate) judged: bool,
}

const fn judged(name: &'static str, unit: &'static str) -> Column {
    Column { name, unit, judged: true }
}

const fn shown(name: &'static str, unit: &'static str) -> Column {
    Column { name, unit, judged: false }
}

pub(crate) const SYNC_CPU: Column = judged("CPU", "s");
pub(crate) const SYNC_WALL: Column = shown("wall", "s");
pub(crate) const MEMORY: Column = judged("memory", "MB");
pub(crate) const PEAK: Column = judged("peak", "MB");
pub(crate) const WIRE: Column = judged("on the wire", "MB");
/// The server has work of its own, too, which a short run does not even out.
pub(crate) const SERVER_CPU: Column = shown("API server CPU", "s");
pub(crate) const EVENT_CPU: Column = judged("CPU per event", "µs");
pub(crate) const EVENT_WALL: Column = shown("wall per event", "µs");
pub(crate) const FANOUT: [Column; 3] =
    [judged("1 handler", "µs"), judged("10 handlers", "µs"), judged("100 handlers", "µs")];
/// One thread that never waits: its wall-clock time is CPU time.
pub(crate) const LABELS: [Column; 3] =
    [judged("of 1,000", "µs"), judged("of 10,000", "µs"), judged("of 100,000", "µs")];
pub(crate) const WRITE_ALONE: Column = shown("a write", "µs");
pub(crate) const WRITE_BESIDE: Column = shown("a write beside a reader", "µs");
pub(crate) const LIST_BESIDE: Column = shown("a list of 100,000 beside the writer", "ms");
pub(crate) const LIST_WALL: Column = shown("all pods", "ms");
pub(crate) const LIST_CPU: Column = judged("all pods, CPU", "ms");
pub(crate) const LABEL_WALL: Column = shown("by label", "ms");
pub(crate) const LABEL_CPU: Column = judged("by label, CPU", "ms");
pub(crate) const EARLY: Column = shown("memory early", "MB");
pub(crate) const LATE: Column = shown("memory late", "MB");
pub(crate) const SINGLE: Column = judged("one at a time", "µs");
pub(crate) const CROWD: Column = judged("100,000 at a time", "µs");
pub(crate) const PAIR: Column = shown("1 producer, 1 worker", "µs");
pub(crate) const PAIR_WALL: Column = shown("wall", "µs");
pub(crate) const BUSY: Column = shown("50 producers, 10 workers", "µs");
pub(crate) const BUSY_WALL: Column = shown("wall of the 50", "µs");
pub(crate) const RETRY: Column = judged("retry and forget", "µs");
pub(crate) const FEW_CPU: Column = judged("few, CPU", "µs");
pub(crate) const FEW_MEMORY: Column = judged("few, memory", "bytes");
pub(crate) const MANY_CPU: Column = shown("many, CPU", "µs");
pub(crate) const MANY_MEMORY: Column = shown("many, memory", "bytes");
pub(crate) const SHUT_DOWN: Column = shown("shutting down", "ms");
pub(crate) const LEFT: Column = shown("memory left", "MB");

/// Which figure: a row and a column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) table: Table,
    pub(crate) who: &'static str,
    pub(crate) column: Column,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}: {}", self.table.name(), self.who, self.column.name)
    }
}

/// How several samples become one number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Of {
    Best,
    Median,
}

/// All samples.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    samples: BTreeMap<Place, Vec<f64>>,
    /// The first participant of each table.
    references: BTreeMap<Table, &'static str>,
}

impl Figures {
    /// Adds a sample. Whoever is first in a table is its reference.
    pub(crate) fn add(&mut self, table: Table, who: &'static str, column: Column, sample: f64) {
        self.references.entry(table).or_insert(who);
        self.samples.entry(Place { table, who, column }).or_default().push(sample);
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.samples.keys().copied()
    }

    pub(crate) fn reference(&self, table: Table) -> Option<&'static str> {
        self.references.get(&table).copied()
    }

    pub(crate) fn value(&self, place: Place, of: Of) -> Option<f64> {
        let mut samples = self.samples.get(&place)?.clone();
        samples.sort_by(f64::total_cmp);
        match of {
            Of::Best => samples.first().copied(),
            Of::Median => samples.get(samples.len() / 2).copied(),
        }
    }

    /// The figure as a part of the reference's; best to best, median to median.
    pub(crate) fn ratio(&self, place: Place, of: Of) -> Option<f64> {
        let who = self.reference(place.table)?;
        let reference = self.value(Place { who, ..place }, of)?;
        (reference > 0.0).then_some(self.value(place, of)? / reference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_best_to_best_and_of_median_to_median() {
        let mut figures = Figures::default();
        for sample in [4.0, 2.0, 3.0] {
            figures.add(Table::Sync, "theirs", SYNC_CPU, sample);
        }
        for sample in [1.0, 3.0, 1.5] {
            figures.add(Table::Sync, "ours", SYNC_CPU, sample);
        }
        let place = Place { table: Table::Sync, who: "ours", column: SYNC_CPU };
        assert_eq!(figures.value(place, Of::Median), Some(1.5));
        assert_eq!(figures.ratio(place, Of::Best), Some(0.5));
        assert_eq!(figures.ratio(place, Of::Median), Some(0.5));
        let theirs = Place { who: "theirs", ..place };
        assert_eq!(figures.ratio(theirs, Of::Best), Some(1.0));
        assert_eq!(figures.ratio(Place { column: WIRE, ..place }, Of::Best), None);
    }
}

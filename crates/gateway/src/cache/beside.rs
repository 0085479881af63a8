//! What stands beside a packed object: the values that selectors and sorts ask for most, so that nothing is unpacked for them.
//!
//! One table of paths is for all kinds: what an object does not have takes no room. The values are those of the text, so that
//! whoever reads them here gets what the text would have told.

use std::sync::LazyLock;

use informer_model::FieldPath;

use crate::query::Paths;

/// The paths, none of which begins another: what a server selects by, what tables show, times, and what is counted.
const PATHS: [&str; 52] = [
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "metadata.generation",
    "metadata.name",
    "metadata.namespace",
    "spec.clusterIP",
    "spec.hostNetwork",
    "spec.ingressClassName",
    "spec.nodeName",
    "spec.parallelism",
    "spec.priorityClassName",
    "spec.replicas",
    "spec.restartPolicy",
    "spec.schedule",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.signerName",
    "spec.storageClassName",
    "spec.suspend",
    "spec.type",
    "spec.unschedulable",
    "spec.volumeName",
    "status.availableReplicas",
    "status.completionTime",
    "status.currentReplicas",
    "status.desiredNumberScheduled",
    "status.failed",
    "status.hostIP",
    "status.lastScheduleTime",
    "status.nominatedNodeName",
    "status.numberReady",
    "status.phase",
    "status.podIP",
    "status.qosClass",
    "status.readyReplicas",
    "status.reason",
    "status.replicas",
    "status.startTime",
    "status.succeeded",
    "status.updatedReplicas",
    "count",
    "firstTimestamp",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.uid",
    "lastTimestamp",
    "provisioner",
    "reason",
    "reportingComponent",
    "source.component",
    "type",
];

/// An object that has a longer value has nothing beside it.
const LONGEST: usize = 128;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let known: Vec<FieldPath> =
        PATHS.iter().filter_map(|path| Some(FieldPath::parse_prefix(path).ok()?.0)).collect();
    Table { paths: Paths::new(&known), known }
});

struct Table {
    known: Vec<FieldPath>,
    paths: Paths,
}

/// The place of a path in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(usize);

impl Slot {
    /// Where the value of a path stands, if it stands beside objects.
    pub(crate) fn of(path: &FieldPath) -> Option<Self> {
        TABLE.known.iter().position(|known| known == path).map(Self)
    }
}

/// The values of one object.
#[derive(Debug, Clone)]
pub(crate) struct Beside {
    /// A bit for each path that has a value.
    present: u64,
    /// As they stand in the text, of objects and arrays the bracket alone, in the order of the paths. No JSON of one line has a
    /// line break in it.
    values: Box<str>,
}

impl Beside {
    /// The values of a text in one line; none where they are too long, or the text ends too early.
    pub(crate) fn of(json: &str) -> Option<Self> {
        let (mut present, mut values) = (0, String::new());
        for (slot, value) in TABLE.paths.find(json, |_, _| true).into_iter().enumerate() {
            let value = match value? {
                "" => continue,
                structure if structure.starts_with(['{', '[']) => structure.get(..1)?,
                value if value.len() <= LONGEST => value,
                _ => return None,
            };
            if present != 0 {
                values.push('\n');
            }
            present |= 1u64 << slot;
            values.push_str(value);
        }
        Some(Self { present, values: values.into() })
    }

    /// The value of a path as it stands in the text; empty if there is none.
    pub(crate) fn get(&self, Slot(slot): Slot) -> &str {
        let bit = 1u64 << slot;
        if self.present & bit == 0 {
            return "";
        }
        let before = (self.present & (bit - 1)).count_ones() as usize;
        self.values.split('\n').nth(before).unwrap_or_default()
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get<'b>(beside: &'b Beside, path: &str) -> &'b str {
        let path = FieldPath::parse_prefix(path).expect("a path").0;
        beside.get(Slot::of(&path).expect("a path of the table"))
    }

    #[test]
    fn every_path_of_the_table_has_a_place_and_none_begins_another() {
        assert!(TABLE.known.len() == PATHS.len() && PATHS.len() <= 64);
        for path in PATHS {
            let inside = format!("{path}.");
            assert!(PATHS.iter().all(|other| !other.starts_with(&inside)), "{path}");
        }
    }

    #[test]
    fn values_are_those_of_the_text() {
        let json = r#"{"metadata":{"name":"a"},"spec":{"nodeName":"n\n1","replicas":3,"type":{"a":1}},"status":{"phase":null},"type":"x"}"#;
        let beside = Beside::of(json).expect("short values");
        for (path, value) in [
            ("metadata.name", r#""a""#),
            ("metadata['name']", r#""a""#),
            ("spec.nodeName", r#""n\n1""#),
            ("spec.replicas", "3"),
            ("spec.type", "{"),
            ("status.phase", "null"),
            ("status.podIP", ""),
            ("type", r#""x""#),
        ] {
            assert_eq!(get(&beside, path), value, "{path}");
        }
    }

    #[test]
    fn where_a_value_is_long_or_the_text_ends_nothing_stands_beside() {
        let phase = |length| format!(r#"{{"status":{{"phase":"{}"}}}}"#, "x".repeat(length));
        assert!(Beside::of(&phase(LONGEST - 2)).is_some());
        assert!(Beside::of(&phase(LONGEST - 1)).is_none());
        assert!(Beside::of(r#"{"status":{"phase":"x"#).is_none());
        assert!(Beside::of("{}").is_some_and(|beside| beside.values.is_empty()));
    }
}

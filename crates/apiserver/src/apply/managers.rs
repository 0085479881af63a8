//! Who manages which fields of an object: `managedFields`, read, changed and written.

use serde_json::{Map, Value};

use super::fields::FieldSet;

/// So many managers that have updated an object are remembered one by one.
const MOST_UPDATERS: usize = 10;
/// The name of those who are not.
const ANCIENT: &str = "ancient-changes";

/// How somebody came to manage fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// Who writes, what, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    pub(crate) api_version: String,
    /// Empty for the whole object.
    pub(crate) subresource: String,
}

/// A manager, what it manages, and since when.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) manager: Manager,
    pub(crate) time: Option<String>,
    pub(crate) fields: FieldSet,
}

/// All managers of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Managers(pub(crate) Vec<Entry>);

impl Manager {
    /// Whether that is the same manager. One that applies is, in whichever version.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (&self.name, self.operation, &self.subresource) == (&other.name, other.operation, &other.subresource)
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// As a conflict with it names it.
    pub(crate) fn described(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

impl Entry {
    fn read(entry: Value) -> Option<Self> {
        let Value::Object(mut entry) = entry else { return None };
        let mut text = |name: &str| match entry.remove(name) {
            None | Some(Value::Null) => Some(None),
            Some(Value::String(text)) => Some(Some(text)),
            Some(_) => None,
        };
        let operation = match text("operation")?.as_deref() {
            Some("Apply") => Operation::Apply,
            Some("Update") => Operation::Update,
            _ => return None,
        };
        let api_version = text("apiVersion")?.filter(|version| !version.is_empty())?;
        if text("fieldsType")?.as_deref() != Some("FieldsV1") {
            return None;
        }
        let manager = Manager {
            name: text("manager")?.unwrap_or_default(),
            operation,
            api_version,
            subresource: text("subresource")?.unwrap_or_default(),
        };
        let time = text("time")?;
        let fields = FieldSet::read(entry.remove("fieldsV1").unwrap_or_default());
        Some(Self { manager, time, fields })
    }

    fn write(self) -> Value {
        let Manager { name, operation, api_version, subresource } = self.manager;
        let mut entry = Map::new();
        entry.insert("apiVersion".into(), api_version.into());
        entry.insert("fieldsType".into(), "FieldsV1".into());
        entry.insert("fieldsV1".into(), self.fields.write());
        if !name.is_empty() {
            entry.insert("manager".into(), name.into());
        }
        let operation = if operation == Operation::Apply { "Apply" } else { "Update" };
        entry.insert("operation".into(), operation.into());
        if !subresource.is_empty() {
            entry.insert("subresource".into(), subresource.into());
        }
        if let Some(time) = self.time {
            entry.insert("time".into(), time.into());
        }
        Value::Object(entry)
    }
}

impl Managers {
    /// Reads them. None if they are not as they have to be, or if there are none.
    pub(crate) fn read(managed: Value) -> Option<Self> {
        let Value::Array(entries) = managed else { return None };
        let mut all = Self::default();
        for entry in entries {
            let entry = Entry::read(entry)?;
            // Of two entries for one manager the last counts.
            match all.position(&entry.manager) {
                Some(known) => all.0[known] = entry,
                None => all.0.push(entry),
            }
        }
        (!all.0.is_empty()).then_some(all)
    }

    /// Reads them from a request, where they may be spelled in another way than here.
    pub(crate) fn sent(managed: Value) -> Option<Self> {
        let mut all = Self::read(managed)?;
        for entry in &mut all.0 {
            entry.fields = std::mem::take(&mut entry.fields).respelled();
        }
        Some(all)
    }

    /// Writes them, in the order of a server. None if nobody manages anything.
    pub(crate) fn write(mut self) -> Option<Value> {
        self.0.sort_by(|one, other| one.order().cmp(&other.order()));
        (!self.0.is_empty()).then(|| self.0.into_iter().map(Entry::write).collect())
    }

    pub(crate) fn position(&self, manager: &Manager) -> Option<usize> {
        self.0.iter().position(|known| known.manager.is(manager))
    }

    /// Forgets who manages nothing any more.
    pub(crate) fn forget_empty(&mut self) {
        self.0.retain(|entry| !entry.fields.is_empty());
    }

    /// Merges the oldest updates until there are no more of them than are remembered.
    pub(crate) fn merge_oldest(&mut self) {
        let updaters =
            |all: &Self| all.0.iter().filter(|entry| entry.manager.operation == Operation::Update).count();
        let mut left = updaters(self);
        if left <= MOST_UPDATERS {
            return;
        }
        let mut oldest: Vec<(Option<String>, Manager)> = self
            .0
            .iter()
            .filter(|entry| entry.manager.operation == Operation::Update)
            .map(|entry| (entry.time.clone(), entry.manager.clone()))
            .collect();
        oldest.sort_by_cached_key(|(time, manager)| (time.clone(), manager.identity()));
        let mut first: Vec<Manager> = Vec::new();
        for (time, manager) in oldest {
            if left <= MOST_UPDATERS {
                return;
            }
            let same_version = |known: &&mut Manager| known.api_version == manager.api_version;
            let Some(oldest) = first.iter_mut().find(same_version) else {
                first.push(manager);
                continue;
            };
            let bucket = Manager { name: ANCIENT.to_owned(), subresource: String::new(), ..manager.clone() };
            let Some(place) = self.position(&manager) else { continue };
            let Entry { fields, .. } = self.0.remove(place);
            let Some(place) = self.position(&bucket).or_else(|| self.position(oldest)) else { continue };
            let into = &mut self.0[place];
            into.fields = std::mem::take(&mut into.fields).union(fields);
            (into.manager, into.time) = (bucket.clone(), time);
            *oldest = bucket;
            left -= 1;
        }
    }
}

impl Manager {
    /// The text by which a server tells managers apart, and puts them in order where nothing else does.
    pub(crate) fn identity(&self) -> String {
        let operation = if self.operation == Operation::Apply { "Apply" } else { "Update" };
        let version = if self.operation == Operation::Apply { "" } else { &self.api_version };
        let fields = [
            ("manager", self.name.as_str()),
            ("operation", operation),
            ("apiVersion", version),
            ("subresource", &self.subresource),
        ];
        let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let fields: Vec<String> =
            fields.map(|(name, value)| format!("{name:?}:{}", Value::from(value))).collect();
        format!("{{{}}}", fields.join(","))
    }
}

impl Entry {
    fn order(&self) -> (Operation, Option<&str>, &str, &str, &str) {
        let Manager { name, operation, api_version, subresource } = &self.manager;
        (*operation, self.time.as_deref(), name, api_version, subresource)
    }
}

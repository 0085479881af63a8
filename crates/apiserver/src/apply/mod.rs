//! Server-side apply: which manager has which fields, and what becomes of an object that is applied to.
//!
//! In: an object as it is and as somebody wants it, with the managers that it has. Out: who manages what then, and for an apply the
//! merged object or the conflicts. Nothing here knows of requests or of the store.
//!
//! [`fields`] are the sets, [`schema`] says what is merged, [`compare`] what a write has changed, [`merge`] what an apply makes,
//! [`managers`] reads and writes `managedFields`.

mod compare;
mod element;
mod fields;
mod managers;
mod merge;
mod schema;
#[cfg(test)]
mod tests;

use serde_json::Value;

use compare::Changes;
use fields::FieldSet;
use managers::Entry;
pub(crate) use managers::{Manager, Managers, Operation};
use merge::Unfit;
pub(crate) use schema::Type;

/// The name of the manager of all that was there before managers were remembered.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// What a write can change; the rest of it does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Everything,
    /// All but the status, which is a subresource.
    NoStatus,
    StatusOnly,
}

impl Scope {
    fn filter(self, set: FieldSet) -> FieldSet {
        match self {
            Self::Everything => set,
            Self::NoStatus => set.except("f:status"),
            Self::StatusOnly => set.only("f:status"),
        }
    }
}

/// One writer of objects of one type.
pub(crate) struct Writer<'s> {
    pub(crate) r#type: Type<'s>,
    pub(crate) scope: Scope,
    pub(crate) manager: Manager,
    /// When it writes, if that is written down: of who scales it is not.
    pub(crate) time: Option<&'s str>,
    /// Which versions the objects can be seen in: what is managed in another one is forgotten.
    pub(crate) versions: &'s dyn Fn(&str) -> bool,
    /// An object that has nothing but what all of the type have.
    pub(crate) empty: &'s dyn Fn() -> Value,
}

/// Why an object cannot be applied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotApplied {
    /// Others have these fields, and other values in them: each with its manager and its path.
    Conflicts(Vec<(Manager, String)>),
    /// The configuration, or the object, is not of the type.
    Unfit(Unfit),
}

impl Writer<'_> {
    /// Who manages what after an update of an object to a new one. Both are given without `managedFields`.
    pub(crate) fn update(&self, old: &Value, new: &Value, mut managers: Managers) -> Managers {
        let changes = self.changes(old, new);
        self.take_away(&mut managers, &changes);
        let Changes { added, modified, .. } = changes;
        let own = added.union(modified).without_server_fields();
        managers.forget_empty();
        if !own.is_empty() {
            match managers.position(&self.manager) {
                Some(place) => {
                    let entry = &mut managers.0[place];
                    entry.fields = std::mem::take(&mut entry.fields).union(own);
                    if let Some(time) = self.time {
                        entry.time = Some(time.to_owned());
                    }
                }
                None => managers.0.push(self.entry(own, true)),
            }
        }
        managers.merge_oldest();
        managers
    }

    /// What becomes of an object to which a configuration is applied, and who manages what then. The object is given without
    /// `managedFields`; one that is to be made is the empty one of its type.
    pub(crate) fn apply(
        &self,
        live: &Value,
        config: &Value,
        managers: Option<Managers>,
        force: bool,
    ) -> Result<(Value, Managers), NotApplied> {
        let set = merge::field_set(self.r#type, config).map_err(NotApplied::Unfit)?;
        let mut managers = managers.unwrap_or_else(|| self.before_first_apply(live));
        let merged = merge::merge(self.r#type, live, config);
        let set = self.scope.filter(set);
        let place = managers.position(&self.manager);
        let last = place.map(|place| managers.0.remove(place));
        managers.0.push(self.entry(set, false));
        let merged = match &last {
            Some(last) if (self.versions)(&last.manager.api_version) => {
                self.prune(merged, &last.fields, &managers)
            }
            _ => merged,
        };
        let mut own = managers.0.pop().unwrap_or_else(|| self.entry(FieldSet::default(), false));
        let changes = self.changes(live, &merged);
        if !force {
            let conflicts: Vec<_> = managers.0.iter().flat_map(|entry| conflicts(entry, &changes)).collect();
            if !conflicts.is_empty() {
                return Err(NotApplied::Conflicts(conflicts));
            }
        }
        self.take_away(&mut managers, &changes);
        own.fields = own.fields.without_server_fields();
        own.time = match merged == *live {
            false if self.time.is_some() => self.time.map(str::to_owned),
            _ => last.and_then(|last| last.time),
        };
        managers.0.push(own);
        managers.forget_empty();
        Ok((merged, managers))
    }

    /// The paths of what a configuration names and an object has just so.
    pub(crate) fn unchanged(&self, config: &Value, live: &Value) -> Vec<String> {
        let Changes { added, modified, removed } = self.changes(config, live);
        let set = merge::present(self.r#type, config);
        set.difference(modified.view()).difference(added.view()).difference(removed.view()).paths()
    }

    fn changes(&self, old: &Value, new: &Value) -> Changes {
        Changes::between(self.r#type, old, new).filtered(|set| self.scope.filter(set))
    }

    fn entry(&self, fields: FieldSet, dated: bool) -> Entry {
        Entry { manager: self.manager.clone(), time: self.time.filter(|_| dated).map(str::to_owned), fields }
    }

    /// What others lose by a write: what has another value now, or none.
    fn take_away(&self, managers: &mut Managers, changes: &Changes) {
        managers.0.retain(|entry| (self.versions)(&entry.manager.api_version));
        if changes.is_empty() {
            return;
        }
        for entry in &mut managers.0 {
            let fields = std::mem::take(&mut entry.fields);
            entry.fields = [&changes.added, &changes.modified, &changes.removed]
                .into_iter()
                .fold(fields, |fields, lost| fields.difference(lost.view()));
        }
    }

    /// All that there is of an object that nobody manages.
    fn before_first_apply(&self, live: &Value) -> Managers {
        let manager = Manager {
            name: BEFORE_FIRST_APPLY.to_owned(),
            operation: Operation::Update,
            subresource: self.manager.subresource.clone(),
            api_version: self.manager.api_version.clone(),
        };
        let before = Writer { manager, ..*self };
        before.update(&(self.empty)(), live, Managers::default())
    }

    /// Takes out of an object what the manager has applied before and does not any more, if nobody else has it.
    fn prune(&self, merged: Value, last: &FieldSet, managers: &Managers) -> Value {
        let r#type = self.r#type;
        let named = |set: FieldSet| set.with_named_fields(r#type);
        let all = |value: &Value| named(merge::present(r#type, value));
        let last = named(last.clone());
        let pruned = merge::remove(r#type, merged.clone(), last.view());
        let there = all(&merged);
        // What is still somebody's comes back …
        let managed =
            managers.0.iter().fold(FieldSet::default(), |all, entry| all.union(entry.fields.clone()));
        let kept = all(&pruned).union(named(managed));
        let pruned = merge::remove(r#type, merged.clone(), there.clone().difference(kept.view()).view());
        // … and so does what was below something of ours, but not ours.
        let gone = there.difference(all(&pruned).view());
        merge::remove(r#type, merged, gone.intersection(&last).view())
    }
}

/// What of one manager is in the way of a write that does not force.
fn conflicts(entry: &Entry, changes: &Changes) -> Vec<(Manager, String)> {
    let changed = changes.modified.clone().union(changes.added.clone());
    let paths = entry.fields.intersection(&changed).paths();
    paths.into_iter().map(|path| (entry.manager.clone(), path)).collect()
}

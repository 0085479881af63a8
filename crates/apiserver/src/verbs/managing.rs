//! Who writes an object, and who manages its fields then.

use http::header;
use informer_model::{Status, StatusCause, complete_fields};
use informer_serving::options::invalid_options;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Call, Part};
use crate::{
    apply::{Manager, Managers, Operation, Scope, Type, Writer},
    rules,
};

/// The longest name of a manager.
const LONGEST: usize = 128;

/// What a write makes of the managers of an object.
pub(super) enum Managing {
    /// What it changes is its writer's. The object may have come with managers of its own.
    Update { sent: Option<Value>, name: String },
    /// That has been found out already.
    Known(Option<Value>),
}

/// Takes the managers out of an object.
pub(super) fn take(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

/// Puts managers into an object that has none.
pub(super) fn put(object: &mut Value, managers: Option<Value>) {
    if let Some(managers) = managers {
        rules::metadata(object).insert("managedFields".into(), managers);
    }
}

/// Whether nobody is to manage anything any more.
fn is_reset(sent: &Value) -> bool {
    match sent.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(only)]) => only.is_empty(),
        _ => false,
    }
}

/// Whether two lists of managers differ in nothing but when that was.
pub(super) fn is_same_but_times(one: Option<&Value>, other: Option<&Value>) -> bool {
    let entries = |managers: Option<&Value>| managers.and_then(Value::as_array).cloned().unwrap_or_default();
    let timeless = |mut entry: Value| {
        entry.as_object_mut().and_then(|entry| entry.remove("time"));
        entry
    };
    let (one, other) = (entries(one), entries(other));
    one.len() == other.len() && one.into_iter().map(timeless).eq(other.into_iter().map(timeless))
}

impl Call<'_> {
    /// The name under which this request writes; `options` are what its parameters are called.
    pub(super) fn manager(&self, options: &str) -> Result<String, Status> {
        let asked = self.query.get("fieldManager").unwrap_or_default();
        let mut causes = Vec::new();
        if asked.len() > LONGEST {
            let message = format!("Too long: may not be more than {LONGEST} bytes");
            causes.push(StatusCause::new(StatusCause::FIELD_VALUE_TOO_LONG, "fieldManager", message));
        }
        for (place, c) in asked.char_indices().filter(|(_, c)| !is_print(*c)) {
            let message = format!(
                "Invalid value: {asked:?}: invalid character U+{:04X} (at position {place})",
                u32::from(c)
            );
            causes.push(StatusCause::new(StatusCause::FIELD_VALUE_INVALID, "fieldManager", message));
        }
        if !causes.is_empty() {
            return Err(invalid_options(options, causes));
        }
        let name = if asked.is_empty() { self.agent() } else { asked.to_owned() };
        Ok(if name.is_empty() { "unknown".to_owned() } else { name })
    }

    /// The name that the client gives itself.
    fn agent(&self) -> String {
        let agent =
            self.headers.get(header::USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()));
        let mut name = String::new();
        let agent = agent.as_deref().and_then(|agent| agent.split('/').next()).unwrap_or_default();
        for c in agent.chars().filter(|c| is_print(*c)) {
            if name.len() + c.len_utf8() > LONGEST {
                break;
            }
            name.push(c);
        }
        name
    }

    /// Does something as the writer of objects that this request is.
    pub(super) fn writing<R>(
        &self,
        name: String,
        operation: Operation,
        now: Timestamp,
        work: impl FnOnce(&Writer<'_>) -> R,
    ) -> R {
        let resource = &self.resource;
        let api_version = resource.api_version(&self.version.name);
        let r#type = match (resource.custom, &self.version.schema) {
            (true, Some(schema)) => Type::CustomObject(schema),
            (true, None) => Type::CustomObject(&Value::Null),
            _ => Type::of_kind(&api_version, &resource.kind),
        };
        let (scope, subresource) = match self.part {
            Part::Status => (Scope::StatusOnly, "status"),
            Part::Scale => (Scope::NoStatus, "scale"),
            Part::Whole if self.version.status => (Scope::NoStatus, ""),
            Part::Whole => (Scope::Everything, ""),
        };
        let manager = Manager { name, operation, api_version, subresource: subresource.to_owned() };
        let time = rules::time(now);
        work(&Writer {
            r#type,
            scope,
            manager,
            time: time.as_str().filter(|_| self.part != Part::Scale),
            versions: &|api_version| {
                resource.versions.iter().any(|version| resource.api_version(&version.name) == api_version)
            },
            empty: &|| self.empty_object(),
        })
    }

    /// An object that has nothing but what all of its kind have.
    pub(super) fn empty_object(&self) -> Value {
        let api_version = self.resource.api_version(&self.version.name);
        let mut empty = json!({ "apiVersion": api_version, "kind": self.resource.kind });
        if !self.resource.custom {
            complete_fields(&api_version, &self.resource.kind, &mut empty);
        }
        empty
    }

    /// The managers of a new object, which comes without any.
    pub(super) fn managers_of_new(
        &self,
        new: &Value,
        sent: Option<Value>,
        name: String,
        now: Timestamp,
    ) -> Option<Value> {
        let managers = sent.and_then(Managers::sent).unwrap_or_default();
        let empty = self.empty_object();
        self.writing(name, Operation::Update, now, |writer| writer.update(&empty, new, managers)).write()
    }

    /// The managers of an object after an update; both states are given without them.
    pub(super) fn managers_of_updated(
        &self,
        (old, known): (&Value, Option<&Value>),
        new: &Value,
        (sent, name): (Option<Value>, String),
        now: Timestamp,
    ) -> Option<Value> {
        // Through a subresource nobody can change them.
        let sent = sent.filter(|sent| self.part == Part::Whole && Some(sent) != known);
        if sent.as_ref().is_some_and(is_reset) {
            return None;
        }
        // Where nobody has managed anything so far, nobody begins now.
        let managers = sent.and_then(Managers::sent).or_else(|| Managers::read(known?.clone()))?;
        self.writing(name, Operation::Update, now, |writer| writer.update(old, new, managers)).write()
    }
}

/// Whether a character can be seen, as Go has it.
fn is_print(c: char) -> bool {
    c == ' ' || !c.is_control() && !c.is_whitespace()
}

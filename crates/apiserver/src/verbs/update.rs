//! Update and patch: what an object becomes, given what it was.

use std::{fmt, sync::Arc};

use http::StatusCode;
use informer_model::{Reason, Status, StatusCause};
use jiff::Timestamp;
use json_patch::PatchOperation;
use serde_json::Value;

use super::{
    Answer, Call, Part,
    create::with_warnings,
    managing::{self, Managing},
};
use crate::{
    admission, custom, defaults,
    media::{self, BODY_LIMIT},
    rules,
    store::{State, Stored},
    strategic,
};

/// What a client is told when somebody else was faster.
const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// The longest JSON patch, as a real server has it.
const MOST_OPERATIONS: usize = 10_000;
/// How deep a patch may nest: what is deeper could not be read again.
const DEPTH_LIMIT: usize = 100;

/// A change of an object in one of the formats that are served.
pub(super) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    /// Reads the body of a patch.
    pub(super) fn read(call: &Call<'_>) -> Result<Self, Status> {
        const JSON: &str = "application/json-patch+json";
        const MERGE: &str = "application/merge-patch+json";
        const STRATEGIC: &str = "application/strategic-merge-patch+json";
        const APPLY: &str = super::apply::MEDIA_TYPE;
        let bad = |e: serde_json::Error| Status::bad_request(format!("the patch cannot be read: {e}"));
        match media::content_type(call.headers) {
            Some(JSON) => {
                let operations: Vec<Value> = serde_json::from_slice(&call.body).map_err(bad)?;
                let patch: json_patch::Patch = serde_json::from_value(operations.into()).map_err(unfit)?;
                if patch.0.len() > MOST_OPERATIONS {
                    return Err(Status::request_entity_too_large(format!(
                        "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
                        patch.0.len()
                    )));
                }
                Ok(Self::Json(patch))
            }
            Some(format @ (MERGE | STRATEGIC)) if format == MERGE || !call.resource.custom => {
                let patch: Value = serde_json::from_slice(&call.body).map_err(bad)?;
                match (patch.is_object(), format) {
                    (true, MERGE) => Ok(Self::Merge(patch)),
                    (true, _) => Ok(Self::Strategic(patch)),
                    _ => Err(Status::bad_request("a merge patch must be one object, written as {…}")),
                }
            }
            // Only of built-in kinds is it known which lists have keys.
            _ if call.resource.custom => {
                Err(Status::unsupported_media_type(&[JSON, MERGE, APPLY]).about("", "", ""))
            }
            _ => Err(Status::unsupported_media_type(&[JSON, MERGE, STRATEGIC, APPLY]).about("", "", "")),
        }
    }

    /// Applies the patch. A patch that does not fit is the client's mistake.
    pub(super) fn apply(&self, object: &mut Value) -> Result<(), Status> {
        match self {
            Self::Merge(patch) => json_patch::merge(object, patch),
            Self::Strategic(patch) => strategic::merge(object, patch).map_err(Status::bad_request)?,
            Self::Json(patch) => {
                let mut budget = BODY_LIMIT;
                for operation in &patch.0 {
                    if finds_nothing(object, operation) {
                        continue;
                    }
                    json_patch::patch(object, std::slice::from_ref(operation)).map_err(unfit)?;
                    spend(&mut budget, object, operation)?;
                }
            }
        }
        if object.is_object() {
            Ok(())
        } else {
            Err(Status::bad_request("the patch makes the object something else than an object"))
        }
    }
}

/// Whether an operation tests for null at a place where nothing is, in something that is there: real servers take that as
/// passed, and clients that add the first of something depend on it.
fn finds_nothing(object: &Value, operation: &PatchOperation) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let path = test.path.as_str();
    let parent = path.rsplit_once('/').and_then(|(parent, _)| object.pointer(parent));
    test.value.is_null() && parent.is_some_and(Value::is_object) && object.pointer(path).is_none()
}

/// A patch that cannot be applied to the object there is.
fn unfit(why: impl fmt::Display) -> Status {
    Status::failure(Reason::Invalid, format!("the patch cannot be applied: {why}")).about("", "", "")
}

/// What a patch makes of an object is none of its kind: that is the patch's fault.
fn unusable(status: Status) -> Status {
    if status.code != 400 {
        return status;
    }
    let cause = StatusCause::new(StatusCause::FIELD_VALUE_INVALID, "patch", status.message);
    Status::invalid("", "", "", [cause])
}

/// What few bytes of a patch can make much of, by copying and by nesting, has its limits.
fn spend(budget: &mut usize, object: &Value, operation: &PatchOperation) -> Result<(), Status> {
    let path = match operation {
        PatchOperation::Add(add) => &add.path,
        PatchOperation::Copy(copy) => &copy.path,
        PatchOperation::Move(r#move) => &r#move.path,
        _ => return Ok(()),
    };
    let deep = || Status::bad_request(format!("the patch nests values more than {DEPTH_LIMIT} deep"));
    // The end of a list is written `-`: what was put there is as deep as the list is.
    let place = path.as_str();
    let moved = object.pointer(place.strip_suffix("/-").unwrap_or(place)).unwrap_or(&Value::Null);
    let depth = DEPTH_LIMIT.checked_sub(path.count()).ok_or_else(deep)?;
    let size = size(moved, depth).ok_or_else(deep)?;
    if !matches!(operation, PatchOperation::Add(_)) {
        *budget = budget.checked_sub(size).ok_or_else(|| {
            Status::request_entity_too_large(format!(
                "the patch copies or moves more than {BODY_LIMIT} bytes"
            ))
        })?;
    }
    Ok(())
}

/// About how many bytes a value has, unless it is nested too deep.
fn size(value: &Value, depth: usize) -> Option<usize> {
    let below = depth.checked_sub(1)?;
    match value {
        Value::String(text) => Some(text.len()),
        Value::Array(items) => items.iter().try_fold(2, |sum, item| Some(sum + size(item, below)?)),
        Value::Object(fields) => {
            fields.iter().try_fold(2, |sum, (name, value)| Some(sum + name.len() + size(value, below)?))
        }
        _ => Some(5),
    }
}

impl Call<'_> {
    pub(super) fn update(self) -> Answer {
        self.check_form()?;
        let dry_run = self.dry_run()?;
        let name = self.manager("UpdateOptions")?;
        let mut object = self.decode()?;
        self.check_type(&mut object)?;
        let warnings = self.check_fields(&mut object)?;
        let managing = Managing::Update { sent: managing::take(&mut object), name };
        self.check_place(&mut object)?;
        self.check_metadata(&mut object)?;
        defaults::fill(&mut object, &self.resource);
        self.complete(&mut object);
        let stored = self.server.store.write(|state| {
            let current = self.current(state)?;
            self.replace(state, &current, object, managing, dry_run)
        })?;
        Ok(with_warnings(self.show(StatusCode::OK, &stored)?, &warnings))
    }

    pub(super) fn patch(self) -> Answer {
        self.check_form()?;
        let dry_run = self.dry_run()?;
        if self.is_apply() {
            return self.apply(dry_run);
        }
        let name = self.patcher()?;
        let patch = Patch::read(&self)?;
        let mut warnings = Vec::new();
        let stored = self.server.store.write(|state| {
            let current = self.current(state)?;
            let mut object = current.value(&self.resource, &self.version.name);
            let uid = object["metadata"]["uid"].clone();
            patch.apply(&mut object)?;
            self.check_type(&mut object).map_err(unusable)?;
            warnings = self.check_fields(&mut object).map_err(unusable)?;
            let managing = Managing::Update { sent: managing::take(&mut object), name };
            self.check_place(&mut object)?;
            self.check_uid(&object, &uid)?;
            self.check_metadata(&mut object)?;
            defaults::fill(&mut object, &self.resource);
            self.complete(&mut object);
            self.replace(state, &current, object, managing, dry_run)
        })?;
        Ok(with_warnings(self.show(StatusCode::OK, &stored)?, &warnings))
    }

    /// What is patched stays the object that it is.
    pub(super) fn check_uid(&self, object: &Value, uid: &Value) -> Result<(), Status> {
        let Some(other) = object["metadata"].get("uid").filter(|other| *other != uid && !other.is_null())
        else {
            return Ok(());
        };
        let message = format!("Invalid value: {other}: field is immutable");
        let cause = StatusCause::new(StatusCause::FIELD_VALUE_INVALID, "metadata.uid", message);
        Err(self.invalid(object, [cause]))
    }

    /// Writes what an object becomes, which comes without managers. Nothing happens if that is what it was; and an object that is
    /// being deleted goes with its last finalizer.
    pub(super) fn replace(
        &self,
        state: &mut State,
        current: &Arc<Stored>,
        mut object: Value,
        managing: Managing,
        dry_run: bool,
    ) -> Result<Arc<Stored>, Status> {
        let name = current.key.name();
        let now = Timestamp::now();
        let mut before = current.value(&self.resource, &self.version.name);
        let sent = |field: &str| object["metadata"].get(field).and_then(Value::as_str).unwrap_or_default();
        let version = sent("resourceVersion");
        if !version.is_empty() && version != current.version.to_string() {
            return Err(self.conflict(name, MODIFIED));
        }
        let (uid, known) = (sent("uid"), before["metadata"]["uid"].as_str().unwrap_or_default());
        if !uid.is_empty() && uid != known {
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {known}");
            return Err(self.conflict(name, &why));
        }
        let known = managing::take(&mut before);
        let managers = match managing {
            Managing::Update { sent, name } => {
                self.managers_of_updated((&before, known.as_ref()), &object, (sent, name), now)
            }
            Managing::Known(managers) => managers,
        };
        if self.resource.group.is_empty() && self.resource.kind == "Service" {
            defaults::keep_address(&mut object, &before);
        }
        if self.part == Part::Status {
            rules::prepare_status_update(&mut object, &before);
        } else {
            rules::prepare_update(&mut object, &before, &self.resource, &self.version);
        }
        let unchanged = object == before && managing::is_same_but_times(managers.as_ref(), known.as_ref());
        managing::put(&mut object, managers);
        managing::put(&mut before, known);
        let deleting = before["metadata"].get("deletionTimestamp").is_some();
        if deleting {
            let held_by = rules::finalizers(&before);
            let new: Vec<String> = rules::finalizers(&object)
                .iter()
                .filter(|new| !held_by.contains(new))
                .map(|new| format!("{new:?}"))
                .collect();
            if !new.is_empty() {
                let message = format!(
                    "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    new.join(", ")
                );
                let cause =
                    StatusCause::new(StatusCause::FIELD_VALUE_FORBIDDEN, "metadata.finalizers", message);
                return Err(self.invalid(&object, [cause]));
            }
            if rules::finalizers(&object).is_empty() {
                self.check_empty(state, name)?;
                // The update is answered, but what is deleted is what was stored.
                self.remove(state, before, dry_run)?;
                return admission::unwritten(&self.resource, &self.version.name, &object);
            }
        }
        if unchanged {
            return Ok(Arc::clone(current));
        }
        self.put(state, object, dry_run, now)
    }

    /// Takes an object out of the store in its last state.
    pub(super) fn remove(
        &self,
        state: &mut State,
        mut last: Value,
        dry_run: bool,
    ) -> Result<Arc<Stored>, Status> {
        if dry_run {
            return admission::unwritten(&self.resource, &self.version.name, &last);
        }
        let stored = state.remove(self.id, &self.version.name, &mut last);
        if custom::defines_resources(&self.resource) {
            custom::withdraw(&last, state);
        }
        Ok(stored?)
    }
}

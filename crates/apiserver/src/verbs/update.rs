//! Update and patch: what an object becomes, given what it was.

use std::sync::Arc;

use http::StatusCode;
use informer_model::{Status, StatusCause};
use jiff::Timestamp;
use serde_json::Value;

use super::{Answer, Call, Part, create::with_warnings};
use crate::{
    custom, defaults, media, rules,
    store::{State, Stored},
};

/// What a client is told when somebody else was faster.
const MODIFIED: &str = "the object has been modified; please apply your changes to the latest version and try again";

/// A change of an object in one of the two formats that are served.
pub(super) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
}

impl Patch {
    /// Reads the body of a patch.
    pub(super) fn read(call: &Call<'_>) -> Result<Self, Status> {
        const JSON: &str = "application/json-patch+json";
        const MERGE: &str = "application/merge-patch+json";
        let bad = |e: serde_json::Error| Status::bad_request(format!("the patch cannot be read: {e}"));
        match media::content_type(call.headers) {
            Some(JSON) => serde_json::from_slice(&call.body).map(Self::Json).map_err(bad),
            Some(MERGE) => {
                let patch: Value = serde_json::from_slice(&call.body).map_err(bad)?;
                if patch.is_object() {
                    Ok(Self::Merge(patch))
                } else {
                    Err(Status::bad_request("a merge patch must be one object, written as {…}"))
                }
            }
            _ => Err(Status::unsupported_media_type(&[JSON, MERGE])),
        }
    }

    /// Applies the patch. A patch that does not fit is the client's mistake.
    pub(super) fn apply(&self, object: &mut Value, kind: &str, group: &str, name: &str) -> Result<(), Status> {
        match self {
            Self::Merge(patch) => json_patch::merge(object, patch),
            Self::Json(patch) => json_patch::patch(object, patch).map_err(|e| {
                let cause = StatusCause::new(StatusCause::FIELD_VALUE_INVALID, "patch", e.to_string());
                Status::invalid(kind, group, name, [cause])
            })?,
        }
        if object.is_object() {
            Ok(())
        } else {
            Err(Status::bad_request("the patch makes the object something else than an object"))
        }
    }
}

impl Call<'_> {
    pub(super) fn update(self) -> Answer {
        self.check_form()?;
        let dry_run = self.query.dry_run()?;
        let mut object = self.decode()?;
        self.check_type(&object)?;
        self.check_place(&mut object)?;
        let warnings = self.check_fields(&mut object)?;
        self.check_metadata(&mut object)?;
        defaults::fill(&mut object, &self.resource);
        let stored = self.server.store.write(|state| {
            let current = self.current(state)?;
            self.replace(state, &current, object, dry_run)
        })?;
        Ok(with_warnings(self.show(StatusCode::OK, &stored)?, &warnings))
    }

    pub(super) fn patch(self) -> Answer {
        self.check_form()?;
        let dry_run = self.query.dry_run()?;
        let patch = Patch::read(&self)?;
        let mut warnings = Vec::new();
        let stored = self.server.store.write(|state| {
            let current = self.current(state)?;
            let mut object = current.value(&self.resource, &self.version.name);
            patch.apply(&mut object, &self.resource.kind, &self.resource.group, current.key.name())?;
            self.check_type(&object)?;
            self.check_place(&mut object)?;
            warnings = self.check_fields(&mut object)?;
            self.check_metadata(&mut object)?;
            defaults::fill(&mut object, &self.resource);
            self.replace(state, &current, object, dry_run)
        })?;
        Ok(with_warnings(self.show(StatusCode::OK, &stored)?, &warnings))
    }

    /// Writes what an object becomes. Nothing happens if that is what it was; and an object that is being
    /// deleted goes with its last finalizer.
    pub(super) fn replace(
        &self,
        state: &mut State,
        current: &Arc<Stored>,
        mut object: Value,
        dry_run: bool,
    ) -> Result<Arc<Stored>, Status> {
        let name = current.key.name();
        let before = current.value(&self.resource, &self.version.name);
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
        if self.part == Part::Status {
            rules::prepare_status_update(&mut object, &before);
        } else {
            rules::prepare_update(&mut object, &before, &self.resource, &self.version);
        }
        let deleting = before["metadata"].get("deletionTimestamp").is_some();
        if deleting {
            let held_by = rules::finalizers(&before);
            if let Some(new) = rules::finalizers(&object).iter().find(|new| !held_by.contains(new)) {
                let message = format!(
                    "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizer {new:?}"
                );
                let cause = StatusCause::new(StatusCause::FIELD_VALUE_FORBIDDEN, "metadata.finalizers", message);
                return Err(self.invalid(&object, [cause]));
            }
            if rules::finalizers(&object).is_empty() {
                return self.remove(state, object, dry_run);
            }
        }
        if object == before {
            return Ok(Arc::clone(current));
        }
        self.put(state, object, dry_run, Timestamp::now())
    }

    /// Takes an object out of the store in its last state.
    pub(super) fn remove(
        &self,
        state: &mut State,
        mut last: Value,
        dry_run: bool,
    ) -> Result<Arc<Stored>, Status> {
        if dry_run {
            return self.unwritten(&last);
        }
        let stored = state.remove(self.id, &self.version.name, &mut last);
        if custom::defines_resources(&self.resource) {
            custom::withdraw(&last, state);
        }
        stored.map_err(|e| Status::bad_request(e.to_string()))
    }
}

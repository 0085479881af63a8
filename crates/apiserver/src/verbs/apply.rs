//! Server-side apply: a patch that says what its writer wants, and nothing of what it does not care for.

use std::sync::Arc;

use http::StatusCode;
use informer_model::{Reason, Status, StatusCause};
use informer_serving::options::invalid_options;
use jiff::Timestamp;
use serde_json::Value;

use super::{
    Answer, Call, Part,
    create::with_warnings,
    managing::{self, Managing},
};
use crate::{
    admission,
    apply::{Manager, Managers, NotApplied, Operation},
    manifests, media,
    store::Stored,
};

/// What such a patch says that it is.
pub(super) const MEDIA_TYPE: &str = "application/apply-patch+yaml";

/// Who applied by itself once, and left in an annotation what.
const KUBECTL: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What was applied to an object on the side of the client.
fn last_applied(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"].get(LAST_APPLIED)?.as_str().filter(|last| !last.is_empty())
}

impl Call<'_> {
    pub(super) fn is_apply(&self) -> bool {
        media::content_type(self.headers) == Some(MEDIA_TYPE)
    }

    /// The name under which another patch writes.
    pub(super) fn patcher(&self) -> Result<String, Status> {
        if self.query.get("force").is_some() {
            let message = "Forbidden: may not be specified for non-apply patch";
            let cause = StatusCause::new(StatusCause::FIELD_VALUE_FORBIDDEN, "force", message);
            return Err(invalid_options("PatchOptions", [cause]));
        }
        self.manager("PatchOptions")
    }

    /// The name under which this request applies, and whether it takes what others have.
    pub(super) fn applier(&self) -> Result<(String, bool), Status> {
        if self.query.get("fieldManager").is_none_or(str::is_empty) {
            let message = "Required value: is required for apply patch";
            let cause = StatusCause::new(StatusCause::FIELD_VALUE_REQUIRED, "fieldManager", message);
            return Err(invalid_options("PatchOptions", [cause]));
        }
        Ok((self.manager("PatchOptions")?, self.query.switch("force") == Some(true)))
    }

    /// The configuration in the body.
    pub(super) fn configuration(&self, api_version: &str, kind: &str) -> Result<Value, Status> {
        let bad = |why: &dyn std::fmt::Display| Status::bad_request(format!("error decoding patch: {why}"));
        let body = &self.body;
        // JSON is YAML too, but its own parser is faster.
        let config: Value = match serde_json::from_slice(body) {
            Ok(config) => config,
            Err(_) => manifests::reading_yaml(|options| serde_saphyr::from_slice_with_options(body, options))
                .map_err(|error: serde_saphyr::Error| bad(&error))?,
        };
        let what = match &config {
            Value::Object(_) => "",
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
            Value::Null => "null",
        };
        if !what.is_empty() {
            return Err(bad(&format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
            )));
        }
        let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
        if (text("apiVersion"), text("kind")) != (api_version, kind) {
            let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
            return Err(Status::bad_request(format!(
                "invalid object type: {group}/{version}, Kind={}",
                text("kind")
            )));
        }
        if config["metadata"].get("managedFields").is_some_and(|managed| !managed.is_null()) {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        Ok(config)
    }

    /// Checks that a configuration has the fields of its kind and no others.
    fn check_configuration(&self, config: &Value) -> Result<(), Status> {
        let unknown = admission::check_types(&self.resource, &self.version.name, config)
            .map_err(|status| self.untyped(config, &status.message))?;
        match unknown.first() {
            Some(path) => Err(self.untyped(config, &format!(".{path}: field not declared in schema"))),
            None => Ok(()),
        }
    }

    /// The failure of a server that finds a configuration not to be of its kind.
    fn untyped(&self, config: &Value, why: &str) -> Status {
        let text = |field: &str| config["metadata"].get(field).and_then(Value::as_str).unwrap_or_default();
        let api_version = self.resource.api_version(&self.version.name);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let message = format!(
            "failed to create typed patch object ({}/{}; {group}/{version}, Kind={}): {why}",
            text("namespace"),
            text("name"),
            self.resource.kind
        );
        let mut status = Status::failure(Reason::Unknown, message);
        status.code = 500;
        status
    }

    pub(super) fn apply(self, dry_run: bool) -> Answer {
        let (name, force) = self.applier()?;
        let api_version = self.resource.api_version(&self.version.name);
        let config = self.configuration(&api_version, &self.resource.kind)?;
        self.check_configuration(&config)?;
        let mut warnings = Vec::new();
        let (code, stored) = self.server.store.write(|state| {
            self.still_served(state)?;
            let Some(current) = state.get(self.id, &self.key()?) else {
                if self.part != Part::Whole {
                    return Err(self.not_found());
                }
                let (object, managers) = self.merged(self.empty_object(), None, &config, (name, force))?;
                let mut object = self.usable(object, &mut warnings)?;
                // A version of what is not there means nothing.
                crate::rules::metadata(&mut object).remove("resourceVersion");
                if let Some(uid) = object["metadata"].get("uid").and_then(Value::as_str) {
                    let why = format!(
                        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                    );
                    return Err(self.conflict(self.place.name.as_deref().unwrap_or_default(), &why));
                }
                let new = self.prepare(object, Managing::Known(managers))?;
                return Ok((StatusCode::CREATED, self.insert(state, new, dry_run)?));
            };
            let (object, managers) = self.applied(&current, &config, (name, force))?;
            let mut object = self.usable(object, &mut warnings)?;
            let live = current.value(&self.resource, &self.version.name);
            self.check_uid(&object, &live["metadata"]["uid"])?;
            self.check_metadata(&mut object)?;
            crate::defaults::fill(&mut object, &self.resource);
            self.complete(&mut object);
            let managing = Managing::Known(managers);
            Ok((StatusCode::OK, self.replace(state, &current, object, managing, dry_run)?))
        })?;
        Ok(with_warnings(self.show(code, &stored)?, &warnings))
    }

    /// Checks that what was merged is an object of its kind and in its place.
    fn usable(&self, mut object: Value, warnings: &mut Vec<String>) -> Result<Value, Status> {
        self.check_type(&mut object)?;
        *warnings = self.check_fields(&mut object)?;
        self.check_place(&mut object)?;
        Ok(object)
    }

    /// What an object becomes, and who manages it then.
    pub(super) fn applied(
        &self,
        current: &Arc<Stored>,
        config: &Value,
        applier: (String, bool),
    ) -> Result<(Value, Option<Value>), Status> {
        let mut live = current.value(&self.resource, &self.version.name);
        let managers = managing::take(&mut live).and_then(Managers::read);
        self.merged(live, managers, config, applier)
    }

    fn merged(
        &self,
        live: Value,
        managers: Option<Managers>,
        config: &Value,
        (name, force): (String, bool),
    ) -> Result<(Value, Option<Value>), Status> {
        let by_kubectl = name == KUBECTL;
        let mut applied = self.writing(name, Operation::Apply, Timestamp::now(), |writer| {
            let applied = writer.apply(&live, config, managers.clone(), force);
            match (applied, last_applied(&live).filter(|_| by_kubectl)) {
                (Err(NotApplied::Conflicts(mut conflicts)), Some(last)) => {
                    // What kubectl has applied by itself, and is so still, is its own.
                    let last: Value = serde_json::from_str(last).unwrap_or_default();
                    let own = match last["apiVersion"] == config["apiVersion"] {
                        true => writer.unchanged(&last, &live),
                        false => Vec::new(),
                    };
                    conflicts.retain(|(_, path)| !own.contains(path));
                    match conflicts.is_empty() {
                        true => writer.apply(&live, config, managers, true),
                        false => Err(NotApplied::Conflicts(conflicts)),
                    }
                }
                (applied, _) => applied,
            }
        });
        if let Ok((object, _)) = &mut applied
            && by_kubectl
            && last_applied(object).is_some()
        {
            let mut config = config.clone();
            if let Some(annotations) =
                config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
            {
                annotations.remove(LAST_APPLIED);
            }
            object["metadata"]["annotations"][LAST_APPLIED] = format!("{config}\n").into();
        }
        match applied {
            Ok((object, managers)) => Ok((object, managers.write())),
            Err(NotApplied::Conflicts(conflicts)) => Err(conflict(&conflicts)),
            Err(NotApplied::Unfit(why)) => Err(self.untyped(config, &why.to_string())),
        }
    }
}

/// 409: others have these fields.
fn conflict(conflicts: &[(Manager, String)]) -> Status {
    let causes = conflicts.iter().map(|(manager, path)| {
        let message = format!("conflict with {}", manager.described());
        StatusCause::new(StatusCause::FIELD_MANAGER_CONFLICT, path, message)
    });
    let message = match conflicts {
        [(manager, path)] => {
            format!("Apply failed with 1 conflict: conflict with {}: {path}", manager.described())
        }
        several => {
            let mut managers: Vec<&Manager> = Vec::new();
            for (manager, _) in several {
                if !managers.iter().any(|known| known.is(manager)) {
                    managers.push(manager);
                }
            }
            managers.sort_by_cached_key(|manager| manager.identity());
            let mut lines = Vec::new();
            for manager in managers {
                lines.push(format!("conflicts with {}:", manager.described()));
                let own = several.iter().filter(|(other, _)| manager.is(other));
                lines.extend(own.map(|(_, path)| format!("- {path}")));
            }
            format!("Apply failed with {} conflicts: {}", several.len(), lines.join("\n"))
        }
    };
    Status::apply_conflict(message, causes)
}

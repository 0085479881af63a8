//! The object in the body of a write: is it what the path says, and what its kind allows?

use informer_model::{Status, StatusCause, complete_fields};
use informer_serving::options::{invalid_options, unsupported};
use serde_json::Value;

use super::Call;
use crate::{admission, fields, media, rules};

/// What to do about fields that the kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl Call<'_> {
    /// The object in the body.
    pub(super) fn decode(&self) -> Result<Value, Status> {
        media::decode(self.headers, &self.body)
    }

    /// Whether the write is only to be tried: `dryRun=All`.
    pub(super) fn dry_run(&self) -> Result<bool, Status> {
        match self.query.get("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(invalid_options("CreateOptions", [unsupported("dryRun", [other], &["All"])])),
        }
    }

    /// Checks that an object is of the kind that the path says. A built-in one may leave that to the path.
    pub(super) fn check_type(&self, object: &mut Value) -> Result<(), Status> {
        let expected = self.resource.api_version(&self.version.name);
        if let Some(fields) = object.as_object_mut().filter(|_| !self.resource.custom) {
            fields.entry("kind").or_insert_with(|| self.resource.kind.as_str().into());
            fields.entry("apiVersion").or_insert_with(|| expected.as_str().into());
        }
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        if kind.is_empty() || api_version.is_empty() {
            let missing = if kind.is_empty() { "kind" } else { "apiVersion" };
            return Err(Status::bad_request(format!(
                "the object in the body has no {missing}; expected apiVersion {expected:?} and kind {:?}",
                self.resource.kind
            )));
        }
        if self.resource.custom && kind != self.resource.kind {
            let message = format!("Invalid value: {kind:?}: must be {}", self.resource.kind);
            let cause = StatusCause::new(StatusCause::FIELD_VALUE_INVALID, "kind", message);
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            return Err(Status::invalid(&kind, &self.resource.group, name, [cause]));
        }
        if kind != self.resource.kind || api_version != expected {
            return Err(Status::bad_request(format!(
                "{kind} in version {api_version:?} cannot be handled as a {}: expected apiVersion {expected:?} and kind {:?}",
                self.resource.kind, self.resource.kind
            )));
        }
        Ok(())
    }

    /// Checks that an object is where the path says, and puts it there if it does not say.
    pub(super) fn check_place(&self, object: &mut Value) -> Result<(), Status> {
        let namespace = self.place.namespace.as_deref();
        let metadata = rules::metadata(object);
        let own = metadata.get("namespace").and_then(Value::as_str).filter(|own| !own.is_empty());
        match (own, namespace) {
            (Some(own), Some(namespace)) if own != namespace => {
                return Err(Status::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            (_, Some(namespace)) => drop(metadata.insert("namespace".into(), namespace.into())),
            (_, None) => drop(metadata.remove("namespace")),
        }
        let Some(name) = self.place.name.as_deref() else { return Ok(()) };
        match metadata.get("name").and_then(Value::as_str).filter(|own| !own.is_empty()) {
            Some(own) if own != name => Err(Status::bad_request(format!(
                "the name of the object ({own}) does not match the name on the URL ({name})"
            ))),
            Some(_) => Ok(()),
            None => Err(Status::bad_request(format!(
                "the object in the body has no name: it must be the one on the URL ({name})"
            ))),
        }
    }

    /// Checks metadata, after taking out what is empty there.
    pub(super) fn check_metadata(&self, object: &mut Value) -> Result<(), Status> {
        admission::check_metadata(&self.resource, object)
    }

    /// Writes a built-in object as a server does, with all that is always shown.
    pub(super) fn complete(&self, object: &mut Value) {
        if !self.resource.custom {
            complete_fields(&self.resource.api_version(&self.version.name), &self.resource.kind, object);
        }
    }

    /// The object breaks the rules of its kind.
    pub(super) fn invalid(&self, object: &Value, causes: impl IntoIterator<Item = StatusCause>) -> Status {
        admission::invalid(&self.resource, object, causes)
    }

    /// Checks the fields of a built-in object, or the metadata of a custom one, takes out those that it cannot
    /// have, and returns what the client should be told about them.
    pub(super) fn check_fields(&self, object: &mut Value) -> Result<Vec<String>, Status> {
        let validation = match self.query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let causes = [unsupported("fieldValidation", other, &["", "Ignore", "Strict", "Warn"])];
                return Err(invalid_options("CreateOptions", causes));
            }
        };
        let (version, kind) = (&self.version.name, &self.resource.kind);
        let unknown = admission::check_types(&self.resource, version, object)?;
        let warnings: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
        if validation == FieldValidation::Strict && !unknown.is_empty() {
            return Err(Status::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
                warnings.join(", ")
            )));
        }
        fields::prune(object, &unknown);
        Ok(if validation == FieldValidation::Warn { warnings } else { Vec::new() })
    }
}

//! What every write must pass, whoever it comes from: a request, a manifest, or the program that the server is in.

use std::sync::Arc;

use informer_model::{ObjectKey, Status, StatusCause};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    catalog::Resource,
    custom, fields, rules,
    store::{CollectionId, State, Stored},
};

/// Checks that the fields of a built-in object have the types that its kind gives them; of a custom one, those of its
/// metadata. Returns the paths of fields that it cannot have.
pub(crate) fn check_types(resource: &Resource, version: &str, object: &Value) -> Result<Vec<String>, Status> {
    let (group, kind) = (&resource.group, &resource.kind);
    let checked = if resource.custom {
        fields::check_metadata(object)
    } else {
        fields::check(group, version, kind, object)
    };
    checked.map_err(|why| {
        Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
    })
}

/// Checks metadata, after taking out what is empty there.
pub(crate) fn check_metadata(resource: &Resource, object: &mut Value) -> Result<(), Status> {
    let broken = rules::check_metadata(object, resource);
    if broken.is_empty() { Ok(()) } else { Err(invalid(resource, object, broken)) }
}

/// The object breaks the rules of its kind.
pub(crate) fn invalid(
    resource: &Resource,
    object: &Value,
    causes: impl IntoIterator<Item = StatusCause>,
) -> Status {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Status::invalid(&resource.kind, &resource.group, name, causes)
}

/// Objects are written only in namespaces that exist.
pub(crate) fn check_namespace(state: &State, namespace: Option<&str>) -> Result<(), Status> {
    let Some(namespace) = namespace else { return Ok(()) };
    let known = state
        .find("", "namespaces")
        .and_then(|(id, _)| state.get(id, &ObjectKey::new(None, namespace).ok()?));
    known.map(drop).ok_or_else(|| Status::not_found("namespaces", "", namespace))
}

/// Writes an object that has passed the checks, or shows what would have been written. What it defines is served.
pub(crate) fn put(
    state: &mut State,
    (id, resource): (CollectionId, &Resource),
    version: &str,
    mut object: Value,
    dry_run: bool,
    now: Timestamp,
) -> Result<Arc<Stored>, Status> {
    let defined =
        custom::defines_resources(resource).then(|| custom::prepare(&mut object, state, now)).transpose()?;
    if dry_run {
        return unwritten(resource, version, &object);
    }
    let stored = state.put(id, version, &mut object)?;
    if let Some(resource) = defined {
        state.serve(resource);
    }
    Ok(stored)
}

/// An object as it would be, for the answer to a dry run.
pub(crate) fn unwritten(resource: &Resource, version: &str, object: &Value) -> Result<Arc<Stored>, Status> {
    let number = object["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse().ok()).unwrap_or(0);
    let stored = Stored::new(resource, version, number, object);
    stored.map(Arc::new).map_err(|e| Status::bad_request(e.to_string()))
}

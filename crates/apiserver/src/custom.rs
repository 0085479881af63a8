//! Custom resources: a CustomResourceDefinition is served as soon as it is written, until it is deleted.

use informer_model::{ObjectKey, Status, StatusCause};
use jiff::Timestamp;
use serde_json::Value;

use crate::{builtin, catalog::Resource, store::State};

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

/// Whether the objects of a resource define resources.
pub(crate) fn defines_resources(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == PLURAL
}

/// Completes a definition and says which resource it defines.
pub(crate) fn prepare(definition: &mut Value, state: &State, now: Timestamp) -> Result<Resource, Status> {
    builtin::default_crd(definition);
    let resource = builtin::from_crd(definition)?;
    check_unchanged(definition, state)?;
    if let Some((_, known)) = state.find(&resource.group, &resource.plural).filter(|(_, known)| !known.custom)
    {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let why = format!("{}.{} is built in", known.plural, known.group);
        return Err(Status::conflict(PLURAL, GROUP, name, why));
    }
    definition["status"] = builtin::established_crd_status(definition, now);
    Ok(resource)
}

/// What a definition that is being served may not change.
fn check_unchanged(definition: &Value, state: &State) -> Result<(), Status> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let known = state.find(GROUP, PLURAL).and_then(|(id, resource)| {
        let stored = state.get(id, &ObjectKey::new(None, name).ok()?)?;
        Some(stored.value(&resource, stored.encoded_in()))
    });
    let Some(known) = known else { return Ok(()) };
    let changed = ["/spec/scope", "/spec/names/kind"]
        .into_iter()
        .filter(|field| definition.pointer(field) != known.pointer(field));
    let causes: Vec<StatusCause> = changed
        .map(|field| {
            let value = definition.pointer(field).unwrap_or(&Value::Null);
            let message = format!("Invalid value: {value}: field is immutable");
            let field = field.trim_start_matches('/').replace('/', ".");
            StatusCause::new(StatusCause::FIELD_VALUE_INVALID, field, message)
        })
        .collect();
    if causes.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid("CustomResourceDefinition", GROUP, name, causes))
    }
}

/// Serves no longer what a definition defined.
pub(crate) fn withdraw(definition: &Value, state: &mut State) {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    state.withdraw(text("/spec/group"), text("/spec/names/plural"));
}

/// Serves exactly the custom resources that the definitions in the store define.
pub(crate) fn refresh(state: &mut State) {
    let Some((id, crds)) = state.find(GROUP, PLURAL) else { return };
    let definitions = state.objects(id);
    let version = crds.versions.first().map(|version| version.name.clone()).unwrap_or_default();
    let defined: Vec<Resource> = definitions
        .values()
        .filter_map(|definition| builtin::from_crd(&definition.value(&crds, &version)).ok())
        .collect();
    for known in state.catalog().iter().filter(|known| known.custom) {
        if !defined.iter().any(|new| (&new.group, &new.plural) == (&known.group, &known.plural)) {
            state.withdraw(&known.group, &known.plural);
        }
    }
    defined.into_iter().for_each(|resource| state.serve(resource));
}

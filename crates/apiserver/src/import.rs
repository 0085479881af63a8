//! Writes that are not requests: how clusters are loaded, generated and kept in motion.

use std::sync::Arc;

use informer_model::{ObjectKey, Status};
use informer_serving::path::no_such_path;
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    admission,
    catalog::Resource,
    defaults, rules,
    server::Server,
    store::{CollectionId, State, Stored},
};

/// What is checked of the fields of an imported object, beside its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fields {
    /// Each has the type that its kind gives it, as in a request.
    Checked,
    /// Nothing: the way to a corrupt object.
    AsTheyAre,
}

impl Server {
    /// Writes an object as it is, status and all, over what is there under its name. It passes the checks of a request
    /// to create it, but may say what in a request is the server's to say: its uid, its times, its version.
    pub(crate) fn import(&self, mut object: Value, fields: Fields) -> Result<Arc<Stored>, Status> {
        let now = Timestamp::now();
        self.store.write(|state| {
            let (id, resource, version) = served(state, &object)?;
            if fields == Fields::Checked {
                admission::check_types(&resource, &version, &object)?;
            }
            let metadata = rules::metadata(&mut object);
            if resource.namespaced {
                let namespace = metadata.entry("namespace").or_insert(Value::Null);
                if namespace.is_null() || namespace == "" {
                    *namespace = "default".into();
                }
            } else {
                metadata.remove("namespace");
            }
            // What is written again stays the object that it was.
            let text = |field: &str| metadata.get(field).and_then(Value::as_str);
            let key = ObjectKey::new(text("namespace"), text("name").unwrap_or_default());
            let known = key.ok().and_then(|key| state.get(id, &key));
            let known =
                known.map(|known| known.value(&resource, &version)["metadata"].take()).unwrap_or_default();
            let kept = |field: &str| known.get(field).filter(|value| value.is_string()).cloned();
            let uid = || kept("uid").unwrap_or_else(|| self.new_uid().into());
            let created = || kept("creationTimestamp").unwrap_or_else(|| rules::time(now));
            metadata.entry("uid").or_insert_with(uid);
            metadata.entry("creationTimestamp").or_insert_with(created);
            admission::check_metadata(&resource, &mut object)?;
            if object["metadata"].get("name").is_none() {
                // No name is generated here: what is imported twice would be there twice.
                let kind = &resource.kind;
                return Err(Status::bad_request(format!("an object of kind {kind} has no metadata.name")));
            }
            defaults::fill(&mut object, &resource);
            defaults::fill_status(&mut object, &resource, now);
            admission::check_namespace(state, object["metadata"]["namespace"].as_str())?;
            admission::put(state, (id, &resource), &version, object, false, now)
        })
    }
}

/// The resource that an object says it is of, and the version that it is written in.
fn served(state: &State, object: &Value) -> Result<(CollectionId, Arc<Resource>, String), Status> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let catalog = state.catalog();
    let resource = catalog.iter().find(|resource| resource.kind == kind && resource.group == group);
    let resource = resource.filter(|resource| resource.version(version).is_some()).ok_or_else(|| {
        Status::bad_request(format!("no resource of kind {kind:?} in version {api_version:?} is served"))
    })?;
    let (id, resource) = state.find(&resource.group, &resource.plural).ok_or_else(no_such_path)?;
    Ok((id, resource, version.to_owned()))
}

//! Server-side apply that sends nothing where nothing would change.

use std::{
    collections::hash_map::RandomState,
    fmt::Debug,
    hash::BuildHasher,
    sync::{Mutex, MutexGuard, PoisonError},
};

use hashbrown::HashMap;
use informer_model::{MergeType, Merging, ObjectKey};
use kube::{
    Resource,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{OperationResult, WriteError, Writes};
use crate::{Object, ObjectError, store::Store};

/// So many are remembered before it is looked which of them can be forgotten.
const FEW: usize = 64;

/// What was applied last, by object and by who applied what part of it.
#[derive(Default)]
pub(super) struct AppliedConfigurations {
    known: Mutex<HashMap<(ObjectKey, u64), Applied>>,
    /// Nobody can make up two values that are taken for one.
    hasher: RandomState,
}

/// A configuration, and what the object had at the fields that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Applied {
    uid: Option<String>,
    configuration: u64,
    /// The newest version that was as it was applied.
    version: Option<String>,
    /// What was found there: in the cache if it has shown that version, which may keep less of an object than the server.
    found: u64,
    in_cache: bool,
}

impl AppliedConfigurations {
    fn lock(&self) -> MutexGuard<'_, HashMap<(ObjectKey, u64), Applied>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What of an object a configuration is about.
    fn applied<K: Resource + Serialize>(
        &self,
        configuration: &Value,
        object: &K,
        in_cache: bool,
    ) -> Result<Applied, WriteError> {
        let value = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
        let text = |field: &str| configuration.get(field).and_then(Value::as_str).unwrap_or_default();
        let found = found(MergeType::of_kind(text("apiVersion"), text("kind")), configuration, Some(&value));
        let meta = object.meta();
        Ok(Applied {
            uid: meta.uid.clone(),
            configuration: self.hash(configuration),
            version: meta.resource_version.clone(),
            found: self.hash(&found),
            in_cache,
        })
    }

    /// Whether an object in the cache is still as the configuration has made it.
    fn is_applied<K: Resource + Serialize>(
        &self,
        at: &(ObjectKey, u64),
        configuration: &Value,
        now: &K,
    ) -> Result<bool, WriteError> {
        let Some(known) = self.lock().get(at).cloned() else { return Ok(false) };
        if known.uid != now.meta().uid || known.configuration != self.hash(configuration) {
            return Ok(false);
        }
        let same_version = known.version == now.meta().resource_version;
        if same_version && known.in_cache {
            return Ok(true);
        }
        let applied = self.applied(configuration, now, true)?;
        let is_applied = same_version || applied.found == known.found;
        if is_applied {
            self.lock().insert(at.clone(), applied);
        }
        Ok(is_applied)
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn hash(&self, value: &Value) -> u64 {
        self.hasher.hash_one(value.to_string())
    }

    fn remember<K: Resource + 'static>(&self, at: (ObjectKey, u64), applied: Applied, store: &Store<K>) {
        let mut known = self.lock();
        known.insert(at, applied);
        if known.len() >= FEW && known.len() == known.capacity() {
            known.retain(|(key, _), applied| store.get(key).is_some_and(|now| now.meta().uid == applied.uid));
        }
    }
}

/// What an object has at the fields that a configuration names. Items of lists are found by their keys where these are known, and
/// otherwise a list counts as a whole.
fn found(r#type: Option<MergeType>, configuration: &Value, object: Option<&Value>) -> Value {
    let field = |name: &str| match r#type?.merging() {
        Merging::Map(entry) => Some(entry),
        _ => r#type?.field(name),
    };
    match (configuration, object) {
        (Value::Object(fields), Some(Value::Object(there))) if !fields.is_empty() => fields
            .iter()
            .map(|(name, value)| (name.clone(), found(field(name), value, there.get(name))))
            .collect(),
        (Value::Array(items), Some(Value::Array(there))) => match r#type.map(MergeType::merging) {
            Some(Merging::Set) => items
                .iter()
                .map(|item| if there.contains(item) { item.clone() } else { Value::Null })
                .collect(),
            Some(Merging::Keyed(keys, r#type)) => items
                .iter()
                .map(|item| {
                    let same = |other: &&Value| {
                        let of = |value: &Value, key: &informer_model::MergeKey| {
                            value.get(key.name).cloned().or_else(|| key.default.clone())
                        };
                        keys.iter().all(|key| of(item, key) == of(other, key))
                    };
                    found(Some(r#type), item, there.iter().find(same))
                })
                .collect(),
            _ => Value::Array(there.clone()),
        },
        (_, there) => there.cloned().unwrap_or_default(),
    }
}

impl<K> Writes<K>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    /// Applies a configuration on the side of the server: the object gets what the configuration says, and keeps what others say. What the
    /// same [manager](PatchParams::field_manager) has applied before and leaves out now is removed. The answer is the object as it is then.
    ///
    /// Nothing is sent if the same configuration was applied before to the object that the cache has, and the object still has what the server
    /// made of it: exactly at the fields that the configuration names. (The items of a list are told apart by their keys in built-in kinds; of
    /// other kinds lists count as a whole.) What others do to other fields does not count.
    ///
    /// Somebody else may have another value in one of the fields: that is a [conflict](WriteError::is_conflict), unless the parameters force.
    ///
    /// ```
    /// use informer::client::{WriteError, Writes};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::PatchParams;
    ///
    /// async fn paint(maps: &Writes<ConfigMap>) -> Result<(), WriteError> {
    ///     let blue = serde_json::json!({ "metadata": { "namespace": "default", "name": "colours" }, "data": { "sky": "blue" } });
    ///     let (result, map) = maps.apply(&PatchParams::apply("painter").force(), &blue).await?;
    ///     println!("{result:?}: {:?}", map.metadata.resource_version);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// What is remembered is in this process: after a start everything is sent once, and changes nothing on the server where it was applied
    /// already. What is not noticed is what cannot be seen in the values: that `managedFields` were reset, or that a field was changed, and changed
    /// back by an update, before the cache showed it. The field is its last writer's then. As soon as it has another value, or none, it is applied again.
    pub async fn apply<P: Serialize>(
        &self,
        params: &PatchParams,
        configuration: &P,
    ) -> Result<(OperationResult, Object<K>), WriteError> {
        self.apply_part(params, configuration, false).await
    }

    /// The same for the status of an object, which must be there.
    pub async fn apply_status<P: Serialize>(
        &self,
        params: &PatchParams,
        configuration: &P,
    ) -> Result<(OperationResult, Object<K>), WriteError> {
        self.apply_part(params, configuration, true).await
    }

    async fn apply_part<P: Serialize>(
        &self,
        params: &PatchParams,
        configuration: &P,
        status: bool,
    ) -> Result<(OperationResult, Object<K>), WriteError> {
        let mut configuration = serde_json::to_value(configuration).map_err(kube::Error::SerdeError)?;
        for (field, value) in [("apiVersion", K::api_version(self.kind())), ("kind", K::kind(self.kind()))] {
            if configuration.get(field).is_none_or(Value::is_null) && configuration.is_object() {
                configuration[field] = json!(value);
            }
        }
        let key = key_in(&configuration)?;
        let now = self.lister().get_opt(&key).await?;
        let applied = self.applied();
        let role = applied.hasher.hash_one((params.field_manager.as_deref(), status));
        let at = (key, role);
        if let Some(now) = now.as_ref().filter(|_| !params.dry_run)
            && applied.is_applied(&at, &configuration, &**now)?
        {
            return Ok((OperationResult::None, now.clone()));
        }
        let patch = Patch::Apply(&configuration);
        let answer = match status {
            true => self.patch_status(&at.0, params, &patch).await?,
            false => self.patch(&at.0, params, &patch).await?,
        };
        if !params.dry_run {
            applied.remember(at, applied.applied(&configuration, &answer, false)?, self.store());
        }
        let object = Object::new(answer)?;
        let result = match now {
            None => OperationResult::Created,
            Some(now) if now.resource_version() == object.resource_version() => OperationResult::None,
            Some(_) => OperationResult::Updated,
        };
        Ok((result, object))
    }
}

/// The key of the object that a configuration is about.
fn key_in(configuration: &Value) -> Result<ObjectKey, ObjectError> {
    let text = |field: &str| configuration.get("metadata")?.get(field)?.as_str();
    let namespace = text("namespace");
    let Some(name) = text("name") else {
        return Err(ObjectError::NoName { namespace: namespace.map(str::to_owned) });
    };
    Ok(ObjectKey::new(namespace, name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_what_the_configuration_names() {
        let pod = json!({
            "metadata": { "labels": { "a": "1", "b": "2" }, "finalizers": ["x", "y"] },
            "spec": { "nodeName": "n", "tolerations": [{ "key": "k" }], "containers": [
                { "name": "side", "image": "s" }, { "name": "main", "image": "m:1", "resources": { "limits": { "cpu": "1" } } },
            ] },
        });
        let configuration = json!({
            "metadata": { "labels": { "a": "0", "gone": "0" }, "finalizers": ["y", "z"] },
            "spec": { "tolerations": [], "containers": [{ "name": "main", "resources": { "limits": { "cpu": "1000m" } } }] },
        });
        let expected = json!({
            "metadata": { "labels": { "a": "1", "gone": null }, "finalizers": ["y", null] },
            "spec": { "tolerations": [{ "key": "k" }], "containers": [{ "name": "main", "resources": { "limits": { "cpu": "1" } } }] },
        });
        assert_eq!(found(MergeType::of_kind("v1", "Pod"), &configuration, Some(&pod)), expected);
        let list = json!({ "spec": { "items": [{ "name": "b" }, { "name": "a", "more": 1 }] } });
        let named = json!({ "spec": { "items": [{ "name": "a" }] } });
        assert_eq!(found(None, &named, Some(&list)), list, "as a whole");
    }
}

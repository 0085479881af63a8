//! What has to be cleaned up before an object may go.

use std::{fmt, fmt::Debug, future::Future};

use informer_model::validate_label_key;
use kube::{
    Resource,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::Action;
use crate::{
    Object,
    client::{WriteError, Writes},
};

/// What is to be done about an object that has our finalizer.
pub enum FinalizerEvent<K> {
    /// Bring the world to what it asks for. Whatever this makes is cleaned up some day.
    Apply(Object<K>),
    /// It is being deleted: clean up. This may come again for what is clean already.
    Cleanup(Object<K>),
}

/// Why a call with a finalizer failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinalizerError<E: fmt::Display> {
    /// What was to be done failed. The finalizer stays.
    #[error("{0}")]
    Work(E),
    /// The finalizer could not be added or removed.
    #[error("the finalizer could not be written: {0}")]
    Write(WriteError),
    /// No server takes this name.
    #[error("{name:?} is no name of a finalizer: it is a domain and a name, like example.com/website")]
    Name {
        /// What was given.
        name: String,
    },
}

/// Does the work of a controller for an object that must not go before it is cleaned up.
///
/// The finalizer is on the server before [`Apply`](FinalizerEvent::Apply) is called for the first time, and removed when
/// [`Cleanup`](FinalizerEvent::Cleanup) has succeeded. So wherever a process ends in between, the next call goes on: nothing that was applied
/// is left behind. An object that is being deleted and does not have the finalizer is left alone. Other finalizers stay.
///
/// With several processes of which one leads, the writes should be [fenced](Writes::fenced): the cache of a new leader may be behind what an earlier one has
/// cleaned up. Then a term works only for objects that it has written, or that the cache shows after something that it has written; into
/// another one it writes itself first, and that is refused if the object has changed.
///
/// The object is the one that the cache has; it is written only if nobody has changed it since ([`is_conflict`](WriteError::is_conflict)), so that no
/// finalizer of anybody else is lost.
///
/// ```
/// use informer::{Object, client::Writes, controller::{Action, FinalizerError, FinalizerEvent, finalizer}};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// async fn reconcile(maps: &Writes<ConfigMap>, map: &Object<ConfigMap>) -> Result<Action, FinalizerError<std::io::Error>> {
///     finalizer(maps, "example.com/files", map, async |event| {
///         match event {
///             FinalizerEvent::Apply(map) => std::fs::write(map.key().name(), "made for a config map")?,
///             FinalizerEvent::Cleanup(map) => std::fs::remove_file(map.key().name())?,
///         }
///         Ok(Action::AwaitChange)
///     }).await
/// }
/// ```
pub async fn finalizer<K, F, R, E>(
    writes: &Writes<K>,
    name: &str,
    object: &Object<K>,
    work: F,
) -> Result<Action, FinalizerError<E>>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
    F: FnOnce(FinalizerEvent<K>) -> R,
    R: Future<Output = Result<Action, E>>,
    E: fmt::Display,
{
    if !name.contains('/') || validate_label_key(name).is_err() {
        return Err(FinalizerError::Name { name: name.to_owned() });
    }
    let mut finalizers = object.meta().finalizers.clone().unwrap_or_default();
    let has = finalizers.iter().any(|other| other == name);
    match (object.meta().deletion_timestamp.is_some(), has) {
        (true, false) => Ok(Action::AwaitChange),
        (true, true) => {
            let action = work(FinalizerEvent::Cleanup(object.clone())).await.map_err(FinalizerError::Work)?;
            if action != Action::AwaitChange {
                // It is not clean yet.
                return Ok(action);
            }
            finalizers.retain(|other| other != name);
            match set(writes, object, &finalizers).await {
                Err(error) if error.is_not_found() => {}
                removed => drop(removed.map_err(FinalizerError::Write)?),
            }
            Ok(Action::AwaitChange)
        }
        (false, true) => {
            // It may be cleaned up and gone, by an earlier leader: then nobody would clean up again.
            let object = writes.in_this_term(object).await.map_err(FinalizerError::Write)?;
            work(FinalizerEvent::Apply(object)).await.map_err(FinalizerError::Work)
        }
        (false, false) => {
            finalizers.push(name.to_owned());
            let object = set(writes, object, &finalizers).await.map_err(FinalizerError::Write)?;
            // Somebody may have deleted it in between: then the next call is about that.
            if object.meta().deletion_timestamp.is_some() {
                return Ok(Action::AwaitChange);
            }
            work(FinalizerEvent::Apply(object)).await.map_err(FinalizerError::Work)
        }
    }
}

/// Writes finalizers to the version of an object that was seen.
async fn set<K>(
    writes: &Writes<K>,
    object: &Object<K>,
    finalizers: &[String],
) -> Result<Object<K>, WriteError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    let meta = object.meta();
    let patch = json!({ "metadata": {
        "finalizers": finalizers, "uid": meta.uid, "resourceVersion": meta.resource_version,
    } });
    let answer = writes.patch(object.key(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(Object::new(answer)?)
}

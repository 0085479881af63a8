//! Writes that send nothing where nothing changes.

use std::{fmt::Debug, future::Future, time::Duration};

use kube::{
    Resource,
    api::{DeleteParams, Preconditions},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{WriteError, Writes, writes::key_of};
use crate::Object;

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationResult {
    /// Nothing: it was so already. Only an [apply](Writes::apply) may have asked the server to find out.
    None,
    /// There was none.
    Created,
    /// It was different.
    Updated,
}

impl<K> Writes<K>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    /// Brings an object to what a function makes of it. The function gets what the cache has, after our own writes, or `new` if it has
    /// nothing of that name. What it does not touch stays as it is. The answer is the object as it is then.
    ///
    /// Somebody else may have been faster: [`is_conflict`](WriteError::is_conflict) or [`is_already_exists`](WriteError::is_already_exists) says so, and the
    /// next call for the key sees what they did.
    ///
    /// ```
    /// use informer::client::{WriteError, Writes};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// async fn paint(maps: &Writes<ConfigMap>, mut new: ConfigMap) -> Result<(), WriteError> {
    ///     new.metadata.name = Some("colours".into());
    ///     let paint = |map: &mut ConfigMap| drop(map.data.get_or_insert_default().insert("sky".into(), "blue".into()));
    ///     let (result, map) = maps.create_or_update(new, paint).await?;
    ///     println!("{result:?}: {:?}", map.metadata.resource_version);
    ///     Ok(())
    /// }
    /// ```
    pub async fn create_or_update(
        &self,
        new: K,
        change: impl FnOnce(&mut K),
    ) -> Result<(OperationResult, Object<K>), WriteError> {
        let key = key_of(&new)?;
        let Some(now) = self.lister().get_opt(&key).await? else {
            let mut object = new;
            change(&mut object);
            let created = self.create(self.post_params(), &object).await?;
            return Ok((OperationResult::Created, Object::new(created)?));
        };
        let mut object = K::clone(&now);
        change(&mut object);
        if is_same(&*now, &object)? {
            return Ok((OperationResult::None, now));
        }
        let updated = self.replace(self.post_params(), &object).await?;
        Ok((OperationResult::Updated, Object::new(updated)?))
    }

    /// Brings the status of an object to what a function makes of it. It is written for the version of the object that is given, which should be the
    /// one that the status is about.
    pub async fn update_status(
        &self,
        object: &Object<K>,
        change: impl FnOnce(&mut K),
    ) -> Result<OperationResult, WriteError> {
        let mut changed = K::clone(object);
        change(&mut changed);
        if is_same(&**object, &changed)? {
            return Ok(OperationResult::None);
        }
        self.replace_status(self.post_params(), &changed).await?;
        Ok(OperationResult::Updated)
    }

    /// Deletes an object as it was seen: not a newer one of its name, nor one that has changed. One that is being deleted, or is gone, is not asked
    /// about again. Says whether it is there still.
    pub async fn delete_seen(&self, object: &Object<K>) -> Result<bool, WriteError> {
        if object.meta().deletion_timestamp.is_some() {
            return Ok(true);
        }
        let (version, uid) = (object.meta().resource_version.clone(), object.meta().uid.clone());
        let seen = Preconditions { resource_version: version, uid };
        match self.delete(object.key(), &DeleteParams::default().preconditions(seen)).await {
            Ok(there) => Ok(there.is_some()),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// As the server sees them: types need not be comparable.
fn is_same(one: &impl Serialize, other: &impl Serialize) -> Result<bool, WriteError> {
    let value = |object: serde_json::Result<serde_json::Value>| object.map_err(kube::Error::SerdeError);
    Ok(value(serde_json::to_value(one))? == value(serde_json::to_value(other))?)
}

/// Tries a write again, up to five times, for as long as the server says that somebody else was faster. The function should begin with a
/// [read from the server](Writes::get_live): the cache may still have what was refused. In a controller it is usually better to end the call and let it be
/// repeated.
pub async fn retry_on_conflict<F, R, T>(mut write: F) -> Result<T, WriteError>
where
    F: FnMut() -> R,
    R: Future<Output = Result<T, WriteError>>,
{
    for _ in 1..5 {
        match write().await {
            Err(error) if error.is_conflict() => tokio::time::sleep(Duration::from_millis(10)).await,
            answer => return answer,
        }
    }
    write().await
}

//! Writes that carry the term of a leader, if there is one.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    api::{DeleteParams, Patch, Preconditions},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::WriteError;
#[cfg(feature = "leader")]
use crate::leader::{Fence, Leadership};

/// What every write is checked by and stamped with.
#[derive(Clone, Default)]
pub(super) struct Guard {
    #[cfg(feature = "leader")]
    pub(super) leadership: Option<Leadership>,
}

/// What becomes of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    Create,
    Replace,
    Status,
}

#[cfg(feature = "leader")]
impl Guard {
    fn fence(&self) -> Result<Option<Fence>, WriteError> {
        Ok(self.leadership.as_ref().map(Leadership::fence).transpose()?)
    }
}

/// Without elections there are no fences.
#[cfg(not(feature = "leader"))]
enum Fence {}

#[cfg(not(feature = "leader"))]
impl Guard {
    fn fence(&self) -> Result<Option<Fence>, WriteError> {
        Ok(None)
    }
}

#[cfg(not(feature = "leader"))]
impl Fence {
    fn check(&self, _: &ObjectMeta) -> Result<(), WriteError> {
        match *self {}
    }

    fn stamp(&self, _: &mut ObjectMeta) {
        match *self {}
    }

    fn is_on(&self, _: &ObjectMeta) -> bool {
        match *self {}
    }

    fn token(&self) -> u64 {
        match *self {}
    }
}

/// The term of a write.
pub(super) struct Term {
    pub(super) token: u64,
    /// Whether the object was written in it.
    pub(super) wrote: bool,
}

impl Guard {
    /// The object as it is to be sent.
    pub(super) fn object<'a, K>(&self, object: &'a K, write: Write) -> Result<Cow<'a, K>, WriteError>
    where
        K: Resource + Clone,
    {
        let Some(fence) = self.fence()? else { return Ok(Cow::Borrowed(object)) };
        if write != Write::Create {
            fence.check(versioned(object.meta())?)?;
        }
        // A status is all that is written then.
        if write == Write::Status {
            return Ok(Cow::Borrowed(object));
        }
        let mut stamped = object.clone();
        fence.stamp(stamped.meta_mut());
        Ok(Cow::Owned(stamped))
    }

    /// The patch as it is to be sent for an object that the cache has like this; nothing, if it may be sent as it is.
    pub(super) fn patch<P: Serialize>(
        &self,
        now: Option<&ObjectMeta>,
        patch: &Patch<P>,
    ) -> Result<Option<Patch<Value>>, WriteError> {
        let Some(fence) = self.fence()? else { return Ok(None) };
        let is_apply = matches!(patch, Patch::Apply(_));
        let version = match now {
            // It makes what is not there.
            None if is_apply => None,
            now => {
                let now = versioned(now.unwrap_or(&ObjectMeta::default()))?.clone();
                fence.check(&now)?;
                now.resource_version
            }
        };
        let mut stamp = ObjectMeta::default();
        fence.stamp(&mut stamp);
        let asked = |body: &Value| body["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        let with = |body: &P| {
            let mut body = serde_json::to_value(body).map_err(kube::Error::SerdeError)?;
            if !body["metadata"].is_object() {
                body["metadata"] = json!({});
            }
            if let Some(version) = version {
                same_version(asked(&body).as_ref(), &version)?;
                body["metadata"]["resourceVersion"] = version.into();
            }
            for (key, token) in stamp.annotations.into_iter().flatten() {
                body["metadata"]["annotations"][key] = token.into();
            }
            Ok::<_, WriteError>(body)
        };
        match patch {
            Patch::Apply(body) => Ok(Some(Patch::Apply(with(body)?))),
            Patch::Merge(body) => Ok(Some(Patch::Merge(with(body)?))),
            Patch::Strategic(body) => Ok(Some(Patch::Strategic(with(body)?))),
            _ => {
                Err(WriteError::Unfenced("a JSON patch cannot carry the term of a leader; use a merge patch"))
            }
        }
    }

    /// How an object is to be deleted that the cache has like this.
    pub(super) fn delete<'a>(
        &self,
        now: Option<&ObjectMeta>,
        params: &'a DeleteParams,
    ) -> Result<Cow<'a, DeleteParams>, WriteError> {
        let Some(fence) = self.fence()? else { return Ok(Cow::Borrowed(params)) };
        let now = versioned(now.unwrap_or(&ObjectMeta::default()))?.clone();
        fence.check(&now)?;
        let asked = params.preconditions.as_ref().and_then(|asked| asked.resource_version.as_ref());
        same_version(asked, now.resource_version.as_deref().unwrap_or_default())?;
        let seen = Preconditions { resource_version: now.resource_version, uid: now.uid };
        Ok(Cow::Owned(params.clone().preconditions(seen)))
    }

    /// The term that lasts now, if there are terms, and whether an object was written in it.
    pub(super) fn term(&self, metadata: &ObjectMeta) -> Result<Option<Term>, WriteError> {
        let fence = self.fence()?;
        Ok(fence.map(|fence| Term { token: fence.token(), wrote: fence.is_on(metadata) }))
    }

    /// Whether writes depend on what the cache has.
    pub(super) fn is_fenced(&self) -> bool {
        #[cfg(feature = "leader")]
        return self.leadership.is_some();
        #[cfg(not(feature = "leader"))]
        false
    }
}

/// What is asked for is the version that was checked, or none in particular.
fn same_version(asked: Option<&String>, checked: &str) -> Result<(), WriteError> {
    match asked.is_none_or(|asked| asked == checked) {
        true => Ok(()),
        false => Err(WriteError::Unfenced(
            "the write is for another version of the object than the cache has now, which was checked for a later leader",
        )),
    }
}

/// Metadata that says which version was read: only that one may be overwritten.
fn versioned(metadata: &ObjectMeta) -> Result<&ObjectMeta, WriteError> {
    match metadata.resource_version {
        Some(_) => Ok(metadata),
        None => Err(WriteError::Unfenced(
            "a write with the term of a leader is for the version that was read: the object has none, or is not in the cache",
        )),
    }
}

//! What a user does to each object before it is kept: usually, dropping fields that are not needed.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use informer_model::ObjectKey;
use kube::{Resource, core::ObjectMeta};

use crate::{Object, panic_message};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Function<K> = dyn Fn(Object<K>) -> Result<Object<K>, Failure> + Send + Sync;

/// A change to every object that is made once, before the object is stored and shown to anybody.
///
/// It can change everything but which object it is: key and version stay the server's.
///
/// ```
/// use informer::queue::Transform;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let trim = Transform::new(|pod: &mut Pod| {
///     pod.metadata.managed_fields = None;
///     pod.status.as_mut().map(|status| status.conditions = None);
/// });
/// let checked = Transform::new(|pod: &mut Pod| match pod.spec {
///     Some(_) => Ok(()),
///     None => Err("a pod without a spec"), // it is left out and named
/// });
/// # let _ = (trim, checked);
/// ```
pub struct Transform<K>(Arc<Function<K>>);

/// A transform refused an object, or panicked at it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the transform failed for {key}: {message}")]
#[non_exhaustive]
pub struct TransformError {
    /// The object.
    pub key: ObjectKey,
    /// What the transform said.
    pub message: String,
}

/// What a function that changes an object may return: nothing, or whether it worked.
pub trait Verdict {
    /// Whether it worked.
    fn verdict(self) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

impl Verdict for () {
    fn verdict(self) -> Result<(), Failure> {
        Ok(())
    }
}

impl<E: Into<Failure>> Verdict for Result<(), E> {
    fn verdict(self) -> Result<(), Failure> {
        self.map_err(Into::into)
    }
}

impl<K> Transform<K> {
    /// A transform from a function that changes the object in place.
    pub fn new<V: Verdict>(function: impl Fn(&mut K) -> V + Send + Sync + 'static) -> Self
    where
        K: Resource + Clone,
    {
        Self(Arc::new(move |object| object.modify(|object| function(object).verdict())))
    }

    /// A transform that empties the metadata in the object.
    ///
    /// [`Object`] has key, version and labels beside it anyway, so that getting, listing and selecting work as before; all
    /// else (annotations, owners, uid, times) is gone. Metadata is often the larger part of a projection: one with
    /// four fields takes 1.7 KB for each pod of a demo cluster instead of 4.0. Of several transforms this must be the last: labels that a
    /// later one changes are those of the object, which has none any more.
    ///
    /// ```
    /// use informer::{Object, queue::Transform};
    /// # use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
    /// # let metadata = ObjectMeta { name: Some("web-0".into()), namespace: Some("shop".into()), ..Default::default() };
    /// # let pod = Object::new(Pod { metadata, ..Default::default() })?;
    /// let pod = Transform::drop_metadata().apply(pod)?;
    /// assert_eq!((pod.key().to_string().as_str(), &pod.metadata.name), ("shop/web-0", &None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drop_metadata() -> Self
    where
        K: Resource + Clone,
    {
        Self::reshape(|_, object| *object.meta_mut() = ObjectMeta::default())
    }

    /// A transform that holds the object of a key in another way and changes nothing of what it says.
    ///
    /// Labels stay those that were read from the wire, and metadata is not asked for, which some types would have to decode.
    ///
    /// ```
    /// use informer::{Object, RawObject, queue::Transform};
    ///
    /// let as_it_is = Transform::reshape(|_, _: &mut RawObject| {});
    /// let object = Object::new(RawObject::new(r#"{"metadata":{"name":"a"}}"#.to_owned())?)?;
    /// assert_eq!(as_it_is.apply(object)?.key().name(), "a");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reshape(function: impl Fn(&ObjectKey, &mut K) + Send + Sync + 'static) -> Self
    where
        K: Resource + Clone,
    {
        Self(Arc::new(move |object| {
            let key = object.key().clone();
            Ok(object.reshape(|body| function(&key, body)))
        }))
    }

    /// Both, one after the other.
    #[must_use]
    pub fn then(self, next: Self) -> Self
    where
        K: 'static,
    {
        Self(Arc::new(move |object| (next.0)((self.0)(object)?)))
    }

    /// The changed object. A panic of the function is an error like any other.
    pub fn apply(&self, object: Object<K>) -> Result<Object<K>, TransformError> {
        let key = object.key().clone();
        let message = match catch_unwind(AssertUnwindSafe(|| (self.0)(object))) {
            Ok(Ok(object)) => return Ok(object),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("it panicked: {}", panic_message(&*panic)),
        };
        Err(TransformError { key, message })
    }
}

impl<K> Clone for Transform<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> fmt::Debug for Transform<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transform")
    }
}

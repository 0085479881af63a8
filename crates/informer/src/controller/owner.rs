//! To whom an object belongs.

use informer_model::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

use crate::source::is_namespaced;

/// The key of the object of kind `Owner` that controls an object, if its owner references name one.
///
/// Group and kind count, the version does not: a reference stays as it was written when a kind gets a newer one. An owner with
/// a namespace is in the namespace of what it owns.
///
/// ```
/// use informer::controller::owner_of;
/// use k8s_openapi::{api::apps::v1::{Deployment, ReplicaSet}, apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference}};
///
/// let reference = OwnerReference {
///     api_version: "apps/v1".into(), kind: "Deployment".into(), name: "web".into(), controller: Some(true), ..Default::default()
/// };
/// let meta = ObjectMeta { namespace: Some("shop".into()), owner_references: Some(vec![reference]), ..Default::default() };
/// assert_eq!(owner_of::<Deployment>(&meta, &()).unwrap().to_string(), "shop/web");
/// assert!(owner_of::<ReplicaSet>(&meta, &()).is_none());
/// ```
pub fn owner_of<Owner: Resource + 'static>(
    meta: &ObjectMeta,
    kind: &Owner::DynamicType,
) -> Option<ObjectKey> {
    references::<Owner>(meta, kind).find(|(reference, _)| reference.controller == Some(true))?.1
}

/// The keys of all objects of kind `Owner` that an object belongs to, whether they control it or not.
pub fn owners_of<Owner: Resource + 'static>(meta: &ObjectMeta, kind: &Owner::DynamicType) -> Vec<ObjectKey> {
    references::<Owner>(meta, kind).filter_map(|(_, key)| key).collect()
}

/// References to owners of a kind, with their keys, if they name one.
fn references<'a, Owner: Resource + 'static>(
    meta: &'a ObjectMeta,
    kind: &'a Owner::DynamicType,
) -> impl Iterator<Item = (&'a OwnerReference, Option<ObjectKey>)> {
    let namespace = meta.namespace.as_deref().filter(|_| is_namespaced::<Owner>(kind) != Some(false));
    let (group, name) = (Owner::group(kind), Owner::kind(kind));
    let of_kind = meta.owner_references.iter().flatten().filter(move |reference| {
        let of_group = reference.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        of_group == group && reference.kind == name
    });
    of_kind.map(move |reference| (reference, ObjectKey::new(namespace, &reference.name).ok()))
}

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

/// Whether this very object controls another one: by its uid, which no later object of the same name has.
pub fn is_controlled_by(meta: &ObjectMeta, owner: &ObjectMeta) -> bool {
    let controls = |reference: &&OwnerReference| reference.controller == Some(true);
    let reference = meta.owner_references.iter().flatten().find(controls);
    reference.is_some_and(|reference| owner.uid.as_ref() == Some(&reference.uid))
}

/// Another object controls it already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it cannot be controlled by {kind} {name:?}: {by} controls it already")]
pub struct AlreadyOwned {
    /// The kind of who was to control it.
    pub kind: String,
    /// Their name.
    pub name: String,
    /// Who controls it: kind and name.
    pub by: String,
}

/// Makes an object the one that controls another one: that is deleted with it, and its changes are about it
/// ([`owns`](super::Feed::owns)). A reference that is there is brought up to date. An owner without name or uid, which was never on a server,
/// makes no reference.
pub fn set_controller_reference<Owner>(meta: &mut ObjectMeta, owner: &Owner) -> Result<(), AlreadyOwned>
where
    Owner: Resource<DynamicType: Default>,
{
    let kind = Owner::DynamicType::default();
    let Some(mine) = owner.controller_owner_ref(&kind) else { return Ok(()) };
    let references = meta.owner_references.get_or_insert_default();
    let other =
        references.iter().find(|reference| reference.controller == Some(true) && reference.uid != mine.uid);
    if let Some(other) = other {
        let by = format!("{} {:?}", other.kind, other.name);
        return Err(AlreadyOwned { kind: mine.kind, name: mine.name, by });
    }
    set(references, mine);
    Ok(())
}

/// Makes an object one of the owners of another one, which is deleted when it has none any more.
pub fn set_owner_reference<Owner>(meta: &mut ObjectMeta, owner: &Owner)
where
    Owner: Resource<DynamicType: Default>,
{
    if let Some(mine) = owner.owner_ref(&Owner::DynamicType::default()) {
        set(meta.owner_references.get_or_insert_default(), mine);
    }
}

fn set(references: &mut Vec<OwnerReference>, mine: OwnerReference) {
    match references.iter_mut().find(|reference| reference.uid == mine.uid) {
        Some(reference) => *reference = mine,
        None => references.push(mine),
    }
}

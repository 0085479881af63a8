//! A number that a write carries, so that a leader of the past cannot undo what a later one did.

use std::sync::Arc;

use informer_model::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// What stands behind the names of the Lease in the annotation.
const SUFFIX: &str = "lease.informer/fence";
/// The part of an annotation's key before the slash is not longer.
const LONGEST_PREFIX: usize = 253;

/// A proof of leadership at one moment, with the token of the term.
///
/// An object remembers the highest token that wrote it, in an annotation of its own for each Lease. A fenced write has
/// four steps, and the server refuses the last one if anybody else wrote the object since the first:
///
/// 1. read the object;
/// 2. [`check`](Self::check) it: if a later leader has written it, this one's term is over;
/// 3. change it and [`stamp`](Self::stamp) it;
/// 4. replace it, with the `resourceVersion` that was read (`Api::replace`; a patch needs the version in it).
///
/// ```
/// use informer::leader::{LeaderElection, Leadership};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, api::PostParams};
///
/// async fn write(leadership: &Leadership, maps: &Api<ConfigMap>) -> Result<(), Box<dyn std::error::Error>> {
///     let mut map = maps.get("settings").await?;
///     let fence = leadership.fence()?;
///     fence.check(&map.metadata)?;
///     fence.stamp(&mut map.metadata);
///     map.data.get_or_insert_default().insert("colour".into(), "blue".into());
///     maps.replace("settings", &PostParams::default(), &map).await?;
///     Ok(())
/// }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = informer_apiserver::ApiServer::builder().build().client();
/// # let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
/// # let map = serde_json::from_value(serde_json::json!({ "metadata": { "name": "settings" } }))?;
/// # maps.create(&PostParams::default(), &map).await?;
/// # let election = LeaderElection::builder(client, "default", "painter").build()?;
/// # let stop = tokio_util::sync::CancellationToken::new();
/// # let done = election.run_while_leader(stop, async |leadership| write(&leadership, &maps).await).await;
/// # done.expect("elected")?;
/// # let written = maps.get("settings").await?;
/// # assert!(written.metadata.annotations.unwrap()["painter.default.lease.informer/fence"].parse::<u64>()? > 0);
/// # Ok(()) }
/// ```
///
/// So a leader that was paused, between any two of these steps and for any time, cannot overwrite what a later leader
/// wrote. What this does not prevent: an object that the later leader has not written yet can still get a write that the
/// earlier one sent before its term was over, and so can a new object. A leader that must exclude this stamps every object
/// of its work before it relies on them. Nor does it help against who writes without a fence, or deletes without a
/// precondition on the version.
///
/// A cluster can make the number binding for everybody, patches included: a `ValidatingAdmissionPolicy` whose expression
/// compares the annotation of `object` with that of `oldObject` refuses writes that carry a smaller number or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    lease: ObjectKey,
    annotation: Arc<str>,
    token: u64,
}

/// Why an object must not be written with this fence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stale {
    /// A later leader has written it.
    #[error(
        "a later leader has written this object: it carries token {found} of the Lease {lease}, and this term has {own}; stop this work (if the object or the server was restored from a backup, remove the annotation {annotation} from the object)"
    )]
    Newer {
        /// The Lease.
        lease: ObjectKey,
        /// The token of this fence.
        own: u64,
        /// The token that the object carries.
        found: u64,
        /// The key of the annotation that carries it.
        annotation: Arc<str>,
    },
    /// The annotation is not a token.
    #[error("the annotation {annotation} is {found:?}, which is no token; remove it from the object")]
    Unreadable {
        /// The key of the annotation.
        annotation: Arc<str>,
        /// Its value.
        found: String,
    },
}

impl Fence {
    pub(super) fn new(lease: &ObjectKey, annotation: &Arc<str>, token: u64) -> Self {
        Self { lease: lease.clone(), annotation: Arc::clone(annotation), token }
    }

    /// The number of the term: the `resourceVersion` that the Lease had when it began. Every later term has a greater one,
    /// also if the Lease was deleted in between: a server counts all its writes with one counter. (One that was restored from a
    /// backup counts on from there, unless its revision was bumped, as etcd's `snapshot restore` can.)
    pub fn token(&self) -> u64 {
        self.token
    }

    /// The Lease.
    pub fn lease(&self) -> &ObjectKey {
        &self.lease
    }

    /// The key of the annotation that carries the token. It has the Lease's name, so that an object can be written under
    /// several Leases.
    pub fn annotation(&self) -> &str {
        &self.annotation
    }

    /// Refuses an object that a later leader has written.
    pub fn check(&self, metadata: &ObjectMeta) -> Result<(), Stale> {
        let carried =
            metadata.annotations.as_ref().and_then(|annotations| annotations.get(&*self.annotation));
        let Some(carried) = carried else { return Ok(()) };
        match carried.parse::<u64>() {
            Ok(found) if found > self.token => {
                let (lease, annotation) = (self.lease.clone(), Arc::clone(&self.annotation));
                Err(Stale::Newer { lease, own: self.token, found, annotation })
            }
            Ok(_) => Ok(()),
            Err(_) => {
                Err(Stale::Unreadable { annotation: Arc::clone(&self.annotation), found: carried.clone() })
            }
        }
    }

    /// Whether an object was last written, with a fence, in this term.
    #[cfg(feature = "controller")]
    pub(crate) fn is_on(&self, metadata: &ObjectMeta) -> bool {
        let carried =
            metadata.annotations.as_ref().and_then(|annotations| annotations.get(&*self.annotation));
        carried.is_some_and(|carried| *carried == self.token.to_string())
    }

    /// Makes an object carry the token, for a write that replaces the version that was checked.
    pub fn stamp(&self, metadata: &mut ObjectMeta) {
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(self.annotation.to_string(), self.token.to_string());
    }
}

/// The key of the annotation for a Lease, unless the names are too long for one.
pub(super) fn annotation(namespace: &str, name: &str) -> Option<Arc<str>> {
    let key = format!("{name}.{namespace}.{SUFFIX}");
    key.find('/').filter(|prefix| *prefix <= LONGEST_PREFIX).map(|_| key.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use informer_model::validate_label_key;

    fn mk(lease: &str, token: u64) -> Fence {
        let lease: ObjectKey = lease.parse().unwrap();
        let annotation = annotation(lease.namespace().unwrap(), lease.name()).unwrap();
        Fence::new(&lease, &annotation, token)
    }

    #[test]
    fn an_object_takes_stamps_that_are_not_older_than_the_one_it_carries() {
        let mut metadata = ObjectMeta::default();
        assert_eq!(mk("shop/a", 1).check(&metadata), Ok(()));
        mk("shop/a", 7).stamp(&mut metadata);
        assert_eq!(mk("shop/a", 7).check(&metadata), Ok(()));
        assert_eq!(mk("shop/a", 8).check(&metadata), Ok(()));
        let Err(stale @ Stale::Newer { own: 6, found: 7, .. }) = mk("shop/a", 6).check(&metadata) else {
            panic!("not refused")
        };
        assert!(stale.to_string().contains("token 7 of the Lease shop/a, and this term has 6"), "{stale}");
    }

    #[test]
    fn two_leases_do_not_disturb_each_other_on_one_object() {
        let mut metadata = ObjectMeta::default();
        mk("shop/a", 7).stamp(&mut metadata);
        for other in ["shop/b", "shop-b/a", "a/shop"] {
            assert_eq!(mk(other, 1).check(&metadata), Ok(()), "{other}");
        }
    }

    #[test]
    fn nonsense_in_the_annotation_is_refused_with_what_to_do() {
        for nonsense in ["", "seven", "-1", "99999999999999999999", "7 "] {
            let mut metadata = ObjectMeta::default();
            let fence = mk("shop/a", 7);
            metadata
                .annotations
                .get_or_insert_default()
                .insert(fence.annotation().to_owned(), nonsense.to_owned());
            let refused = fence.check(&metadata).unwrap_err().to_string();
            assert!(refused.contains(&format!("{nonsense:?}")) && refused.contains("remove it"), "{refused}");
        }
    }

    #[test]
    fn the_annotation_is_one_that_a_server_takes_or_there_is_none() {
        let (longest, too_long) = ("n".repeat(253 - "..lease.informer".len() - 63), "n".repeat(253));
        for name in ["a", "a.b-c.d", &longest] {
            let key = annotation(&"s".repeat(63), name).unwrap();
            assert_eq!(validate_label_key(&key), Ok(()), "{key}");
        }
        assert_eq!(annotation("shop", &too_long), None);
        assert_eq!(annotation(&"s".repeat(63), &format!("{longest}n")), None);
    }
}

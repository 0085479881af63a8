//! What is kept of Secrets, which is all that can ever be served of them.

use informer::{RawObject, discovery::ServedResource, queue::Transform};
use serde_json::Value;

use super::stored::Stored;

/// The annotation in which kubectl keeps what was applied: a copy of all values.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The annotations that are shown where values are not. Every deployer has its own in which it keeps a copy of the values
/// (kubectl, kapp, Rancher, and whoever comes next), so that only those stay of which it is known what is in them.
const SHOWN: &[&str] = &[
    "cert-manager.io/alt-names",
    "cert-manager.io/certificate-name",
    "cert-manager.io/common-name",
    "cert-manager.io/ip-sans",
    "cert-manager.io/issuer-group",
    "cert-manager.io/issuer-kind",
    "cert-manager.io/issuer-name",
    "cert-manager.io/uri-sans",
    "kubernetes.io/service-account.name",
    "kubernetes.io/service-account.uid",
    "meta.helm.sh/release-name",
    "meta.helm.sh/release-namespace",
];

/// What is served of Secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    /// Nothing, and nothing is asked for.
    Hidden,
    /// That they are there, but not what is in them.
    Metadata,
    /// All, to those who may see it.
    Whole,
}

pub(super) fn is_secret(served: &ServedResource) -> bool {
    served.api.group.is_empty() && served.api.plural == "secrets"
}

impl Secrets {
    /// Takes out of each Secret what is not to be kept.
    pub(crate) fn transform(self) -> Transform<Stored> {
        Transform::new(move |stored: &mut Stored| -> serde_json::Result<()> {
            let mut secret: Value = stored.with_json(|json| serde_json::from_str(json))?;
            self.redact(&mut secret);
            *stored = Stored::plain(RawObject::new(secret.to_string())?);
            Ok(())
        })
    }

    fn redact(self, secret: &mut Value) {
        if let Some(annotations) = secret.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
        {
            match self {
                Self::Whole => drop(annotations.remove(LAST_APPLIED)),
                Self::Hidden | Self::Metadata => annotations.retain(|name, _| SHOWN.contains(&name.as_str())),
            }
        }
        if let (Some(secret), false) = (secret.as_object_mut(), self == Self::Whole) {
            secret.retain(|member, _| matches!(member.as_str(), "apiVersion" | "kind" | "metadata" | "type"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use informer::Object;

    const SECRET: &str = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","labels":{"x":"y"},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"c2VjcmV0","objectset.rio.cattle.io/applied":"c2VjcmV0","kapp.k14s.io/original":"c2VjcmV0","example.com/next":"c2VjcmV0","meta.helm.sh/release-name":"n"}},"data":{"p":"c2VjcmV0"},"stringData":{"q":"c2VjcmV0"},"type":"Opaque","immutable":true}"#;

    fn kept(secrets: Secrets) -> Object<Stored> {
        let object = Object::new(serde_json::from_str::<Stored>(SECRET).unwrap()).unwrap();
        secrets.transform().apply(object).unwrap()
    }

    #[test]
    fn of_a_secret_only_the_metadata_is_kept() {
        let kept = kept(Secrets::Metadata);
        let json = kept.json();
        assert!(!json.contains("c2VjcmV0"), "{json}");
        assert!(json.contains("meta.helm.sh/release-name") && json.contains("Opaque"));
        assert_eq!(kept.labels().get("x"), Some("y"));
    }

    #[test]
    fn a_whole_secret_has_its_values_but_not_what_was_applied() {
        let value = kept(Secrets::Whole).with_json(|json| serde_json::from_str::<Value>(json)).unwrap();
        assert_eq!(value["data"]["p"], "c2VjcmV0");
        let annotations = value["metadata"]["annotations"].as_object().unwrap();
        assert!(annotations.len() == 4 && !annotations.contains_key(LAST_APPLIED), "{annotations:?}");
    }
}

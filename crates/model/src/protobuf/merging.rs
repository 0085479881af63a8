//! What server-side apply merges in objects of built-in kinds: the table that reads protobuf knows that too.

use super::schema::{Count, Field, Form, Merge, MergeKey, MessageId, SCHEMA, Type};

/// The type of a value in an object of a built-in kind, as server-side apply sees it.
///
/// ```
/// use informer_model::{MergeType, Merging};
///
/// let spec = MergeType::of_kind("v1", "Pod").and_then(|pod| pod.field("spec")).ok_or("there is one")?;
/// let Some(Merging::Keyed(keys, container)) = spec.field("containers").map(MergeType::merging) else { unreachable!() };
/// assert_eq!(keys[0].name, "name");
/// assert!(matches!(container.field("command").map(MergeType::merging), Some(Merging::Leaf)));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeType {
    count: Count,
    r#type: Type,
    merge: Merge,
}

/// What becomes of two values of one type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Merging {
    /// One replaces the other as a whole.
    Leaf,
    /// They are merged field by field, see [`MergeType::field`].
    Fields,
    /// They are merged entry by entry; the entries are of this type.
    Map(MergeType),
    /// They are lists, which are merged as sets of plain values.
    Set,
    /// They are lists, whose items are told apart by these fields and are of this type.
    Keyed(&'static [MergeKey], MergeType),
    /// They may be anything: objects are merged entry by entry, all else is replaced.
    Any,
}

impl MergeType {
    /// The type of all objects of a kind; none if the kind is not built in.
    pub fn of_kind(api_version: &str, kind: &str) -> Option<Self> {
        SCHEMA.kind(api_version, kind).map(Self::message)
    }

    /// The type of the metadata that all objects have.
    pub fn object_meta() -> Option<Self> {
        Self::of_kind("meta.k8s.io/v1", "PartialObjectMetadata")?.field("metadata")
    }

    fn message(id: MessageId) -> Self {
        Self { count: Count::One, r#type: Type::Message(id), merge: Merge::Usual }
    }

    /// The type of a field, in what has [`Merging::Fields`].
    pub fn field(self, name: &str) -> Option<Self> {
        let (Count::One | Count::Embedded, Type::Message(id)) = (self.count, self.r#type) else {
            return None;
        };
        let Field { count, r#type, merge, .. } = *SCHEMA.field(SCHEMA.message(id), name)?;
        Some(Self { count, r#type, merge })
    }

    /// What becomes of two values of this type.
    pub fn merging(self) -> Merging {
        let item = Self { count: Count::One, r#type: self.r#type, merge: Merge::Usual };
        match (self.count, self.merge, self.r#type) {
            (_, Merge::Set, _) => Merging::Set,
            (_, Merge::Keys(keys), _) => Merging::Keyed(SCHEMA.keys(keys), item),
            (Count::List, ..) | (_, Merge::Atomic, _) => Merging::Leaf,
            (Count::Map, ..) => Merging::Map(item),
            (Count::One | Count::Embedded, merge, Type::Message(id)) => {
                let message = SCHEMA.message(id);
                match message.form {
                    Form::Object if message.atomic && merge != Merge::Fields => Merging::Leaf,
                    Form::Object => Merging::Fields,
                    Form::RawJson => Merging::Any,
                    _ => Merging::Leaf,
                }
            }
            _ => Merging::Leaf,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(api_version: &str, kind: &str, path: &str) -> Merging {
        let mut at = MergeType::of_kind(api_version, kind).unwrap();
        for name in path.split('.') {
            at = match at.merging() {
                Merging::Keyed(_, item) => item.field(name),
                _ => at.field(name),
            }
            .unwrap_or_else(|| panic!("{path}: no {name}"));
        }
        at.merging()
    }

    #[test]
    fn lists_maps_and_messages_are_merged_as_their_go_types_say() {
        let names = |merging: Merging| -> Vec<&str> {
            match merging {
                Merging::Keyed(keys, _) => keys.iter().map(|key| key.name).collect(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(names(at("v1", "Pod", "spec.containers")), ["name"]);
        assert_eq!(names(at("v1", "Pod", "spec.containers.ports")), ["containerPort", "protocol"]);
        assert_eq!(names(at("v1", "Pod", "spec.ephemeralContainers.env")), ["name"], "embedded");
        assert_eq!(names(at("v1", "Service", "spec.ports")), ["port", "protocol"]);
        assert_eq!(names(at("v1", "Node", "status.conditions")), ["type"]);
        assert_eq!(at("v1", "Pod", "metadata.finalizers"), Merging::Set);
        for leaf in ["spec.tolerations", "spec.nodeName", "metadata.creationTimestamp"] {
            assert_eq!(at("v1", "Pod", leaf), Merging::Leaf, "{leaf}");
        }
        assert_eq!(at("v1", "Pod", "spec.nodeSelector"), Merging::Leaf, "an atomic map");
        assert_eq!(at("apps/v1", "Deployment", "spec.selector"), Merging::Leaf, "an atomic message");
        assert_eq!(at("v1", "PersistentVolume", "spec.claimRef"), Merging::Fields, "one that is not, here");
        assert!(matches!(at("v1", "ConfigMap", "data"), Merging::Map(_)));
        let Merging::Keyed(keys, _) = at("v1", "Service", "spec.ports") else { unreachable!() };
        let defaults: Vec<_> = keys.iter().map(|key| key.default.clone().unwrap()).collect();
        assert_eq!(defaults, [serde_json::json!(0), serde_json::json!("TCP")]);
        assert_eq!(MergeType::of_kind("example.com/v1", "Website"), None);
        assert!(matches!(
            MergeType::object_meta().unwrap().field("labels").unwrap().merging(),
            Merging::Map(_)
        ));
    }
}

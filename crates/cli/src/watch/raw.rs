//! An object of any kind as the server sent it: its JSON, kept as text.
//!
//! Decoded, a pod takes ten times the memory. So the text is kept, and decoded only to be printed or compared.

use std::{borrow::Cow, sync::LazyLock};

use informer::queue::Transform;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope},
};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, value::RawValue};

/// An object of any kind.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    /// What the informer needs to know about the object, until it knows it.
    metadata: Option<Box<ObjectMeta>>,
    json: Box<str>,
}

/// The part of an object that is decoded when it arrives.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: HeadMetadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct HeadMetadata {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
}

impl Raw {
    /// Forgets the metadata once it has served: the informer has key and version on its own, and all of it is
    /// in the text.
    pub(super) fn trim() -> Transform<Self> {
        Transform::new(|raw: &mut Self| raw.metadata = None)
    }

    /// The object, decoded. One that is nested too deeply for that is an error.
    pub(super) fn value(&self) -> serde_json::Result<Value> {
        serde_json::from_str(&self.json)
    }

    /// The object's JSON.
    pub(super) fn json(&self) -> &str {
        &self.json
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<str>::from(Box::<RawValue>::deserialize(deserializer)?);
        let Head { metadata } = serde_json::from_str(&json).map_err(de::Error::custom)?;
        let HeadMetadata { name, namespace, resource_version } = metadata;
        let metadata = ObjectMeta { name, namespace, resource_version, ..ObjectMeta::default() };
        Ok(Self { metadata: Some(Box::new(metadata)), json })
    }
}

impl Resource for Raw {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.kind)
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.group)
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.version)
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.plural)
    }

    fn meta(&self) -> &ObjectMeta {
        static FORGOTTEN: LazyLock<ObjectMeta> = LazyLock::new(ObjectMeta::default);
        self.metadata.as_deref().unwrap_or(&FORGOTTEN)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.metadata.get_or_insert_default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use informer::Object;

    pub(in crate::watch) fn pods() -> ApiResource {
        ApiResource {
            group: String::new(),
            version: "v1".into(),
            api_version: "v1".into(),
            kind: "Pod".into(),
            plural: "pods".into(),
        }
    }

    pub(in crate::watch) fn object(value: Value) -> Object<Raw> {
        Object::new(serde_json::from_value::<Raw>(value).unwrap()).unwrap()
    }

    #[test]
    fn an_object_keeps_its_text_and_gives_up_its_metadata() {
        let text = r#"{"metadata":{"namespace":"shop","name":"a","resourceVersion":"7","labels":{"x":"y"}},"n":1.50}"#;
        let object = Object::new(serde_json::from_str::<Raw>(text).unwrap()).unwrap();
        assert_eq!(format!("{object:?}"), "shop/a@7");
        let trimmed = Raw::trim().apply(object).unwrap();
        assert_eq!(format!("{trimmed:?}"), "shop/a@7");
        assert!(trimmed.metadata.is_none() && trimmed.meta().name.is_none());
        assert_eq!(&*trimmed.json, text);
        assert_eq!(trimmed.value().unwrap()["metadata"]["labels"]["x"], "y");
    }

    #[test]
    fn an_object_of_any_depth_is_kept_and_only_decoding_it_fails() {
        let depth = 9_000;
        let text = format!(
            r#"{{"metadata":{{"name":"deep"}},"a":{}{}}}"#,
            r#"{"b":"#.repeat(depth) + "1",
            "}".repeat(depth)
        );
        let raw: Raw = serde_json::from_str(&text).unwrap();
        assert_eq!(raw.meta().name.as_deref(), Some("deep"));
        assert!(raw.value().is_err());
        assert_eq!(raw.json(), text);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["1", r#"{"metadata":{"name":5}}"#, "{", ""] {
            assert!(serde_json::from_str::<Raw>(text).is_err(), "{text}");
        }
    }
}

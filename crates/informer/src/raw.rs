//! An object of any kind as the server sent it: its JSON, kept as text.
//!
//! Decoded, a pod takes ten times the memory, and most programs that pass objects on need no field of them. So the
//! text is kept, ready to be sent as it is, and decoded only where somebody looks inside.

use std::{borrow::Cow, collections::BTreeMap, ops::Range, sync::LazyLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope},
};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, value::RawValue};

use crate::queue::Transform;

/// An object of any kind, kept as its JSON.
///
/// ```
/// use informer::{Object, RawObject};
///
/// let text = r#"{"kind":"Pod","metadata":{"name":"web-0","labels":{"app":"shop"}},"weight":1.50}"#;
/// let pod = Object::new(serde_json::from_str::<RawObject>(text)?)?;
/// assert_eq!(pod.labels().get("app"), Some("shop"));
/// assert_eq!(pod.json(), text); // byte for byte
/// assert_eq!(pod.metadata_json(), r#"{"name":"web-0","labels":{"app":"shop"}}"#);
///
/// let kept = RawObject::trim().apply(pod)?; // what an informer should keep
/// assert_eq!(kept.labels().get("app"), Some("shop"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With a factory it is `factory.for_resource_as::<RawObject>("pods")`, with [`trim`](Self::trim) as the factory's
/// transform.
#[derive(Debug, Clone)]
pub struct RawObject {
    /// What an informer needs to know about the object, until it knows it.
    head: Option<Box<ObjectMeta>>,
    /// One line: whoever sends it on may end it with a newline.
    json: Box<str>,
    /// Where the metadata lies in it.
    metadata: Range<u32>,
}

/// The part of an object that is decoded when it arrives.
#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Head {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

impl RawObject {
    /// Reads an object, which must be JSON.
    pub fn new(json: String) -> serde_json::Result<Self> {
        let json: Box<str> = one_line(json).into();
        let Whole { metadata } = serde_json::from_str(&json)?;
        let range = metadata.map_or(0..0, |metadata| {
            let start = metadata.get().as_ptr() as usize - json.as_ptr() as usize;
            start..start + metadata.get().len()
        });
        let head: Head =
            metadata.map_or_else(|| Ok(Head::default()), |text| serde_json::from_str(text.get()))?;
        let Head { name, namespace, resource_version, labels } = head;
        let head = ObjectMeta { name, namespace, resource_version, labels, ..ObjectMeta::default() };
        let [start, end] = [range.start, range.end].map(u32::try_from);
        let metadata = start.and_then(|start| Ok(start..end?));
        let metadata = metadata.map_err(|_| de::Error::custom("it is longer than 4 GiB"))?;
        Ok(Self { head: Some(Box::new(head)), json, metadata })
    }

    /// Forgets the decoded part once it has served: an [`Object`](crate::Object) has key, version and labels on its
    /// own, and all of it is in the text.
    pub fn trim() -> Transform<Self> {
        Transform::reshape(|raw: &mut Self| raw.head = None)
    }

    /// The object's JSON, in one line.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The JSON of `metadata`; empty if there is none.
    pub fn metadata_json(&self) -> &str {
        self.json.get(self.metadata.start as usize..self.metadata.end as usize).unwrap_or_default()
    }

    /// The object, decoded. One that is nested too deeply for that is an error.
    pub fn value(&self) -> serde_json::Result<Value> {
        serde_json::from_str(&self.json)
    }
}

/// The same JSON without space between its parts, if it has more than one line. A newline in a string is escaped, so
/// one that is not lies between two parts.
fn one_line(json: String) -> String {
    if !json.bytes().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return json;
    }
    let (mut in_string, mut escaped) = (false, false);
    json.chars()
        .filter(|char| {
            let keep = in_string || !char.is_ascii_whitespace();
            match char {
                _ if escaped => escaped = false,
                '\\' => escaped = in_string,
                '"' => in_string = !in_string,
                _ => {}
            }
            keep
        })
        .collect()
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<str>::from(Box::<RawValue>::deserialize(deserializer)?);
        Self::new(json.into()).map_err(de::Error::custom)
    }
}

impl Resource for RawObject {
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

    /// Name, namespace, version and labels, until the object is [trimmed](Self::trim).
    fn meta(&self) -> &ObjectMeta {
        static FORGOTTEN: LazyLock<ObjectMeta> = LazyLock::new(ObjectMeta::default);
        self.head.as_deref().unwrap_or(&FORGOTTEN)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.head.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;

    const TEXT: &str =
        r#"{"metadata":{"namespace":"shop","name":"a","resourceVersion":"7","labels":{"x":"y"}},"n":1.50}"#;

    fn object(text: &str) -> Object<RawObject> {
        Object::new(serde_json::from_str::<RawObject>(text).unwrap()).unwrap()
    }

    #[test]
    fn an_object_keeps_its_text_and_its_labels_and_gives_up_what_was_decoded() {
        let trimmed = RawObject::trim().apply(object(TEXT)).unwrap();
        assert_eq!(format!("{trimmed:?}"), "shop/a@7");
        assert!(trimmed.head.is_none() && trimmed.meta().name.is_none());
        assert_eq!(trimmed.labels().get("x"), Some("y"));
        assert_eq!(trimmed.json(), TEXT);
        assert!(trimmed.metadata_json().starts_with(r#"{"namespace"#));
        assert_eq!(trimmed.value().unwrap()["metadata"]["labels"]["x"], "y");
    }

    #[test]
    fn an_object_of_several_lines_becomes_one_line_with_the_same_meaning() {
        let pretty = "{\n  \"metadata\": {\r\n \"name\": \"a\\n \\\" b\" } ,\t\"n\": [ 1, \" x \" ] }";
        let raw: RawObject = serde_json::from_str(pretty).unwrap();
        assert_eq!(raw.json(), "{\"metadata\":{\"name\":\"a\\n \\\" b\"},\"n\":[1,\" x \"]}");
        assert_eq!(raw.metadata_json(), "{\"name\":\"a\\n \\\" b\"}");
    }

    #[test]
    fn an_object_of_any_depth_is_kept_and_only_decoding_it_fails() {
        let depth = 9_000;
        let (open, close) = (r#"{"b":"#.repeat(depth), "}".repeat(depth));
        let text = format!(r#"{{"metadata":{{"name":"deep"}},"a":{open}1{close}}}"#);
        let raw: RawObject = serde_json::from_str(&text).unwrap();
        assert_eq!(raw.meta().name.as_deref(), Some("deep"));
        assert!(raw.value().is_err());
        assert_eq!(raw.json(), text);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["1", r#"{"metadata":{"name":5}}"#, "{", ""] {
            assert!(serde_json::from_str::<RawObject>(text).is_err(), "{text}");
        }
    }
}

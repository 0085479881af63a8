//! An object of any kind as the server sent it: its JSON, kept as text.
//!
//! Decoded, a pod takes ten times the memory, and most programs that pass objects on need no field of them. So the
//! text is kept, ready to be sent as it is, and decoded only where a field is read.

use std::{borrow::Cow, fmt, sync::OnceLock};

use informer_model::JSON_TEXT;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope},
};
use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::wire;

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
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With a factory it is `factory.for_resource_as::<RawObject>("pods")`. [`Object`](crate::Object) has key, version and
/// labels beside it; asking for more of its metadata (`meta()`) decodes that and keeps it.
#[derive(Debug, Clone)]
pub struct RawObject {
    /// It has no line breaks, so that it can be sent as one line.
    json: Box<str>,
    /// What somebody asked for.
    meta: OnceLock<Box<Decoded>>,
}

/// The metadata of an object, decoded.
#[derive(Debug, Clone)]
struct Decoded {
    meta: ObjectMeta,
    /// Whether it may have been changed.
    changed: bool,
    /// The object's JSON with the changed metadata.
    json: OnceLock<Box<str>>,
}

impl RawObject {
    /// Reads an object, which must be JSON.
    pub fn new(json: String) -> serde_json::Result<Self> {
        serde_json::from_str::<&RawValue>(&json)?;
        let raw = Self::as_it_is(json);
        raw.decode_metadata()?;
        Ok(raw)
    }

    /// JSON that has been checked.
    fn as_it_is(json: String) -> Self {
        Self { json: one_line(json).into(), meta: OnceLock::new() }
    }

    /// The object's JSON, in one line.
    pub fn json(&self) -> &str {
        match self.meta.get() {
            Some(decoded) if decoded.changed => {
                decoded.json.get_or_init(|| with_metadata(&self.json, &decoded.meta))
            }
            _ => &self.json,
        }
    }

    /// The JSON of `metadata`; empty if there is none.
    pub fn metadata_json(&self) -> &str {
        let json = self.json();
        wire::metadata_of(json.as_bytes()).and_then(|range| json.get(range)).unwrap_or_default()
    }

    /// The object, decoded. One that is nested too deeply for that is an error.
    pub fn value(&self) -> serde_json::Result<Value> {
        serde_json::from_str(self.json())
    }

    fn decode_metadata(&self) -> serde_json::Result<ObjectMeta> {
        match wire::metadata_of(self.json.as_bytes()).and_then(|range| self.json.get(range)) {
            Some(metadata) => {
                serde_json::from_str::<Option<ObjectMeta>>(metadata).map(Option::unwrap_or_default)
            }
            None => Ok(ObjectMeta::default()),
        }
    }

    /// What cannot be decoded is as if it were not there.
    fn decoded(&self) -> Box<Decoded> {
        let meta = self.decode_metadata().unwrap_or_default();
        Box::new(Decoded { meta, changed: false, json: OnceLock::new() })
    }
}

/// The same object with other metadata.
fn with_metadata(json: &str, meta: &ObjectMeta) -> Box<str> {
    let metadata = serde_json::to_string(meta).unwrap_or_else(|_| "{}".to_owned());
    let range = wire::metadata_of(json.as_bytes());
    let parts = range.and_then(|range| Some((json.get(..range.start)?, json.get(range.end..)?)));
    match (parts, json.split_once('{')) {
        (Some((before, after)), _) => [before, &metadata, after].concat(),
        (None, Some((_, rest))) if rest.trim_start().starts_with('}') => {
            format!(r#"{{"metadata":{metadata}}}"#)
        }
        (None, Some((_, rest))) => format!(r#"{{"metadata":{metadata},{rest}"#),
        (None, None) => json.to_owned(),
    }
    .into()
}

/// The same JSON without space between its parts, if it has more than one line. A newline in a string is escaped, so
/// one that is not lies between two parts.
fn one_line(json: String) -> String {
    if !json.contains('\n') && !json.contains('\r') {
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
        deserializer.deserialize_newtype_struct(JSON_TEXT, Text)
    }
}

/// Takes JSON as it came, or as it was written from something else.
struct Text;

impl<'de> Visitor<'de> for Text {
    type Value = RawObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawObject, D::Error> {
        let json = String::from(Box::<str>::from(Box::<RawValue>::deserialize(deserializer)?));
        if !json.starts_with('{') {
            return Err(de::Error::invalid_type(de::Unexpected::Other("something else"), &self));
        }
        Ok(RawObject::as_it_is(json))
    }

    /// What was written just now is one line.
    fn visit_bytes<E: de::Error>(self, json: &[u8]) -> Result<RawObject, E> {
        let json = std::str::from_utf8(json).map_err(E::custom)?;
        Ok(RawObject { json: json.into(), meta: OnceLock::new() })
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

    fn meta(&self) -> &ObjectMeta {
        &self.meta.get_or_init(|| self.decoded()).meta
    }

    /// What is changed there is changed in the [JSON](Self::json) too.
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        if self.meta.get().is_none() {
            self.meta = OnceLock::from(self.decoded());
        }
        let decoded = self.meta.get_mut().expect("it was set just now");
        (decoded.changed, decoded.json) = (true, OnceLock::new());
        &mut decoded.meta
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
    fn an_object_keeps_its_text_and_decodes_its_metadata_when_asked() {
        let object = object(TEXT);
        assert_eq!(format!("{object:?}"), "shop/a@7");
        assert_eq!(object.labels().get("x"), Some("y"));
        assert_eq!(object.json(), TEXT);
        assert!(object.metadata_json().starts_with(r#"{"namespace"#));
        assert_eq!(object.value().unwrap()["metadata"]["labels"]["x"], "y");
        assert_eq!(object.meta().labels.as_ref().unwrap()["x"], "y");
    }

    #[test]
    fn metadata_that_is_changed_is_changed_in_the_text() {
        let label = |raw: &mut RawObject| {
            raw.meta_mut().labels = Some([("x".to_owned(), "z".to_owned())].into());
            Ok::<(), ()>(())
        };
        let changed = object(TEXT).modify(label).unwrap();
        assert_eq!(changed.labels().get("x"), Some("z"));
        assert_eq!(changed.value().unwrap()["metadata"]["labels"]["x"], "z");
        assert_eq!(changed.value().unwrap()["n"], 1.5);
        assert!(changed.metadata_json().contains(r#""x":"z""#));
        for bare in ["{}", r#"{"n":1}"#, r#"{ "n":1,"metadata":null}"#] {
            let mut raw: RawObject = serde_json::from_str(bare).unwrap();
            raw.meta_mut().name = Some("b".into());
            assert_eq!(raw.value().unwrap()["metadata"]["name"], "b", "{bare}");
            assert_eq!(raw.value().unwrap().get("n").is_some(), bare.contains('n'), "{bare}");
        }
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
        for text in ["1", "{", ""] {
            assert!(serde_json::from_str::<RawObject>(text).is_err(), "{text}");
        }
        assert!(RawObject::new(r#"{"metadata":{"name":5}}"#.to_owned()).is_err());
    }
}

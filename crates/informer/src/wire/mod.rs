//! Bytes of the wire to objects, one object at a time.
//!
//! In goes a [`Frame`], in JSON or protobuf: an item of a list, the list without its items, or an event of a watch. Out
//! comes what a [source](crate::source) hands on. A frame is skimmed first: that tells whose it is, so that one which
//! does not decode is [`Unusable`] under its name and spoils nothing else, and leaves out what nobody asked for.
//! Key, version and labels come from there too, whatever the type makes of its metadata.

pub(crate) mod deep;
mod error_path;
mod event;
mod page;
mod skim;

use std::{
    any::TypeId,
    borrow::Cow,
    marker::PhantomData,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
};

use informer_model::{BUILTIN_KINDS, FrameError, ObjectKey, ProtobufErrorKind, ProtobufObject};
use kube::{Resource, core::ApiResource};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    Object, SHOWN, beginning,
    object::Wired,
    panic_message,
    source::{ListItem, Unusable},
};
use skim::Skim;
pub(crate) use skim::metadata_of;

/// In which form objects come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Json,
    Protobuf,
}

/// A message of a list or a watch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) codec: Codec,
    pub(crate) bytes: &'a [u8],
}

/// The apiVersion and kind of metadata alone.
const METADATA: [&str; 2] = ["meta.k8s.io/v1", "PartialObjectMetadata"];
/// More than the deepest object in protobuf takes.
const PROTOBUF_DEPTH: u32 = 200;

/// Decodes objects of one kind.
pub(crate) struct Wire<K> {
    kind: String,
    api_version: String,
    /// Whether Kubernetes itself has this kind. Only custom resources may call their lists as they like.
    is_builtin: bool,
    /// Whether a `K` is the metadata alone. A server may send more than that.
    metadata_only: bool,
    keep_managed_fields: bool,
    /// The members that say what an object is, for types that nothing else tells it.
    types: Option<String>,
    objects: PhantomData<fn() -> K>,
}

impl<K: Resource> Wire<K> {
    /// For the kind that `kind` says `K` is. Without `keep_managed_fields` no `K` has any.
    pub(crate) fn new(kind: &K::DynamicType, keep_managed_fields: bool) -> Self {
        let (group, version) = (K::group(kind), K::version(kind));
        let is_builtin = BUILTIN_KINDS.iter().any(|builtin| {
            builtin.kind == K::kind(kind) && builtin.group == group && builtin.version == version
        });
        // A type whose kind is known at run time only.
        let is_open = TypeId::of::<K::DynamicType>() == TypeId::of::<ApiResource>();
        let types = is_open.then(|| {
            let [api_version, kind] = [K::api_version(kind), K::kind(kind)].map(Value::from);
            format!(r#""apiVersion":{api_version},"kind":{kind},"#)
        });
        Self {
            types,
            kind: K::kind(kind).into_owned(),
            api_version: K::api_version(kind).into_owned(),
            is_builtin,
            metadata_only: K::metadata_api(),
            keep_managed_fields,
            objects: PhantomData,
        }
    }
}

impl<K: Resource + DeserializeOwned> Wire<K> {
    /// Whether objects can come in protobuf.
    pub(crate) fn knows_protobuf(&self) -> bool {
        self.metadata_only || ProtobufObject::knows(&self.api_version, &self.kind)
    }

    /// An item of a list.
    pub(crate) fn list_item(&self, frame: Frame<'_>) -> ListItem<K> {
        let bytes = frame.bytes;
        match frame.codec {
            Codec::Json => {
                let skim = skim::object(bytes);
                // Built-in kinds do not repeat in each item what the list says.
                let object = match self.other_kind(&skim) {
                    Some(other) => Err(format!("{other} in a list of {}", self.expected())),
                    None => self.object(bytes, &skim),
                };
                item(object, bytes, &skim)
            }
            Codec::Protobuf => {
                let item_of = self.protobuf_item(bytes);
                match skim::protobuf(&item_of, None) {
                    Ok(skim) => item(self.protobuf_object(&item_of, bytes, &skim), bytes, &skim),
                    Err(error) => ListItem::Unusable(unusable(bytes, &Skim::default(), error.to_string())),
                }
            }
        }
    }

    fn protobuf_item<'a>(&'a self, bytes: &'a [u8]) -> ProtobufObject<'a> {
        let own = [&*self.api_version, &*self.kind];
        let [api_version, kind] = if self.metadata_only { METADATA } else { own };
        let item = ProtobufObject::item(api_version, kind, bytes);
        if self.types.is_some() { item.with_types() } else { item }
    }

    /// An item of a list that was left out, of which this is the beginning.
    pub(crate) fn skipped_item(&self, beginning: Frame<'_>, reason: &FrameError) -> ListItem<K> {
        let bytes = beginning.bytes;
        let unusable = match beginning.codec {
            Codec::Json => unusable(bytes, &skim::object(bytes), reason.to_string()),
            Codec::Protobuf => {
                let skim = skim::protobuf(&self.protobuf_item(bytes), None).unwrap_or_default();
                unusable(bytes, &skim, reason.to_string())
            }
        };
        ListItem::Unusable(unusable)
    }

    fn object(&self, json: &[u8], skim: &Skim<'_>) -> Result<Object<K>, String> {
        let bytes = json.len();
        if skim.depth > deep::MAX_DEPTH {
            return Err(format!("it is nested {} deep, the limit is {}", skim.depth, deep::MAX_DEPTH));
        }
        let json = match &skim.managed_fields[..] {
            [_, ..] if !self.keep_managed_fields => Cow::Owned(without(json, &skim.managed_fields)),
            _ => Cow::Borrowed(json),
        };
        let json = match &self.types {
            // Items of a list of a built-in kind do not say what they are.
            Some(types) if skim.kind.is_none() && skim.api_version.is_none() && skim.has_metadata => {
                Cow::Owned(with(json.into_owned(), types))
            }
            _ => json,
        };
        let wired = Wired { bytes, hash: skim.hash, depth: skim.depth };
        decoded(skim, wired, || {
            deep::decode(&json, skim.depth).map_err(|error| error_path::describe(&error, &json))
        })
    }

    fn protobuf_object(
        &self,
        object: &ProtobufObject<'_>,
        bytes: &[u8],
        skim: &Skim<'_>,
    ) -> Result<Object<K>, String> {
        let object = if self.keep_managed_fields { object.keep_managed_fields() } else { *object };
        let wired = |depth| Wired { bytes: bytes.len(), hash: skim.hash, depth };
        let mut too_deep = false;
        let usual = decoded(skim, wired(0), || {
            object.decode().map_err(|error| {
                too_deep = error.kind == ProtobufErrorKind::Depth;
                error.to_string()
            })
        });
        if !too_deep {
            return usual;
        }
        deep::with_stack(PROTOBUF_DEPTH, || {
            decoded(skim, wired(PROTOBUF_DEPTH), || {
                object.any_depth().decode().map_err(|error| error.to_string())
            })
        })
    }

    /// What an object says it is, if that is something else than what was asked for.
    fn other_kind(&self, skim: &Skim<'_>) -> Option<String> {
        let (kind, api_version) = (skim.kind.as_deref(), skim.api_version.as_deref());
        let is_whole = kind.is_none_or(|kind| kind == self.kind)
            && api_version.is_none_or(|api_version| api_version == self.api_version);
        let is_expected = is_whole || self.is_metadata("PartialObjectMetadata", kind, api_version);
        (!is_expected).then(|| describe_kind(kind, api_version))
    }

    /// Whether it is `metadata_kind`, and that is welcome.
    fn is_metadata(&self, metadata_kind: &str, kind: Option<&str>, api_version: Option<&str>) -> bool {
        self.metadata_only
            && kind == Some(metadata_kind)
            && matches!(api_version, Some("meta.k8s.io/v1" | "meta.k8s.io/v1beta1"))
    }

    fn expected(&self) -> String {
        let kind = describe_kind(Some(&self.kind), Some(&self.api_version));
        if self.metadata_only { format!("metadata of {kind}") } else { kind }
    }
}

/// Decodes one object by itself, as it was kept.
#[cfg(feature = "packed")]
pub(crate) fn decode<T: DeserializeOwned>(frame: Frame<'_>) -> Result<T, String> {
    let bytes = frame.bytes;
    match frame.codec {
        Codec::Json => serde_json::from_slice(bytes).map_err(|error| error_path::describe(&error, bytes)),
        Codec::Protobuf => ProtobufObject::new(bytes)
            .and_then(|object| match object.decode() {
                Err(error) if error.kind == ProtobufErrorKind::Depth => {
                    deep::with_stack(PROTOBUF_DEPTH, || object.any_depth().decode())
                }
                outcome => outcome,
            })
            .map_err(|error| error.to_string()),
    }
}

/// What one object by itself says it is: `v1/Pod`; empty if it does not say so.
#[cfg(feature = "packed")]
pub(crate) fn kind_of(frame: Frame<'_>) -> String {
    let named = |api_version: &str, kind: &str| [api_version, "/", kind].concat();
    match frame.codec {
        Codec::Json => match skim::types(frame.bytes) {
            [Some(api_version), Some(kind)] => named(&api_version, &kind),
            _ => String::new(),
        },
        Codec::Protobuf => ProtobufObject::new(frame.bytes)
            .map(|object| named(object.api_version(), object.kind()))
            .unwrap_or_default(),
    }
}

fn item<K>(object: Result<Object<K>, String>, bytes: &[u8], skim: &Skim<'_>) -> ListItem<K> {
    match object {
        Ok(object) => ListItem::Object(object),
        Err(error) => ListItem::Unusable(unusable(bytes, skim, error)),
    }
}

/// How a type decodes is its user's, as a transform is: a panic costs that object and no more.
fn decoded<K>(
    skim: &Skim<'_>,
    wired: Wired,
    decode: impl FnOnce() -> Result<K, String>,
) -> Result<Object<K>, String> {
    let decoded = catch_unwind(AssertUnwindSafe(|| {
        let (namespace, name) = (skim.namespace.as_deref(), skim.name.as_deref());
        let version = skim.version.as_deref().unwrap_or_default();
        Object::decoded(decode()?, wired, namespace, name, version, |_| skim.labels.read())
            .map_err(|error| error.to_string())
    }));
    decoded.unwrap_or_else(|panic| Err(format!("decoding it panicked: {}", panic_message(&*panic))))
}

/// `Pod (v1)`.
fn describe_kind(kind: Option<&str>, api_version: Option<&str>) -> String {
    let shown = |text: Option<&str>| text.unwrap_or("?").chars().take(SHOWN).collect::<String>();
    format!("{} ({})", shown(kind), shown(api_version))
}

fn unusable(json: &[u8], skim: &Skim<'_>, error: String) -> Unusable {
    let key = skim.name.as_ref().and_then(|name| ObjectKey::new(skim.namespace.as_deref(), name).ok());
    let name = match (&key, &skim.namespace, &skim.name) {
        (Some(key), ..) => key.to_string(),
        (None, Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        (None, None, Some(name)) => name.to_string(),
        (None, _, None) => format!("an object without a name that begins with {}", beginning(json)),
    };
    Unusable { key, name, version: skim.version.as_deref().unwrap_or_default().into(), error }
}

/// The same JSON object with these members before its own.
fn with(mut json: Vec<u8>, members: &str) -> Vec<u8> {
    let inside = json.iter().position(|byte| *byte == b'{').map_or(0, |brace| brace + 1);
    json.splice(inside..inside, members.bytes());
    json
}

/// The same JSON without these members, each of which begins with the comma before it, if there is one.
fn without(json: &[u8], members: &[Range<usize>]) -> Vec<u8> {
    let mut rest = Vec::with_capacity(json.len());
    let mut from = 0;
    for member in members {
        rest.extend_from_slice(json.get(from..member.start).unwrap_or_default());
        from = member.end;
        // The first member leaves the comma after it.
        let after = json.get(from..).unwrap_or_default();
        let comma = after.iter().position(|byte| !byte.is_ascii_whitespace());
        if rest.trim_ascii_end().ends_with(b"{")
            && let Some(comma) = comma.filter(|at| after.get(*at) == Some(&b','))
        {
            from += comma + 1;
        }
    }
    rest.extend_from_slice(json.get(from..).unwrap_or_default());
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managed_fields_are_cut_out_wherever_they_stand() {
        for (metadata, expected) in [
            (r#"{"a":1,"managedFields":[{}],"name":"b"}"#, r#"{"a":1,"name":"b"}"#),
            (r#"{ "managedFields" : [{}] , "name":"b"}"#, r#"{ "name":"b"}"#),
            (r#"{"name":"b", "managedFields":[","]}"#, r#"{"name":"b"}"#),
            (r#"{"managedFields":null}"#, "{}"),
            (r#"{"managedFields":1,"managedFields":2,"a":3}"#, r#"{"a":3}"#),
            (r#"{"a":1,"managedFields":1,"managedFields":2}"#, r#"{"a":1}"#),
            (r#"{"a":",\"managedFields\":null"}"#, r#"{"a":",\"managedFields\":null"}"#),
        ] {
            let json = format!(r#"{{"metadata":{metadata},"managedFields":"mine"}}"#);
            let cut = without(json.as_bytes(), &skim::object(json.as_bytes()).managed_fields);
            let expected = format!(r#"{{"metadata":{expected},"managedFields":"mine"}}"#);
            assert_eq!(String::from_utf8(cut).unwrap(), expected);
        }
    }
}

//! Objects of kinds that are known only at run time.
//!
//! In goes the JSON of any object of Kubernetes; out comes a [`DynamicObject`]: its metadata, decoded, and everything
//! else as JSON values. It is decoded in one pass, and each value is built once. A struct that names the few fields
//! that are needed is smaller still, see [`projection!`](crate::projection!).

use std::{borrow::Cow, fmt};

use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope, ObjectMeta, TypeMeta},
};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, DeserializeOwned, MapAccess, Visitor, value::MapDeserializer},
    ser::SerializeMap,
};
use serde_json::{Map, Value};

use crate::wire::deep;

/// The members that every object has. They are never among [`DynamicObject::data`].
const API_VERSION: &str = "apiVersion";
const KIND: &str = "kind";
const METADATA: &str = "metadata";

/// An object of any kind, for kinds that no Rust type stands for.
///
/// Which kind a source is of, it is told by an [`ApiResource`]:
///
/// ```
/// use std::time::Duration;
///
/// use informer::{DynamicObject, KubeListWatch, SharedInformer};
/// use kube::core::{ApiResource, GroupVersionKind};
///
/// # use tokio_util::sync::CancellationToken;
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = informer_apiserver::ApiServer::builder().build();
/// # server.put(serde_json::json!({
/// #     "apiVersion": "apps/v1", "kind": "Deployment",
/// #     "metadata": { "name": "web", "namespace": "default" }, "spec": { "replicas": 3 },
/// # }))?;
/// # let client = server.client();
/// let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
/// let informer = SharedInformer::builder(KubeListWatch::<DynamicObject>::of_kind(client, kind)).build()?;
/// # let (running, stop) = (informer.clone(), CancellationToken::new());
/// # let stopped = stop.clone();
/// # let running = tokio::spawn(async move { running.run(stopped).await });
/// informer.wait_until_synced(Duration::from_secs(10)).await?;
/// let web = informer.store().get(&"default/web".parse()?).ok_or("no such deployment")?;
/// assert_eq!(web.pointer("/spec/replicas").and_then(|replicas| replicas.as_u64()), Some(3));
/// # stop.cancel();
/// # running.await??;
/// # Ok(()) }
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct DynamicObject {
    /// The API version. Every object that comes from a server has it.
    pub api_version: Option<String>,
    /// The kind. Every object that comes from a server has it.
    pub kind: Option<String>,
    /// The metadata.
    pub metadata: ObjectMeta,
    /// All other members: `spec`, `status`, `data` and whatever else there is.
    pub data: Map<String, Value>,
}

impl DynamicObject {
    /// The value at a JSON pointer (RFC 6901) into [`data`](Self::data), such as `/spec/ports/0/name`.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        let path = pointer.strip_prefix('/')?;
        let (member, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
        let member = member.replace("~1", "/").replace("~0", "~");
        self.data.get(&member)?.pointer(rest)
    }

    /// Decodes the same object as another type, such as the Rust type of its kind.
    pub fn try_parse<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        deep::with_stack(self.depth(), || {
            let types = [(API_VERSION, &self.api_version), (KIND, &self.kind)];
            let types =
                types.into_iter().filter_map(|(name, text)| Some((name, Value::from(text.as_deref()?))));
            let own: Vec<(&str, Value)> =
                types.chain([(METADATA, serde_json::to_value(&self.metadata)?)]).collect();
            let own = own.iter().map(|(name, value)| (*name, value));
            T::deserialize(MapDeserializer::new(own.chain(self.other_members())))
        })
    }

    /// All members but those that have a field of their own.
    fn other_members(&self) -> impl Iterator<Item = (&str, &Value)> {
        let members = self.data.iter().map(|(name, value)| (name.as_str(), value));
        members.filter(|(name, _)| is_other(name))
    }

    /// How many objects and arrays lie in each other. It is found without going down call by call.
    fn depth(&self) -> u32 {
        let managed =
            self.metadata.managed_fields.iter().flatten().filter_map(|entry| entry.fields_v1.as_ref());
        // Managed fields lie below the object, its metadata, the list of entries and the entry.
        let managed = managed.map(|fields| (4, &fields.0));
        let mut open: Vec<(u32, &Value)> =
            managed.chain(self.data.values().map(|value| (1, value))).collect();
        let mut deepest = 1;
        while let Some((above, value)) = open.pop() {
            let depth = above + 1;
            match value {
                Value::Object(members) => open.extend(members.values().map(|value| (depth, value))),
                Value::Array(items) => open.extend(items.iter().map(|value| (depth, value))),
                _ => continue,
            }
            deepest = deepest.max(depth);
        }
        deepest
    }
}

fn is_other(member: &str) -> bool {
    !matches!(member, API_VERSION | KIND | METADATA)
}

impl Resource for DynamicObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        kind.kind.as_str().into()
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        kind.group.as_str().into()
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        kind.version.as_str().into()
    }

    fn api_version(kind: &ApiResource) -> Cow<'_, str> {
        kind.api_version.as_str().into()
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        kind.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<'de> Deserialize<'de> for DynamicObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

/// Takes the members of an object as they come, each into the place where it stays.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = DynamicObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of Kubernetes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<DynamicObject, A::Error> {
        let (mut api_version, mut kind, mut metadata) = (None, None, None);
        let mut data = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            match name.as_str() {
                API_VERSION => once(&mut api_version, API_VERSION, &mut members)?,
                KIND => once(&mut kind, KIND, &mut members)?,
                METADATA => once(&mut metadata, METADATA, &mut members)?,
                // The last one counts, as in every object inside of it.
                _ => drop(data.insert(name, members.next_value()?)),
            }
        }
        Ok(DynamicObject {
            api_version: api_version.flatten(),
            kind: kind.flatten(),
            metadata: metadata.flatten().unwrap_or_default(),
            data,
        })
    }
}

/// Takes the value of a member that may come once.
fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    place: &mut Option<T>,
    name: &'static str,
    members: &mut A,
) -> Result<(), A::Error> {
    match place.replace(members.next_value()?) {
        None => Ok(()),
        Some(_) => Err(de::Error::duplicate_field(name)),
    }
}

impl Serialize for DynamicObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        for (name, text) in [(API_VERSION, &self.api_version), (KIND, &self.kind)] {
            if let Some(text) = text {
                members.serialize_entry(name, text)?;
            }
        }
        members.serialize_entry(METADATA, &self.metadata)?;
        for (name, value) in self.other_members() {
            members.serialize_entry(name, value)?;
        }
        members.end()
    }
}

impl From<DynamicObject> for kube::core::DynamicObject {
    fn from(object: DynamicObject) -> Self {
        let types = match (object.api_version, object.kind) {
            (None, None) => None,
            (api_version, kind) => Some(TypeMeta {
                api_version: api_version.unwrap_or_default(),
                kind: kind.unwrap_or_default(),
            }),
        };
        Self { types, metadata: object.metadata, data: Value::Object(object.data) }
    }
}

/// Data that is no JSON object has no members: kube could not write such an object either.
impl From<kube::core::DynamicObject> for DynamicObject {
    fn from(object: kube::core::DynamicObject) -> Self {
        let (api_version, kind) = object.types.map(|types| (types.api_version, types.kind)).unzip();
        let mut data = match object.data {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        data.retain(|name, _| is_other(name));
        Self { api_version, kind, metadata: object.metadata, data }
    }
}

/// `Deployment default/web@7`: not what is in it, which may be a secret.
impl fmt::Debug for DynamicObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectMeta { namespace, name, resource_version, .. } = &self.metadata;
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
        write!(f, "{} ", self.kind.as_deref().unwrap_or("DynamicObject"))?;
        if let Some(namespace) = namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{}@{}", known(name), known(resource_version))
    }
}

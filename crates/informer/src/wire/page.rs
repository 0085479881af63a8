//! What is left of a list without its items: its kind, its version, and where the next page begins.

use kube::Resource;
use serde::{Deserialize, de::DeserializeOwned};

use informer_model::ProtobufObject;

use super::{Codec, Frame, Wire, describe_kind};
use crate::{
    beginning,
    source::{PageEnd, SourceError},
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    kind: Option<String>,
    api_version: Option<String>,
    metadata: Option<Metadata>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
    remaining_item_count: Option<i64>,
}

impl<K: Resource + DeserializeOwned> Wire<K> {
    /// The end of a page, from the list without its items. Something else than a list of `K` is an error.
    pub(crate) fn page_end(&self, frame: Frame<'_>) -> Result<PageEnd, SourceError> {
        let envelope = frame.bytes;
        let list: Result<Envelope, String> = match frame.codec {
            Codec::Json => serde_json::from_slice(envelope).map_err(|error| error.to_string()),
            Codec::Protobuf => ProtobufObject::new(envelope)
                .and_then(|list| list.decode())
                .map_err(|error| error.to_string()),
        };
        let list = list.map_err(|error| {
            SourceError::Malformed(format!("a list that cannot be read: {error}, in {}", beginning(envelope)))
        })?;
        if !self.is_list(list.kind.as_deref(), list.api_version.as_deref()) {
            let found = match &list.kind {
                Some(kind) => describe_kind(Some(kind), list.api_version.as_deref()),
                None => format!("an object without a kind: {}", beginning(envelope)),
            };
            return Err(SourceError::Malformed(format!(
                "expected a list of {}, found {found}",
                self.expected()
            )));
        }
        let metadata = list.metadata.unwrap_or_default();
        Ok(PageEnd {
            version: metadata.resource_version.unwrap_or_default().into(),
            continue_token: metadata.continue_token.filter(|token| !token.is_empty()),
            remaining: metadata.remaining_item_count.and_then(|count| count.try_into().ok()),
        })
    }

    fn is_list(&self, kind: Option<&str>, api_version: Option<&str>) -> bool {
        if self.is_metadata("PartialObjectMetadataList", kind, api_version) {
            return true;
        }
        let Some(kind) = kind else { return false };
        let is_usual = kind.strip_suffix("List") == Some(&self.kind);
        let is_mixed = kind == "List" && api_version == Some("v1");
        is_mixed || ((is_usual || !self.is_builtin) && api_version == Some(&self.api_version))
    }
}

//! In which form a body came.

use http::{HeaderMap, header};
use informer_model::{Status, decode_protobuf};
use serde_json::Value;

use crate::manifests;

/// The longest body that is read: 3 MiB, as a real server has it.
pub(crate) const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The media type of a body, without parameters. None if it is not said.
pub(crate) fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or("?");
    Some(value.split(';').next().unwrap_or_default().trim()).filter(|value| !value.is_empty())
}

/// What typed clients of Kubernetes write built-in objects in.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The object or the options in a body, which is JSON unless it says that it is something else.
pub(crate) fn decode(headers: &HeaderMap, body: &[u8]) -> Result<Value, Status> {
    let value: Value = match content_type(headers) {
        None | Some("application/json" | "text/json") => serde_json::from_slice(body)
            .map_err(|e| Status::bad_request(format!("the body of the request is not valid JSON: {e}")))?,
        Some("application/yaml" | "application/x-yaml" | "text/yaml") => {
            manifests::reading_yaml(|options| serde_saphyr::from_slice_with_options(body, options))
                .map_err(|e| Status::bad_request(format!("the body of the request is not valid YAML: {e}")))?
        }
        Some(PROTOBUF) => decode_protobuf(body).map_err(|e| {
            Status::bad_request(format!("the body of the request is not valid protobuf: {e}"))
        })?,
        Some(_) => {
            return Err(Status::unsupported_media_type(&["application/json", "application/yaml", PROTOBUF]));
        }
    };
    if value.is_object() {
        Ok(value)
    } else {
        Err(Status::bad_request("the body of the request must be one object, written as {…}"))
    }
}

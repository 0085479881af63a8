//! In which form an answer is wanted, and in which one a body came.

use http::{HeaderMap, header};
use informer_model::{Status, decode_protobuf};
use serde_json::Value;

use crate::manifests;

/// The longest body that is read: 3 MiB, as a real server has it.
pub(crate) const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// How objects are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Object,
    /// `PartialObjectMetadata`.
    Metadata,
    /// A row of a `Table`.
    Table(Include),
}

/// What each row of a table carries of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// What a request is answered with, as far as forms go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    List,
    Watch,
}

/// One entry of an `Accept` header.
#[derive(Debug, PartialEq)]
pub(crate) struct Accepted<'a> {
    media: &'a str,
    pub r#as: Option<&'a str>,
    pub group: Option<&'a str>,
    pub version: Option<&'a str>,
    quality: f32,
}

/// The entries of `Accept` that JSON satisfies, best first. No header at all accepts anything.
pub(crate) fn accepted_json(headers: &HeaderMap) -> Vec<Accepted<'_>> {
    let values: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    let mut accepted: Vec<Accepted<'_>> = if values.is_empty() {
        vec![accepted_entry("*/*")]
    } else {
        values.iter().flat_map(|value| value.split(',')).map(accepted_entry).collect()
    };
    accepted.retain(|entry| {
        entry.quality > 0.0 && matches!(entry.media, "application/json" | "*/*" | "application/*")
    });
    accepted.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    accepted
}

fn accepted_entry(text: &str) -> Accepted<'_> {
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let mut entry = Accepted { media, r#as: None, group: None, version: None, quality: 1.0 };
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name.trim() {
            "as" => entry.r#as = Some(value.trim()),
            "g" => entry.group = Some(value.trim()),
            "v" => entry.version = Some(value.trim()),
            "q" => entry.quality = value.trim().parse().unwrap_or(0.0),
            _ => {}
        }
    }
    entry
}

/// The form in which a client wants objects.
pub(crate) fn form(headers: &HeaderMap, include: Option<&str>, shape: Shape) -> Result<Form, Status> {
    let include = match include {
        Some("None") => Include::Nothing,
        Some("Object") => Include::Object,
        None | Some("Metadata" | "") => Include::Metadata,
        Some(other) => {
            return Err(Status::bad_request(format!(
                "includeObject={other:?} is not one of None, Metadata and Object"
            )));
        }
    };
    let forms = accepted_json(headers).into_iter().filter_map(|entry| {
        match (entry.r#as, entry.group, entry.version) {
            (None, _, _) => Some(Form::Object),
            (Some("Table"), Some("meta.k8s.io"), Some("v1")) => Some(Form::Table(include)),
            (Some(kind), Some("meta.k8s.io"), Some("v1")) => {
                let fits = match shape {
                    Shape::One | Shape::Watch => kind == "PartialObjectMetadata",
                    Shape::List => kind == "PartialObjectMetadataList",
                };
                fits.then_some(Form::Metadata)
            }
            _ => None,
        }
    });
    forms.into_iter().next().ok_or_else(|| {
        Status::not_acceptable(&[
            "application/json",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        ])
    })
}

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
            serde_saphyr::from_slice_with_options(body, manifests::yaml_options())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT, value.parse().expect("a header"))])
    }

    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

    #[test]
    fn the_first_form_that_is_known_is_taken() {
        let kubectl = format!("{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json");
        assert_eq!(form(&accept(&kubectl), None, Shape::List), Ok(Form::Table(Include::Metadata)));
        assert_eq!(form(&accept(TABLE), Some("Object"), Shape::Watch), Ok(Form::Table(Include::Object)));
        let client_go = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(form(&accept(client_go), None, Shape::List), Ok(Form::Object));
        assert_eq!(form(&HeaderMap::new(), None, Shape::One), Ok(Form::Object));
    }

    #[test]
    fn quality_orders_and_zero_excludes() {
        let later = format!("application/json;q=0.5,{TABLE};q=0.8");
        assert_eq!(form(&accept(&later), None, Shape::List), Ok(Form::Table(Include::Metadata)));
        let excluded = "application/json;q=0";
        assert_eq!(form(&accept(excluded), None, Shape::List).map_err(|e| e.code), Err(406));
    }

    #[test]
    fn a_form_that_is_not_served_is_406() {
        let list = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
        assert_eq!(form(&accept(list), None, Shape::List), Ok(Form::Metadata));
        for (value, shape) in [
            (list, Shape::One),
            ("application/vnd.kubernetes.protobuf", Shape::List),
            ("application/json;as=Table;v=v2;g=meta.k8s.io", Shape::List),
            ("text/html", Shape::One),
        ] {
            assert_eq!(form(&accept(value), None, shape).map_err(|e| e.code), Err(406), "{value}");
        }
    }
}

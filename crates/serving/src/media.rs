//! In which form an answer is wanted.
//!
//! In: the headers of a request. Out: the [`Form`] of objects, and the shape of the documents of discovery.

use http::{HeaderMap, header};
use informer_model::Status;

/// How objects are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    Object,
    /// `PartialObjectMetadata`.
    Metadata,
    /// A row of a `Table`.
    Table(Include),
}

/// What each row of a table carries of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Include {
    /// Nothing: `includeObject=None`.
    Nothing,
    /// Its `PartialObjectMetadata`, which is usual.
    Metadata,
    /// All of it.
    Object,
}

/// What a request is answered with, as far as forms go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One object.
    One,
    /// Many objects.
    List,
    /// Events about objects.
    Watch,
}

/// The media type of the documents of discovery in the aggregated shape.
pub const AGGREGATED_DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// One entry of an `Accept` header.
#[derive(Debug, PartialEq)]
pub struct Accepted<'a> {
    media: &'a str,
    /// The kind into which the answer is to be turned: `as=Table`.
    pub r#as: Option<&'a str>,
    /// The group of that kind: `g=meta.k8s.io`.
    pub group: Option<&'a str>,
    /// The version of that kind: `v=v1`.
    pub version: Option<&'a str>,
    quality: f32,
}

/// The entries of `Accept` that JSON satisfies, best first. No header at all accepts anything.
pub fn accepted_json(headers: &HeaderMap) -> Vec<Accepted<'_>> {
    let values: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    let mut accepted: Vec<Accepted<'_>> = if values.is_empty() {
        vec![accepted_entry("*/*")]
    } else {
        values.iter().flat_map(|value| value.split(',')).map(accepted_entry).collect()
    };
    accepted.retain(|entry| entry.quality > 0.0 && matches!(entry.media, "application/json" | "*/*"));
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

/// The form in which a client wants objects. `include` is the parameter `includeObject`, if there is one.
///
/// What cannot be served is a 406, a parameter that says nothing known a 400.
pub fn form(headers: &HeaderMap, include: Option<&str>, shape: Shape) -> Result<Form, Status> {
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
    let mut forms = accepted_json(headers).into_iter().filter_map(|entry| {
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
    forms.next().ok_or_else(|| {
        let status = Status::not_acceptable(&[
            "application/json",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        ]);
        // Where not even the format is served, the details are there and empty.
        if accepted_json(headers).is_empty() { status.about("", "", "") } else { status }
    })
}

/// Whether a client wants the documents of discovery in the aggregated shape; if not, it wants the older ones.
///
/// Who accepts neither gets a 406.
pub fn aggregated_discovery(headers: &HeaderMap) -> Result<bool, Status> {
    let mut shapes = accepted_json(headers).into_iter().filter_map(|entry| {
        match (entry.r#as, entry.group, entry.version) {
            (None, ..) => Some(false),
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) => Some(true),
            _ => None,
        }
    });
    shapes.next().ok_or_else(|| Status::not_acceptable(&["application/json", AGGREGATED_DISCOVERY]))
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

    #[test]
    fn discovery_is_aggregated_for_those_who_would_rather_have_it_so() {
        let kubectl = format!("{AGGREGATED_DISCOVERY},application/json");
        assert_eq!(aggregated_discovery(&accept(&kubectl)), Ok(true));
        assert_eq!(aggregated_discovery(&accept("application/json")), Ok(false));
        assert_eq!(aggregated_discovery(&HeaderMap::new()), Ok(false));
        let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        assert_eq!(aggregated_discovery(&accept(beta)).map_err(|e| e.code), Err(406));
    }
}

//! In which form an answer is wanted.
//!
//! In: the headers of a request, and what can be written in protobuf. Out: the [`Form`] of objects and their
//! [`Encoding`], and the shape of the documents of discovery.

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

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// [`PROTOBUF`]
    Protobuf,
}

/// What a server can write in protobuf, of the objects of one kind. Tables have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InProtobuf {
    /// Nothing.
    Nothing,
    /// Their `PartialObjectMetadata`: they are custom resources.
    Metadata,
    /// Themselves, too.
    Objects,
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

/// The media type of objects in protobuf.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

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

/// The entries of `Accept` that JSON or protobuf satisfies, best first. No header at all accepts anything.
fn accepted(headers: &HeaderMap) -> impl Iterator<Item = (Encoding, Accepted<'_>)> {
    let values: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    let mut accepted: Vec<Accepted<'_>> = if values.is_empty() {
        vec![accepted_entry("*/*")]
    } else {
        values.iter().flat_map(|value| value.split(',')).map(accepted_entry).collect()
    };
    accepted.retain(|entry| entry.quality > 0.0);
    accepted.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    accepted.into_iter().filter_map(|entry| match entry.media {
        "application/json" | "*/*" => Some((Encoding::Json, entry)),
        PROTOBUF => Some((Encoding::Protobuf, entry)),
        _ => None,
    })
}

/// The entries of `Accept` that JSON satisfies, best first. No header at all accepts anything.
pub fn accepted_json(headers: &HeaderMap) -> Vec<Accepted<'_>> {
    accepted(headers).filter(|(encoding, _)| *encoding == Encoding::Json).map(|(_, entry)| entry).collect()
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

/// The form in which a client wants objects, of a server that writes nothing but JSON. See [`negotiate`].
pub fn form(headers: &HeaderMap, include: Option<&str>, shape: Shape) -> Result<Form, Status> {
    negotiate(headers, include, shape, InProtobuf::Nothing).map(|(form, _)| form)
}

/// The form in which a client wants objects, and how it wants them written: the best that it accepts and that can be
/// served. `include` is the parameter `includeObject`, if there is one.
///
/// What cannot be served is a 406, a parameter that says nothing known a 400.
pub fn negotiate(
    headers: &HeaderMap,
    include: Option<&str>,
    shape: Shape,
    in_protobuf: InProtobuf,
) -> Result<(Form, Encoding), Status> {
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
    let mut forms = accepted(headers).filter_map(|(encoding, entry)| {
        let form = match (entry.r#as, entry.group, entry.version) {
            (None, _, _) => Form::Object,
            (Some("Table"), Some("meta.k8s.io"), Some("v1")) => Form::Table(include),
            (Some(kind), Some("meta.k8s.io"), Some("v1")) => {
                let fits = match shape {
                    Shape::One | Shape::Watch => kind == "PartialObjectMetadata",
                    Shape::List => kind == "PartialObjectMetadataList",
                };
                fits.then_some(Form::Metadata)?
            }
            _ => return None,
        };
        let served = match (encoding, form) {
            (Encoding::Json, _) => true,
            (Encoding::Protobuf, Form::Object) => in_protobuf == InProtobuf::Objects,
            (Encoding::Protobuf, Form::Metadata) => in_protobuf != InProtobuf::Nothing,
            (Encoding::Protobuf, Form::Table(_)) => false,
        };
        served.then_some((form, encoding))
    });
    forms.next().ok_or_else(|| not_acceptable(headers, in_protobuf))
}

fn not_acceptable(headers: &HeaderMap, in_protobuf: InProtobuf) -> Status {
    const JSON: [&str; 4] = [
        "application/json",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ];
    const METADATA: [&str; 2] = [
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ];
    let protobuf = match in_protobuf {
        InProtobuf::Nothing => vec![],
        InProtobuf::Metadata => METADATA.to_vec(),
        InProtobuf::Objects => [&[PROTOBUF][..], &METADATA].concat(),
    };
    let status = Status::not_acceptable(&[&JSON[..], &protobuf].concat());
    // Where not even the format is served, the details are there and empty.
    let is_served = |encoding: Encoding| encoding == Encoding::Json || in_protobuf != InProtobuf::Nothing;
    if accepted(headers).any(|(encoding, _)| is_served(encoding)) { status } else { status.about("", "", "") }
}

/// How a client wants failures written, of a server that writes protobuf. They have one form, so who accepts only
/// others gets JSON.
pub fn status_encoding(headers: &HeaderMap) -> Encoding {
    let plain = accepted(headers).find(|(_, entry)| entry.r#as.is_none());
    plain.map_or(Encoding::Json, |(encoding, _)| encoding)
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
    fn protobuf_is_served_in_its_turn_where_there_is_some() {
        let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
        let table = format!("{PROTOBUF};as=Table;v=v1;g=meta.k8s.io");
        let first = format!("{PROTOBUF},application/json");
        let (objects, custom, nothing) = (InProtobuf::Objects, InProtobuf::Metadata, InProtobuf::Nothing);
        for (value, served, expected) in [
            (PROTOBUF, objects, Ok((Form::Object, Encoding::Protobuf))),
            (PROTOBUF, custom, Err(406)),
            (PROTOBUF, nothing, Err(406)),
            (&first, objects, Ok((Form::Object, Encoding::Protobuf))),
            (&first, custom, Ok((Form::Object, Encoding::Json))),
            (&format!("{first};q=0.9"), objects, Ok((Form::Object, Encoding::Protobuf))),
            (&format!("{PROTOBUF};q=0.9,application/json"), objects, Ok((Form::Object, Encoding::Json))),
            (&format!("{PROTOBUF};q=0,application/json;q=0.1"), objects, Ok((Form::Object, Encoding::Json))),
            (&format!("application/json,{PROTOBUF}"), objects, Ok((Form::Object, Encoding::Json))),
            ("*/*", objects, Ok((Form::Object, Encoding::Json))),
            (&format!("{PROTOBUF};stream=watch"), objects, Ok((Form::Object, Encoding::Protobuf))),
            (&metadata, objects, Ok((Form::Metadata, Encoding::Protobuf))),
            (&metadata, custom, Ok((Form::Metadata, Encoding::Protobuf))),
            (&metadata, nothing, Err(406)),
            (&table, objects, Err(406)),
            (&format!("{table},{TABLE}"), objects, Ok((Form::Table(Include::Metadata), Encoding::Json))),
        ] {
            let negotiated = negotiate(&accept(value), None, Shape::Watch, served);
            assert_eq!(negotiated.map_err(|e| e.code), expected, "{value} {served:?}");
        }
    }

    #[test]
    fn a_406_names_what_is_served() {
        let refused = |served| negotiate(&accept("text/html"), None, Shape::One, served).unwrap_err().message;
        assert!(!refused(InProtobuf::Nothing).contains("protobuf"));
        assert!(!refused(InProtobuf::Metadata).contains("protobuf,"));
        assert!(refused(InProtobuf::Objects).contains("protobuf,"));
    }

    #[test]
    fn failures_are_protobuf_for_those_who_would_rather_have_it_so() {
        let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
        for (value, encoding) in [
            (PROTOBUF, Encoding::Protobuf),
            (&format!("{PROTOBUF},application/json"), Encoding::Protobuf),
            (&format!("{TABLE},application/json,{PROTOBUF}"), Encoding::Json),
            (&metadata, Encoding::Json),
            (&format!("{metadata},{PROTOBUF}"), Encoding::Protobuf),
            ("text/html", Encoding::Json),
        ] {
            assert_eq!(status_encoding(&accept(value)), encoding, "{value}");
        }
        assert_eq!(status_encoding(&HeaderMap::new()), Encoding::Json);
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

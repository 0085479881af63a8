//! One object in protobuf: who it is, and the object itself in whatever type is asked for.

use std::ops::Range;

use serde::de::DeserializeOwned;

use super::{
    DEPTH_LIMIT, ProtobufError,
    de::{Bounds, Context, MANAGED_FIELDS, Object},
    envelope::{Envelope, METADATA},
    error::{Failure, ProtobufErrorKind as Kind, failure},
    order::ordered,
    schema::{MessageId, SCHEMA},
    wire::{Reader, WireType},
};

/// So deep any stack can go: as deep as `serde_json` goes by itself, in which a message takes about two levels.
const USUAL_DEPTH: usize = 50;

/// An object in protobuf that is not decoded yet.
///
/// ```
/// use informer_model::ProtobufObject;
///
/// let body = b"k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x06\n\x04\n\x02qa";
/// let object = ProtobufObject::new(body)?;
/// assert_eq!((object.api_version(), object.kind()), ("v1", "Namespace"));
/// assert_eq!(object.head()?.name, Some("qa"));
///
/// let value: serde_json::Value = object.decode()?;
/// assert_eq!(value["metadata"]["name"], "qa");
/// # Ok::<(), informer_model::ProtobufError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ProtobufObject<'a> {
    envelope: Envelope<'a>,
    types: bool,
    managed_fields: bool,
    depth: usize,
}

/// What there is to know about an object without decoding it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtobufHead<'a> {
    /// Whether it has metadata at all.
    pub has_metadata: bool,
    /// `metadata.name`.
    pub name: Option<&'a str>,
    /// `metadata.namespace`; none in the whole cluster.
    pub namespace: Option<&'a str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Option<&'a str>,
    /// `metadata.labels`, as they came.
    pub labels: Vec<(&'a str, &'a str)>,
    /// Its bytes without `metadata.managedFields`: parts that are the same of two objects that are the same.
    pub parts: Vec<&'a [u8]>,
}

impl<'a> ProtobufObject<'a> {
    /// An object as `application/vnd.kubernetes.protobuf` has it, in an envelope.
    pub fn new(body: &'a [u8]) -> Result<Self, ProtobufError> {
        Ok(Self { types: true, ..Self::of(Envelope::read(Reader::new(body)).map_err(|error| *error)?) })
    }

    /// An item of a list of this kind. Items do not say what they are, in JSON neither.
    pub fn item(api_version: &'a str, kind: &'a str, body: &'a [u8]) -> Self {
        Self::of(Envelope::around(api_version, kind, body))
    }

    fn of(envelope: Envelope<'a>) -> Self {
        Self { envelope, types: false, managed_fields: false, depth: USUAL_DEPTH }
    }

    /// What an event of a watch says has happened, and the object with its envelope.
    pub fn watch_event(frame: &'a [u8]) -> Result<(&'a str, &'a [u8]), ProtobufError> {
        watch_event(Reader::new(frame)).map_err(|error| *error.within(0, || "meta/v1.WatchEvent".to_owned()))
    }

    /// Decodes `metadata.managedFields` too.
    #[must_use]
    pub fn keep_managed_fields(self) -> Self {
        Self { managed_fields: true, ..self }
    }

    /// Decodes `apiVersion` and `kind`, of an item too.
    #[must_use]
    pub fn with_types(self) -> Self {
        Self { types: true, ..self }
    }

    /// Takes an object that is nested deeper than about twice what objects of Kubernetes are, up to 100 messages.
    /// Decoding it takes as much more of the stack.
    #[must_use]
    pub fn any_depth(self) -> Self {
        Self { depth: DEPTH_LIMIT, ..self }
    }

    /// The `apiVersion` that the envelope names.
    pub fn api_version(&self) -> &'a str {
        self.envelope.api_version
    }

    /// The `kind` that the envelope names.
    pub fn kind(&self) -> &'a str {
        self.envelope.kind
    }

    /// Whether a kind can be decoded at all.
    pub fn knows(api_version: &str, kind: &str) -> bool {
        SCHEMA.kind(api_version, kind).is_some()
    }

    /// Who it is.
    pub fn head(&self) -> Result<ProtobufHead<'a>, ProtobufError> {
        head(self.envelope.raw).map_err(|error| *error)
    }

    /// The object as a `T`, which sees what it would see in JSON, but for `managedFields`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, ProtobufError> {
        self.read().map_err(|error| *error)
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let Some(message) = self.envelope.message()? else {
            let json = self.envelope.json()?;
            return T::deserialize(json).map_err(|error| failure(0, Kind::Refused(error.to_string())));
        };
        match self.read_message(self.envelope.raw, message) {
            Err(error) if error.kind == Kind::Order => {
                let ordered = ordered(self.envelope.raw, message, 0)?;
                self.read_message(Reader::new(&ordered), message)
            }
            outcome => outcome,
        }
    }

    fn read_message<T: DeserializeOwned>(&self, body: Reader<'_>, message: MessageId) -> Result<T, Failure> {
        let bounds = Bounds::new(body.rest().len(), self.depth, self.managed_fields);
        let types = self.types.then_some([self.envelope.api_version, self.envelope.kind]);
        let envelope = [self.envelope.api_version, self.envelope.kind];
        T::deserialize(Object { body, message, types, envelope, context: Context::new(&bounds) })
    }
}

fn watch_event(mut frame: Reader<'_>) -> Result<(&str, &[u8]), Failure> {
    let (mut change, mut object): (&str, &[u8]) = ("", &[]);
    while let Some(tag) = frame.tag()? {
        match (tag.number, tag.wire) {
            (1, WireType::Delimited) => change = frame.text()?,
            (2, WireType::Delimited) => {
                let mut extension = frame.delimited()?;
                while let Some(tag) = extension.tag()? {
                    match (tag.number, tag.wire) {
                        (1, WireType::Delimited) => object = extension.delimited()?.rest(),
                        _ => extension.skip(tag)?,
                    }
                }
            }
            _ => frame.skip(tag)?,
        }
    }
    Ok((change, object))
}

fn head(body: Reader<'_>) -> Result<ProtobufHead<'_>, Failure> {
    let (mut head, mut reader) = (ProtobufHead::default(), body);
    let mut rest = Cut { whole: body.rest(), from: 0 };
    while let Some(tag) = reader.tag()? {
        let mut value = reader;
        reader.skip(tag)?;
        if tag.number != METADATA || tag.wire != WireType::Delimited {
            continue;
        }
        let start = tag.position - body.position();
        let mut metadata = value.delimited()?;
        rest.without(start..reader.position() - body.position(), &mut head.parts);
        head.has_metadata = true;
        let begin = metadata.position();
        let mut kept = Cut { whole: metadata.rest(), from: 0 };
        while let Some(tag) = metadata.tag()? {
            match (tag.number, tag.wire) {
                (1, WireType::Delimited) => head.name = Some(metadata.text()?),
                (3, WireType::Delimited) => head.namespace = Some(metadata.text()?),
                (6, WireType::Delimited) => head.resource_version = Some(metadata.text()?),
                (11, WireType::Delimited) => head.labels.push(texts(metadata.delimited()?)?.into()),
                _ => metadata.skip(tag)?,
            }
            if tag.number == u32::from(MANAGED_FIELDS) {
                kept.without(tag.position - begin..metadata.position() - begin, &mut head.parts);
            }
        }
        kept.end(&mut head.parts);
    }
    rest.end(&mut head.parts);
    for text in [&mut head.name, &mut head.namespace, &mut head.resource_version] {
        *text = text.filter(|text| !text.is_empty());
    }
    Ok(head)
}

/// The texts in the fields 1 and 2 of a message.
fn texts(mut reader: Reader<'_>) -> Result<[&str; 2], Failure> {
    let mut texts = [""; 2];
    while let Some(tag) = reader.tag()? {
        match (tag.number, tag.wire) {
            (1, WireType::Delimited) => texts[0] = reader.text()?,
            (2, WireType::Delimited) => texts[1] = reader.text()?,
            _ => reader.skip(tag)?,
        }
    }
    Ok(texts)
}

/// Bytes out of which some are cut.
struct Cut<'a> {
    whole: &'a [u8],
    from: usize,
}

impl<'a> Cut<'a> {
    fn without(&mut self, range: Range<usize>, parts: &mut Vec<&'a [u8]>) {
        parts.extend(self.whole.get(self.from..range.start).filter(|part| !part.is_empty()));
        self.from = range.end;
    }

    fn end(self, parts: &mut Vec<&'a [u8]>) {
        parts.extend(self.whole.get(self.from..).filter(|part| !part.is_empty()));
    }
}

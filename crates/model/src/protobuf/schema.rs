//! The messages of Kubernetes: which fields they have, and what these are in JSON.
//!
//! Read once from `schema.txt`, whose head explains its lines; `tools/protobuf-schema` writes it.
//! Messages are told apart by index, fields by number; the names in the text are not copied.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::Value;

/// The schema of this crate.
pub(super) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    // The text is part of the program and a test reads it.
    Schema::parse(include_str!("schema.txt")).unwrap_or_else(|error| panic!("schema.txt: {error}"))
});

/// All messages, and the kinds that they belong to.
#[derive(Debug)]
pub(super) struct Schema {
    messages: Vec<Message>,
    fields: Vec<Field>,
    /// Sorted by apiVersion and kind. The apiVersion `*` is any.
    kinds: Vec<(&'static str, &'static str, MessageId)>,
    /// What [`Merge::Keys`] means, each once.
    keys: Vec<(&'static str, Box<[MergeKey]>)>,
}

/// Which message of the [`SCHEMA`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageId(u16);

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) package: &'static str,
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// Server-side apply does not merge it.
    pub(super) atomic: bool,
    first_field: u16,
    fields: u16,
}

/// What a message is in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// An object of its fields.
    Object,
    /// A text, in field 1.
    Quantity,
    /// An integer or a text.
    IntOrString,
    /// A text to the second.
    Time,
    /// A text to the microsecond.
    MicroTime,
    /// Any JSON, in field 1.
    RawJson,
    /// Any JSON or any object in protobuf, in field 1.
    RawExtension,
    /// The list in field 2 if it has items, else what is in field 1.
    ListOrField,
    /// What is in field 2 if it is there, else the bool in field 1.
    FieldOrBool,
}

/// One field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) number: u16,
    pub(super) count: Count,
    pub(super) r#type: Type,
    pub(super) absent: Absent,
    /// Whether a zero that was sent is left out.
    pub(super) omits_zero: bool,
    pub(super) merge: Merge,
}

/// What server-side apply merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Merge {
    /// Maps, and messages that are not atomic themselves; no lists.
    Usual,
    /// Nothing: it is replaced.
    Atomic,
    /// All fields, although the message is atomic elsewhere.
    Fields,
    /// A list as a set.
    Set,
    /// A list by keys: which, is in the schema.
    Keys(u8),
}

/// A field that tells the items of a list apart.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeKey {
    /// The name of the field.
    pub name: &'static str,
    /// What an item has that leaves it out.
    pub default: Option<Value>,
}

impl MergeKey {
    fn parse(text: &'static str) -> Self {
        let (name, default) =
            text.split_once('=').map_or((text, None), |(name, default)| (name, Some(default)));
        let value = |text: &str| text.parse::<u32>().map_or_else(|_| text.into(), Value::from);
        Self { name, default: default.map(value) }
    }
}

/// How often a field occurs, and where its value goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// At most once.
    One,
    /// Any number of times: a list.
    List,
    /// Any number of times: entries of key and value.
    Map,
    /// Once; its fields go into the object that it is in.
    Embedded,
}

/// What a field holds; a list, its items; a map, its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Int32,
    Int64,
    Double,
    Text,
    Bytes,
    /// A message that has texts in field 1 and is a list in JSON.
    Texts,
    Message(MessageId),
}

/// What stands in JSON for a field that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    Nothing,
    Null,
    EmptyList,
    /// The zero of its type.
    Zero,
}

impl Schema {
    /// The message of a kind.
    pub(super) fn kind(&self, api_version: &str, kind: &str) -> Option<MessageId> {
        let find = |version| self.kinds.binary_search_by_key(&(version, kind), |entry| (entry.0, entry.1));
        let index = find(api_version).or_else(|_| find("*")).ok()?;
        self.kinds.get(index).map(|entry| entry.2)
    }

    #[cfg(test)]
    pub(super) fn kinds(&self) -> &[(&'static str, &'static str, MessageId)] {
        &self.kinds
    }

    #[cfg(test)]
    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(super) fn message(&self, id: MessageId) -> &Message {
        &self.messages[usize::from(id.0)]
    }

    /// The fields in the order of their numbers.
    pub(super) fn fields(&self, message: &Message) -> &[Field] {
        let first = usize::from(message.first_field);
        &self.fields[first..first + usize::from(message.fields)]
    }

    /// The field of a name, also in messages whose fields are shown as if they were the message's own.
    pub(super) fn field(&self, message: &Message, name: &str) -> Option<&Field> {
        let fields = self.fields(message);
        let own = fields.iter().find(|field| field.count != Count::Embedded && field.name == name);
        own.or_else(|| {
            fields.iter().find_map(|field| match (field.count, field.r#type) {
                (Count::Embedded, Type::Message(id)) => self.field(self.message(id), name),
                _ => None,
            })
        })
    }

    /// The keys of a list that is merged by them.
    pub(super) fn keys(&self, keys: u8) -> &[MergeKey] {
        self.keys.get(usize::from(keys)).map_or(&[], |(_, keys)| keys)
    }

    fn parse(text: &'static str) -> Result<Self, String> {
        let mut schema =
            Self { messages: Vec::new(), fields: Vec::new(), kinds: Vec::new(), keys: Vec::new() };
        let mut ids = HashMap::new();
        let mut unresolved = Vec::new();
        let mut kind_lines = Vec::new();
        let mut package = "";
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
            match first {
                "kinds" => kind_lines.push(rest),
                "package" => package = rest,
                _ => {
                    let (first, atomic) =
                        first.strip_suffix('!').map_or((first, false), |first| (first, true));
                    let (name, form) = first.split_once('=').unwrap_or((first, ""));
                    let form =
                        Form::parse(form).ok_or_else(|| format!("{package}.{name}: no form {form:?}"))?;
                    let id = schema.messages.len().try_into().map(MessageId).map_err(|e| e.to_string())?;
                    ids.insert((package, name), id);
                    schema.messages.push(Message { package, name, form, atomic, first_field: 0, fields: 0 });
                    unresolved.push(rest);
                }
            }
        }
        for (message, rest) in schema.messages.iter_mut().zip(unresolved) {
            let first = schema.fields.len();
            for token in rest.split_ascii_whitespace() {
                let bad = || format!("{}.{}: bad field {token:?}", message.package, message.name);
                let (token, merge) = token.split_once('@').map_or((token, None), |(t, m)| (t, Some(m)));
                let field = Field::parse(token, message.package, &ids).ok_or_else(bad)?;
                let merge = Merge::parse(merge, &mut schema.keys).ok_or_else(bad)?;
                schema.fields.push(Field { merge, ..field });
            }
            message.first_field = first.try_into().map_err(|_| "more than 65,535 fields")?;
            message.fields = (schema.fields.len() - first) as u16;
        }
        for line in kind_lines {
            let mut words = line.split_ascii_whitespace();
            let (version, package) =
                words.next().zip(words.next()).ok_or_else(|| format!("bad kinds {line:?}"))?;
            for kind in words {
                let id = ids.get(&(package, kind)).ok_or_else(|| format!("no message {package}.{kind}"))?;
                schema.kinds.push((version, kind, *id));
            }
        }
        schema.kinds.sort_unstable_by_key(|entry| (entry.0, entry.1));
        Ok(schema)
    }
}

impl Merge {
    fn parse(mark: Option<&'static str>, known: &mut Vec<(&'static str, Box<[MergeKey]>)>) -> Option<Self> {
        Some(match mark {
            None => Self::Usual,
            Some("!") => Self::Atomic,
            Some("+") => Self::Fields,
            Some("") => Self::Set,
            Some(keys) => {
                let place = known.iter().position(|(text, _)| *text == keys).unwrap_or_else(|| {
                    known.push((keys, keys.split(',').map(MergeKey::parse).collect()));
                    known.len() - 1
                });
                Self::Keys(place.try_into().ok()?)
            }
        })
    }
}

impl Message {
    /// What errors call it.
    pub(super) fn full_name(&self) -> String {
        format!("{}.{}", self.package, self.name)
    }
}

impl Form {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "" => Self::Object,
            "quantity" => Self::Quantity,
            "intstr" => Self::IntOrString,
            "time" => Self::Time,
            "microtime" => Self::MicroTime,
            "rawjson" => Self::RawJson,
            "rawext" => Self::RawExtension,
            "orarray" | "orstrarray" => Self::ListOrField,
            "orbool" => Self::FieldOrBool,
            _ => return None,
        })
    }
}

impl Field {
    /// Whether Go has nothing where there is no value: a pointer or bytes, and not a struct or a plain scalar.
    pub(super) fn is_nil_without_value(&self) -> bool {
        matches!(self.r#type, Type::Bytes | Type::Texts) || self.absent != Absent::Zero && !self.omits_zero
    }

    fn parse(
        token: &'static str,
        package: &'static str,
        ids: &HashMap<(&'static str, &'static str), MessageId>,
    ) -> Option<Self> {
        let (name, rest) = token.split_once(':')?;
        let (number, rest) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (marks, r#type) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?);
        let r#type = match r#type {
            "bool" => Type::Bool,
            "int32" => Type::Int32,
            "int64" => Type::Int64,
            "double" => Type::Double,
            "string" => Type::Text,
            "bytes" => Type::Bytes,
            "strlist" => Type::Texts,
            message => Type::Message(*ids.get(&message.rsplit_once('.').unwrap_or((package, message)))?),
        };
        let (count, absent) = match marks {
            "" if matches!(r#type, Type::Bytes | Type::Texts) => (Count::One, Absent::Null),
            "" => (Count::One, Absent::Zero),
            "*" => (Count::One, Absent::Null),
            "?" | "*?" => (Count::One, Absent::Nothing),
            "[]" => (Count::List, Absent::Null),
            "[]!" => (Count::List, Absent::EmptyList),
            "[]?" => (Count::List, Absent::Nothing),
            "{}" => (Count::Map, Absent::Null),
            "{}?" => (Count::Map, Absent::Nothing),
            "+" if matches!(r#type, Type::Message(_)) => (Count::Embedded, Absent::Zero),
            _ => return None,
        };
        Some(Self {
            name,
            number: number.parse().ok()?,
            count,
            r#type,
            absent,
            omits_zero: marks == "?",
            merge: Merge::Usual,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(api_version: &str, kind: &str) -> &'static Message {
        SCHEMA.message(SCHEMA.kind(api_version, kind).unwrap_or_else(|| panic!("{api_version} {kind}")))
    }

    fn field(message: &Message, name: &str) -> (Field, Option<&'static Message>) {
        let field = SCHEMA.fields(message).iter().find(|field| field.name == name);
        let field = *field.unwrap_or_else(|| panic!("{}.{name}", message.full_name()));
        let Type::Message(inner) = field.r#type else { return (field, None) };
        (field, Some(SCHEMA.message(inner)))
    }

    #[test]
    fn the_text_is_read_as_a_whole() {
        let lines = || include_str!("schema.txt").lines().filter(|line| !line.starts_with('#'));
        let messages = lines().filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
        assert_eq!(SCHEMA.messages.len(), messages.count());
        assert_eq!(SCHEMA.fields.len(), lines().map(|line| line.matches(':').count()).sum::<usize>());
        assert_eq!(SCHEMA.messages.iter().map(|m| usize::from(m.fields)).sum::<usize>(), SCHEMA.fields.len());
        assert!(SCHEMA.messages.len() > 1000 && SCHEMA.kinds.len() > 300);
    }

    #[test]
    fn fields_are_in_the_order_of_their_numbers_and_have_names() {
        for message in &SCHEMA.messages {
            let fields = SCHEMA.fields(message);
            assert!(fields.is_sorted_by(|a, b| a.number < b.number), "{}", message.full_name());
            for field in fields {
                assert_eq!(field.name.is_empty(), field.count == Count::Embedded, "{}", message.full_name());
            }
            let scalar = !matches!(message.form, Form::Object | Form::ListOrField | Form::FieldOrBool);
            assert!(!scalar || fields.is_empty(), "{}", message.full_name());
        }
    }

    #[test]
    fn what_is_absent_ends_somewhere() {
        fn depth(message: &Message) -> usize {
            let zeros = SCHEMA.fields(message).iter().filter(|field| field.absent == Absent::Zero);
            let inner = zeros.filter_map(|field| match field.r#type {
                Type::Message(id) => Some(depth(SCHEMA.message(id))),
                _ => None,
            });
            1 + inner.max().unwrap_or(0)
        }
        let deepest = SCHEMA.messages.iter().map(depth).max();
        assert!(deepest < Some(12), "{deepest:?}");
    }

    #[test]
    fn marks_say_what_the_go_types_say() {
        let (spec, pod_spec) = field(message("v1", "Pod"), "spec");
        assert_eq!((spec.count, spec.absent, spec.omits_zero), (Count::One, Absent::Zero, false));
        let pod_spec = pod_spec.unwrap();
        assert_eq!(pod_spec.full_name(), "core/v1.PodSpec");
        let (priority, _) = field(pod_spec, "priority");
        assert_eq!((priority.number, priority.r#type, priority.absent), (25, Type::Int32, Absent::Nothing));
        assert!(!priority.omits_zero, "a pointer to 0 is written");
        assert!(field(pod_spec, "hostNetwork").0.omits_zero);
        assert_eq!(field(pod_spec, "containers").0.absent, Absent::Null);
        assert_eq!(field(pod_spec, "overhead").1.unwrap().form, Form::Quantity);
        assert_eq!(field(message("v1", "PodList"), "items").0.absent, Absent::EmptyList);
        let (created, time) = field(field(message("v1", "Pod"), "metadata").1.unwrap(), "creationTimestamp");
        assert_eq!((created.omits_zero, created.absent), (true, Absent::Nothing));
        assert_eq!(time.unwrap().form, Form::Time);
    }

    #[test]
    fn options_belong_to_every_version() {
        for version in ["v1", "apps/v1", "example.com/v1", ""] {
            assert_eq!(message(version, "DeleteOptions").full_name(), "meta/v1.DeleteOptions");
        }
        assert_eq!(message("v1", "Status").full_name(), "meta/v1.Status");
        for (version, kind) in [("v1", "Deployment"), ("*", "Pod"), ("", ""), ("apps/v1", "deployment")] {
            assert_eq!(SCHEMA.kind(version, kind), None, "{version} {kind}");
        }
    }
}

//! One quick pass over the JSON of an object, before it is decoded: who it is, how deep it is, and where its
//! `managedFields` lie. Nothing is decoded but the few texts that were asked for.
//!
//! A text that is not JSON, or is cut off, is read as far as it goes.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::BTreeMap,
    hash::{BuildHasher, Hasher},
    mem,
    ops::Range,
    sync::LazyLock,
};

use hashbrown::DefaultHashBuilder;
use informer_model::{Labels, ProtobufError, ProtobufObject};

use crate::object::PROTOBUF_HASH;

/// One for the whole process, so that hashes of the same bytes are the same.
static HASHES: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// What there is to know about an object without decoding it.
#[derive(Debug, Default)]
pub(super) struct Skim<'a> {
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) api_version: Option<Cow<'a, str>>,
    pub(super) has_metadata: bool,
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) namespace: Option<Cow<'a, str>>,
    pub(super) version: Option<Cow<'a, str>>,
    pub(super) labels: LabelsOnWire<'a>,
    /// Where `metadata.managedFields` lies, with the comma before it if there is one: once, or not at all.
    pub(super) managed_fields: Vec<Range<usize>>,
    /// A hash of everything but `managedFields`, `kind` and `apiVersion`: a watch repeats the last two in each
    /// object, a list of a built-in kind does not.
    pub(super) hash: u64,
    /// How many objects and arrays lie in each other; 0 unless the object was read to its end.
    pub(super) depth: u32,
}

/// The labels of an object, which are read when the object is kept.
#[derive(Debug, Default)]
pub(super) enum LabelsOnWire<'a> {
    #[default]
    None,
    Json(&'a [u8]),
    Pairs(Vec<(&'a str, &'a str)>),
}

impl LabelsOnWire<'_> {
    /// What is no map of texts is an error of the type that is decoded, if it looks at labels at all.
    pub(super) fn read(&self) -> Labels {
        match self {
            Self::None => Labels::default(),
            Self::Pairs(pairs) => shared(pairs),
            Self::Json(json) => serde_json::from_slice::<Option<BTreeMap<Cow<'_, str>, Cow<'_, str>>>>(json)
                .ok()
                .flatten()
                .map(|map| shared(&map.iter().map(|(key, value)| (&**key, &**value)).collect::<Vec<_>>()))
                .unwrap_or_default(),
        }
    }
}

thread_local! {
    /// Labels that were read lately. Pods of one ReplicaSet have the same, and lie side by side in a list.
    static RECENT: RefCell<Vec<Labels>> = RefCell::new(vec![Labels::default(); 256]);
}

/// These labels, in one text with those of an object that came shortly before, if these were the same. Servers write them
/// sorted, so that finding the same ones allocates nothing.
fn shared(pairs: &[(&str, &str)]) -> Labels {
    RECENT.with_borrow_mut(|recent| {
        let slot = HASHES.hash_one(pairs) as usize % recent.len();
        match recent.get_mut(slot) {
            Some(same) if same.iter().map(|label| (label.key(), label.value())).eq(pairs.iter().copied()) => {
                same.clone()
            }
            Some(other) => {
                other.clone_from(&pairs.iter().copied().collect());
                other.clone()
            }
            None => pairs.iter().copied().collect(),
        }
    })
}

/// What there is to know about an event of a watch.
#[derive(Debug, Default)]
pub(super) struct EventSkim<'a> {
    pub(super) change: Option<Cow<'a, str>>,
    /// Where the object lies.
    pub(super) object: Option<Range<usize>>,
    pub(super) skim: Skim<'a>,
    /// Whether it was read to its end.
    pub(super) complete: bool,
}

/// Where the metadata of an object lies.
pub(crate) fn metadata_of(json: &[u8]) -> Option<Range<usize>> {
    let mut found = None;
    Cursor::new(json).members(|cursor, name| {
        let start = cursor.space();
        cursor.pass()?;
        if name != "metadata" {
            return Some(());
        }
        found = Some(start..cursor.at);
        None
    });
    found
}

/// The apiVersion and kind of an object, without looking at more of it than that takes.
#[cfg(feature = "packed")]
pub(super) fn types(json: &[u8]) -> [Option<Cow<'_, str>>; 2] {
    let (mut api_version, mut kind) = (None, None);
    Cursor::new(json).members(|cursor, name| {
        match name {
            "apiVersion" => api_version = cursor.text()?,
            "kind" => kind = cursor.text()?,
            _ => cursor.pass()?,
        }
        (api_version.is_none() || kind.is_none()).then_some(())
    });
    [api_version, kind]
}

/// Skims an object in protobuf, which says itself what it is or is an item of a list.
pub(super) fn protobuf<'a>(
    object: &ProtobufObject<'a>,
    types: Option<[&'a str; 2]>,
) -> Result<Skim<'a>, ProtobufError> {
    let head = object.head()?;
    let mut hasher = HASHES.build_hasher();
    head.parts.iter().for_each(|part| hasher.write(part));
    Ok(Skim {
        api_version: types.map(|[api_version, _]| Cow::Borrowed(api_version)),
        kind: types.map(|[_, kind]| Cow::Borrowed(kind)),
        has_metadata: head.has_metadata,
        name: head.name.map(Cow::Borrowed),
        namespace: head.namespace.map(Cow::Borrowed),
        version: head.resource_version.map(Cow::Borrowed),
        labels: LabelsOnWire::Pairs(head.labels),
        managed_fields: Vec::new(),
        hash: hasher.finish() | PROTOBUF_HASH,
        depth: 0,
    })
}

/// Skims an object.
pub(super) fn object(json: &[u8]) -> Skim<'_> {
    Cursor::new(json).object()
}

/// Skims an event of a watch, with its members in any order.
pub(super) fn event(json: &[u8]) -> EventSkim<'_> {
    let mut event = EventSkim::default();
    let complete = Cursor::new(json).members(|cursor, name| {
        match name {
            "type" => event.change = cursor.text()?,
            "object" => {
                let start = cursor.space();
                if cursor.byte()? == b'{' {
                    event.skim = cursor.object();
                    cursor.complete.then_some(())?;
                } else {
                    cursor.value()?;
                }
                // What lies somewhere in the object lies there counted from its own beginning.
                for fields in &mut event.skim.managed_fields {
                    *fields = fields.start - start..fields.end - start;
                }
                event.object = Some(start..cursor.at);
            }
            _ => cursor.pass()?,
        }
        Some(())
    });
    event.complete = complete.is_some();
    event
}

/// Reads on in JSON. What answers `None` met the end, or something that is not JSON.
struct Cursor<'a> {
    json: &'a [u8],
    at: usize,
    /// How many brackets are open, and how many were open at most.
    open: u32,
    deepest: u32,
    /// Whether the last object was read to its end.
    complete: bool,
}

impl<'a> Cursor<'a> {
    fn new(json: &'a [u8]) -> Self {
        Self { json, at: 0, open: 0, deepest: 0, complete: false }
    }

    fn object(&mut self) -> Skim<'a> {
        let mut skim = Skim::default();
        let outer = (mem::take(&mut self.open), mem::take(&mut self.deepest));
        let mut hasher = HASHES.build_hasher();
        let mut from = self.at;
        let complete = self.members(|cursor, name| {
            match name {
                "kind" => skim.kind = cursor.text()?,
                "apiVersion" => skim.api_version = cursor.text()?,
                "metadata" => {
                    cursor.metadata(&mut skim)?;
                    for fields in &skim.managed_fields {
                        hasher.write(cursor.member(from, fields.start));
                        from = fields.end;
                    }
                    hasher.write(cursor.member(from, cursor.at));
                }
                _ => {
                    cursor.pass()?;
                    hasher.write(cursor.member(from, cursor.at));
                }
            }
            from = cursor.at;
            Some(())
        });
        self.complete = complete.is_some();
        skim.hash = (hasher.finish() & !PROTOBUF_HASH).max(1);
        skim.depth = if self.complete { self.deepest } else { 0 };
        (self.open, self.deepest) = outer;
        skim
    }

    /// A member from its name on, without what lies between it and the one before.
    fn member(&self, from: usize, to: usize) -> &'a [u8] {
        let bytes = self.json.get(from..to).unwrap_or_default();
        let name = bytes.iter().position(|byte| !matches!(byte, b'{' | b',' | b' ' | b'\n' | b'\r' | b'\t'));
        name.and_then(|name| bytes.get(name..)).unwrap_or_default()
    }

    fn metadata(&mut self, skim: &mut Skim<'a>) -> Option<()> {
        self.space();
        if self.byte()? != b'{' {
            return self.pass();
        }
        skim.has_metadata = true;
        let mut from = self.at + 1;
        self.members(|cursor, name| {
            match name {
                "name" => skim.name = cursor.text()?,
                "namespace" => skim.namespace = cursor.text()?,
                "resourceVersion" => skim.version = cursor.text()?,
                "labels" => {
                    let start = cursor.at;
                    cursor.pass()?;
                    skim.labels = LabelsOnWire::Json(cursor.json.get(start..cursor.at)?);
                }
                "managedFields" => {
                    cursor.pass()?;
                    skim.managed_fields.push(from..cursor.at);
                }
                _ => cursor.pass()?,
            }
            from = cursor.at;
            Some(())
        })
    }

    /// Reads an object; `each` reads the value of each member.
    fn members(&mut self, mut each: impl FnMut(&mut Self, &str) -> Option<()>) -> Option<()> {
        self.space();
        self.take(b'{')?;
        self.enter();
        self.space();
        let mut more = self.byte()? != b'}';
        while more {
            self.space();
            let name = self.string()?;
            self.space();
            self.take(b':')?;
            each(self, &name)?;
            self.space();
            more = self.byte()? == b',';
            if more {
                self.at += 1;
            }
        }
        self.take(b'}')?;
        self.open = self.open.saturating_sub(1);
        Some(())
    }

    fn enter(&mut self) {
        self.open = self.open.saturating_add(1);
        self.deepest = self.deepest.max(self.open);
    }

    fn byte(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.byte()? == byte).then(|| self.at += 1)
    }

    /// Goes to the next byte that is not space, and says where that is.
    fn space(&mut self) -> usize {
        while matches!(self.byte(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
        self.at
    }

    /// A value if it is a text; whatever else it is, is passed over.
    fn text(&mut self) -> Option<Option<Cow<'a, str>>> {
        self.space();
        if self.byte()? == b'"' { self.string().map(Some) } else { self.value().map(|_| None) }
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at;
        self.take(b'"')?;
        let escaped = self.rest_of_string()?;
        let quoted = self.json.get(start..self.at)?;
        if escaped {
            return serde_json::from_slice(quoted).ok().map(Cow::Owned);
        }
        Some(String::from_utf8_lossy(quoted.get(1..quoted.len() - 1)?))
    }

    /// Goes behind the quote that ends a string. Whether there was a backslash in it.
    fn rest_of_string(&mut self) -> Option<bool> {
        let mut escaped = false;
        loop {
            let rest = self.json.get(self.at..)?;
            self.at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))? + 1;
            if self.json.get(self.at - 1) == Some(&b'"') {
                return Some(escaped);
            }
            escaped = true;
            self.at += 1;
        }
    }

    /// Passes over a value.
    fn pass(&mut self) -> Option<()> {
        self.value().map(|_| ())
    }

    /// Passes over a value, and says where it lies.
    fn value(&mut self) -> Option<Range<usize>> {
        let start = self.space();
        let outside = self.open;
        loop {
            match self.byte()? {
                b'"' => {
                    self.at += 1;
                    self.rest_of_string()?;
                }
                b'{' | b'[' => {
                    self.enter();
                    self.at += 1;
                }
                b'}' | b']' if self.open > outside => {
                    self.open -= 1;
                    self.at += 1;
                }
                b',' | b'}' | b']' if self.open == outside => {
                    return (self.at > start).then_some(start..self.at);
                }
                _ => self.at += 1,
            }
            // A string or a bracket ends the value; a number goes on to the next byte that is none of it.
            if self.open == outside && matches!(self.json.get(self.at - 1)?, b'"' | b'}' | b']') {
                return Some(start..self.at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_known_by_its_texts_depth_and_managed_fields() {
        let json = br#" { "spec":{"kind":"no","metadata":{"name":"no"}}, "kind":"P\u006fd","apiVersion" : "v1",
            "metadata":{"labels":{"name":"no","a":"}]\"{"},"name":"web-0","managedFields":[{"f":{}}],
            "namespace":"shop","generation":3,"resourceVersion":"7"},"status":{"a":[[[1,-2.5e3,true,null]]]}}"#;
        let skim = object(json);
        let texts = [&skim.kind, &skim.api_version, &skim.namespace, &skim.name, &skim.version];
        assert_eq!(texts.map(|text| text.as_deref().unwrap()), ["Pod", "v1", "shop", "web-0", "7"]);
        assert!(skim.has_metadata);
        assert_eq!(skim.depth, 5);
        let [managed] = &skim.managed_fields[..] else { panic!("{skim:?}") };
        assert_eq!(&json[managed.clone()], br#","managedFields":[{"f":{}}]"#);
    }

    #[test]
    fn an_object_of_a_watch_is_the_same_as_that_of_a_list() {
        let rest = r#""metadata":{"name":"a","managedFields":[{"f":{}}],"uid":"u"},"spec":{"a":1}}"#;
        let listed = format!("{{{rest}");
        let watched = format!(r#"{{"type":"ADDED","object":{{"kind":"Pod","apiVersion":"v1",{rest}}}"#);
        let event = event(watched.as_bytes());
        let alone = &watched.as_bytes()[event.object.clone().unwrap()];
        assert_eq!(
            event.skim.hash,
            object(listed.as_bytes()).hash,
            "but for kind, version and managed fields"
        );
        assert_eq!(&alone[event.skim.managed_fields[0].clone()], br#","managedFields":[{"f":{}}]"#);
        let unmanaged = listed.replace(r#"[{"f":{}}]"#, "[]");
        assert_eq!(object(unmanaged.as_bytes()).hash, object(listed.as_bytes()).hash);
        let other = listed.replace(r#""a":1"#, r#""a":2"#);
        assert_ne!(object(other.as_bytes()).hash, object(listed.as_bytes()).hash);
    }

    #[test]
    fn what_is_cut_off_is_read_as_far_as_it_goes_and_never_panics() {
        let json = br#"{"type":"ADDED","object":{"metadata":{"name":"a\"b","namespace":"n"},"a":[1]}}"#;
        assert!(event(json).complete);
        for end in 0..json.len() {
            let cut = event(&json[..end]);
            assert!(!cut.complete && cut.skim.depth <= 2, "cut at {end}");
            object(&json[..end]);
        }
        let whole_name = event(&json[..60]);
        assert_eq!(
            (whole_name.change.as_deref(), whole_name.skim.name.as_deref()),
            (Some("ADDED"), Some("a\"b"))
        );
    }

    #[test]
    fn an_event_has_its_members_in_any_order_and_its_object_of_any_type() {
        let skim = event(br#"{"object":{"a":{"b":[]}},"x":[{}],"type":"DELETED"}"#);
        assert_eq!(
            (skim.change.as_deref(), skim.object, skim.skim.depth),
            (Some("DELETED"), Some(10..24), 3)
        );
        for odd in ["null", "7", "\"text\"", "[{}]"] {
            let json = format!(r#"{{"type":"ADDED","object":{odd}}}"#);
            let skim = event(json.as_bytes());
            assert_eq!(&json[skim.object.unwrap()], odd);
        }
    }
}

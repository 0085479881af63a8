//! Values in a JSON text, read only where somebody looks.
//!
//! In: the text of an object, which was JSON when it was stored. One pass over it notes where its objects and arrays
//! end ([`Outline`]). From then on a [`Json`] reads the members of what is asked for and jumps over the rest. Out:
//! what the decoded object would answer, so that of two members with one name the last counts.
//!
//! However deep the text is, the stack is not.

mod cursor;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, cell::OnceCell, cmp::Ordering, collections::BTreeMap};

use serde_json::Value;

pub use cursor::{Cursor, unquoted};

/// A JSON text, and where its objects and arrays end.
///
/// ```
/// use informer_serving::json::Outline;
///
/// let outline = Outline::of(r#"{"spec":{"nodeName":"n1","containers":[{},{}]}}"#);
/// let pod = outline.root();
/// assert_eq!(pod.pointer("/spec/nodeName").and_then(|name| name.as_str()), Some("n1"));
/// assert_eq!(pod.pointer("/spec/containers").map(|list| list.text()), Some("[{},{}]"));
/// ```
#[derive(Debug)]
pub struct Outline<'j> {
    text: &'j str,
    /// In the order in which they begin.
    structures: Vec<Structure>,
}

/// An object or an array.
#[derive(Debug, Clone, Copy)]
struct Structure {
    /// From its first bracket to its last, in bytes.
    len: usize,
    /// The number of the first structure that begins behind it.
    next: usize,
}

impl<'j> Outline<'j> {
    /// Goes through a text once.
    pub fn of(text: &'j str) -> Self {
        let mut structures = Vec::with_capacity(64);
        let mut open = Vec::with_capacity(16);
        let mut cursor = Cursor::new(text);
        while let Some(bracket) = cursor.bracket() {
            if matches!(bracket, b'{' | b'[') {
                open.push((structures.len(), cursor.position() - 1));
                // What is cut off is empty, and nothing follows it.
                structures.push(Structure { len: 0, next: usize::MAX });
                continue;
            }
            let Some((number, start)) = open.pop() else { break };
            structures[number] = Structure { len: cursor.position() - start, next: structures.len() };
        }
        Self { text, structures }
    }

    /// The value that the text is; null if it is none.
    pub fn root(&self) -> Json<'_> {
        let null = || Json { outline: self, name: "", text: "null", structure: 0, content: OnceCell::new() };
        Json::read(self, "", &mut Cursor::new(self.text), &mut 0).unwrap_or_else(null)
    }
}

/// A value in a text.
#[derive(Debug)]
pub struct Json<'j> {
    outline: &'j Outline<'j>,
    /// With its quotes; empty for what is not a member of an object.
    name: &'j str,
    text: &'j str,
    /// Its number, if it is an object or an array.
    structure: usize,
    content: OnceCell<Content<'j>>,
}

/// What was read of a value.
#[derive(Debug)]
enum Content<'j> {
    /// Of an object the members, of an array the elements.
    Children(Vec<Json<'j>>),
    /// What a string says that had to be decoded, if it says something.
    Text(Option<Box<str>>),
}

impl<'j> Json<'j> {
    /// The value at the cursor, which then is behind it. `structure` is the number of the next one that begins.
    fn read(
        outline: &'j Outline<'j>,
        name: &'j str,
        cursor: &mut Cursor<'j>,
        structure: &mut usize,
    ) -> Option<Self> {
        let number = *structure;
        let text = match cursor.peek()? {
            b'{' | b'[' => {
                let Structure { len, next } = *outline.structures.get(number)?;
                *structure = next;
                cursor.take(len)?
            }
            _ => cursor.value()?,
        };
        Some(Self { outline, name, text, structure: number, content: OnceCell::new() })
    }

    /// The value as it stands in the text.
    pub fn text(&self) -> &'j str {
        self.text
    }

    fn begins_with(&self, byte: u8) -> bool {
        self.text.as_bytes().first() == Some(&byte)
    }

    /// The members of an object or the elements of an array, which it must be, in the order of the text.
    fn children(&self) -> &[Self] {
        match self.content.get_or_init(|| Content::Children(self.read_children())) {
            Content::Children(children) => children,
            Content::Text(_) => &[],
        }
    }

    fn read_children(&self) -> Vec<Self> {
        let is_object = self.begins_with(b'{');
        let mut cursor = Cursor::at(self.text, 1);
        let mut structure = self.structure + 1;
        let mut read = || {
            match cursor.peek()? {
                b'}' | b']' => return None,
                b',' => cursor.eat(b',')?,
                _ => {}
            }
            let mut name = "";
            if is_object {
                name = cursor.string()?;
                cursor.eat(b':')?;
            }
            Self::read(self.outline, name, &mut cursor, &mut structure)
        };
        let mut children = Vec::with_capacity(8);
        while let Some(child) = read() {
            children.push(child);
        }
        children
    }

    fn is_named(&self, name: &str) -> bool {
        let (known, name) = (self.name.as_bytes(), name.as_bytes());
        match known.len().cmp(&(name.len() + 2)) {
            Ordering::Less => false,
            Ordering::Equal => known.get(1..=name.len()) == Some(name),
            // Escapes are longer than what they stand for.
            Ordering::Greater => {
                let begins_so = known.get(1) == name.first() || known.get(1) == Some(&b'\\');
                begins_so && unquoted(self.name).is_some_and(|known| known.as_bytes() == name)
            }
        }
    }

    /// The member of an object.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self.begins_with(b'{') {
            true => self.children().iter().rev().find(|child| child.is_named(name)),
            false => None,
        }
    }

    /// The value at a JSON pointer.
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(self, |value, step| {
            if let Some(elements) = value.as_array() {
                return elements.get(step.parse::<usize>().ok()?);
            }
            match step.contains('~') {
                true => value.get(&step.replace("~1", "/").replace("~0", "~")),
                false => value.get(step),
            }
        })
    }

    /// The elements of an array.
    pub fn as_array(&self) -> Option<&[Self]> {
        self.begins_with(b'[').then(|| self.children())
    }

    /// The members of an object, by name.
    pub fn as_object(&self) -> Option<BTreeMap<Cow<'j, str>, &Self>> {
        let members = || self.children().iter().filter_map(|child| Some((unquoted(child.name)?, child)));
        self.begins_with(b'{').then(|| members().collect())
    }

    /// What a string says.
    pub fn as_str(&self) -> Option<&str> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        if !inner.contains('\\') {
            return Some(inner);
        }
        match self.content.get_or_init(|| Content::Text(unquoted(self.text).map(Into::into))) {
            Content::Text(text) => text.as_deref(),
            Content::Children(_) => None,
        }
    }

    /// A whole number of 64 bits.
    pub fn as_i64(&self) -> Option<i64> {
        serde_json::from_str(self.text).ok()
    }

    /// Whether it is `true` or `false`, if it is one of them.
    pub fn as_bool(&self) -> Option<bool> {
        self.text.parse().ok()
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.text == "null"
    }

    /// The value, decoded; null if it is nested too deeply for that.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.text).unwrap_or_default()
    }
}

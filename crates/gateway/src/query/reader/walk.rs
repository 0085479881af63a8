//! The way through a text along the tree of paths.

use std::ops::Range;

use informer_serving::json::{Cursor, unquoted};

use super::paths::{Node, NodeId, Paths};

/// Hears what lies along the paths, in the order of the text.
pub(in crate::query) trait Visitor<'j> {
    /// Whether a value at which a path ends is all that matters there: then it is told once, and what paths
    /// lead to within is not.
    const TAKES_WHOLE: bool;

    /// A value at which paths end. Of an object or an array that is entered, only the bracket is told.
    fn value(&mut self, place: Place<'j>, paths: &[usize], value: &'j str);

    /// Paths end here in nothing.
    fn missing(&mut self, _at: usize, _paths: &[usize]) {}

    /// A name comes again: what was told `since` then, of these paths, is void.
    fn again(&mut self, since: usize, paths: &[usize]);

    /// An object or an array that paths lead into.
    fn enter(&mut self, _place: Place<'j>, _bracket: u8) {}

    /// The end of the object or array that was entered last.
    fn leave(&mut self) {}
}

/// Where a value stands.
#[derive(Debug, Clone, Copy)]
pub(in crate::query) struct Place<'j> {
    /// In bytes: the beginning of the member or element. No two have the same.
    pub(in crate::query) at: usize,
    /// The name of the member with its quotes, if it is one.
    pub(in crate::query) name: Option<&'j str>,
}

impl Paths {
    /// Goes through a text to its end, or as far as it is JSON.
    pub(in crate::query) fn walk<'j>(&self, json: &'j str, visitor: &mut impl Visitor<'j>) {
        let seen = vec![0; self.nodes().len()];
        let (active, open) = (vec![Self::ROOT], Vec::new());
        let mut walk = Walk { nodes: self.nodes(), cursor: Cursor::new(json), visitor, seen, active, open };
        let mut more = walk.value(Place { at: 0, name: None }, 0);
        while more.is_some() && !walk.open.is_empty() {
            more = walk.advance();
        }
    }
}

struct Walk<'w, 'j, V> {
    nodes: &'w [Node],
    cursor: Cursor<'j>,
    visitor: &'w mut V,
    /// Where each node was seen last as a member; 0 if never.
    seen: Vec<usize>,
    /// The nodes that lead to the value at hand, after those of each object or array around it. An element can
    /// be at several nodes at once: `[0]` and `[*]`.
    active: Vec<NodeId>,
    open: Vec<Open>,
}

/// An object or array that was entered.
struct Open {
    closing: u8,
    at: usize,
    /// Its nodes among the active ones.
    nodes: Range<usize>,
    /// How many elements of it were read.
    elements: usize,
}

impl<'j, V: Visitor<'j>> Walk<'_, 'j, V> {
    /// The next member or element, or the end, of what was entered last.
    fn advance(&mut self) -> Option<()> {
        let (closing, around) = self.open.last().map(|open| (open.closing, open.at))?;
        match self.cursor.peek()? {
            byte if byte == closing => return self.leave(),
            b',' => self.cursor.eat(b',')?,
            _ => {}
        }
        let first = self.active.len();
        let place = if closing == b'}' { self.member(around)? } else { self.element()? };
        match self.active.len() > first {
            true => self.value(place, first),
            false => self.cursor.value().map(|_| ()),
        }
    }

    /// Reads a name, and makes active what it leads to.
    fn member(&mut self, around: usize) -> Option<Place<'j>> {
        self.cursor.peek()?;
        let at = self.cursor.position();
        let quoted = self.cursor.string()?;
        self.cursor.eat(b':')?;
        let name = unquoted(quoted);
        let nodes = self.open.last()?.nodes.clone();
        for i in nodes.filter(|_| name.is_some()) {
            let child = self.nodes[self.active[i]].name(name.as_deref().unwrap_or_default());
            if let Some(child) = child {
                let before = std::mem::replace(&mut self.seen[child], at);
                if before > around {
                    self.visitor.again(before, &self.nodes[child].ends);
                    self.visitor.again(before, &self.nodes[child].beyond);
                }
                self.active.push(child);
            }
        }
        Some(Place { at, name: Some(quoted) })
    }

    /// Makes active what leads to the next element.
    fn element(&mut self) -> Option<Place<'j>> {
        self.cursor.peek()?;
        let open = self.open.last_mut()?;
        let index = open.elements;
        open.elements += 1;
        for i in open.nodes.clone() {
            let node = &self.nodes[self.active[i]];
            self.active.extend(node.element(index).into_iter().chain(node.any_element));
        }
        Some(Place { at: self.cursor.position(), name: None })
    }

    /// The value at which the active nodes from `first` on are: enters it if they lead on, else passes over it.
    fn value(&mut self, place: Place<'j>, first: usize) -> Option<()> {
        let bracket = self.cursor.peek()?;
        let at = self.cursor.position();
        let nodes = self.nodes;
        let here = || self.active[first..].iter().map(|id| &nodes[*id]);
        let mut ends = here().map(|node| &node.ends[..]).filter(|ends| !ends.is_empty()).peekable();
        if V::TAKES_WHOLE
            && let Some(ends) = ends.peek()
        {
            self.visitor.value(place, ends, self.cursor.value()?);
        } else if matches!(bracket, b'{' | b'[') && here().any(|node| !node.beyond.is_empty()) {
            let (value, closing) = if bracket == b'{' { ("{", b'}') } else { ("[", b']') };
            self.visitor.enter(place, bracket);
            ends.for_each(|ends| self.visitor.value(place, ends, value));
            self.cursor.eat(bracket)?;
            self.open.push(Open { closing, at, nodes: first..self.active.len(), elements: 0 });
            return Some(());
        } else {
            let value = self.cursor.value()?;
            ends.for_each(|ends| self.visitor.value(place, ends, value));
            here().for_each(|node| self.visitor.missing(place.at, &node.beyond_once));
        }
        self.active.truncate(first);
        Some(())
    }

    /// Leaves what was entered last. What it did not have is missing.
    fn leave(&mut self) -> Option<()> {
        let at = self.cursor.position();
        let open = self.open.pop()?;
        self.cursor.eat(open.closing)?;
        let is_object = open.closing == b'}';
        for node in self.active[open.nodes.clone()].iter().map(|id| &self.nodes[*id]) {
            let names = node.names.iter().filter(|(_, id)| !is_object || self.seen[*id] <= open.at);
            let elements = node.elements.iter().filter(|(index, _)| is_object || *index >= open.elements);
            for id in names.map(|(_, id)| *id).chain(elements.map(|(_, id)| *id)) {
                self.visitor.missing(at, &self.nodes[id].ends);
                self.visitor.missing(at, &self.nodes[id].beyond_once);
            }
        }
        self.active.truncate(open.nodes.start);
        self.visitor.leave();
        Some(())
    }
}

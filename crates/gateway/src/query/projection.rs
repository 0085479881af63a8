//! The part of an object that was asked for.

use super::reader::{PathListError, Paths, Place, Visitor, parse_list};

/// Some members of an object, by their paths: nested as in the object, and in the same order.
///
/// A path takes all that lies at its end. Where it ends in nothing it leaves nothing: no empty object, and no
/// element in an array. `[0]` and `[*]` give arrays of the elements that remain.
#[derive(Debug)]
pub(crate) struct Projection(Paths);

impl Projection {
    /// How many paths there may be.
    pub(crate) const MOST: usize = 256;

    /// Reads paths with commas between them. What fields there are is not known here: each path is right. What is beyond
    /// the most that there may be is not read.
    pub(crate) fn parse(text: &str) -> Result<Self, PathListError> {
        let listed = parse_list(text, Self::MOST, |text| ((), text))?;
        Ok(Self(Paths::new(listed.iter().map(|(_, path)| path))))
    }

    /// How many paths there are.
    pub(crate) fn len(&self) -> usize {
        self.0.count()
    }

    /// Writes the part of an object: an object again, if only an empty one. Values are copied byte by byte.
    pub(crate) fn apply(&self, json: &str, out: &mut Vec<u8>) {
        let mut cut = Cut::default();
        self.0.walk(json, &mut cut);
        while !cut.open.is_empty() {
            cut.leave();
        }
        cut.write(out);
    }
}

/// What is taken from a text: pieces in the order of the text, each before those that lie in it.
#[derive(Default)]
struct Cut<'j> {
    pieces: Vec<Piece<'j>>,
    /// The objects and arrays that pieces are being put into.
    open: Vec<Open>,
}

struct Piece<'j> {
    place: Place<'j>,
    content: Content<'j>,
    /// The number of the first piece that does not lie in it.
    end: usize,
    /// Whether the same name came again.
    void: bool,
}

enum Content<'j> {
    Value(&'j str),
    Pieces { brackets: [u8; 2] },
}

struct Open {
    piece: usize,
    /// How many pieces lie directly in it and are not void.
    kept: usize,
}

impl<'j> Cut<'j> {
    fn push(&mut self, place: Place<'j>, content: Content<'j>) {
        let end = self.pieces.len() + 1;
        self.pieces.push(Piece { place, content, end, void: false });
    }

    fn keep(&mut self) {
        if let Some(around) = self.open.last_mut() {
            around.kept += 1;
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        if self.pieces.is_empty() {
            out.extend_from_slice(b"{}");
        }
        let mut closing: Vec<(usize, u8)> = Vec::new();
        let mut is_first = true;
        let mut next = 0;
        while let Some(piece) = self.pieces.get(next) {
            while let Some((_, bracket)) = closing.pop_if(|(end, _)| *end <= next) {
                out.push(bracket);
            }
            if piece.void {
                next = piece.end;
                continue;
            }
            if !is_first {
                out.push(b',');
            }
            if let Some(name) = piece.place.name {
                out.extend_from_slice(name.as_bytes());
                out.push(b':');
            }
            match piece.content {
                Content::Value(value) => out.extend_from_slice(value.as_bytes()),
                Content::Pieces { brackets: [open, close] } => {
                    out.push(open);
                    closing.push((piece.end, close));
                }
            }
            is_first = matches!(piece.content, Content::Pieces { .. });
            next += 1;
        }
        out.extend(closing.into_iter().rev().map(|(_, bracket)| bracket));
    }
}

impl<'j> Visitor<'j> for Cut<'j> {
    const TAKES_WHOLE: bool = true;

    fn value(&mut self, place: Place<'j>, _paths: &[usize], value: &'j str) {
        self.push(place, Content::Value(value));
        self.keep();
    }

    fn again(&mut self, since: usize, _paths: &[usize]) {
        let found = self.pieces.binary_search_by_key(&since, |piece| piece.place.at);
        let piece = found.ok().and_then(|found| self.pieces.get_mut(found)).filter(|piece| !piece.void);
        if let (Some(piece), Some(around)) = (piece, self.open.last_mut()) {
            piece.void = true;
            around.kept -= 1;
        }
    }

    fn enter(&mut self, place: Place<'j>, bracket: u8) {
        self.open.push(Open { piece: self.pieces.len(), kept: 0 });
        let brackets = if bracket == b'{' { *b"{}" } else { *b"[]" };
        self.push(place, Content::Pieces { brackets });
    }

    fn leave(&mut self) {
        let Some(left) = self.open.pop() else { return };
        if left.kept == 0 {
            self.pieces.truncate(left.piece);
            return;
        }
        let end = self.pieces.len();
        if let Some(piece) = self.pieces.get_mut(left.piece) {
            piece.end = end;
        }
        self.keep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(fields: &str, json: &str) -> String {
        let mut out = Vec::new();
        Projection::parse(fields).unwrap().apply(json, &mut out);
        String::from_utf8(out).unwrap()
    }

    const POD: &str = r#"{"kind":"Pod","metadata":{"name":"web-0","labels":{"a/b":"\u0063"},"x":1.50},"spec":{"containers":[{"name":"a","image":"nginx"},{"name":"b"},7,{"image":"envoy","ports":[1,2]}],"empty":{},"none":null}}"#;

    #[test]
    fn a_part_is_nested_as_the_whole_and_its_values_are_copied() {
        for (fields, expected) in [
            ("kind", r#"{"kind":"Pod"}"#),
            ("metadata.x,kind", r#"{"kind":"Pod","metadata":{"x":1.50}}"#),
            ("metadata.labels['a/b']", r#"{"metadata":{"labels":{"a/b":"\u0063"}}}"#),
            ("spec.empty,spec.none", r#"{"spec":{"empty":{},"none":null}}"#),
            ("spec.containers[*].image", r#"{"spec":{"containers":[{"image":"nginx"},{"image":"envoy"}]}}"#),
            ("spec.containers[3].ports[1]", r#"{"spec":{"containers":[{"ports":[2]}]}}"#),
            (
                "spec.containers[*].image,spec.containers[0].name",
                r#"{"spec":{"containers":[{"name":"a","image":"nginx"},{"image":"envoy"}]}}"#,
            ),
            (
                "spec.containers[*].image,spec.containers[1]",
                r#"{"spec":{"containers":[{"image":"nginx"},{"name":"b"},{"image":"envoy"}]}}"#,
            ),
            ("metadata.name,metadata", r#"{"metadata":{"name":"web-0","labels":{"a/b":"\u0063"},"x":1.50}}"#),
        ] {
            assert_eq!(part(fields, POD), expected, "{fields}");
        }
    }

    #[test]
    fn a_path_that_ends_in_nothing_leaves_nothing() {
        for fields in
            ["a", "kind.a", "metadata.name[0]", "spec.containers[9]", "spec.containers.image", "spec.empty.a"]
        {
            assert_eq!(part(fields, POD), "{}", "{fields}");
            let with_kind = format!("{fields},kind");
            assert_eq!(part(&with_kind, POD), r#"{"kind":"Pod"}"#, "{with_kind}");
        }
        for odd in ["[]", "[{\"kind\":1}]", "1", "\"kind\"", "null", ""] {
            assert_eq!(part("kind", odd), "{}", "{odd}");
        }
    }

    #[test]
    fn of_two_members_with_one_name_the_last_counts() {
        for (json, expected) in [
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#"{"a":{"b":1},"a":{"c":2}}"#, r#"{"a":{"c":2}}"#),
            (r#"{"a":{"b":1},"d":3,"a":7,"d":4}"#, r#"{"a":7,"d":4}"#),
            (r#"{"a":{"b":1},"\u0061":2}"#, r#"{"\u0061":2}"#),
        ] {
            assert_eq!(part("a,d", json), expected, "{json}");
        }
        for (json, expected) in [
            (r#"{"a":{"b":1},"a":{"c":2}}"#, "{}"),
            (r#"{"a":{"b":1,"b":2},"d":3,"a":{"b":3,"b":4},"d":5}"#, r#"{"a":{"b":4},"d":5}"#),
            (r#"{"a":{"b":1},"d":3,"a":{}}"#, r#"{"d":3}"#),
        ] {
            assert_eq!(part("a.b,d", json), expected, "{json}");
        }
    }

    #[test]
    fn what_is_written_before_stays() {
        let mut out = b"[".to_vec();
        Projection::parse("a").unwrap().apply(r#"{"a":1}"#, &mut out);
        assert_eq!(out, br#"[{"a":1}"#);
    }

    #[test]
    fn a_malformed_path_is_refused_with_its_place() {
        let error = Projection::parse("metadata.name,spec..a").unwrap_err();
        assert_eq!((error.position, error.expected), (19, "a field name"));
        assert_eq!(error.to_string(), "expected a field name at byte 19");
    }
}

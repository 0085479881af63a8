//! Several paths into an object, as the tree of their steps.

use std::collections::HashSet;

use informer_model::{FieldPath, FieldStep};

/// Why a text is not a list of paths.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at byte {position}")]
pub(crate) struct PathListError {
    /// Where the error was found, in bytes.
    pub(crate) position: usize,
    /// What can stand there.
    pub(crate) expected: &'static str,
}

/// Reads paths with commas between them, up to one more than `most`: who asks for too many does not make it read them all.
/// `mark` reads what may stand before each of them, and answers the rest. A path that comes again is left out.
pub(in crate::query) fn parse_list<M>(
    text: &str,
    most: usize,
    mark: impl Fn(&str) -> (M, &str),
) -> Result<Vec<(M, FieldPath)>, PathListError> {
    let error = |rest: &str, expected| PathListError { position: text.len() - rest.len(), expected };
    let (mut paths, mut seen) = (Vec::new(), HashSet::new());
    let mut rest = text;
    loop {
        let (marked, start) = mark(rest.trim_start_matches(' '));
        let (path, end) = FieldPath::parse_prefix(start)
            .map_err(|bad| error(start.get(bad.position..).unwrap_or_default(), bad.expected))?;
        if seen.insert(path.clone()) {
            paths.push((marked, path));
        }
        let end = end.trim_start_matches(' ');
        if end.is_empty() || paths.len() > most {
            return Ok(paths);
        }
        rest = end.strip_prefix(',').ok_or_else(|| error(end, "`.`, `[`, `,` or the end"))?;
    }
}

/// The paths, known by their numbers: the first is 0.
#[derive(Debug)]
pub(crate) struct Paths {
    /// The first is the object itself.
    nodes: Vec<Node>,
    count: usize,
}

/// A node of the tree, by where it is in the list of nodes.
pub(super) type NodeId = usize;

/// A place that one or more paths lead to or through.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Sorted.
    pub(super) names: Vec<(Box<str>, NodeId)>,
    /// Sorted.
    pub(super) elements: Vec<(usize, NodeId)>,
    pub(super) any_element: Option<NodeId>,
    /// The paths that end here.
    pub(super) ends: Vec<usize>,
    /// The paths that go on from here.
    pub(super) beyond: Vec<usize>,
    /// Those of them without a `[*]` to come: each ends once, if only in a missing value.
    pub(super) beyond_once: Vec<usize>,
}

impl Node {
    pub(super) fn name(&self, name: &str) -> Option<NodeId> {
        let found = self.names.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        self.names.get(found).map(|(_, child)| *child)
    }

    pub(super) fn element(&self, index: usize) -> Option<NodeId> {
        let found = self.elements.binary_search_by_key(&index, |(known, _)| *known).ok()?;
        self.elements.get(found).map(|(_, child)| *child)
    }
}

impl Paths {
    pub(super) const ROOT: NodeId = 0;

    pub(crate) fn new<'p>(paths: impl IntoIterator<Item = &'p FieldPath>) -> Self {
        let mut tree = Self { nodes: vec![Node::default()], count: 0 };
        for (number, path) in paths.into_iter().enumerate() {
            let steps = path.steps();
            let last_star = steps.iter().rposition(|step| *step == FieldStep::AnyElement);
            let mut node = Self::ROOT;
            for (i, step) in steps.iter().enumerate() {
                tree.nodes[node].beyond.push(number);
                if last_star.is_none_or(|star| star < i) {
                    tree.nodes[node].beyond_once.push(number);
                }
                node = tree.child(node, step);
            }
            tree.nodes[node].ends.push(number);
            tree.count += 1;
        }
        tree
    }

    /// How many paths there are.
    pub(in crate::query) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node that a step leads to, made if there was none.
    fn child(&mut self, node: NodeId, step: &FieldStep) -> NodeId {
        let new = self.nodes.len();
        let from = &mut self.nodes[node];
        let child = match step {
            FieldStep::Name(name) => match from.names.binary_search_by(|(known, _)| known.cmp(name)) {
                Ok(at) => from.names[at].1,
                Err(at) => {
                    from.names.insert(at, (name.clone(), new));
                    new
                }
            },
            FieldStep::Element(index) => match from.elements.binary_search_by_key(index, |(known, _)| *known)
            {
                Ok(at) => from.elements[at].1,
                Err(at) => {
                    from.elements.insert(at, (*index, new));
                    new
                }
            },
            FieldStep::AnyElement => *from.any_element.get_or_insert(new),
        };
        if child == new {
            self.nodes.push(Node::default());
        }
        child
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<Vec<(bool, String)>, (usize, &'static str)> {
        let parsed = parse_list(text, 3, |text| match text.strip_prefix('-') {
            Some(path) => (true, path),
            None => (false, text),
        });
        let shown = |(mark, path): (bool, FieldPath)| (mark, path.to_string());
        parsed
            .map(|paths| paths.into_iter().map(shown).collect())
            .map_err(|error| (error.position, error.expected))
    }

    #[test]
    fn paths_are_listed_with_commas() {
        let expected = [(false, "a.b"), (true, "c['x,y']"), (false, "d[*].e")];
        let expected: Vec<_> = expected.map(|(mark, path)| (mark, path.to_owned())).into();
        assert_eq!(list("a.b,-c['x,y'],d[*].e"), Ok(expected.clone()));
        assert_eq!(list(" a.b , -c['x,y'] ,d[*].e "), Ok(expected));
    }

    #[test]
    fn of_too_many_paths_one_more_is_read_than_there_may_be() {
        let listed = list(&(0..9_000).map(|n| format!("a{n}")).collect::<Vec<_>>().join(",")).unwrap();
        assert_eq!(listed.len(), 4);
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        for (text, position, expected) in [
            ("", 0, "a field name"),
            ("a,", 2, "a field name"),
            ("a,,b", 2, "a field name"),
            ("a,-", 3, "a field name"),
            ("é", 0, "a field name"),
            ("a b", 2, "`.`, `[`, `,` or the end"),
            ("a,b=c", 3, "`.`, `[`, `,` or the end"),
            ("a, b[", 5, "an index, `*` or a field name in quotes"),
            ("a,b['é", 7, "the closing quote"),
        ] {
            assert_eq!(list(text), Err((position, expected)), "{text:?}");
        }
    }
}

//! A persistent vector with holes: copies share what they have in common.
//!
//! It is cheap to clone (an `Arc`). Writing through a clone copies the nodes on the way down that are
//! still shared, and writes in place where they are not. The depth is fixed, so that reading is three steps: a
//! directory as long as it needs to be, branches, leaves. Leaves are small, because copying one touches the
//! counter of everything in it, which lies all over the heap.

use std::sync::Arc;

/// A leaf has 2^`LEAF` places.
const LEAF: u32 = 4;

/// A branch has 2^`BRANCH` leaves.
const BRANCH: u32 = 5;

#[derive(Clone)]
struct Node<E, const N: usize> {
    entries: [Option<E>; N],
}

impl<E, const N: usize> Default for Node<E, N> {
    fn default() -> Self {
        Self { entries: [const { None }; N] }
    }
}

impl<E, const N: usize> Node<E, N> {
    fn is_empty(&self) -> bool {
        self.entries.iter().all(Option::is_none)
    }
}

type Leaf<T> = Node<T, { 1 << LEAF }>;
type Branch<T> = Node<Arc<Leaf<T>>, { 1 << BRANCH }>;

#[derive(Clone)]
pub(super) struct Trie<T> {
    directory: Arc<Vec<Option<Arc<Branch<T>>>>>,
}

impl<T> Default for Trie<T> {
    fn default() -> Self {
        Self { directory: Arc::default() }
    }
}

/// Where a place is in the directory, in the branch and in the leaf.
fn path(at: u32) -> [usize; 3] {
    let at = at as usize;
    [at >> (BRANCH + LEAF), (at >> LEAF) & ((1 << BRANCH) - 1), at & ((1 << LEAF) - 1)]
}

/// The node in a place, for nobody else to hold; made if there is none.
fn own<E: Clone, const N: usize>(place: &mut Option<Arc<Node<E, N>>>) -> &mut Node<E, N> {
    Arc::make_mut(place.get_or_insert_default())
}

impl<T> Trie<T> {
    pub(super) fn get(&self, at: u32) -> Option<&T> {
        let [a, b, c] = path(at);
        let branch = self.directory.get(a)?.as_ref()?;
        branch.entries[b].as_ref()?.entries[c].as_ref()
    }

    /// Looks at all that [`set`](Self::set) will copy or count for this place, and changes nothing. The answer
    /// says nothing but that it was looked at.
    pub(super) fn look(&self, at: u32, look: impl Fn(&T) -> usize) -> Option<usize> {
        let [a, b, _] = path(at);
        let leaf = self.directory.get(a)?.as_ref()?.entries[b].as_ref()?;
        Some(Arc::strong_count(leaf) + leaf.entries.iter().flatten().map(look).sum::<usize>())
    }

    /// Whether nobody else holds this.
    pub(super) fn is_alone(&mut self) -> bool {
        Arc::get_mut(&mut self.directory).is_some()
    }

    /// All entries in the order of their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let branches = self.directory.iter().flatten();
        let leaves = branches.flat_map(|branch| branch.entries.iter().flatten());
        leaves.flat_map(|leaf| leaf.entries.iter().flatten())
    }
}

impl<T: Clone> Trie<T> {
    fn own_branch(&mut self, a: usize) -> &mut Branch<T> {
        let directory = Arc::make_mut(&mut self.directory);
        if directory.len() <= a {
            directory.resize(a + 1, None);
        }
        own(&mut directory[a])
    }

    /// Puts an entry: the one that was there, and the one that is there now.
    pub(super) fn set(&mut self, at: u32, entry: T) -> (Option<T>, &T) {
        let [a, b, c] = path(at);
        let place = &mut own(&mut self.own_branch(a).entries[b]).entries[c];
        (place.take(), place.insert(entry))
    }

    /// Makes a place, and those beside it, what it is in the other, by sharing the leaf.
    pub(super) fn follow(&mut self, other: &Self, at: u32) {
        let [a, b, _] = path(at);
        match other.directory.get(a).and_then(Option::as_ref) {
            Some(theirs) => self.own_branch(a).entries[b].clone_from(&theirs.entries[b]),
            None => {
                if let Some(branch) = Arc::make_mut(&mut self.directory).get_mut(a) {
                    *branch = None;
                }
            }
        }
    }

    /// The entry to change, no longer shared with any copy.
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.get(at)?;
        let [a, b, c] = path(at);
        own(&mut self.own_branch(a).entries[b]).entries[c].as_mut()
    }

    /// Takes an entry out, and with the last one of a node the node.
    pub(super) fn remove(&mut self, at: u32) -> Option<T> {
        self.get(at)?;
        let [a, b, c] = path(at);
        let directory = Arc::make_mut(&mut self.directory);
        let branch = own(&mut directory[a]);
        let leaf = own(&mut branch.entries[b]);
        let removed = leaf.entries[c].take();
        if leaf.is_empty() {
            branch.entries[b] = None;
        }
        if branch.is_empty() {
            directory[a] = None;
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use informer_testing::histories;
    use proptest::{collection::vec, prelude::*};

    #[derive(Debug, Clone)]
    enum Step {
        Set(u32),
        Change(u32),
        Remove(u32),
        Copy,
    }

    #[test]
    fn equals_a_map_and_copies_stay_as_they_were() {
        // Places on both sides of the edge of each kind of node.
        let place = prop_oneof![0..20u32, 508..516u32, 1_020..1_030u32, 0..40_000u32];
        let step = prop_oneof![
            4 => place.clone().prop_map(Step::Set),
            1 => place.clone().prop_map(Step::Change),
            3 => place.prop_map(Step::Remove),
            1 => Just(Step::Copy),
        ];
        histories(&vec(step, 0..60), |steps| {
            let (mut trie, mut model) = (Trie::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for (i, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Set(at) => assert_eq!(trie.set(at, i), (model.insert(at, i), &i)),
                    Step::Change(at) => {
                        assert_eq!(trie.get(at), model.get(&at));
                        if let (Some(entry), Some(modelled)) = (trie.get_mut(at), model.get_mut(&at)) {
                            (*entry, *modelled) = (i, i);
                        }
                    }
                    Step::Remove(at) => assert_eq!(trie.remove(at), model.remove(&at)),
                    Step::Copy => copies.push((trie.clone(), model.clone())),
                }
            }
            copies.push((trie, model));
            for (trie, model) in copies {
                assert!(trie.iter().eq(model.values()));
                assert!(model.iter().all(|(at, entry)| trie.get(*at) == Some(entry)));
            }
        });
    }
}

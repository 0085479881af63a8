//! A persistent vector with holes: copies share what they have in common.
//!
//! A clone is one counter. Writing through a clone copies the nodes on the way down that somebody else
//! still holds, and writes in place where nobody does. The depth is fixed, so that reading is five steps:
//! a directory as long as it needs to be, three levels of branches, leaves. Nodes are small, because copying
//! one touches the counter of everything in it: of a leaf's objects, which lie all over the heap, and of a
//! branch's nodes.

use std::sync::Arc;

/// A node has 2^`BITS` places.
const BITS: u32 = 3;

#[derive(Clone)]
struct Node<E> {
    entries: [Option<E>; 1 << BITS],
}

impl<E> Default for Node<E> {
    fn default() -> Self {
        Self { entries: [const { None }; 1 << BITS] }
    }
}

impl<E> Node<E> {
    fn is_empty(&self) -> bool {
        self.entries.iter().all(Option::is_none)
    }
}

type Leaf<T> = Node<T>;
type Lower<T> = Node<Arc<Leaf<T>>>;
type Middle<T> = Node<Arc<Lower<T>>>;
type Upper<T> = Node<Arc<Middle<T>>>;

#[derive(Clone)]
pub(super) struct Trie<T> {
    directory: Arc<Vec<Option<Arc<Upper<T>>>>>,
}

impl<T> Default for Trie<T> {
    fn default() -> Self {
        Self { directory: Arc::default() }
    }
}

/// Where a place is in the directory, in the three branches and in the leaf.
fn path(at: u32) -> [usize; 5] {
    let step = |level: u32| (at as usize >> (level * BITS)) & ((1 << BITS) - 1);
    [at as usize >> (4 * BITS), step(3), step(2), step(1), step(0)]
}

/// The node in a place, for nobody else to hold; made if there is none.
fn own<E: Clone>(place: &mut Option<Arc<Node<E>>>) -> &mut Node<E> {
    Arc::make_mut(place.get_or_insert_default())
}

impl<T> Trie<T> {
    pub(super) fn get(&self, at: u32) -> Option<&T> {
        let [a, b, c, d, e] = path(at);
        let upper = self.directory.get(a)?.as_ref()?;
        let middle = upper.entries[b].as_ref()?;
        let lower = middle.entries[c].as_ref()?;
        lower.entries[d].as_ref()?.entries[e].as_ref()
    }

    /// Looks at all that [`set`](Self::set) will copy or count for this place, and changes nothing. The answer
    /// says nothing but that it was looked at.
    pub(super) fn look(&self, at: u32, look: impl Fn(&T) -> usize) -> Option<usize> {
        let [a, b, c, d, _] = path(at);
        let upper = self.directory.get(a)?.as_ref()?;
        let middle = upper.entries[b].as_ref()?;
        let lower = middle.entries[c].as_ref()?;
        let leaf = lower.entries[d].as_ref()?;
        let leaves: usize = lower.entries.iter().flatten().map(Arc::strong_count).sum();
        Some(leaves + leaf.entries.iter().flatten().map(look).sum::<usize>())
    }

    /// All entries in the order of their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let uppers = self.directory.iter().flatten();
        let middles = uppers.flat_map(|upper| upper.entries.iter().flatten());
        let lowers = middles.flat_map(|middle| middle.entries.iter().flatten());
        let leaves = lowers.flat_map(|lower| lower.entries.iter().flatten());
        leaves.flat_map(|leaf| leaf.entries.iter().flatten())
    }
}

impl<T: Clone> Trie<T> {
    /// Puts an entry and returns the one that was there.
    pub(super) fn set(&mut self, at: u32, entry: T) -> Option<T> {
        let [a, b, c, d, e] = path(at);
        let directory = Arc::make_mut(&mut self.directory);
        if directory.len() <= a {
            directory.resize(a + 1, None);
        }
        let upper = own(&mut directory[a]);
        let middle = own(&mut upper.entries[b]);
        let lower = own(&mut middle.entries[c]);
        own(&mut lower.entries[d]).entries[e].replace(entry)
    }

    /// The entry to change, no longer shared with any copy.
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.get(at)?;
        let [a, b, c, d, e] = path(at);
        let upper = own(&mut Arc::make_mut(&mut self.directory)[a]);
        let middle = own(&mut upper.entries[b]);
        let lower = own(&mut middle.entries[c]);
        own(&mut lower.entries[d]).entries[e].as_mut()
    }

    /// Takes an entry out, and with the last one of a node the node.
    pub(super) fn remove(&mut self, at: u32) -> Option<T> {
        self.get(at)?;
        let [a, b, c, d, e] = path(at);
        let directory = Arc::make_mut(&mut self.directory);
        let upper = own(&mut directory[a]);
        let middle = own(&mut upper.entries[b]);
        let lower = own(&mut middle.entries[c]);
        let leaf = own(&mut lower.entries[d]);
        let removed = leaf.entries[e].take();
        if leaf.is_empty() {
            lower.entries[d] = None;
        }
        if lower.is_empty() {
            middle.entries[c] = None;
        }
        if middle.is_empty() {
            upper.entries[b] = None;
        }
        if upper.is_empty() {
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
        let place = prop_oneof![0..20u32, 60..70u32, 508..516u32, 4_090..4_100u32, 0..40_000u32];
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
                    Step::Set(at) => assert_eq!(trie.set(at, i), model.insert(at, i)),
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

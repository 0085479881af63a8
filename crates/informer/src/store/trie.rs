//! A persistent vector with holes: copies share what they have in common.
//!
//! A clone is one counter. Writing through a clone copies the nodes on the way down that somebody else
//! still holds, and writes in place where nobody does. The depth is fixed, so that reading is five steps:
//! a directory as long as it needs to be, three levels of branches, leaves. Nodes are small, because copying
//! one touches the counter of everything in it: of a leaf's objects, which lie all over the heap, and of a
//! branch's nodes.

use std::sync::Arc;

const LEAF_BITS: u32 = 3;
const BRANCH_BITS: u32 = 3;

type Leaf<T> = [Option<T>; 1 << LEAF_BITS];
type Branch<N> = [Option<Arc<N>>; 1 << BRANCH_BITS];
type Lower<T> = Branch<Leaf<T>>;
type Middle<T> = Branch<Lower<T>>;
type Upper<T> = Branch<Middle<T>>;

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
    let step = |bits: u32, width: u32| (at as usize >> bits) & ((1 << width) - 1);
    [
        at as usize >> (LEAF_BITS + 3 * BRANCH_BITS),
        step(LEAF_BITS + 2 * BRANCH_BITS, BRANCH_BITS),
        step(LEAF_BITS + BRANCH_BITS, BRANCH_BITS),
        step(LEAF_BITS, BRANCH_BITS),
        step(0, LEAF_BITS),
    ]
}

/// The node in a place of a branch that nobody else holds, made if there is none.
fn branch_at<N: Clone, const WIDTH: usize>(
    place: &mut Option<Arc<[Option<N>; WIDTH]>>,
) -> &mut [Option<N>; WIDTH] {
    Arc::make_mut(place.get_or_insert_with(|| Arc::new([const { None }; WIDTH])))
}

impl<T> Trie<T> {
    pub(super) fn get(&self, at: u32) -> Option<&T> {
        let [a, b, c, d, e] = path(at);
        self.directory.get(a)?.as_ref()?[b].as_ref()?[c].as_ref()?[d].as_ref()?[e].as_ref()
    }

    /// All entries in the order of their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let uppers = self.directory.iter().flatten();
        let middles = uppers.flat_map(|upper| upper.iter().flatten());
        let lowers = middles.flat_map(|middle| middle.iter().flatten());
        let leaves = lowers.flat_map(|lower| lower.iter().flatten());
        leaves.flat_map(|leaf| leaf.iter().flatten())
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
        let upper = branch_at(&mut directory[a]);
        let middle = branch_at(&mut upper[b]);
        let lower = branch_at(&mut middle[c]);
        branch_at(&mut lower[d])[e].replace(entry)
    }

    /// The entry to change, no longer shared with any copy.
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.get(at)?;
        let [a, b, c, d, e] = path(at);
        let upper = branch_at(&mut Arc::make_mut(&mut self.directory)[a]);
        let middle = branch_at(&mut upper[b]);
        let lower = branch_at(&mut middle[c]);
        branch_at(&mut lower[d])[e].as_mut()
    }

    /// Takes an entry out, and with the last one of a node the node.
    pub(super) fn remove(&mut self, at: u32) -> Option<T> {
        self.get(at)?;
        let [a, b, c, d, e] = path(at);
        let directory = Arc::make_mut(&mut self.directory);
        let upper = branch_at(&mut directory[a]);
        let middle = branch_at(&mut upper[b]);
        let lower = branch_at(&mut middle[c]);
        let leaf = branch_at(&mut lower[d]);
        let removed = leaf[e].take();
        if leaf.iter().all(Option::is_none) {
            lower[d] = None;
            if lower.iter().all(Option::is_none) {
                middle[c] = None;
                if middle.iter().all(Option::is_none) {
                    upper[b] = None;
                    if upper.iter().all(Option::is_none) {
                        directory[a] = None;
                    }
                }
            }
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

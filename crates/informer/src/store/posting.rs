//! A set of slots: the objects filed under one value of an index. Never empty; copies share.

use std::sync::Arc;

use imbl::OrdSet;

use super::slab::Slot;

/// Up to so many slots are one sorted array, copied whole; more are a tree.
const FEW: usize = 128;

/// What an `Arc` takes beside its content.
pub(super) const COUNTERS: usize = 2 * size_of::<usize>();

/// Most values of most indexes have one object or a few; a few values have half of the cluster.
#[derive(Clone)]
pub(super) enum Posting {
    One(Slot),
    Few(Arc<[Slot]>),
    Many(OrdSet<Slot>),
}

impl Posting {
    /// The posting of these slots, of which there is at least one.
    pub(super) fn new(mut slots: Vec<Slot>) -> Self {
        slots.sort_unstable();
        slots.dedup();
        match slots[..] {
            [only] => Self::One(only),
            _ if slots.len() <= FEW => Self::Few(slots.into()),
            _ => Self::Many(slots.into_iter().collect()),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Few(slots) => slots.len(),
            Self::Many(slots) => slots.len(),
        }
    }

    /// About how many bytes they take beside the posting itself.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Few(slots) => COUNTERS + size_of_val(&**slots),
            // Nodes of a tree are between half full and full.
            Self::Many(slots) => slots.len() * size_of::<Slot>() * 3 / 2,
        }
    }

    /// The slots in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Slot> {
        let (few, many) = match self {
            Self::One(slot) => (std::slice::from_ref(slot), None),
            Self::Few(slots) => (&**slots, None),
            Self::Many(slots) => (&[][..], Some(slots)),
        };
        few.iter().copied().chain(many.into_iter().flat_map(|slots| slots.iter().copied()))
    }

    pub(super) fn contains(&self, slot: Slot) -> bool {
        match self {
            Self::One(only) => *only == slot,
            Self::Few(slots) => slots.binary_search(&slot).is_ok(),
            Self::Many(slots) => slots.contains(&slot),
        }
    }

    pub(super) fn insert(&mut self, slot: Slot) {
        match self {
            Self::Many(slots) => {
                slots.insert(slot);
            }
            _ if self.contains(slot) => {}
            _ if self.len() == FEW => *self = Self::new(self.iter().chain([slot]).collect()),
            _ => {
                let mut slots: Vec<Slot> = self.iter().collect();
                slots.insert(slots.partition_point(|other| *other < slot), slot);
                *self = Self::Few(slots.into());
            }
        }
    }

    /// Takes a slot out. `true` when nothing is left: the posting is to be dropped.
    pub(super) fn remove(&mut self, slot: Slot) -> bool {
        match self {
            Self::One(only) => return *only == slot,
            Self::Few(slots) => {
                let left: Vec<Slot> = slots.iter().copied().filter(|other| *other != slot).collect();
                *self = match left[..] {
                    [only] => Self::One(only),
                    _ => Self::Few(left.into()),
                };
            }
            Self::Many(slots) => {
                slots.remove(&slot);
                if slots.len() <= FEW / 2 {
                    *self = Self::Few(self.iter().collect());
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use informer_testing::histories;
    use proptest::{collection::vec, prelude::*};

    #[test]
    fn equals_a_set_whatever_its_size() {
        // A long run of insertions first, so that histories reach the tree and come back from it.
        let steps = (vec(0..400u32, 0..300), vec((any::<bool>(), 0..400u32), 0..300));
        histories(&steps, |(filling, steps)| {
            let (mut posting, mut model) = (Posting::One(7), BTreeSet::from([7]));
            for (put, slot) in filling.into_iter().map(|slot| (true, slot)).chain(steps) {
                if put {
                    posting.insert(slot);
                    model.insert(slot);
                } else if model.len() > 1 || !model.contains(&slot) {
                    assert!(!posting.remove(slot));
                    model.remove(&slot);
                }
                assert_eq!((posting.len(), posting.contains(slot)), (model.len(), model.contains(&slot)));
            }
            assert!(posting.iter().eq(model.iter().copied()));
            assert!(Posting::new(posting.iter().chain(posting.iter()).collect()).iter().eq(posting.iter()));
            while let Some(slot) = model.pop_first() {
                assert_eq!(posting.remove(slot), model.is_empty());
            }
        });
    }
}

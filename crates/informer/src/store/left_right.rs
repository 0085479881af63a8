//! Copies of a trie that take turns, as in a left-right structure: readers see one while the writer changes another in
//! place.
//!
//! They share their leaves. So a change copies one leaf and nothing above it; the other copies follow, leaf by
//! leaf, once readers have let go of them. There are two as long as nobody reads, and one more while somebody
//! looks up something now and then. A reader that holds one for longer keeps it, and the writer goes on in a
//! new copy of what it has shown, which comes apart from that branch by branch.

use std::mem;

use super::trie::Trie;

/// A copy that has missed more changes than this is not worth following.
const MANY: usize = 1_024;

/// A copy that readers have not let go of when this many others have been shown after it is left to them: it is they
/// who then free what they alone have kept.
const KEPT: u32 = 2;

/// All copies but the one that the writer changes.
pub(super) struct LeftRight<T> {
    /// What readers see.
    shown: Trie<T>,
    /// What they saw before, the oldest first.
    before: Vec<Before<T>>,
    /// Whether the writer's copy is still the one that is shown.
    is_shown: bool,
    /// The places that the writer has changed since it was.
    changed: Vec<u32>,
}

struct Before<T> {
    trie: Trie<T>,
    /// The places in which it differs from what is shown.
    missed: Vec<u32>,
    /// How many have been shown since.
    shown_since: u32,
}

impl<T: Clone> LeftRight<T> {
    pub(super) fn new(own: &Trie<T>) -> Self {
        Self { shown: own.clone(), before: Vec::new(), is_shown: true, changed: Vec::new() }
    }

    /// Has to be told before a place in the writer's copy changes.
    pub(super) fn change(&mut self, own: &mut Trie<T>, at: u32) {
        if self.is_shown {
            self.take(own);
            self.is_shown = false;
        }
        self.changed.push(at);
    }

    /// What readers see from now on. When they do, [`take`](Self::take) is next.
    pub(super) fn show(&mut self, own: &Trie<T>) -> &Trie<T> {
        if !self.changed.is_empty() {
            let trie = mem::replace(&mut self.shown, own.clone());
            self.before.push(Before { trie, missed: Vec::new(), shown_since: 0 });
            for before in &mut self.before {
                before.missed.extend(&self.changed);
                before.shown_since += 1;
            }
            self.before.retain(|before| before.shown_since <= KEPT && before.missed.len() <= MANY);
            self.changed.clear();
            self.changed.shrink_to(MANY);
            self.is_shown = true;
        }
        &self.shown
    }

    /// Leaves to readers what they still hold: they free it, and nothing that they let go of waits for the next change.
    pub(super) fn rest(&mut self) {
        self.before = Vec::new();
    }

    /// Makes a copy that readers saw before the writer's own and brings it up to date, if they have let go of one.
    pub(super) fn take(&mut self, own: &mut Trie<T>) {
        if !self.is_shown {
            return;
        }
        // The newest has missed the least. There is no use for another, and it would keep what has been replaced.
        if let Some(mut newest) = self.before.extract_if(.., |before| before.trie.is_alone()).last() {
            for at in newest.missed {
                newest.trie.follow(&self.shown, at);
            }
            *own = newest.trie;
            self.is_shown = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeMap, sync::Arc};

    use informer_testing::histories;
    use proptest::{collection::vec, prelude::*};

    #[derive(Debug, Clone)]
    enum Step {
        Set(u32),
        Change(u32),
        Remove(u32),
        Show,
        Hold,
        LetGo,
    }

    type Model = BTreeMap<u32, Arc<usize>>;

    fn assert_equal(trie: &Trie<Arc<usize>>, model: &Model) {
        assert!(trie.iter().eq(model.values()));
        assert!(model.iter().all(|(at, entry)| trie.get(*at) == Some(entry)));
    }

    #[test]
    fn each_copy_equals_a_map_however_long_readers_hold_it_and_nothing_is_kept_after_that() {
        let place = prop_oneof![0..20u32, 508..516u32, 0..3_000u32];
        let step = prop_oneof![
            6 => place.clone().prop_map(Step::Set),
            1 => place.clone().prop_map(Step::Change),
            3 => place.prop_map(Step::Remove),
            4 => Just(Step::Show),
            2 => Just(Step::Hold),
            2 => Just(Step::LetGo),
        ];
        histories(&vec(step, 0..80), |steps| {
            let (mut own, mut model) = (Trie::default(), Model::new());
            let mut copies = LeftRight::new(&own);
            let mut seen = (own.clone(), model.clone());
            let (mut held, mut replaced) = (Vec::new(), Vec::new());
            // At the end all readers let go, and one more change is shown.
            let ending = vec![Step::LetGo; steps.len()].into_iter().chain([Step::Set(0), Step::Show]);
            for (i, step) in steps.into_iter().chain(ending).enumerate() {
                match step {
                    Step::Set(at) => {
                        copies.change(&mut own, at);
                        let (old, _) = own.set(at, Arc::new(i));
                        let modelled = own.get(at).and_then(|new| model.insert(at, Arc::clone(new)));
                        assert_eq!(old, modelled);
                        replaced.extend(old);
                    }
                    Step::Change(at) | Step::Remove(at) if own.get(at).is_none() => {}
                    Step::Change(at) => {
                        copies.change(&mut own, at);
                        if let Some(entry) = own.get_mut(at) {
                            replaced.push(std::mem::replace(entry, Arc::new(i)));
                            model.insert(at, Arc::clone(entry));
                        }
                    }
                    Step::Remove(at) => {
                        copies.change(&mut own, at);
                        let old = own.remove(at);
                        assert_eq!(old, model.remove(&at));
                        replaced.extend(old);
                    }
                    Step::Show => {
                        seen = (copies.show(&own).clone(), model.clone());
                        copies.take(&mut own);
                        assert_equal(&seen.0, &model);
                    }
                    Step::Hold => held.push(seen.clone()),
                    Step::LetGo if held.is_empty() => {}
                    Step::LetGo => {
                        let (trie, model) = held.remove(0);
                        assert_equal(&trie, &model);
                    }
                }
                assert_equal(&own, &model);
            }
            drop((seen, model));
            assert!(replaced.iter().all(|entry| Arc::strong_count(entry) == 1), "what was replaced is kept");
        });
    }
}

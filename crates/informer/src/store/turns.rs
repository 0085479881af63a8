//! Two copies of a trie that take turns: readers see one while the writer changes the other in place.
//!
//! The two share their leaves. So a change copies one leaf and nothing above it; the other copy follows, leaf
//! by leaf, once readers have let go of it. A reader that holds it for longer keeps it, and the writer goes on
//! in a new copy of what it has shown, which comes apart from that branch by branch.

use std::mem;

use super::trie::Trie;

/// A copy that has missed more changes than this is not worth following.
const MANY: usize = 1_024;

/// All but the copy that the writer changes.
pub(super) struct Turns<T> {
    /// What readers see, and what they saw before that, as long as it may be of use.
    shown: Trie<T>,
    before: Option<Trie<T>>,
    /// The places in which the writer's copy differs from `shown`, and `shown` from `before`.
    changed: Vec<u32>,
    missed: Vec<u32>,
}

impl<T: Clone> Turns<T> {
    pub(super) fn new(own: &Trie<T>) -> Self {
        Self { shown: own.clone(), before: None, changed: Vec::new(), missed: Vec::new() }
    }

    /// Has to be told before a place in the writer's copy changes.
    pub(super) fn change(&mut self, own: &mut Trie<T>, at: u32) {
        if self.changed.is_empty() {
            self.take(own);
            self.before = None;
        }
        self.changed.push(at);
    }

    /// What readers see from now on. When they do, [`take`](Self::take) is next.
    pub(super) fn show(&mut self, own: &Trie<T>) -> &Trie<T> {
        if !self.changed.is_empty() {
            let before = mem::replace(&mut self.shown, own.clone());
            self.before = Some(before).filter(|_| self.changed.len() <= MANY);
            self.missed = mem::take(&mut self.changed);
        }
        &self.shown
    }

    /// Makes the copy that readers saw before the writer's own and brings it up to date, unless somebody still
    /// looks at it.
    pub(super) fn take(&mut self, own: &mut Trie<T>) {
        if let Some(mut before) = self.before.take_if(|before| before.is_alone()) {
            for at in self.missed.drain(..) {
                before.follow(&self.shown, at);
            }
            *own = before;
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
            let mut turns = Turns::new(&own);
            let mut seen = (own.clone(), model.clone());
            let (mut held, mut replaced) = (Vec::new(), Vec::new());
            // At the end all readers let go, and one more change is shown.
            let ending = vec![Step::LetGo; steps.len()].into_iter().chain([Step::Set(0), Step::Show]);
            for (i, step) in steps.into_iter().chain(ending).enumerate() {
                match step {
                    Step::Set(at) => {
                        turns.change(&mut own, at);
                        let (old, _) = own.set(at, Arc::new(i));
                        let modelled = own.get(at).and_then(|new| model.insert(at, Arc::clone(new)));
                        assert_eq!(old, modelled);
                        replaced.extend(old);
                    }
                    Step::Change(at) => {
                        turns.change(&mut own, at);
                        if let Some(entry) = own.get_mut(at) {
                            replaced.push(std::mem::replace(entry, Arc::new(i)));
                            model.insert(at, Arc::clone(entry));
                        }
                    }
                    Step::Remove(at) => {
                        turns.change(&mut own, at);
                        let old = own.remove(at);
                        assert_eq!(old, model.remove(&at));
                        replaced.extend(old);
                    }
                    Step::Show => {
                        seen = (turns.show(&own).clone(), model.clone());
                        turns.take(&mut own);
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

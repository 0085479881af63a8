//! Entries with a name, each in a numbered slot that it keeps for life; copies share.
//!
//! Names are found through a hash table of short pages that hold only numbers, so a page is copied without
//! touching anything else. An entry that is replaced stays in its slot, and the table does not change at
//! all: that is what makes an update cheap, and why indexes file slots and not names.

use std::{hash::BuildHasher, hint::black_box, sync::Arc};

use hashbrown::DefaultHashBuilder;

use super::{left_right::LeftRight, trie::Trie};

/// The number under which an entry is kept as long as it lives.
pub(super) type Slot = u32;

/// What a slab keeps.
pub(super) trait Named: Clone {
    fn name(&self) -> &str;
}

/// A page fills to about this many names before the table doubles.
const PAGE_LOAD: usize = 16;

/// The names whose tags begin with the same bits: tag and slot of each.
type Page = Arc<[(u32, Slot)]>;

/// The shared part of a [`Slab`]: what a reader needs.
#[derive(Clone)]
pub(super) struct SlabView<T> {
    entries: Trie<T>,
    pages: Trie<Page>,
    /// There are 2^`bits` pages; a tag's first `bits` bits say which one it is on.
    bits: u32,
    len: usize,
    hasher: DefaultHashBuilder,
}

/// The writer's own [`SlabView`] and what it alone needs: the other copies, and the slots that are free again.
pub(super) struct Slab<T> {
    view: SlabView<T>,
    copies: LeftRight<T>,
    free: Vec<Slot>,
    next: Slot,
}

impl<T: Named> SlabView<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn find(&self, name: &str) -> Option<Slot> {
        self.find_tagged(self.tag(name), name)
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&T> {
        self.entries.get(slot)
    }

    /// Looks for many names side by side, `N` at most, and at what replacing their entries would touch. The answer
    /// is each name's slot and entry; now and then, when two hashes agree, it is another name's.
    ///
    /// Looking for one name is a dozen places in memory, each known from the one before, and mostly waiting.
    /// Here each step is taken for all names before the next step of any: they wait together.
    pub(super) fn look_for<'a, const N: usize>(
        &self,
        names: impl Iterator<Item = &'a str>,
    ) -> [Option<(Slot, &T)>; N] {
        let mut tags = [None; N];
        for (tag, name) in tags.iter_mut().zip(names) {
            *tag = Some(self.tag(name));
        }
        let pages = tags.map(|tag| tag.and_then(|tag| Some((tag, self.pages.get(self.page(tag))?))));
        let slots = pages.map(|page| {
            let (tag, page) = page?;
            page.iter().find(|(other, _)| *other == tag).map(|(_, slot)| *slot)
        });
        for slot in slots.iter().flatten() {
            black_box(self.entries.look(*slot, |entry| entry.name().as_ptr().addr()));
        }
        slots.map(|slot| Some((slot?, self.get(slot?)?)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }

    fn find_tagged(&self, tag: u32, name: &str) -> Option<Slot> {
        let page = self.pages.get(self.page(tag))?;
        page.iter()
            .find(|(other, slot)| *other == tag && self.get(*slot).is_some_and(|entry| entry.name() == name))
            .map(|(_, slot)| *slot)
    }

    fn tag(&self, name: &str) -> u32 {
        (self.hasher.hash_one(name) >> 32) as u32
    }

    fn page(&self, tag: u32) -> u32 {
        tag.checked_shr(32 - self.bits).unwrap_or(0)
    }
}

impl<T: Named> Slab<T> {
    pub(super) fn new() -> Self {
        let hasher = DefaultHashBuilder::default();
        let view = SlabView { entries: Trie::default(), pages: Trie::default(), bits: 0, len: 0, hasher };
        Self { copies: LeftRight::new(&view.entries), view, free: Vec::new(), next: 0 }
    }

    /// What is here now.
    pub(super) fn view(&self) -> &SlabView<T> {
        &self.view
    }

    /// What is here now, for readers. When they see it, [`published`](Self::published) is next.
    pub(super) fn show(&mut self) -> SlabView<T> {
        let entries = self.copies.show(&self.view.entries).clone();
        SlabView { entries, ..self.view.clone() }
    }

    pub(super) fn published(&mut self) {
        self.copies.take(&mut self.view.entries);
    }

    pub(super) fn rest(&mut self) {
        self.copies.rest();
    }

    /// The entries, of which the one in this slot will change.
    fn entries(&mut self, slot: Slot) -> &mut Trie<T> {
        self.copies.change(&mut self.view.entries, slot);
        &mut self.view.entries
    }

    /// Puts an entry under its name: its slot, the entry that had the name before, and the one that has it now.
    /// The slot is found faster if somebody knows already where it should be.
    pub(super) fn insert(&mut self, entry: T, hint: Option<Slot>) -> (Slot, Option<T>, &T) {
        let is_known = |slot: &Slot| self.view.get(*slot).is_some_and(|known| known.name() == entry.name());
        if let Some(slot) = hint.filter(is_known) {
            return self.put(slot, entry);
        }
        let tag = self.view.tag(entry.name());
        if let Some(slot) = self.view.find_tagged(tag, entry.name()) {
            return self.put(slot, entry);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.next = self.next.checked_add(1).expect("fewer than four billion objects of one kind");
            self.next - 1
        });
        self.view.len += 1;
        if self.view.len > PAGE_LOAD << self.view.bits {
            self.rebuild_pages(self.view.bits + 1);
        }
        let page = self.view.page(tag);
        let names = self.view.pages.get(page).map_or(&[][..], |page| page);
        let names = names.iter().copied().chain([(tag, slot)]).collect();
        self.view.pages.set(page, names);
        self.put(slot, entry)
    }

    fn put(&mut self, slot: Slot, entry: T) -> (Slot, Option<T>, &T) {
        let (old, new) = self.entries(slot).set(slot, entry);
        (slot, old, new)
    }

    /// Takes an entry out by its name: the slot that it had, and the entry.
    pub(super) fn remove(&mut self, name: &str) -> Option<(Slot, T)> {
        let tag = self.view.tag(name);
        let slot = self.view.find_tagged(tag, name)?;
        let page = self.view.page(tag);
        let names: Page =
            self.view.pages.get(page)?.iter().copied().filter(|(_, other)| *other != slot).collect();
        if names.is_empty() {
            self.view.pages.remove(page);
        } else {
            self.view.pages.set(page, names);
        }
        let entry = self.entries(slot).remove(slot)?;
        self.view.len -= 1;
        if self.view.len == 0 {
            // A store that was emptied begins anew, with its slots in the order of the next list.
            (self.free, self.next) = (Vec::new(), 0);
        } else {
            self.free.push(slot);
        }
        if self.view.bits > 0 && self.view.len < (PAGE_LOAD << self.view.bits) / 8 {
            self.rebuild_pages(self.view.bits - 1);
        }
        Some((slot, entry))
    }

    /// The entry in a slot, to change anything but its name.
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.entries(slot).get_mut(slot)
    }

    /// Deals all names to 2^`bits` pages. Tags are enough for it: no name is looked at.
    fn rebuild_pages(&mut self, bits: u32) {
        let old = std::mem::take(&mut self.view.pages);
        self.view.bits = bits;
        let mut dealt = vec![Vec::new(); 1 << bits];
        for &(tag, slot) in old.iter().flat_map(|page| page.iter()) {
            dealt[self.view.page(tag) as usize].push((tag, slot));
        }
        for (page, names) in (0..).zip(dealt) {
            if !names.is_empty() {
                self.view.pages.set(page, names.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use informer_testing::histories;
    use proptest::{collection::vec, prelude::*};

    #[derive(Debug, Clone, PartialEq)]
    struct Entry(Arc<str>, u32);

    impl Named for Entry {
        fn name(&self) -> &str {
            &self.0
        }
    }

    fn entry(name: u16, value: u32) -> Entry {
        Entry(format!("{name}").into(), value)
    }

    #[test]
    fn equals_a_map_and_an_entry_keeps_its_slot() {
        // What is hinted at need not be so.
        let steps = vec((any::<bool>(), 0..60u16, proptest::option::of(0..70u32)), 0..120);
        histories(&steps, |steps| {
            let (mut slab, mut model) = (Slab::new(), BTreeMap::new());
            for (i, (put, name, hint)) in (0..).zip(steps) {
                let known = model.get(&name).cloned();
                if put {
                    let (slot, old, new) = slab.insert(entry(name, i), hint);
                    assert_eq!(*new, entry(name, i));
                    assert_eq!(old, known.as_ref().map(|(_, value)| entry(name, *value)));
                    if let Some((known_slot, _)) = known {
                        assert_eq!(slot, known_slot, "an update moved an entry");
                    }
                    model.insert(name, (slot, i));
                } else {
                    let expected = known.map(|(slot, value)| (slot, entry(name, value)));
                    assert_eq!(slab.remove(&name.to_string()), expected);
                    model.remove(&name);
                }
                assert_eq!(slab.view().len(), model.len());
            }
            let names: Vec<String> = (0..60).map(|name| name.to_string()).collect();
            let found: [_; 64] = slab.view().look_for(names.iter().map(String::as_str));
            assert_eq!(found[60..], [None; 4], "nothing that was not asked for");
            for (found, name) in found.iter().zip(0..60) {
                match model.get(&name).map(|(_, value)| entry(name, *value)) {
                    Some(known) => {
                        assert!(found.is_some_and(|(_, found)| found.0 != known.0 || *found == known));
                    }
                    None => assert!(found.is_none_or(|(_, found)| found.name() != name.to_string())),
                }
            }
            for name in 0..60 {
                let slot = model.get(&name).map(|(slot, _)| *slot);
                assert_eq!(slab.view().find(&name.to_string()), slot);
                let value = slot.and_then(|slot| slab.view().get(slot)).map(|entry| entry.1);
                assert_eq!(value, model.get(&name).map(|(_, value)| *value));
            }
            assert_eq!(slab.view().iter().count(), model.len());
        });
    }

    #[test]
    fn the_table_grows_and_shrinks_and_finds_every_name() {
        let mut slab = Slab::new();
        for name in 0..5_000 {
            slab.insert(entry(name, 0), None);
        }
        let before = slab.show();
        assert!(before.bits >= 7, "5,000 names need many pages");
        for name in 0..4_999 {
            assert!(slab.remove(&name.to_string()).is_some());
        }
        assert_eq!((slab.view().len(), slab.view().bits), (1, 0));
        assert!(slab.view().find("4999").is_some() && slab.view().find("4998").is_none());
        assert!((0..5_000).all(|name| before.find(&format!("{name}")).is_some()), "a copy stays as it was");
    }
}

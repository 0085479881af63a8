//! What a server and the network to it do wrong, when a test asks for it.

use std::collections::VecDeque;

use informer_model::{ObjectKey, ResourceVersion, Status};
use kube::Resource;

use super::{
    super::{SourceError, WatchItem},
    MemorySource,
    request::Wanted,
    watching::Mailbox,
};

/// What is still to go wrong.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) failing_lists: Failures,
    pub(super) failing_watches: Failures,
    /// After how many objects the next list is cut.
    pub(super) cut_list: Option<usize>,
    /// How many of the next changes watches do not hear of.
    pub(super) lost_events: usize,
    pub(super) stalled: bool,
    pub(super) streaming_refused: bool,
    pub(super) initial_events_end_omitted: bool,
}

/// Failures of the next requests, and how often each happens.
#[derive(Default)]
pub(super) struct Failures(VecDeque<(usize, SourceError)>);

impl Failures {
    fn add(&mut self, times: usize, failure: SourceError) {
        if times > 0 {
            self.0.push_back((times, failure));
        }
    }

    /// The failure of a request that is made now.
    pub(super) fn take(&mut self) -> Option<SourceError> {
        let (times, failure) = self.0.front_mut()?;
        *times -= 1;
        if *times > 0 {
            return Some(failure.clone());
        }
        self.0.pop_front().map(|(_, failure)| failure)
    }
}

/// Misbehaviour. Each does what it says and no more, and the same each time.
impl<K> MemorySource<K> {
    /// Forgets all history: every version before the newest has expired, and so have continue tokens. Open
    /// watches go on.
    pub fn compact(&self) {
        self.shared.change(|state| state.compact());
    }

    /// Goes back to an older version, as a server does that was restored from a backup: objects, history and
    /// counter are what they were then, and watches end. The next writes get versions that have been given
    /// out before.
    ///
    /// It fails for a version that has expired or has not been reached.
    pub fn rewind(&self, version: &ResourceVersion) -> Result<(), Status> {
        let version = match Wanted::new(version)? {
            Wanted::At(version) => version,
            Wanted::Any | Wanted::Newest => {
                return Err(Status::bad_request("a version to go back to is needed"));
            }
        };
        self.shared.change(|state| state.rewind(version))
    }

    /// Ends all open watches in the way a server means it, after what they have still to tell.
    pub fn close_watches(&self) {
        self.shared.change(|state| state.watches.values_mut().for_each(Mailbox::close));
    }

    /// Breaks the connections of all open watches: after what they have still to tell they fail with
    /// [`SourceError::Broken`].
    pub fn break_watches(&self) {
        self.shared.change(|state| state.watches.values_mut().for_each(Mailbox::cut));
    }

    /// Makes all watches silent, those that are open and those that will be: nothing arrives, not even their
    /// end. With `false` everything arrives that was held up.
    pub fn stall_watches(&self, stalled: bool) {
        self.shared.change(|state| state.faults.stalled = stalled);
    }

    /// Puts an item into all open watches, whatever they select: an object that was told before or never
    /// existed, one that does not decode, something foreign, an early bookmark. After an error the watch ends.
    pub fn inject(&self, item: &WatchItem<K>) {
        self.shared.change(|state| state.watches.values_mut().for_each(|mailbox| mailbox.inject(item)));
    }

    /// Fails the next lists (each page is one), after the failures that are still to come.
    pub fn fail_next_lists(&self, times: usize, failure: SourceError) {
        self.shared.change(|state| state.faults.failing_lists.add(times, failure));
    }

    /// Fails the opening of the next watches, after the failures that are still to come.
    pub fn fail_next_watches(&self, times: usize, failure: SourceError) {
        self.shared.change(|state| state.faults.failing_watches.add(times, failure));
    }

    /// Breaks the connection of the next list after so many objects, and before its end in any case.
    pub fn cut_list_after(&self, objects: usize) {
        self.shared.change(|state| state.faults.cut_list = Some(objects));
    }

    /// Keeps the next changes from all watches, also from those that are opened later. Lists have them.
    pub fn lose_next_events(&self, events: usize) {
        self.shared
            .change(|state| state.faults.lost_events = state.faults.lost_events.saturating_add(events));
    }

    /// Refuses `sendInitialEvents` with 422, as servers do that do not stream lists.
    pub fn refuse_streaming(&self, refused: bool) {
        self.shared.change(|state| state.faults.streaming_refused = refused);
    }

    /// Leaves out the bookmark that ends the initial events of a watch, of watches that are opened from now on.
    pub fn omit_initial_events_end(&self, omitted: bool) {
        self.shared.change(|state| state.faults.initial_events_end_omitted = omitted);
    }
}

impl<K: Resource + Clone> MemorySource<K> {
    /// Writes an object again in a form that clients cannot decode: lists and watches have it as unusable,
    /// with this error, until it is put anew. It returns the version of that; none if there is no such object.
    pub fn spoil(&self, key: &ObjectKey, error: &str) -> Option<ResourceVersion> {
        self.shared.change(|state| state.spoil(key, error)).map(Into::into)
    }
}

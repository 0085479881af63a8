//! Watches: what there is, if that was asked for, and then every change.
//!
//! A change goes into the mailbox of each open watch when it happens. The client's stream takes it from there,
//! ends the watch when its time is over, and adds bookmarks.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::{Stream, stream};
use kube::Resource;
use tokio::time::{Instant, sleep_until};

use super::{
    super::{ListOptions, SourceError, WatchChange, WatchItem},
    Shared,
    request::{Filter, Request, Wanted, check_watch},
    state::{Change, State},
};

/// How long a watch stays open that does not say it.
const USUAL: Duration = Duration::from_secs(30 * 60);
/// No watch stays open longer, whatever it says.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
const BOOKMARKS: Duration = Duration::from_secs(60);

/// What an open watch has still to tell.
pub(super) struct Mailbox<K> {
    filter: Filter,
    /// Changes up to this version are not told. It may be one of the future.
    after: u64,
    items: VecDeque<Result<WatchItem<K>, SourceError>>,
    closed: bool,
}

impl<K> Mailbox<K> {
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Nothing comes after what is there.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// The connection breaks after what is there.
    pub(super) fn cut(&mut self) {
        self.push(Err(SourceError::Broken("cut, as asked for".to_owned())));
    }

    pub(super) fn inject(&mut self, item: &WatchItem<K>) {
        self.push(Ok(match item {
            WatchItem::Object(change, object) => WatchItem::Object(*change, object.clone()),
            WatchItem::Unusable(change, unusable) => WatchItem::Unusable(*change, unusable.clone()),
            WatchItem::Bookmark { version, initial_events_end } => {
                WatchItem::Bookmark { version: version.clone(), initial_events_end: *initial_events_end }
            }
            WatchItem::Error(status) => WatchItem::Error(status.clone()),
            WatchItem::Foreign(what) => WatchItem::Foreign(what.clone()),
        }));
    }

    /// An error is the last thing that a watch says.
    fn push(&mut self, item: Result<WatchItem<K>, SourceError>) {
        if !self.closed {
            self.closed = matches!(item, Err(_) | Ok(WatchItem::Error(_)));
            self.items.push_back(item);
        }
    }
}

impl<K: Resource + Clone> Mailbox<K> {
    pub(super) fn tell(&mut self, change: &Change<K>) {
        if change.version > self.after {
            change.event(&self.filter).into_iter().for_each(|item| self.push(Ok(item)));
        }
    }
}

impl<K: Resource + Clone> State<K> {
    /// Begins a watch: its mailbox has what is to be told at once.
    fn begin(
        &mut self,
        namespace: Option<Arc<str>>,
        options: &ListOptions,
    ) -> Result<Mailbox<K>, SourceError> {
        self.requests.push(Request::Watch(options.clone()));
        if let Some(failure) = self.faults.failing_watches.take() {
            return Err(failure);
        }
        check_watch(options, !self.faults.streaming_refused)?;
        let filter = Filter::new(namespace, options)?;
        let after = match Wanted::new(&options.resource_version)? {
            Wanted::At(version) if options.send_initial_events => {
                self.reached(version)?;
                None
            }
            Wanted::At(version) => Some(version),
            Wanted::Any | Wanted::Newest => None,
        };
        let version = after.unwrap_or(self.version());
        let mut mailbox = Mailbox { filter, after: version, items: VecDeque::new(), closed: false };
        match after {
            Some(version) => self.tell_history(&mut mailbox, version),
            None => self.tell_everything(&mut mailbox, options),
        }
        Ok(mailbox)
    }

    fn tell_everything(&self, mailbox: &mut Mailbox<K>, options: &ListOptions) {
        for stored in self.newest().values() {
            if mailbox.filter.matches(&stored.object) {
                mailbox.push(Ok(stored.event(WatchChange::Added)));
            }
        }
        let told = options.allow_watch_bookmarks && !self.faults.initial_events_end_omitted;
        if options.send_initial_events && told {
            mailbox
                .push(Ok(WatchItem::Bookmark { version: self.version().into(), initial_events_end: true }));
        }
    }

    fn tell_history(&self, mailbox: &mut Mailbox<K>, after: u64) {
        match self.changes_after(after) {
            Ok(changes) => changes.for_each(|change| mailbox.tell(change)),
            Err(expired) => mailbox.push(Ok(WatchItem::Error(Box::new(expired)))),
        }
    }
}

/// The client's side of an open watch. When it is dropped the watch is over.
pub(super) struct Watching<K> {
    shared: Arc<Shared<K>>,
    id: u64,
    deadline: Instant,
    /// None: bookmarks are not wanted.
    next_bookmark: Option<Instant>,
}

/// What a watch does next.
enum Step<K> {
    Tell(Result<WatchItem<K>, SourceError>),
    /// Wait for a change, and no longer than until then.
    Wait(Option<Instant>),
    End,
}

impl<K: Resource + Clone> Watching<K> {
    pub(super) fn open(
        shared: Arc<Shared<K>>,
        namespace: Option<Arc<str>>,
        options: ListOptions,
    ) -> Result<Self, SourceError> {
        let id = {
            let mut state = shared.lock();
            let mailbox = state.begin(namespace, &options)?;
            let id = state.watches.last_key_value().map_or(0, |(last, _)| last + 1);
            state.watches.insert(id, mailbox);
            id
        };
        let now = Instant::now();
        let deadline = now + options.timeout.unwrap_or(USUAL).min(LONGEST);
        let next_bookmark = options.allow_watch_bookmarks.then(|| now + BOOKMARKS);
        Ok(Self { shared, id, deadline, next_bookmark })
    }
}

impl<K> Watching<K> {
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<WatchItem<K>, SourceError>> {
        stream::unfold(self, |mut watching| async {
            let item = watching.next().await?;
            Some((item, watching))
        })
    }

    async fn next(&mut self) -> Option<Result<WatchItem<K>, SourceError>> {
        let shared = Arc::clone(&self.shared);
        loop {
            // From here on no change is missed.
            let changed = shared.changed.notified();
            let until = match self.step() {
                Step::Tell(item) => return Some(item),
                Step::Wait(until) => until,
                Step::End => return None,
            };
            let time_is_up = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = changed => {}
                () = time_is_up => {}
            }
        }
    }

    fn step(&mut self) -> Step<K> {
        let mut state = self.shared.lock();
        if state.faults.stalled {
            return Step::Wait(None);
        }
        let version = state.version();
        let Some(mailbox) = state.watches.get_mut(&self.id) else { return Step::End };
        if let Some(item) = mailbox.items.pop_front() {
            return Step::Tell(item);
        }
        let now = Instant::now();
        if mailbox.closed || now >= self.deadline {
            return Step::End;
        }
        if self.next_bookmark.is_some_and(|due| now >= due) {
            self.next_bookmark = Some(now + BOOKMARKS);
            // A watch that waits for a version of the future has seen nothing yet.
            if mailbox.after <= version {
                return Step::Tell(Ok(WatchItem::Bookmark {
                    version: version.into(),
                    initial_events_end: false,
                }));
            }
        }
        Step::Wait(Some(self.next_bookmark.map_or(self.deadline, |due| due.min(self.deadline))))
    }
}

impl<K> Drop for Watching<K> {
    fn drop(&mut self) {
        self.shared.lock().watches.remove(&self.id);
    }
}

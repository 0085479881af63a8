//! The events of an informer as a stream.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    vec,
};

use futures_util::Stream;
use tokio::task::coop;

use super::{
    handler::Notice,
    inbox::{Batch, Inbox, Work},
    registration::Registration,
};
use crate::{Event, Object, sync::Arc};

/// All events of an informer as a stream: what exists as initial adds, then every change.
///
/// Events wait until the stream is polled; once more than 1,024 wait, what waits for one object becomes one event. The
/// stream ends when the informer stops. Dropping it removes it from the informer.
pub struct Subscription<K> {
    registration: Registration,
    inbox: Arc<Inbox<K>>,
    taken: Taken<K>,
}

/// What was taken out of the inbox and is not handed on yet.
enum Taken<K> {
    Replay(vec::IntoIter<Object<K>>),
    Shared(Batch<K>, usize),
    Merged(vec::IntoIter<Notice<K>>),
}

impl<K> Taken<K> {
    fn next(&mut self) -> Option<Notice<K>> {
        match self {
            Self::Replay(objects) => {
                objects.next().map(|object| Notice { event: Event::Added(object), initial: true })
            }
            Self::Shared(batch, at) => {
                let notice = batch.notices.get(*at).cloned()?;
                *at += 1;
                Some(notice)
            }
            Self::Merged(notices) => notices.next(),
        }
    }
}

impl<K> Subscription<K> {
    pub(super) fn new(registration: Registration, inbox: Arc<Inbox<K>>) -> Self {
        Self { registration, inbox, taken: Taken::Merged(Vec::new().into_iter()) }
    }

    /// Says how far this stream has come, and can end it from elsewhere. It is synced when the event after
    /// the last initial one is asked for.
    pub fn registration(&self) -> &Registration {
        &self.registration
    }
}

impl<K> Stream for Subscription<K> {
    type Item = Notice<K>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Notice<K>>> {
        // A stream that always has something must let other tasks run too.
        let coop = ready!(coop::poll_proceed(context));
        loop {
            if self.inbox.is_closed() {
                self.taken = Taken::Merged(Vec::new().into_iter());
                return Poll::Ready(None);
            }
            if let Some(notice) = self.taken.next() {
                self.inbox.handled();
                coop.made_progress();
                return Poll::Ready(Some(notice));
            }
            match ready!(self.inbox.poll_take(context)) {
                None => {}
                Some(Work::Replay(snapshot)) => {
                    // Handles, for the order of a snapshot cannot be walked in pieces.
                    let objects: Vec<Object<K>> = snapshot.iter().cloned().collect();
                    self.taken = Taken::Replay(objects.into_iter());
                }
                Some(Work::Shared(batch)) => self.taken = Taken::Shared(batch, 0),
                Some(Work::Merged(notices)) => self.taken = Taken::Merged(notices.into_iter()),
                Some(Work::Synced) => self.registration.member().synced(),
            }
        }
    }
}

impl<K> Drop for Subscription<K> {
    fn drop(&mut self) {
        self.registration.withdraw();
    }
}

impl<K> fmt::Debug for Subscription<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subscription").field(&self.registration).finish()
    }
}

//! An answer as a list or a watch.

use std::task::{Context, Poll, ready};

use ::kube::Resource;
use serde::de::DeserializeOwned;

use crate::{
    request::{Answer, Part, SourceError},
    source::{ListItem, PageEnd, WatchItem},
    wire::{Frame, Wire},
};

/// Reads an answer to its end.
pub(super) struct Reading {
    answer: Answer,
    /// Kept from the envelope of a list to the end of the answer: a page is complete when all of it came, and
    /// only then is the connection free for the next request.
    page_end: Option<PageEnd>,
}

impl Reading {
    pub(super) fn new(answer: Answer) -> Self {
        Self { answer, page_end: None }
    }

    /// The message that came last.
    fn frame(&self) -> Frame<'_> {
        self.of(self.answer.frame())
    }

    fn of<'a>(&self, bytes: &'a [u8]) -> Frame<'a> {
        Frame { codec: self.answer.codec(), bytes }
    }

    /// The next part of a list.
    pub(super) fn poll_list<K: Resource + DeserializeOwned>(
        &mut self,
        cx: &mut Context<'_>,
        wire: &Wire<K>,
    ) -> Poll<Option<Result<ListItem<K>, SourceError>>> {
        loop {
            return Poll::Ready(match ready!(self.answer.poll_part(cx)) {
                Some(Ok(Part::Frame)) => Some(Ok(wire.list_item(self.frame()))),
                Some(Ok(Part::Skipped { beginning, reason })) => {
                    Some(Ok(wire.skipped_item(self.of(&beginning), &reason)))
                }
                Some(Ok(Part::Envelope)) => match wire.page_end(self.frame()) {
                    Ok(page_end) => {
                        self.page_end = Some(page_end);
                        continue;
                    }
                    Err(error) => Some(Err(self.answer.fail(error))),
                },
                Some(Err(error)) => {
                    self.page_end = None;
                    Some(Err(error))
                }
                None => self.page_end.take().map(|end| Ok(ListItem::End(end))),
            });
        }
    }

    /// The next item of a watch.
    pub(super) fn poll_watch<K: Resource + DeserializeOwned>(
        &mut self,
        cx: &mut Context<'_>,
        wire: &Wire<K>,
    ) -> Poll<Option<Result<WatchItem<K>, SourceError>>> {
        Poll::Ready(ready!(self.answer.poll_part(cx)).map(|part| match part? {
            Part::Frame | Part::Envelope => {
                wire.watch_item(self.frame()).map_err(|error| self.answer.fail(error))
            }
            Part::Skipped { beginning, reason } => {
                wire.skipped_event(self.of(&beginning), &reason).map_err(|error| self.answer.fail(error))
            }
        }))
    }
}

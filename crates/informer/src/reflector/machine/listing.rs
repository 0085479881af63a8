//! Lists: page by page, or as a stream.

use std::time::Duration;

use informer_model::{ResourceVersion, Status};

use super::{Action, Listing, Machine, PAGE_SIZE, State};
use crate::{
    reflector::{Problem, Remedy},
    source::{ListOptions, PageEnd, SourceError, VersionMatch},
};

impl Machine {
    pub(super) fn begin_list(&mut self, now: Duration, version: ResourceVersion, actions: &mut Vec<Action>) {
        let any = version.is_unset() || version == ResourceVersion::ANY;
        let limit = match self.settings.page_size {
            Some(size) => Some(size),
            None if any || self.pages_at_zero => Some(PAGE_SIZE),
            None => None,
        };
        actions.push(Action::List(ListOptions {
            resource_version: version.clone(),
            limit,
            ..ListOptions::default()
        }));
        self.state = State::Listing(Listing { version, limit, pages: 0, objects: 0, heard: now });
        // A list tells all that a probe would.
        self.probe_at = None;
    }

    pub(super) fn page(&mut self, now: Duration, end: PageEnd, objects: u64, actions: &mut Vec<Action>) {
        let State::Listing(listing) = &mut self.state else { return };
        listing.heard = now;
        listing.pages += 1;
        listing.objects += objects;
        if let Some(token) = end.continue_token.filter(|token| !token.is_empty()) {
            if listing.version == ResourceVersion::ANY {
                self.pages_at_zero = true;
            }
            let (limit, continue_token) = (listing.limit, Some(token));
            actions.push(Action::List(ListOptions { limit, continue_token, ..ListOptions::default() }));
            return;
        }
        let objects = listing.objects;
        self.replaced(end.version, objects, actions);
        self.assure(now);
        self.begin_watch(now, false, actions);
    }

    pub(super) fn replaced(&mut self, version: ResourceVersion, objects: u64, actions: &mut Vec<Action>) {
        self.last = version.clone();
        self.last_unavailable = false;
        self.audit.listed(objects);
        actions.push(Action::Replace(version));
    }

    pub(super) fn list_failed(&mut self, now: Duration, error: SourceError, actions: &mut Vec<Action>) {
        let State::Listing(listing) = &self.state else { return };
        let (version, pages) = (listing.version.clone(), listing.pages);
        actions.push(Action::Discard);
        let status = error.status();
        let expired = status.is_some_and(Status::needs_relist);
        if expired && pages > 0 {
            actions.push(Action::Report(Problem::PageExpired(error), Remedy::FullList));
            let resource_version = version.clone();
            actions.push(Action::List(ListOptions { resource_version, ..ListOptions::default() }));
            self.state = State::Listing(Listing { version, limit: None, pages: 0, objects: 0, heard: now });
            return;
        }
        if (expired || status.is_some_and(Status::is_too_large_version)) && !version.is_unset() {
            self.last_unavailable = true;
            actions.push(Action::Report(Problem::List(error), Remedy::ListNewest));
            self.begin_list(now, ResourceVersion::UNSET, actions);
            return;
        }
        let at_least = status.and_then(Status::retry_after);
        self.end_round(now, Problem::List(error), at_least, actions);
    }

    pub(super) fn begin_streaming(
        &mut self,
        now: Duration,
        asked: ResourceVersion,
        actions: &mut Vec<Action>,
    ) {
        let timeout = self.watch_timeout();
        actions.push(Action::Watch(ListOptions {
            resource_version: asked.clone(),
            resource_version_match: Some(VersionMatch::NotOlderThan),
            send_initial_events: true,
            allow_watch_bookmarks: true,
            timeout: Some(timeout),
            ..ListOptions::default()
        }));
        self.state = State::Streaming { asked, objects: 0, opened: false, quiet_since: now };
    }

    /// A streaming list that cannot go on: the newest instead, the same again, or an ordinary list.
    pub(super) fn streaming_failed(
        &mut self,
        now: Duration,
        asked: &ResourceVersion,
        error: SourceError,
        opening: bool,
        actions: &mut Vec<Action>,
    ) {
        let status = error.status();
        let unavailable = status.is_some_and(|status| status.needs_relist() || status.is_too_large_version());
        if unavailable && !asked.is_unset() {
            self.last_unavailable = true;
            actions.push(Action::Report(Problem::Streaming(error), Remedy::ListNewest));
            self.begin_streaming(now, ResourceVersion::UNSET, actions);
            return;
        }
        let busy = status.is_some_and(Status::is_too_many_requests);
        let unasked = matches!(
            error,
            SourceError::Refused(_) | SourceError::Unreachable(_) | SourceError::Credentials(_)
        );
        if busy || unasked {
            let at_least = status.and_then(Status::retry_after);
            self.end_round(now, Problem::Streaming(error), at_least, actions);
            return;
        }
        self.list_this_round = true;
        if opening && status.is_some_and(|status| matches!(status.code, 400 | 405 | 406 | 415 | 422 | 501)) {
            self.streaming_refused = true;
        }
        if opening {
            actions.push(Action::Report(Problem::StreamingRefused(error), Remedy::List));
            self.begin_round(now, actions);
        } else {
            let at_least = status.and_then(Status::retry_after);
            self.end_round(now, Problem::Streaming(error), at_least, actions);
        }
    }
}

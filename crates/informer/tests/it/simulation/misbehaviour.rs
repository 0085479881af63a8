//! Everything that a server and the network to it can do wrong.

use std::sync::atomic::Ordering;

use informer::{
    model::{Reason, ResourceVersion, Status},
    source::{SourceError, Unusable, WatchChange, WatchItem},
};
use rand::RngExt;

use super::world::{NAMESPACES, World};

impl World {
    /// One thing goes wrong, or will.
    pub(crate) fn misbehave(&mut self) {
        let server = self.server.clone();
        match self.rng.random_range(0..22) {
            0 | 1 => {
                self.tell("compact");
                server.compact();
                self.oldest = self.version();
            }
            2 => self.rewind(),
            3 => {
                self.tell("close watches");
                server.close_watches();
            }
            4 | 5 => {
                self.tell("break watches");
                server.break_watches();
            }
            6 => {
                let stalled = self.rng.random();
                self.tell(format_args!("stall: {stalled}"));
                server.stall_watches(stalled);
            }
            7 | 8 => {
                let (times, failure) = (self.rng.random_range(1..4), self.failure());
                self.tell(format_args!("{times} lists fail: {failure}"));
                server.fail_next_lists(times, failure);
            }
            9 | 10 => {
                let (times, failure) = (self.rng.random_range(1..4), self.failure());
                self.tell(format_args!("{times} watches fail: {failure}"));
                server.fail_next_watches(times, failure);
            }
            11 | 12 => self.inject(),
            13 => {
                let events = self.rng.random_range(1..4);
                self.tell(format_args!("lose {events} events"));
                server.lose_next_events(events);
                self.losing += events;
            }
            14 => {
                let (refused, omitted) = (self.rng.random(), self.rng.random());
                self.tell(format_args!("streaming refused: {refused}, its end omitted: {omitted}"));
                server.refuse_streaming(refused);
                server.omit_initial_events_end(omitted);
            }
            15 | 16 => self.panic(),
            20 | 21 => {
                let (way, forbidden) = (self.rng.random_range(0..self.ways.len()), self.rng.random());
                self.tell(format_args!("source {way} is forbidden: {forbidden}"));
                self.ways[way].mishaps.forbidden.store(forbidden, Ordering::SeqCst);
                // Who may no longer watch is sent away.
                if forbidden {
                    server.break_watches();
                }
            }
            17 => {
                let version = self.rng.random_range(self.oldest..=self.version());
                self.tell(format_args!("a replica lags behind at {version}"));
                for way in &self.ways {
                    way.mishaps.replica.store(version, Ordering::SeqCst);
                }
            }
            _ => {
                let objects = self.rng.random_range(0..10);
                self.tell(format_args!("cut the next list after {objects}"));
                server.cut_list_after(objects);
            }
        }
    }

    /// One of the sources panics, in the middle of something or when it is asked.
    fn panic(&mut self) {
        let (way, times) = (self.rng.random_range(0..self.ways.len()), self.rng.random_range(1..4));
        let asked = self.rng.random();
        self.tell(format_args!("source {way} panics {times} times, when asked: {asked}"));
        let mishaps = &self.ways[way].mishaps;
        let counter = if asked { &mishaps.requests } else { &mishaps.items };
        counter.fetch_add(times, Ordering::SeqCst);
    }

    fn rewind(&mut self) {
        let version = self.rng.random_range(self.oldest..=self.version());
        self.tell(format_args!("rewind to {version}"));
        self.server.rewind(&version.into()).expect("it has that version");
        self.rewound = true;
        self.listeners.iter().for_each(|listener| listener.validator.allow_rewinding());
    }

    fn inject(&mut self) {
        let mut objects = self.server.objects();
        // What cannot be used is never told as something good, and never leaves the cache with an older state.
        objects.retain(|object| self.is_usable(object));
        // What is injected goes into all watches, and an object of another namespace is no duplicate there.
        let usable = !objects.is_empty() && self.scope.len() == NAMESPACES.len() && !self.rewound;
        let some = usable.then(|| objects[self.rng.random_range(0..objects.len())].clone());
        let change =
            [WatchChange::Added, WatchChange::Modified, WatchChange::Deleted][self.rng.random_range(0..3)];
        let item = match (self.rng.random_range(0..5), some) {
            // Everything that was told before is older than what is told last, or the same.
            (0 | 1, Some(object)) => WatchItem::Object(change, object),
            (2, Some(object)) => WatchItem::Unusable(
                change,
                Unusable {
                    key: Some(object.key().clone()),
                    name: object.key().to_string(),
                    version: object.resource_version().clone(),
                    error: "injected".to_owned(),
                },
            ),
            (3, _) => match self.failure() {
                SourceError::Status(status) => WatchItem::Error(status),
                _ => WatchItem::Bookmark { version: ResourceVersion::from(1), initial_events_end: false },
            },
            _ => WatchItem::Foreign("a table".to_owned()),
        };
        self.tell(format_args!("inject {item:?}"));
        self.server.inject(&item);
    }

    fn failure(&mut self) -> SourceError {
        let text = || "as planned".to_owned();
        let status = match self.rng.random_range(0..16) {
            0 | 1 => return SourceError::Refused(text()),
            2 => return SourceError::Unreachable(text()),
            3 | 4 => return SourceError::Broken(text()),
            5 => return SourceError::Malformed(text()),
            6 => Status::expired(text()),
            7 => Status::gone(text()),
            8 => Status::too_many_requests(text(), self.rng.random_range(0..60)),
            9 => Status::internal_error(text()),
            10 => Status::service_unavailable(text()),
            11 => Status::unauthorized(text()),
            12 => Status::forbidden("configmaps", "", "", text()),
            13 => Status::failure(Reason::NotFound, text()),
            14 => Status::too_large_resource_version(&self.server.version(), &ResourceVersion::from(1)),
            _ => Status::bad_request(text()),
        };
        status.into()
    }
}

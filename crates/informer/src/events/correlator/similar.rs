//! Which events are similar, and which of those are told apart by their notes.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::{Key, Recent};
use crate::events::{
    Limits,
    event::{Report, Topic, combined},
};

#[derive(Debug)]
pub(super) struct Similar {
    most: usize,
    lasting: Duration,
    topics: Recent<Arc<Topic>, Notes>,
    hashes: RandomState,
}

/// The notes of a topic, as hashes: two that are taken for one get an event each all the same.
#[derive(Debug)]
struct Notes {
    hashes: Vec<u64>,
    last: Instant,
}

impl Similar {
    pub(super) fn new(limits: &Limits) -> Self {
        let topics = Recent::new(limits.tracked);
        Self { most: limits.similar, lasting: limits.similar_for, topics, hashes: RandomState::new() }
    }

    /// What makes another event a repetition of this one, and what the event says.
    pub(super) fn classify(&mut self, report: Report, now: Instant) -> (Key, Report) {
        let Report { topic, note } = report;
        if self.tells_apart(&topic, &note, now) {
            let key = Key { topic: Arc::clone(&topic), note: Some(note.as_str().into()) };
            (key, Report { topic, note })
        } else {
            let key = Key { topic: Arc::clone(&topic), note: None };
            (key, Report { topic, note: combined(&note) })
        }
    }

    fn tells_apart(&mut self, topic: &Arc<Topic>, note: &str, now: Instant) -> bool {
        let hash = self.hashes.hash_one(note);
        match self.topics.get(topic) {
            Some(notes) if now.duration_since(notes.last) < self.lasting => {
                notes.last = now;
                let known = notes.hashes.contains(&hash);
                let room = notes.hashes.len() < self.most;
                if !known && room {
                    notes.hashes.push(hash);
                }
                known || room
            }
            _ => {
                self.topics.insert(Arc::clone(topic), Notes { hashes: vec![hash], last: now });
                true
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.topics.len()
    }
}

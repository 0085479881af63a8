//! The same decisions from plain lists, newest entry last, that are searched from end to end.

use super::{Happening, Verdict};
use crate::events::{EventType, Limits};

pub(super) struct Model {
    limits: Limits,
    now: u64,
    /// The notes of a topic, and when it was last heard of.
    notes: Vec<(Happening, (Vec<u32>, u64))>,
    /// The number of the event that a repetition is counted in, and when it was last heard of.
    live: Vec<((Happening, bool), (usize, u64))>,
    /// How many more events an object may have, and since when.
    tokens: Vec<((u32, bool), (f64, u64))>,
    /// Object, topic, note and count.
    events: Vec<(String, String, String, u64)>,
}

impl Model {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, now: 0, notes: Vec::new(), live: Vec::new(), tokens: Vec::new(), events: Vec::new() }
    }

    pub(super) fn seconds(&mut self, count: u64) {
        self.now += count;
    }

    pub(super) fn observe(&mut self, happening: Happening) -> Verdict {
        let Limits { tracked, similar, similar_for, series_end, burst, refill, .. } = self.limits;
        let now = self.now;
        let Happening { object, warning, reason, note } = happening;

        let topic = Happening { note: 0, ..happening };
        let (mut notes, last) = take(&mut self.notes, &topic).unwrap_or((Vec::new(), 0));
        if now - last >= similar_for.as_secs() {
            notes.clear();
        }
        let combined = !notes.contains(&note) && notes.len() >= similar;
        if !combined && !notes.contains(&note) {
            notes.push(note);
        }
        put(&mut self.notes, topic, (notes, now), tracked);

        let series = if combined { (topic, true) } else { (happening, false) };
        if let Some((event, last)) = take(&mut self.live, &series)
            && now - last < series_end.as_secs()
        {
            self.events[event].3 += 1;
            put(&mut self.live, series, (event, now), tracked);
            return Verdict::Counted;
        }

        let (tokens, at) = take(&mut self.tokens, &(object, warning)).unwrap_or((f64::from(burst), now));
        let refilled = tokens + (now - at) as f64 / refill.as_secs_f64();
        let tokens = refilled.min(f64::from(burst));
        let allowed = tokens >= 1.0;
        let left = if allowed { tokens - 1.0 } else { tokens };
        put(&mut self.tokens, (object, warning), (left, now), tracked);
        if !allowed {
            return Verdict::Suppressed;
        }

        let type_ = if warning { EventType::Warning } else { EventType::Normal };
        let words = if combined { "(combined from similar events): " } else { "" };
        let event =
            (format!("web-{object}"), format!("{type_:?} reason-{reason}"), format!("{words}{note}"), 1);
        self.events.push(event);
        put(&mut self.live, series, (self.events.len() - 1, now), tracked);
        Verdict::Queued
    }

    /// All events there are, in order.
    pub(super) fn events(mut self) -> Vec<(String, String, String, u64)> {
        self.events.sort();
        self.events
    }
}

fn take<K: PartialEq, V>(list: &mut Vec<(K, V)>, key: &K) -> Option<V> {
    let at = list.iter().position(|(known, _)| known == key)?;
    Some(list.remove(at).1)
}

fn put<K, V>(list: &mut Vec<(K, V)>, key: K, value: V, most: usize) {
    list.push((key, value));
    if list.len() > most {
        list.remove(0);
    }
}

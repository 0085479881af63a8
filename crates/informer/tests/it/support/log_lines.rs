//! What the library logs, line by line, for tests that count.

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex, Once},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    callsite::rebuild_interest_cache,
    field::{Field, Visit},
    span,
    subscriber::{DefaultGuard, Interest, set_default, set_global_default},
};

/// Keeps the lines of the library's log.
#[derive(Clone, Default)]
pub(crate) struct LogLines(Arc<Mutex<Vec<(Level, String)>>>);

impl LogLines {
    /// Listens to this thread until the answer is dropped.
    pub(crate) fn listen(&self) -> DefaultGuard {
        ask_each_time();
        set_default(self.clone())
    }

    /// The lines of a level.
    pub(crate) fn lines(&self, level: Level) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|(of, _)| *of == level).map(|(_, line)| line.clone()).collect()
    }

    /// The same, and forgets them.
    pub(crate) fn take(&self, level: Level) -> Vec<String> {
        let mut lines = self.0.lock().unwrap();
        let (taken, rest) = std::mem::take(&mut *lines).into_iter().partition(|(of, _)| *of == level);
        *lines = rest;
        taken.into_iter().map(|(_, text): (Level, String)| text).collect()
    }
}

/// To be called before a thread listens. A line of the log, or a span, that a thread without a listener meets for the first time would be marked
/// as one that nobody wants, for all threads. With somebody who may want any line none is; earlier marks are made anew.
pub(crate) fn ask_each_time() {
    static SOMEBODY: Once = Once::new();
    SOMEBODY.call_once(|| {
        set_global_default(Undecided).expect("no other listener for all threads");
        rebuild_interest_cache();
    });
}

/// Listens to all threads, says that it may want any line, and wants none.
struct Undecided;

impl Subscriber for Undecided {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

impl Subscriber for LogLines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("informer::")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push((*event.metadata().level(), line.0));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

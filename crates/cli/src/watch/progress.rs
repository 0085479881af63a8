//! How far the watch has come, and what is wrong, on stderr.
//!
//! In: the informer's [`Health`], again and again. Out: a line when something changes, not one for every retry.
//! Until the first list is complete a terminal shows a spinner instead.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use informer::{
    Health,
    health::Trouble,
    reflector::{Phase, Remedy},
    source::SourceError,
};
use informer_model::Status;

use crate::{failure::Failure, text::printable};

/// The spinner, while there is nothing else to see.
pub(crate) struct Progress {
    spinner: Option<ProgressBar>,
    began: Instant,
}

impl Progress {
    /// Begins, with a spinner if somebody can see it.
    pub(crate) fn begin(doing: String, spin: bool) -> Self {
        let began = Instant::now();
        let spinner = (spin && io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
            let bar = ProgressBar::new_spinner().with_message(doing.clone());
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        let progress = Self { spinner, began };
        if progress.spinner.is_none() {
            progress.say(&doing);
        }
        progress
    }

    /// Says what is being done, to a terminal.
    pub(crate) fn doing(&self, doing: String) {
        if let Some(spinner) = &self.spinner {
            spinner.set_message(doing);
        }
    }

    /// Writes a line at once.
    pub(crate) fn say(&self, line: &str) {
        // Without a stderr the events are still worth telling.
        let write = || {
            let _ = writeln!(io::stderr(), "{line}");
        };
        match &self.spinner {
            Some(spinner) => spinner.suspend(write),
            None => write(),
        }
    }

    /// Takes the spinner away.
    pub(crate) fn clear(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }

    /// How long it has been.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What is being done, for a spinner.
pub(super) fn doing(health: &Health) -> String {
    let Some(source) = health.sources.first() else { return health.to_string() };
    let verb = match source.phase {
        Phase::Watching => "watching",
        Phase::Waiting => "waiting for",
        _ => "listing",
    };
    match source.received {
        0 => format!("{verb} {}", printable(&source.description)),
        received => format!("{verb} {}, {received} so far", printable(&source.description)),
    }
}

/// What was already told of an informer's health.
#[derive(Default)]
pub(super) struct Reported {
    /// What is wrong, in a few words that do not vary.
    trouble: Option<&'static str>,
    quarantined: usize,
}

impl Reported {
    /// The lines for what has changed since the last time.
    pub(super) fn news(&mut self, health: &Health, quarantined: impl FnOnce() -> Vec<String>) -> Vec<String> {
        let mut lines = Vec::new();
        let trouble = serious(health);
        match (trouble, self.trouble) {
            (Some(trouble), told) if told != Some(trouble.problem.cause()) => {
                self.trouble = Some(trouble.problem.cause());
                lines.push(format!("trouble: {}; trying again", reason(trouble)));
            }
            (None, Some(_)) if health.trouble().is_none() => {
                self.trouble = None;
                lines.push("recovered: the watch goes on".to_owned());
            }
            _ => {}
        }
        if health.quarantined > self.quarantined {
            let objects = quarantined();
            let (shown, more) = objects.split_at(objects.len().min(3));
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            lines.push(format!("cannot be read and are left out: {}{more}", printable(&shown.join(", "))));
        }
        self.quarantined = health.quarantined;
        lines
    }
}

/// What is wrong, if it is not mended at once or a matter of course.
pub(super) fn serious(health: &Health) -> Option<&Trouble> {
    let trouble = health.trouble()?.1;
    // A version expires sooner or later. The list that follows mends it.
    let expired = trouble.problem.error().and_then(SourceError::status).is_some_and(Status::needs_relist);
    match trouble.remedy {
        _ if expired && trouble.times == 1 => None,
        Remedy::Relist(_) => Some(trouble),
        Remedy::Rewatch(delay) if !delay.is_zero() => Some(trouble),
        _ => None,
    }
}

/// What is wrong and what to do, in words.
pub(super) fn reason(trouble: &Trouble) -> String {
    match failure(trouble) {
        Some(failure) => failure.to_string(),
        None => trouble.problem.to_string(),
    }
}

/// The failed request, if one is the trouble.
pub(super) fn failure(trouble: &Trouble) -> Option<Failure> {
    trouble.problem.error().map(Failure::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use informer::{
        health::{Life, SourceHealth},
        reflector::Problem,
    };
    use informer_model::ResourceVersion;

    fn health(error: Option<(SourceError, Remedy)>, quarantined: usize) -> Health {
        let trouble = error.map(|(error, remedy)| Trouble {
            problem: Problem::List(error),
            remedy,
            times: 1,
            began: Duration::ZERO,
            last: Duration::ZERO,
        });
        let source = SourceHealth {
            description: "pods".into(),
            phase: Phase::Waiting,
            lasting: Duration::ZERO,
            received: 0,
            version: ResourceVersion::UNSET,
            trouble,
            last_trouble: None,
        };
        Health {
            informer: "pods".into(),
            life: Life::Running,
            synced: true,
            objects: 0,
            bytes: None,
            absent: None,
            quarantined,
            sources: vec![source],
        }
    }

    const SOON: Remedy = Remedy::Relist(Duration::from_secs(1));

    #[test]
    fn trouble_and_recovery_are_told_once_each() {
        let mut reported = Reported::default();
        let mut news = |health: &Health| reported.news(health, Vec::new);
        let refused = health(Some((SourceError::Refused("no".into()), SOON)), 0);
        assert!(news(&health(None, 0)).is_empty());
        assert!(news(&refused)[0].starts_with("trouble: connection refused: no; check that"));
        assert!(news(&refused).is_empty(), "not one line per retry");
        let forbidden = health(Some((Status::forbidden("pods", "", "", "no").into(), SOON)), 0);
        assert!(news(&forbidden)[0].contains("list and watch"), "another reason is news");
        assert_eq!(news(&health(None, 0)), ["recovered: the watch goes on"]);
        assert!(news(&health(None, 0)).is_empty());
    }

    #[test]
    fn what_is_mended_at_once_or_a_matter_of_course_is_not_told() {
        let mut reported = Reported::default();
        for remedy in [Remedy::List, Remedy::FullList, Remedy::ListNewest, Remedy::Rewatch(Duration::ZERO)] {
            let health = health(Some((SourceError::Broken("x".into()), remedy)), 0);
            assert!(reported.news(&health, Vec::new).is_empty());
        }
        let expired = health(Some((Status::expired("too old").into(), SOON)), 0);
        assert!(reported.news(&expired, Vec::new).is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let mut reported = Reported::default();
        let names = || ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        assert_eq!(
            reported.news(&health(None, 4), names),
            ["cannot be read and are left out: a, b, c and 1 more"]
        );
        assert!(reported.news(&health(None, 4), names).is_empty());
    }
}

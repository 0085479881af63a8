//! Tells what an informer hears: events on stdout, how it goes on stderr.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use anyhow::{Result, bail};
use futures_util::StreamExt;
use informer::{Health, Notice, RawObject, SharedInformer, Subscription, discovery::ServedResource};
use tokio::time::{MissedTickBehavior, interval};

use super::{
    Options,
    output::Printer,
    progress::{self, Progress, Reported},
    sink::{Closed, Sink},
};
use crate::text::thousands;

/// How often the informer's health is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Tells of one informer.
pub(super) struct Teller<'a> {
    options: &'a Options,
    served: &'a ServedResource,
    informer: &'a SharedInformer<RawObject>,
    sink: &'a Sink,
    progress: Progress,
    printer: Printer,
    reported: Reported,
    /// How many objects were there before.
    initial: usize,
    /// Whether that has been said.
    synced: bool,
}

impl<'a> Teller<'a> {
    pub(super) fn new(
        options: &'a Options,
        served: &'a ServedResource,
        informer: &'a SharedInformer<RawObject>,
        sink: &'a Sink,
        progress: Progress,
    ) -> Self {
        let printer = Printer::new(options.output, served.clone(), colours());
        let reported = Reported::default();
        Self { options, served, informer, sink, progress, printer, reported, initial: 0, synced: false }
    }

    /// Tells every event for as long as somebody listens. It fails if there never will be any.
    pub(super) async fn tell(mut self, events: Subscription<RawObject>) -> Result<()> {
        let sink = self.sink;
        let result = tokio::select! {
            result = self.tell_all(events) => result,
            // Without this, a reader who has gone would be noticed one event late.
            () = sink.closed() => Ok(()),
        };
        match result {
            Err(error) if error.is::<Closed>() => Ok(()),
            result => result,
        }
    }

    async fn tell_all(&mut self, mut events: Subscription<RawObject>) -> Result<()> {
        let registration = events.registration().clone();
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                biased;
                Ok(()) = registration.wait_until_synced(Duration::MAX), if !self.synced => self.sync().await?,
                _ = looks.tick() => self.look().await?,
                notice = events.next() => {
                    let Some(notice) = notice else { return Ok(()) };
                    // That all was told is noticed when more is asked for, and more may have come.
                    if !self.synced && registration.has_synced() {
                        self.sync().await?;
                    }
                    self.event(&notice).await?;
                }
            }
        }
    }

    async fn event(&mut self, notice: &Notice<RawObject>) -> Result<()> {
        self.progress.clear();
        self.initial += usize::from(notice.initial);
        if !(notice.initial && self.options.watch_only) {
            self.sink.out(self.printer.event(notice)).await?;
        }
        Ok(())
    }

    /// Says that all that existed has been told.
    async fn sync(&mut self) -> Result<()> {
        self.progress.clear();
        self.synced = true;
        if let Some(text) = self.printer.synced(self.initial) {
            self.sink.out(text).await?;
        }
        let (objects, took) = (thousands(self.initial), self.progress.elapsed().as_secs_f64());
        self.sink.err(format!("synced: {objects} {} in {took:.1} s", self.served.api.plural)).await?;
        Ok(())
    }

    /// Says what is wrong, and gives up if it was never right.
    async fn look(&mut self) -> Result<()> {
        let health = self.informer.health();
        if !self.synced {
            self.give_up_if_vain(&health)?;
            self.progress.doing(progress::doing(&health));
        }
        let quarantined = || {
            let objects = self.informer.quarantined().into_iter();
            objects.map(|object| format!("{} ({})", object.name, object.error)).collect()
        };
        for line in self.reported.news(&health, quarantined) {
            if self.synced {
                self.sink.err(line).await?;
            } else {
                self.progress.say(&line);
            }
        }
        Ok(())
    }

    /// Ends the first sync when it cannot succeed, or has been in vain for too long.
    fn give_up_if_vain(&self, health: &Health) -> Result<()> {
        let Some(trouble) = progress::serious(health) else { return Ok(()) };
        let lasting = progress::failure(trouble).is_some_and(|failure| !failure.may_pass());
        if lasting || trouble.began >= self.options.timeout {
            bail!("cannot watch {}: {}", health.informer, progress::reason(trouble));
        }
        Ok(())
    }
}

/// Whether stdout takes colours. See <https://no-color.org>.
fn colours() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

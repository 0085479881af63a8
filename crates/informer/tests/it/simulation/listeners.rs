//! Who listens in a simulated life: handlers of different temper, and a subscription that is polled by and by.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt};
use informer::{EventHandler, Object, SharedInformer, Subscription, Tombstone};
use k8s_openapi::api::core::v1::ConfigMap;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use tokio::sync::Notify;

use super::{
    support::Config,
    validator::{Listening, Validator},
};

/// What a planned panic says.
pub(crate) const PLANNED: &str = "it panics as planned";

/// A listener, and what it should know in the end.
pub(crate) struct Listener {
    pub(crate) validator: Validator<ConfigMap>,
    pub(crate) name: String,
    /// It hears of objects that pass [`keep`] only.
    pub(crate) filtered: bool,
    pub(crate) polled: Option<(Subscription<ConfigMap>, Listening<ConfigMap>)>,
}

/// What a listener is to know of the world.
pub(crate) struct Setting {
    /// Which objects may be told to it as initial.
    pub(crate) existed: Box<dyn Fn(&Config) -> bool + Send + Sync>,
    /// Told when it is shown something again.
    pub(crate) shown: Arc<Notify>,
    /// Whether it may have a resync period of its own.
    pub(crate) resyncs: bool,
}

/// The test of filtered handlers: an object passes at some times and at others not.
pub(crate) fn keep(object: &Config) -> bool {
    object.data.as_ref().is_some_and(|data| data.contains_key("k1"))
}

impl Listener {
    /// Adds a listener, of a kind that is left to chance.
    pub(crate) fn add(
        informer: &SharedInformer<ConfigMap>,
        number: usize,
        rng: &mut Pcg32,
        setting: Setting,
    ) -> Self {
        let kinds = ["quick", "slow", "panicking", "filtered", "polled", "slow and filtered"];
        let kind = kinds[rng.random_range(0..kinds.len())];
        let name = format!("{kind}-{number}");
        let filtered = kind.contains("filtered");
        if kind == "polled" {
            let subscription = informer.subscribe().expect("the informer has not stopped");
            let (validator, listening) = Validator::of(informer, &name, &subscription);
            return Self { validator, name, filtered, polled: Some((subscription, listening)) };
        }
        let seed = rng.random();
        let resync = [None, Some(0), Some(60), Some(150)][rng.random_range(0..4)].map(Duration::from_secs);
        let Setting { existed, shown, resyncs } = setting;
        let slow = kind.contains("slow");
        let temper = |listening: Listening<ConfigMap>| Temper {
            // For one who is far behind, what was deleted and made anew may be one addition.
            listening: if slow { listening } else { listening.expecting(existed) },
            rng: Pcg32::seed_from_u64(seed),
            slow,
            shown,
            panics: kind == "panicking",
            resync: resync.filter(|_| resyncs),
        };
        let validator = match filtered {
            true => Validator::add_as(informer, &name, |listening| temper(listening).filter(keep)),
            false => Validator::add_as(informer, &name, temper),
        };
        Self { validator, name, filtered, polled: None }
    }

    /// Takes up to so many events out of a subscription.
    pub(crate) fn poll(&mut self, most: usize) -> usize {
        let Some((subscription, listening)) = &mut self.polled else { return 0 };
        for polled in 0..most {
            match subscription.next().now_or_never() {
                Some(Some(notice)) => listening.hear(&notice),
                _ => return polled,
            }
        }
        most
    }
}

/// A handler that takes its time, or panics after it has heard.
struct Temper {
    listening: Listening<ConfigMap>,
    rng: Pcg32,
    slow: bool,
    panics: bool,
    shown: Arc<Notify>,
    resync: Option<Duration>,
}

impl Temper {
    async fn dawdle(&mut self) {
        if self.slow && self.rng.random_bool(0.5) {
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(1..300))).await;
        }
    }

    fn lose_it(&mut self) {
        assert!(!(self.panics && self.rng.random_bool(0.2)), "{PLANNED}");
    }
}

impl EventHandler<ConfigMap> for Temper {
    async fn on_add(&mut self, object: &Object<ConfigMap>, initial: bool) {
        self.dawdle().await;
        self.listening.on_add(object, initial).await;
        self.lose_it();
    }

    async fn on_update(&mut self, old: &Object<ConfigMap>, new: &Object<ConfigMap>) {
        if old.ptr_eq(new) {
            self.shown.notify_one();
        }
        self.dawdle().await;
        self.listening.on_update(old, new).await;
        self.lose_it();
    }

    async fn on_delete(&mut self, gone: &Tombstone<ConfigMap>) {
        self.dawdle().await;
        self.listening.on_delete(gone).await;
        self.lose_it();
    }

    fn resync(&self) -> Option<Duration> {
        self.resync
    }
}

//! What can be chosen about a reflector.

use std::time::Duration;

use super::Backoff;

/// How a reflector lists and watches. The default is right for a Kubernetes API server.
#[derive(Debug, Clone, PartialEq)]
pub struct ReflectorSettings {
    /// Whether lists are taken as streams, where the server can do that. Default: yes.
    pub streaming: bool,
    /// The most objects in one page of a list. Unset: 500, and one page where a version is asked for.
    pub page_size: Option<u32>,
    /// A watch is asked to last this long, up to twice as long. Default: 5 minutes.
    pub watch_timeout: Duration,
    /// The delays after failures.
    pub backoff: Backoff,
    /// How soon it is noticed that the server went back in time. When neither the watch nor, with several namespaces,
    /// that of another one has told a newer version for so long (or up to a quarter less, by chance), a list of one object asks
    /// for it. Every tenth period such a list also counts the objects, to notice lost events. Unset: never.
    /// Default: 30 seconds.
    pub probe_period: Option<Duration>,
    /// For how long a watch is repeated after internal errors of the server before the list is. Default: not.
    pub internal_error_retry: Duration,
}

impl Default for ReflectorSettings {
    fn default() -> Self {
        Self {
            streaming: true,
            page_size: None,
            watch_timeout: Duration::from_secs(300),
            backoff: Backoff::default(),
            probe_period: Some(Duration::from_secs(30)),
            internal_error_retry: Duration::ZERO,
        }
    }
}

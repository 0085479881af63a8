//! What can go wrong with a reflector, and what is done about it.

use std::{fmt, time::Duration};

use informer_model::ResourceVersion;

use crate::source::SourceError;

/// Something went wrong in a round of listing and watching.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The list failed.
    #[error("the list failed: {0}")]
    List(#[source] SourceError),
    /// The version of a list expired between two pages.
    #[error("the list expired between two pages: {0}")]
    PageExpired(#[source] SourceError),
    /// A streaming list failed.
    #[error("the streaming list failed: {0}")]
    Streaming(#[source] SourceError),
    /// The server does not take streaming lists.
    #[error("the server refuses streaming lists: {0}")]
    StreamingRefused(#[source] SourceError),
    /// A streaming list ended before it was complete.
    #[error("the streaming list ended before it was complete")]
    StreamingEnded,
    /// A streaming list said nothing, and was not complete.
    #[error("the streaming list said nothing for {0:?} and was not complete")]
    StreamingSilent(Duration),
    /// A watch could not be opened.
    #[error("the watch could not be opened: {0}")]
    WatchRefused(#[source] SourceError),
    /// A watch failed.
    #[error("the watch failed: {0}")]
    WatchFailed(#[source] SourceError),
    /// A watch was closed at once.
    #[error("the server closed the watch within a second, without an event")]
    ShortWatch,
    /// A watch said nothing for longer than it was to last.
    #[error("the watch said nothing for {0:?}, longer than it was to last; the connection may be dead")]
    SilentWatch(Duration),
    /// The server went back in time.
    #[error("the server is at version {server}, before {seen}, which was seen: was a backup restored?")]
    Rewound {
        /// The version that was seen.
        seen: ResourceVersion,
        /// The version that the server has.
        server: ResourceVersion,
    },
    /// The server's lists stay at a version while its watch goes on.
    #[error(
        "the server's lists stay at version {server}, while its watch has told of {seen}: whether it goes back in time cannot be seen"
    )]
    VersionStuck {
        /// The version that was seen.
        seen: ResourceVersion,
        /// The version that lists have.
        server: ResourceVersion,
    },
    /// The server did not tell every change.
    #[error("the server has {server} objects where the watch told of {seen}: changes were not told")]
    EventsLost {
        /// How many objects there should be after all that the watch told.
        seen: u64,
        /// How many the server has.
        server: u64,
    },
    /// The source, or something else of a user's, panicked.
    #[error("the reflector panicked: {0}")]
    Panicked(String),
    /// The server's version could not be asked for.
    #[error("the server's version could not be checked: {0}")]
    Probe(#[source] SourceError),
}

impl Problem {
    /// A few words that do not vary, to count by.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::List(error) | Self::Streaming(error) | Self::WatchRefused(error) => error_cause(error),
            Self::WatchFailed(error) | Self::StreamingRefused(error) | Self::Probe(error) => {
                error_cause(error)
            }
            Self::PageExpired(_) => "page expired",
            Self::StreamingEnded | Self::StreamingSilent(_) => "streaming list incomplete",
            Self::ShortWatch => "short watch",
            Self::SilentWatch(_) => "silent watch",
            Self::Rewound { .. } => "version rewound",
            Self::VersionStuck { .. } => "version stuck",
            Self::EventsLost { .. } => "events lost",
            Self::Panicked(_) => "panic",
        }
    }

    /// Whether only a watch that lasts shows that it is over.
    pub(crate) fn is_of_watch(&self) -> bool {
        matches!(
            self,
            Self::WatchRefused(_)
                | Self::WatchFailed(_)
                | Self::ShortWatch
                | Self::SilentWatch(_)
                | Self::Panicked(_)
        )
    }

    /// The source's error, if it began with one.
    pub fn error(&self) -> Option<&SourceError> {
        match self {
            Self::List(error)
            | Self::PageExpired(error)
            | Self::Streaming(error)
            | Self::StreamingRefused(error)
            | Self::WatchRefused(error)
            | Self::WatchFailed(error)
            | Self::Probe(error) => Some(error),
            _ => None,
        }
    }
}

fn error_cause(error: &SourceError) -> &'static str {
    match error {
        SourceError::Status(status) if status.needs_relist() => "version expired",
        SourceError::Status(status) if status.is_too_large_version() => "version too large",
        SourceError::Status(status) => match status.code {
            401 => "unauthorized",
            403 => "forbidden",
            404 => "not found",
            429 => "too many requests",
            _ => "server error",
        },
        SourceError::Refused(_) => "connection refused",
        SourceError::Credentials(_) => "login failed",
        SourceError::Unreachable(_) => "unreachable",
        SourceError::Broken(_) => "connection broken",
        SourceError::Malformed(_) => "malformed answer",
    }
}

/// What is done about a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// After this delay, the list is repeated.
    Relist(Duration),
    /// After this delay, the watch goes on from the version that it had reached.
    Rewatch(Duration),
    /// The list is repeated at once, whole instead of in pages.
    FullList,
    /// The list is repeated at once, at the newest version.
    ListNewest,
    /// An ordinary list takes the place of the streaming one, at once.
    List,
    /// Nothing: the watch goes on.
    GoOn,
}

impl Remedy {
    /// Whether it repeats the list.
    pub fn relists(self) -> bool {
        !matches!(self, Self::Rewatch(_) | Self::GoOn)
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relist(delay) => write!(f, "listing again in {:.1} s", delay.as_secs_f64()),
            Self::Rewatch(Duration::ZERO) => f.write_str("watching again at once"),
            Self::Rewatch(delay) => write!(f, "watching again in {:.1} s", delay.as_secs_f64()),
            Self::FullList => f.write_str("listing again without pages"),
            Self::ListNewest => f.write_str("listing again at the newest version"),
            Self::List => f.write_str("listing the ordinary way"),
            Self::GoOn => f.write_str("going on"),
        }
    }
}

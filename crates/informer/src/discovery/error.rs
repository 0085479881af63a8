//! Why a name means no resource that an informer can watch.

use std::convert::Infallible;

use informer_model::{ResourceArg, ResourceArgError};

use crate::request::SourceError;

/// Why there is no resource for a name.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// It is no name.
    #[error(transparent)]
    Name(#[from] ResourceArgError),
    /// Nothing that is served has that name.
    #[error("the server has no resource {resource:?}; {}{}", suggestion(.near), unsure(.silent))]
    Unknown {
        /// What was asked for.
        resource: ResourceArg,
        /// Names that differ little from it, the nearest first.
        near: Vec<String>,
        /// The versions of groups that the server could not tell about.
        silent: Vec<String>,
    },
    /// It is served, but cannot be listed and watched.
    #[error("{resource} cannot be watched: the server offers {} for it, not list and watch", offered(.verbs))]
    Verbs {
        /// The resource's name.
        resource: String,
        /// What can be done with it.
        verbs: Vec<String>,
    },
    /// The server did not say what it serves.
    #[error("what the server serves is not known: {0}")]
    Server(#[from] SourceError),
}

impl From<Infallible> for ResolveError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

fn suggestion(near: &[String]) -> String {
    match near {
        [] => "`kubectl api-resources` lists what it has".to_owned(),
        near => format!("did you mean {}?", joined(near, " or ")),
    }
}

fn unsure(silent: &[String]) -> String {
    match silent {
        [] => String::new(),
        silent => format!(" (these did not answer: {})", joined(silent, ", ")),
    }
}

fn offered(verbs: &[String]) -> String {
    if verbs.is_empty() { "nothing".to_owned() } else { joined(verbs, ", ") }
}

/// The server's words, fit to be printed.
fn joined(words: &[String], between: &str) -> String {
    words.iter().map(|word| word.escape_debug().to_string()).collect::<Vec<_>>().join(between)
}

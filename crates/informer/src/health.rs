//! What an informer is doing, since when, and what went wrong last: for a person.

use std::{fmt, time::Duration};

use informer_model::ResourceVersion;

use crate::{
    reflector::{Phase, Problem, Remedy},
    source::SourceError,
};

/// The state of an informer at one moment. Printed, it is a line that a person can read.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// The informer's name.
    pub informer: String,
    /// Whether it runs.
    pub life: Life,
    /// Whether the first list is in the cache.
    pub synced: bool,
    /// How many objects are in the cache.
    pub objects: usize,
    /// What they took on the wire, in bytes, if the informer has [metrics](crate::metrics) and so counts them.
    pub bytes: Option<u64>,
    /// How many objects came that could not be used.
    pub quarantined: usize,
    /// Why there is nothing to list at all, in words, if that is so: the kind is not served, or what there is to list is not
    /// known yet. That is a state and no trouble.
    pub absent: Option<String>,
    /// Each source of it: one, unless it covers a list of namespaces.
    pub sources: Vec<SourceHealth>,
}

/// Whether an informer runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Life {
    /// It has not been started.
    NotStarted,
    /// It runs.
    Running,
    /// It has stopped, and stays so.
    Stopped,
    /// It has stopped by a panic, and stays so. What the panic said, [`stop`](crate::SharedInformer::stop) answers.
    Failed,
}

/// The state of one source of an informer.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceHealth {
    /// What is listed and watched.
    pub description: String,
    /// What is being done.
    pub phase: Phase,
    /// For how long.
    pub lasting: Duration,
    /// The version that has been reached; unset before the first list.
    pub version: ResourceVersion,
    /// How many objects have come of the list that is being made.
    pub received: usize,
    /// What is wrong, if something is.
    pub trouble: Option<Trouble>,
    /// What went wrong last, if it is over.
    pub last_trouble: Option<Trouble>,
}

/// Something that went wrong, once or again and again.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// What went wrong last.
    pub problem: Problem,
    /// What is done about it.
    pub remedy: Remedy,
    /// How often in a row it went wrong.
    pub times: u64,
    /// How long ago it began.
    pub began: Duration,
    /// How long ago the last time was.
    pub last: Duration,
}

/// Why a wait for the first list ended without it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The time was up first.
    #[error("not synced within {waited:?}: {health}")]
    Deadline {
        /// How long was waited.
        waited: Duration,
        /// What the informer was doing then, and what was wrong.
        health: Box<Health>,
    },
    /// The informer has stopped before it was synced.
    #[error("the informer {informer:?} has stopped before it was synced")]
    Stopped {
        /// Its name.
        informer: String,
    },
}

impl Health {
    /// Whether everything is as it should be: it runs, the cache is complete, and nothing is wrong.
    pub fn is_healthy(&self) -> bool {
        self.life == Life::Running
            && self.synced
            && self.quarantined == 0
            && self.sources.iter().all(|source| source.trouble.is_none())
    }

    /// What is wrong now, with the source it is wrong with; the first of several.
    pub fn trouble(&self) -> Option<(&SourceHealth, &Trouble)> {
        self.sources.iter().find_map(|source| Some((source, source.trouble.as_ref()?)))
    }
}

impl Problem {
    /// What a person can do about it, where waiting will not help.
    pub fn advice(&self) -> Option<&'static str> {
        let error = self.error()?;
        match (error, error.status().map(|status| status.code)) {
            (_, Some(401)) => {
                Some("check the credentials: the token or certificate is missing, wrong or expired")
            }
            (_, Some(403)) => Some("grant the verbs list and watch on it to the user that the message names"),
            (_, Some(404)) => {
                Some("check the name, and that its CustomResourceDefinition is installed and served")
            }
            (SourceError::Credentials(_), _) => {
                Some("check the user in the kubeconfig and the program that it logs in with")
            }
            // The TLS library's errors come as text only.
            (SourceError::Unreachable(words), _) if words.to_ascii_lowercase().contains("certificate") => {
                Some(
                    "check the certificate authority of the cluster in the kubeconfig, that the server's certificate names its address, and that it has not expired",
                )
            }
            _ => None,
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.life {
            Life::NotStarted => return write!(f, "{}: not started", self.informer),
            Life::Stopped => return write!(f, "{}: stopped, {} objects", self.informer, self.objects),
            Life::Failed => {
                return write!(f, "{}: stopped by a panic, {} objects", self.informer, self.objects);
            }
            Life::Running => {}
        }
        let synced = if self.synced { "" } else { ", not synced" };
        write!(f, "{}: {} objects{synced}", self.informer, self.objects)?;
        if self.quarantined > 0 {
            write!(f, ", {} quarantined", self.quarantined)?;
        }
        if let Some(absent) = &self.absent {
            write!(f, "; {absent}")?;
        }
        for source in &self.sources {
            write!(f, "; {source}")?;
        }
        Ok(())
    }
}

impl fmt::Display for SourceHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = match self.phase {
            Phase::Idle => "nothing yet with",
            Phase::Listing => "listing",
            Phase::Streaming => "streaming the list of",
            Phase::Watching => "watching",
            Phase::Waiting => "waiting to go on with",
        };
        write!(f, "{doing} {} for {}", self.description, Ago(self.lasting))?;
        if self.received > 0 {
            write!(f, ", {} objects so far", self.received)?;
        }
        if !self.version.is_unset() {
            write!(f, ", at version {}", self.version)?;
        }
        match (&self.trouble, &self.last_trouble) {
            (Some(trouble), _) => {
                f.write_str("; ")?;
                trouble.write(f, self.phase == Phase::Waiting)
            }
            (None, Some(trouble)) => {
                write!(f, "; got over this {} ago: {}", Ago(trouble.last), trouble.problem)
            }
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, true)
    }
}

impl Trouble {
    /// What is done about it is said only while it is still to be done.
    fn write(&self, f: &mut fmt::Formatter<'_>, with_remedy: bool) -> fmt::Result {
        match self.times {
            0 | 1 => write!(f, "in trouble for {}: {}", Ago(self.began), self.problem)?,
            times => write!(f, "in trouble for {}, {times} times: {}", Ago(self.began), self.problem)?,
        }
        if with_remedy {
            write!(f, "; {}", self.remedy)?;
        }
        match self.problem.advice() {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

/// A duration as a person says it.
pub(crate) struct Ago(pub(crate) Duration);

impl fmt::Display for Ago {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60) {
            (0, 0, 0, seconds) => write!(f, "{seconds} s"),
            (0, 0, minutes, seconds) => write!(f, "{minutes} min {seconds} s"),
            (0, hours, minutes, _) => write!(f, "{hours} h {minutes} min"),
            (days, hours, _, _) => write!(f, "{days} d {hours} h"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use informer_model::Status;

    #[test]
    fn who_cannot_log_in_or_trust_the_server_is_told_what_to_check() {
        let advice = |error| Problem::List(error).advice().unwrap_or_default();
        assert!(
            advice(SourceError::Credentials("exit code 1".into()))
                .contains("the program that it logs in with")
        );
        let certificate = "client error (Connect): invalid peer certificate: UnknownIssuer";
        assert!(
            advice(SourceError::Unreachable(certificate.into()))
                .starts_with("check the certificate authority")
        );
        assert_eq!(advice(SourceError::Unreachable("no such host".into())), "");
    }

    #[test]
    fn c12_a_health_reads_as_a_sentence_with_what_to_do() {
        let status = Status::forbidden("pods", "", "", "no");
        let problem = Problem::List(SourceError::from(status));
        let trouble = Trouble {
            problem,
            remedy: Remedy::Relist(Duration::from_millis(400)),
            times: 3,
            began: Duration::from_secs(75),
            last: Duration::ZERO,
        };
        let source = SourceHealth {
            description: "pods in all namespaces".to_owned(),
            phase: Phase::Waiting,
            lasting: Duration::from_secs(1),
            version: ResourceVersion::UNSET,
            received: 0,
            trouble: Some(trouble),
            last_trouble: None,
        };
        let mut health = Health {
            informer: "pods".to_owned(),
            life: Life::Running,
            synced: false,
            objects: 0,
            bytes: None,
            quarantined: 0,
            absent: None,
            sources: vec![source],
        };
        let text = health.to_string();
        assert!(text.starts_with(
            "pods: 0 objects, not synced; waiting to go on with pods in all namespaces for 1 s; in trouble for 1 min 15 s, 3 times: the list failed: "
        ), "{text}");
        assert!(text.contains("listing again in 0.4 s; grant the verbs list and watch"), "{text}");
        assert!(!health.is_healthy());
        health.sources[0].last_trouble = health.sources[0].trouble.take();
        health.sources[0].phase = Phase::Watching;
        health.synced = true;
        assert!(health.is_healthy() && health.to_string().contains("got over this 0 s ago"), "{health}");
    }
}

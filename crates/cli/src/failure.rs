//! Why a cluster does not answer as it should: in words, with what to do about it.

use std::{error::Error, fmt, time::Duration};

use informer::source::SourceError;

use crate::text::one_line;

/// So much of what a server says is shown.
const WIDTH: usize = 300;

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    cause: Cause,
    said: String,
}

/// What failures have in common that call for the same remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Unauthorized,
    Forbidden,
    NotFound,
    /// Another refusal that asking again will not change.
    Rejected,
    Credentials,
    Tls,
    Malformed,
    Refused,
    Unreachable,
    /// The server is there and has trouble of its own.
    Unable,
}

impl Failure {
    fn new(cause: Cause, said: &str) -> Self {
        Self { cause, said: one_line(said, WIDTH) }
    }

    /// The server was reached and has said nothing for so long.
    pub(crate) fn unanswered(waited: Duration) -> Self {
        Self::new(Cause::Unreachable, &format!("no answer within {} s", waited.as_secs_f64()))
    }

    /// Whether the same request may succeed a little later.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.cause, Cause::Refused | Cause::Unreachable | Cause::Unable)
    }

    fn from_code(code: u16, said: &str) -> Self {
        let cause = match code {
            401 => Cause::Unauthorized,
            403 => Cause::Forbidden,
            404 => Cause::NotFound,
            408 | 409 | 410 | 429 | 500.. => Cause::Unable,
            _ => Cause::Rejected,
        };
        let said = if said.trim().is_empty() { "no reason given" } else { said };
        Self::new(cause, &format!("{said} ({code})"))
    }
}

/// The TLS library's errors come as text only.
fn is_tls(words: &str) -> bool {
    ["certificate", "corrupt message", "TLS", "tls ", "handshake"].iter().any(|sign| words.contains(sign))
}

impl Cause {
    /// What a person can do.
    fn advice(self) -> &'static str {
        match self {
            Self::Unauthorized => {
                "check the credentials in the kubeconfig: the token or certificate is missing, wrong or expired"
            }
            Self::Forbidden => {
                "ask for the verbs list and watch on it; `kubectl auth can-i --list` tells what you may do"
            }
            Self::NotFound => {
                "check the name, the namespace, and that its CustomResourceDefinition is installed"
            }
            Self::Rejected => "check the selectors and options",
            Self::Credentials => "check the user in the kubeconfig and the program that it logs in with",
            Self::Tls => {
                "check that the server's address in the kubeconfig is right and https is spoken there, and the certificate-authority"
            }
            Self::Malformed => {
                "check the server's address in the kubeconfig, and whether a proxy or login page is in between"
            }
            Self::Refused | Self::Unreachable => {
                "check that the cluster runs and that the server's address in the kubeconfig is right"
            }
            Self::Unable => "the server has trouble of its own",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.said, self.cause.advice())
    }
}

impl Error for Failure {}

impl From<&SourceError> for Failure {
    fn from(error: &SourceError) -> Self {
        match error {
            SourceError::Status(status) => Self::from_code(status.code, &status.message),
            SourceError::Unreachable(words) if is_tls(words) => Self::new(Cause::Tls, words),
            SourceError::Credentials(_) => Self::new(Cause::Credentials, &error.to_string()),
            SourceError::Malformed(_) => Self::new(Cause::Malformed, &error.to_string()),
            SourceError::Refused(_) => Self::new(Cause::Refused, &error.to_string()),
            _ => Self::new(Cause::Unreachable, &error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_waiting_can_cure_is_worth_waiting_for() {
        for (code, passes) in [(400, false), (401, false), (403, false), (404, false), (422, false)]
            .into_iter()
            .chain([(408, true), (429, true), (500, true), (503, true), (504, true)])
        {
            assert_eq!(Failure::from_code(code, "no").may_pass(), passes, "{code}");
        }
        assert!(Failure::from(&SourceError::Broken("reset".into())).may_pass());
        assert!(Failure::from(&SourceError::Unreachable("no such host".into())).may_pass());
        let certificate = "invalid peer certificate: UnknownIssuer";
        assert!(!Failure::from(&SourceError::Unreachable(certificate.into())).may_pass());
        for lasting in [SourceError::Malformed("<html>".into()), SourceError::Credentials("no".into())] {
            assert!(!Failure::from(&lasting).may_pass(), "{lasting}");
        }
    }

    #[test]
    fn a_page_of_html_is_shown_as_one_short_line() {
        let page = format!("<html>\n\u{1b}[31m{}", "x".repeat(10_000));
        let failure = Failure::from(&SourceError::Malformed(page.clone())).to_string();
        assert!(failure.len() < 500 && !failure.contains(['\n', '\u{1b}']), "{failure}");
        assert!(Failure::from_code(502, &page).to_string().len() < 500);
    }
}

//! Why a request got no answer, in words.

use std::{error::Error, io};

use informer_model::Status;
use kube::client::AuthError;
use serde::Serialize;

use super::SourceError;

/// So much is shown of what a program that logs in says.
const SHOWN: usize = 1_000;

/// The error of a client, in words for a person.
impl From<kube::Error> for SourceError {
    fn from(error: kube::Error) -> Self {
        if let Some(login) = chain(&error).find_map(|cause| cause.downcast_ref()) {
            return Self::Credentials(of_login(login));
        }
        let words = in_words(&error);
        match error {
            kube::Error::Api(status) => own_status(&status).into(),
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => Self::Malformed(words),
            error if chain(&error).any(is_refused) => Self::Refused(words),
            _ => Self::Unreachable(words),
        }
    }
}

/// An error and its causes, each said once.
pub(super) fn in_words(error: &kube::Error) -> String {
    // What the client calls its two wrappers tells a person nothing.
    let wrapped = matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_));
    said_once(chain(error).skip(usize::from(wrapped)))
}

/// Why a login failed. What a program has printed may hold a token, so only its complaints are told.
fn of_login(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecRun { out, .. } => {
            let complaint = String::from_utf8_lossy(&out.stderr);
            let complaint: String = complaint.trim().chars().take(SHOWN).collect();
            let colon = if complaint.is_empty() { "" } else { ": " };
            format!("the program that logs in failed ({}){colon}{complaint}", out.status)
        }
        AuthError::AuthExecParse(_) => "the program that logs in printed no credentials".to_owned(),
        other => said_once(chain(other)),
    }
}

/// The client's copy of a Status does not say what it is.
fn own_status(status: &kube::core::Status) -> Status {
    #[derive(Serialize)]
    struct Document<'a> {
        kind: &'static str,
        #[serde(rename = "apiVersion")]
        api_version: &'static str,
        #[serde(flatten)]
        status: &'a kube::core::Status,
    }
    let document = serde_json::to_value(Document { kind: "Status", api_version: "v1", status });
    document
        .and_then(serde_json::from_value)
        .unwrap_or_else(|_| Status::from_response(status.code, status.message.as_str()))
}

fn said_once<'a>(causes: impl Iterator<Item = &'a (dyn Error + 'static)>) -> String {
    let mut words = String::new();
    for cause in causes {
        let text = cause.to_string();
        if !words.contains(&text) {
            words.push_str(if words.is_empty() { "" } else { ": " });
            words.push_str(&text);
        }
    }
    words
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn is_refused(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<dyn Error + Send + Sync>>);

    fn mk(
        text: &'static str,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Box<dyn Error + Send + Sync> {
        Box::new(Layer(text, Some(cause.into())))
    }

    #[test]
    fn f20_a_refused_connection_is_found_under_any_number_of_layers() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let error = kube::Error::Service(mk("client error (Connect)", mk("tcp connect error", refused)));
        let SourceError::Refused(words) = error.into() else { panic!("not refused") };
        assert_eq!(words, "client error (Connect): tcp connect error: connection refused");
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert!(matches!(kube::Error::Service(reset.into()).into(), SourceError::Unreachable(_)));
    }

    #[test]
    fn what_a_wrapper_already_says_is_not_said_again() {
        let error = kube::Error::Service(mk("no answer: timed out", Layer("timed out", None)));
        assert_eq!(in_words(&error), "no answer: timed out");
    }

    #[test]
    fn an_answer_of_the_server_keeps_its_own_words() {
        let said = Status::forbidden("pods", "shop", "web-0", "no");
        let parsed = serde_json::from_value(serde_json::to_value(&said).unwrap()).unwrap();
        assert_eq!(SourceError::from(kube::Error::Api(parsed)), said.into());
    }

    #[cfg(unix)]
    #[test]
    fn a_login_that_failed_is_told_with_the_complaint_and_without_a_token() {
        use std::{
            os::unix::process::ExitStatusExt,
            process::{ExitStatus, Output},
        };
        let login = |stderr: &str| {
            let (stdout, stderr) = (b"token: secret".to_vec(), stderr.as_bytes().to_vec());
            let out = Box::new(Output { status: ExitStatus::from_raw(256), stdout, stderr });
            AuthError::AuthExecRun { cmd: "login --password secret".to_owned(), out }
        };
        let expected =
            "the client could not log in: the program that logs in failed (exit status: 1): no session";
        // While the client is made, and later, when it needs a new token.
        let first = SourceError::from(kube::Error::Auth(login("no session\n")));
        let later = SourceError::from(kube::Error::Service(mk("no request", login("no session\n"))));
        for error in [first, later] {
            assert_eq!(error.to_string(), expected);
        }
        let mute = SourceError::from(kube::Error::Auth(login(""))).to_string();
        assert!(mute.ends_with("failed (exit status: 1)"), "{mute}");
        let missing = AuthError::AuthExecStart(io::Error::other("no such program"));
        let SourceError::Credentials(words) = kube::Error::Auth(missing).into() else { panic!("no login") };
        assert_eq!(words, "unable to run auth exec: no such program");
    }
}

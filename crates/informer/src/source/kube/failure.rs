//! Why a request got no answer, in words.

use std::{error::Error, io};

use crate::source::SourceError;

/// What to look at when a certificate is refused.
const CERTIFICATE_ADVICE: &str = "check the certificate authority of the cluster in the kubeconfig, \
     that the server's certificate names its address, and that it has not expired";

/// An error of sending a request.
pub(super) fn of_sending(error: &::kube::Error) -> SourceError {
    let words = in_words(error);
    if chain(error).any(is_refused) {
        return SourceError::Refused(words);
    }
    let about_certificate = words.to_ascii_lowercase().contains("certificate");
    SourceError::Unreachable(if about_certificate { format!("{words}; {CERTIFICATE_ADVICE}") } else { words })
}

/// An error and its causes, each said once.
pub(super) fn in_words(error: &::kube::Error) -> String {
    // What the client calls its two wrappers tells a person nothing.
    let wrapped = matches!(error, ::kube::Error::Service(_) | ::kube::Error::HyperError(_));
    let mut words = String::new();
    for cause in chain(error).skip(usize::from(wrapped)) {
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
        let error = ::kube::Error::Service(mk("client error (Connect)", mk("tcp connect error", refused)));
        let SourceError::Refused(words) = of_sending(&error) else { panic!("{error}") };
        assert_eq!(words, "client error (Connect): tcp connect error: connection refused");
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert!(matches!(of_sending(&::kube::Error::Service(reset.into())), SourceError::Unreachable(_)));
    }

    #[test]
    fn a_certificate_that_is_refused_is_named_with_what_to_check() {
        let cause = io::Error::other("invalid peer certificate: UnknownIssuer");
        let error = ::kube::Error::Service(mk("client error (Connect)", cause));
        let SourceError::Unreachable(words) = of_sending(&error) else { panic!("{error}") };
        assert!(
            words.starts_with("client error (Connect): invalid peer certificate: UnknownIssuer; check the certificate authority"),
            "{words}"
        );
    }

    #[test]
    fn what_a_wrapper_already_says_is_not_said_again() {
        let error = ::kube::Error::Service(mk("no answer: timed out", Layer("timed out", None)));
        assert_eq!(in_words(&error), "no answer: timed out");
    }
}

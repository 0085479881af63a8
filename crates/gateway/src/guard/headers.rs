//! The headers that every answer has, so that a browser does no more with it than it was meant for.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, RETRY_AFTER,
        STRICT_TRANSPORT_SECURITY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use informer_model::Status;

use super::Guard;

/// The page loads what the gateway itself serves and nothing else; no inline script or style runs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// A part of the page: the same for everybody.
    Page,
    /// Something of the cluster, or a failure.
    Data,
}

impl Guard {
    /// Sets what every answer has. A `Cache-Control` that is there already stays.
    pub(crate) fn harden(&self, headers: &mut HeaderMap, content: Content) {
        let mut set = |name: HeaderName, value| headers.insert(name, HeaderValue::from_static(value));
        set(CONTENT_SECURITY_POLICY, POLICY);
        set(X_CONTENT_TYPE_OPTIONS, "nosniff");
        set(X_FRAME_OPTIONS, "DENY");
        set(REFERRER_POLICY, "no-referrer");
        set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
        set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
        // A browser keeps this for a host with all its ports: on `localhost` it would cut off other programs. For the
        // same reason it is one day and not a year.
        if self.tls && !self.address.ip().is_loopback() {
            set(STRICT_TRANSPORT_SECURITY, "max-age=86400");
        }
        let caching = match content {
            Content::Page => "no-cache",
            Content::Data => "no-store",
        };
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static(caching));
    }
}

/// The headers that belong to a failure: which methods there are, how to say who one is, when to come back.
pub(crate) fn accompany(status: &Status, headers: &mut HeaderMap) {
    match status.code {
        401 => drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        405 => drop(headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"))),
        _ => {}
    }
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if seconds > 0 {
        headers.insert(RETRY_AFTER, seconds.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hardened(address: &str, tls: bool, content: Content) -> HeaderMap {
        let mut headers = HeaderMap::new();
        Guard::new(address.parse().expect("an address"), Vec::new(), tls).harden(&mut headers, content);
        headers
    }

    #[test]
    fn an_answer_cannot_be_framed_sniffed_or_stored() {
        let headers = hardened("127.0.0.1:8888", false, Content::Data);
        let policy = headers[CONTENT_SECURITY_POLICY].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'; ") && policy.contains("; frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe") && !policy.contains("  "));
        assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(headers[X_FRAME_OPTIONS], "DENY");
        assert_eq!(headers[REFERRER_POLICY], "no-referrer");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin");
        assert_eq!(headers["cross-origin-opener-policy"], "same-origin");
        assert_eq!(headers[CACHE_CONTROL], "no-store");
        assert!(headers.keys().all(|name| !name.as_str().starts_with("access-control-")), "no CORS");
    }

    #[test]
    fn caching_that_was_decided_on_stays() {
        let guard = Guard::new(([127, 0, 0, 1], 8888).into(), Vec::new(), false);
        let mut headers = HeaderMap::from_iter([(CACHE_CONTROL, HeaderValue::from_static("max-age=1"))]);
        guard.harden(&mut headers, Content::Data);
        assert_eq!(headers[CACHE_CONTROL], "max-age=1");
        assert_eq!(hardened("127.0.0.1:8888", false, Content::Page)[CACHE_CONTROL], "no-cache");
    }

    #[test]
    fn a_browser_is_told_to_stay_with_tls_unless_that_is_about_localhost() {
        let told =
            |address, tls| hardened(address, tls, Content::Page).contains_key(STRICT_TRANSPORT_SECURITY);
        assert!(told("0.0.0.0:8443", true) && told("192.0.2.1:443", true));
        assert!(!told("127.0.0.1:8443", true) && !told("0.0.0.0:8080", false));
    }

    #[test]
    fn a_failure_says_what_to_do_next() {
        let headers = |status: Status| {
            let mut headers = HeaderMap::new();
            accompany(&status, &mut headers);
            headers
        };
        assert_eq!(headers(Status::unauthorized("who?"))[WWW_AUTHENTICATE], "Bearer");
        assert_eq!(headers(Status::method_not_allowed("pods", "", "POST"))[ALLOW], "GET, HEAD");
        assert_eq!(headers(Status::too_many_requests("later", 3))[RETRY_AFTER], "3");
        assert!(headers(Status::not_found("pods", "", "a")).is_empty());
    }
}

//! Which requests are looked at at all.
//!
//! In: the head of a request. Out: nothing, or the failure it is answered with. What is refused here: requests that
//! a page of another site makes with somebody's browser (by its own name for this address, or by a plain request),
//! everything that is not reading, and heads made to be read in two ways or to take long.

mod headers;
mod host;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::{
    HeaderMap, Method, StatusCode, Version,
    header::{CONTENT_LENGTH, HOST, ORIGIN, TRANSFER_ENCODING},
    request::Parts,
};
use informer_model::{Reason, Status};
use percent_encoding::percent_decode_str;

use crate::log_limit::LogLimit;
pub(crate) use headers::{Content, accompany};
pub use host::{AllowedHost, NotAHost};
use host::{Authority, Host};

/// The longest URL, in bytes.
const URL_LIMIT: usize = 16 * 1024;

/// The longest selector, in bytes.
const SELECTOR_LIMIT: usize = 8 * 1024;

/// How many headers a request may have.
pub(crate) const HEADER_COUNT_LIMIT: usize = 100;

/// How long all headers of a request may be, in bytes.
const HEADER_LIMIT: usize = 32 * 1024;

/// How much of a hostile text is shown to people.
const SHOWN: usize = 100;

/// The address of this machine that a connection came to. The listener puts it into the extensions of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local(pub(crate) SocketAddr);

/// Judges the heads of requests.
#[derive(Debug)]
pub(crate) struct Guard {
    address: SocketAddr,
    allowed: Vec<AllowedHost>,
    tls: bool,
    log: LogLimit,
}

impl Guard {
    /// A guard for a server that listens on `address`, with the port that it really has.
    pub(crate) fn new(address: SocketAddr, allowed: Vec<AllowedHost>, tls: bool) -> Self {
        Self { address, allowed, tls, log: LogLimit::default() }
    }

    /// Whether the request may be answered. A refusal is logged, but not every time.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), Status> {
        self.judge(parts).inspect_err(|status| {
            let kind = StatusCode::from_u16(status.code).ok().and_then(|code| code.canonical_reason());
            if let Some(suppressed) = self.log.admit(kind.unwrap_or("refused")) {
                tracing::warn!(code = status.code, suppressed, "a request was refused: {}", status.message);
            }
        })
    }

    fn judge(&self, parts: &Parts) -> Result<(), Status> {
        short_enough(parts)?;
        let host = self.host(parts)?;
        self.same_origin(parts, &host)?;
        if parts.method != Method::GET && parts.method != Method::HEAD {
            let message = format!(
                "the gateway only reads: {} is not supported, only GET and HEAD",
                shown(parts.method.as_str())
            );
            return Err(Status::failure(Reason::MethodNotAllowed, message));
        }
        without_body(&parts.headers)?;
        sound_path(parts.uri.path())?;
        parts.uri.query().map_or(Ok(()), sound_query)
    }

    /// The host that the request is for: one of ours.
    fn host(&self, parts: &Parts) -> Result<Authority, Status> {
        let mut hosts = parts.headers.get_all(HOST).iter();
        let local = parts.extensions.get::<Local>().map(|local| local.0.ip());
        let host = match (hosts.next(), hosts.next(), parts.uri.authority()) {
            (Some(host), None, _) => self.ours(&String::from_utf8_lossy(host.as_bytes()), local)?,
            // In HTTP/2 it is not a header.
            (None, _, Some(authority)) if parts.version == Version::HTTP_2 => {
                return self.ours(authority.as_str(), local);
            }
            _ => return Err(Status::bad_request("a request must have exactly one Host header")),
        };
        // `GET http://host/path`: this host counts, but the header must not say anything foreign either.
        match parts.uri.authority() {
            Some(authority) => self.ours(authority.as_str(), local),
            None => Ok(host),
        }
    }

    fn ours(&self, text: &str, local: Option<IpAddr>) -> Result<Authority, Status> {
        let asked = Authority::parse(text)
            .ok_or_else(|| Status::bad_request(format!("the host {} is no host", shown(text))))?;
        let port = asked.port.unwrap_or(if self.tls { 443 } else { 80 });
        let is_here = port == self.address.port()
            && match &asked.host {
                Host::Name(name) => name == "localhost",
                // An address in place of a name is never the work of a foreign name server.
                Host::Address(ip) => {
                    let here = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into(), self.address.ip()];
                    here.contains(ip) || local.is_some_and(|local| local.to_canonical() == ip.to_canonical())
                }
            };
        if is_here || self.allowed.iter().any(|allowed| allowed.covers(&asked)) {
            return Ok(asked);
        }
        let text = shown(text);
        Err(failure(
            StatusCode::MISDIRECTED_REQUEST,
            format!(
                "the gateway is not known as {text}: if that is a name of it, allow it with --allow-host; other names \
                 are refused so that no web page can reach the gateway under a name of its own (DNS rebinding)"
            ),
        ))
    }

    /// A browser says where a request comes from. Other programs say nothing, which is fine.
    fn same_origin(&self, parts: &Parts, host: &Authority) -> Result<(), Status> {
        let refused = |header: &str, value: &[u8]| {
            let value = shown(&String::from_utf8_lossy(value));
            let why = format!("the request comes from a page of another site ({header}: {value})");
            Err(Status::forbidden("", "", "", why))
        };
        let headers = &parts.headers;
        for origin in headers.get_all(ORIGIN) {
            if !origin.to_str().is_ok_and(|origin| self.is_origin_of(origin, host)) {
                return refused("Origin", origin.as_bytes());
            }
        }
        let says = |header: &str, text: &str| headers.get_all(header).iter().all(|value| value == text);
        for site in headers.get_all("sec-fetch-site") {
            // A link on another site may lead to the page, in a window of its own. It may not lead to data.
            let follows_link = headers.contains_key("sec-fetch-mode")
                && says("sec-fetch-mode", "navigate")
                && says("sec-fetch-dest", "document")
                && matches!(site.as_bytes(), b"same-site" | b"cross-site");
            let path = parts.uri.path();
            let to_page = path == "/" || path.starts_with("/_page/");
            if site != "none" && site != "same-origin" && !(follows_link && to_page) {
                return refused("Sec-Fetch-Site", site.as_bytes());
            }
        }
        Ok(())
    }

    /// Whether an `Origin` is the page of this gateway, asked for under `host`.
    fn is_origin_of(&self, origin: &str, host: &Authority) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else { return false };
        let default_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return false,
        };
        let Some(authority) = Authority::parse(authority) else { return false };
        if authority.host != host.host {
            return false;
        }
        let own_default = if self.tls { 443 } else { 80 };
        let same = (scheme == "https") == self.tls
            && authority.port.unwrap_or(default_port) == host.port.unwrap_or(own_default);
        // Before an allowed name there may be a proxy that does the TLS.
        let by_proxy = self.allowed.iter().any(|allowed| allowed.covers(host)) && authority.port == host.port;
        same || by_proxy
    }
}

fn short_enough(parts: &Parts) -> Result<(), Status> {
    let uri = &parts.uri;
    let length = uri.path_and_query().map_or(0, |path| path.as_str().len())
        + uri.authority().map_or(0, |authority| authority.as_str().len());
    if length > URL_LIMIT {
        let message = format!("the URL has {length} bytes, {URL_LIMIT} are allowed");
        return Err(failure(StatusCode::URI_TOO_LONG, message));
    }
    let too_large = |message| Err(failure(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, message));
    let headers = &parts.headers;
    if headers.len() > HEADER_COUNT_LIMIT {
        return too_large(format!(
            "the request has {} headers, {HEADER_COUNT_LIMIT} are allowed",
            headers.len()
        ));
    }
    // A header has a colon, a blank and a line end, too.
    let length: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if length > HEADER_LIMIT {
        return too_large(format!("the headers have {length} bytes, {HEADER_LIMIT} are allowed"));
    }
    Ok(())
}

/// A body of a GET has no meaning, and two servers may differ about where it ends.
fn without_body(headers: &HeaderMap) -> Result<(), Status> {
    let is_empty = headers.get_all(CONTENT_LENGTH).iter().all(|length| length == "0");
    if is_empty && !headers.contains_key(TRANSFER_ENCODING) {
        return Ok(());
    }
    Err(Status::bad_request("a request to the gateway must not have a body"))
}

/// A path means the same to everybody who reads it: no climbing, no hidden separators, no control characters.
fn sound_path(path: &str) -> Result<(), Status> {
    let refused =
        |what: &str| Err(Status::bad_request(format!("the path {} is not allowed: {what}", shown(path))));
    if !path.starts_with('/') {
        return refused("it must begin with `/`");
    }
    for segment in path.split('/') {
        let Ok(segment) = percent_decode_str(segment).decode_utf8() else {
            return refused("it is not UTF-8");
        };
        if segment == "." || segment == ".." {
            return refused("it has a segment `.` or `..`");
        }
        if segment.contains(|c: char| matches!(c, '/' | '\\' | '%') || c.is_control()) {
            return refused("a segment has `/`, `\\`, `%` or a control character");
        }
    }
    Ok(())
}

fn sound_query(query: &str) -> Result<(), Status> {
    let decoded = percent_decode_str(query).decode_utf8();
    if decoded.is_err() || decoded.is_ok_and(|text| text.contains('\0')) {
        return Err(Status::bad_request("the query is not UTF-8, or has a NUL character"));
    }
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if matches!(&*name, "labelSelector" | "fieldSelector") && value.len() > SELECTOR_LIMIT {
            let length = value.len();
            let message = format!("the {name} has {length} bytes, {SELECTOR_LIMIT} are allowed");
            return Err(Status::bad_request(message));
        }
    }
    Ok(())
}

/// A failure with a code that Kubernetes has no reason for.
fn failure(code: StatusCode, message: String) -> Status {
    let mut status = Status::failure(Reason::Unknown, message);
    status.code = code.as_u16();
    status
}

/// A text of a stranger for people: in quotes, escaped, not long.
fn shown(text: &str) -> String {
    let beginning: String = text.chars().take(SHOWN).collect();
    let rest = if beginning.len() < text.len() { "…" } else { "" };
    format!("{beginning:?}{rest}")
}

#[cfg(test)]
mod tests;

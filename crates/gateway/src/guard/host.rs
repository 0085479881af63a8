//! Names under which a server can be asked: those in `Host`, in `Origin` and in `--allow-host`.

use std::{net::IpAddr, str::FromStr};

/// A host and perhaps a port, as in `Host: [::1]:8888`. Names are compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authority {
    pub host: Host,
    pub port: Option<u16>,
}

/// The host without the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    Address(IpAddr),
    /// In lower case.
    Name(String),
}

impl Authority {
    /// Strict: no user, no blanks, no empty port, no zone, nothing that two readers could read differently.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                let address = Host::Address(IpAddr::V6(address.parse().ok()?));
                (address, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
            }
            None => match text.split_once(':') {
                Some((host, port)) => (Host::named(host)?, Some(port)),
                None => (Host::named(text)?, None),
            },
        };
        let port = match port {
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port.parse().ok()?),
            Some(_) => return None,
            None => None,
        };
        Some(Self { host, port })
    }
}

impl Host {
    fn named(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::Address(IpAddr::V4(address)));
        }
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        (!text.is_empty() && text.len() <= 253 && text.bytes().all(fits))
            .then(|| Self::Name(text.to_ascii_lowercase()))
    }
}

/// A host under which the gateway may be asked besides its own address: `gateway.example.com` stands for the
/// name with any port, `gateway.example.com:8443` for that port alone. There are no wildcards.
///
/// ```
/// use informer_gateway::AllowedHost;
///
/// assert!("gateway.example.com".parse::<AllowedHost>().is_ok());
/// assert!("[2001:db8::1]:8443".parse::<AllowedHost>().is_ok());
/// let error = "https://gateway.example.com/".parse::<AllowedHost>().unwrap_err();
/// assert!(error.to_string().contains("without scheme"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost(pub(super) Authority);

/// A text that is no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a host: write a name or an address without scheme and path, as gateway.example.com, 10.0.0.7 or [2001:db8::1]:8443"
)]
pub struct NotAHost(String);

impl FromStr for AllowedHost {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<Self, NotAHost> {
        Authority::parse(text).map(Self).ok_or_else(|| NotAHost(text.to_owned()))
    }
}

impl AllowedHost {
    /// The name or the address, without a port: what a certificate for it says.
    pub fn name(&self) -> String {
        match &self.0.host {
            Host::Name(name) => name.clone(),
            Host::Address(address) => address.to_string(),
        }
    }

    pub(super) fn covers(&self, asked: &Authority) -> bool {
        self.0.host == asked.host && (self.0.port.is_none() || self.0.port == asked.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        let name = |name: &str| Host::Name(name.to_owned());
        let address = |address: &str| Host::Address(address.parse().expect("an address"));
        for (text, host, port) in [
            ("LocalHost", name("localhost"), None),
            ("localhost:8888", name("localhost"), Some(8888)),
            ("127.0.0.1:80", address("127.0.0.1"), Some(80)),
            ("[::1]", address("::1"), None),
            ("[0:0::1]:443", address("::1"), Some(443)),
            ("localhost.", name("localhost."), None),
            ("127.1", name("127.1"), None),
        ] {
            assert_eq!(Authority::parse(text), Some(Authority { host, port }), "{text}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_no_host() {
        for text in [
            "",
            ":",
            ":80",
            "a:",
            "a:b",
            "a:80:80",
            "a:+80",
            "a:65536",
            "a b",
            " a",
            "user@a",
            "a/b",
            "a,b",
            "::1",
            "[::1",
            "[::1]80",
            "[127.0.0.1]",
            "[fe80::1%25eth0]",
            "ä",
            "a\\b",
            "a#",
            "a?b",
            "*.example.com",
        ] {
            assert_eq!(Authority::parse(text), None, "{text}");
        }
        assert_eq!(Authority::parse(&"a".repeat(254)), None);
    }

    #[test]
    fn an_allowed_host_without_a_port_covers_every_port() {
        let covers = |allowed: &str, asked: &str| {
            let allowed: AllowedHost = allowed.parse().expect("a host");
            allowed.covers(&Authority::parse(asked).expect("a host"))
        };
        assert!(covers("a.example", "A.example") && covers("a.example", "a.example:1"));
        assert!(covers("a.example:1", "a.example:1"));
        assert!(!covers("a.example:1", "a.example") && !covers("a.example:1", "a.example:2"));
        assert!(!covers("a.example", "b.a.example") && !covers("a.example", "a.example."));
    }
}

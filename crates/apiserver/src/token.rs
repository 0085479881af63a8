//! Continue tokens: where the next page of a list begins, and at which version.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use informer_model::Status;
use serde::{Deserialize, Serialize};

/// What a token says. It is opaque to clients, and nothing in one that they made up is trusted.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Token {
    v: String,
    rv: i64,
    start: String,
}

const FORMAT: &str = "meta.k8s.io/v1";

/// The rest of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The version of the first page. None: the newest, because that one is no longer there.
    pub version: Option<u64>,
    /// The key after which to go on is smaller than this one and no other lies between.
    pub start: String,
}

impl Rest {
    /// The rest of a list that has come as far as a key.
    pub(crate) fn after(key: &str, version: Option<u64>) -> Self {
        Self { version, start: format!("{key}\0") }
    }

    pub(crate) fn encode(&self) -> String {
        let rv = self.version.and_then(|version| i64::try_from(version).ok()).unwrap_or(-1);
        let token = Token { v: FORMAT.into(), rv, start: self.start.clone() };
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    pub(crate) fn decode(token: &str) -> Result<Self, Status> {
        let bad = |why: &str| Status::bad_request(format!("continue key is not valid: {why}"));
        let bytes = BASE64_URL_SAFE_NO_PAD
            .decode(token.trim_end_matches('='))
            .map_err(|_| bad("it is not base64url"))?;
        let token: Token =
            serde_json::from_slice(&bytes).map_err(|_| bad("it is not a token of this server"))?;
        if token.v != FORMAT {
            return Err(bad("it is a token of another version"));
        }
        let climbs =
            token.start.split('/').any(|part| part == "." || part == ".." || part == ".\0" || part == "..\0");
        if token.start.is_empty() || token.start.starts_with('/') || climbs {
            return Err(bad("the key in it is not the key of an object"));
        }
        match token.rv {
            0 => Err(bad("it has no version")),
            -1 => Ok(Self { version: None, start: token.start }),
            rv => match u64::try_from(rv) {
                Ok(version) => Ok(Self { version: Some(version), start: token.start }),
                Err(_) => Err(bad("its version is not a version")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        for version in [Some(7), None] {
            let rest = Rest::after("shop/web-0", version);
            assert_eq!(Rest::decode(&rest.encode()), Ok(rest));
        }
    }

    #[test]
    fn a_token_that_was_made_up_is_refused() {
        let made_up = |json: &str| BASE64_URL_SAFE_NO_PAD.encode(json);
        for token in [
            "".to_owned(),
            "%%%".to_owned(),
            made_up("[]"),
            made_up(r#"{"v":"meta.k8s.io/v2","rv":3,"start":"a"}"#),
            made_up(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#),
            made_up(r#"{"v":"meta.k8s.io/v1","rv":-7,"start":"a"}"#),
            made_up(r#"{"v":"meta.k8s.io/v1","rv":3,"start":""}"#),
            made_up(r#"{"v":"meta.k8s.io/v1","rv":3,"start":"../secrets/a"}"#),
            made_up(r#"{"v":"meta.k8s.io/v1","rv":3,"start":"a/..\u0000"}"#),
            made_up(r#"{"v":"meta.k8s.io/v1","rv":3,"start":"/a"}"#),
        ] {
            assert_eq!(Rest::decode(&token).map_err(|e| e.code), Err(400), "{token}");
        }
    }
}

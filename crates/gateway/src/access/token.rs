//! Bearer tokens.

use std::sync::Arc;

use http::{HeaderMap, header::AUTHORIZATION};
use informer_model::Status;

/// What a caller shows to prove who it is. It is never printed: there is no `Debug`.
#[derive(Clone)]
pub(super) struct Token(Arc<str>);

impl Token {
    /// The token of a request. 401 when there is none, more than one, or something else.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Status> {
        let mut all = headers.get_all(AUTHORIZATION).iter();
        let (Some(header), None) = (all.next(), all.next()) else { return Err(unknown()) };
        let token = header
            .to_str()
            .ok()
            .and_then(|text| text.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim_matches(' '))
            .filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
        token.map(|token| Self(token.into())).ok_or_else(unknown)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// 401: nobody knows who this is. It says no more to a stranger than that.
pub(super) fn unknown() -> Status {
    Status::unauthorized(
        "Unauthorized: send a token that the cluster knows, as `Authorization: Bearer TOKEN`",
    )
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(values: &[&str]) -> Option<String> {
        let value = |text: &&str| HeaderValue::from_bytes(text.as_bytes()).expect("a value");
        let headers = HeaderMap::from_iter(values.iter().map(|text| (AUTHORIZATION, value(text))));
        match Token::of(&headers) {
            Ok(token) => Some(token.as_str().to_owned()),
            Err(status) => {
                assert_eq!(status.code, 401);
                None
            }
        }
    }

    #[test]
    fn a_token_is_what_follows_bearer() {
        assert_eq!(read(&["Bearer abc.d-e_f"]).as_deref(), Some("abc.d-e_f"));
        assert_eq!(read(&["bearer   abc "]).as_deref(), Some("abc"));
    }

    #[test]
    fn anything_else_is_nobody() {
        for values in [
            &[][..],
            &[""],
            &["Bearer"],
            &["Bearer "],
            &["Basic YTpi"],
            &["abc"],
            &["Bearer a b"],
            &["Bearer ä"],
            &["Bearer\tabc"],
            &["Bearer a", "Bearer a"],
            &["Bearer a", "Bearer b"],
        ] {
            assert_eq!(read(values), None, "{values:?}");
        }
    }
}

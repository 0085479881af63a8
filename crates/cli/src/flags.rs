//! What the flags of the command may say.

use std::time::Duration;

use informer_model::{ResourceArg, ResourceArgError, is_dns_label};
use informer_serving::Quantity;
use jiff::SignedDuration;

const DAY: Duration = Duration::from_secs(86_400);

/// The name of a resource. Kinds are taken too, so `Pod` means `pod`.
pub(crate) fn resource(text: &str) -> Result<ResourceArg, ResourceArgError> {
    text.to_lowercase().parse()
}

/// Reads a duration such as `30s`, `10m` or `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed: SignedDuration =
        text.parse().map_err(|_| "expected a duration such as 30s, 10m or 1h30m".to_owned())?;
    Duration::try_from(parsed).map_err(|_| "a duration cannot be negative".to_owned())
}

/// How often everything is shown again; zero is never.
pub(crate) fn resync(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        period if period.is_zero() || (Duration::from_secs(1)..=365 * DAY).contains(&period) => Ok(period),
        _ => Err("expected a second at least and a year at most, or 0 for never".to_owned()),
    }
}

/// How long to wait for a server.
pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        timeout if timeout <= DAY => Ok(timeout),
        _ => Err("expected a day at most".to_owned()),
    }
}

/// A number of bytes: `512Mi`, `2G`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a size such as 512Mi or 2Gi".to_owned();
    let bytes = Quantity::parse(text).and_then(|size| u64::try_from(size.ceil()).ok());
    bytes.filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

/// The name of a namespace. It becomes part of a path.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    if is_dns_label(text) {
        Ok(text.to_owned())
    } else {
        Err("a namespace has up to 63 small letters, digits and `-`".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_as_good_as_a_resource() {
        for (text, meant) in [("Pod", "pod"), ("apps/v1/Deployment", "deployment.v1.apps"), ("po", "po")] {
            assert_eq!(resource(text).unwrap().to_string(), meant);
        }
        assert!(resource("po ds").is_err());
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, seconds) in
            [("30s", 30), ("10m", 600), ("1h30m", 5_400), ("0", 0), ("0s", 0), ("1h 1s", 3_601)]
        {
            assert_eq!(resync(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(timeout("500ms"), Ok(Duration::from_millis(500)));
    }

    #[test]
    fn durations_that_mean_nothing_are_refused() {
        for text in ["", "5", "-5s", "soon", "999ms", "99999999999999999999h", "2 years", "1e9s", "\u{0}"] {
            assert!(resync(text).is_err(), "{text}");
        }
        for text in ["25h", "-1s", "5"] {
            assert!(timeout(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_namespace_cannot_break_out_of_a_path() {
        assert!(namespace("kube-system").is_ok() && namespace("a").is_ok());
        let long = "a".repeat(64);
        for text in ["", "a/b", "..", "A", "a b", "-a", "a-", "ä", &long] {
            assert!(namespace(text).is_err(), "{text}");
        }
    }
}

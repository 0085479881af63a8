//! Durations as people like them: two or three significant figures, `5s`, `2m30s`, `3h5m`, `2d3h`, `9d`.

use crate::json::Json;
use jiff::{SignedDuration, Timestamp};

use super::fields::text;

/// How long ago the time at a place of an object was; `<unknown>` if there is none.
pub(super) fn since(object: &Json<'_>, pointer: &str, now: Timestamp) -> String {
    ago(text(object, pointer), now)
}

/// How long ago a time was; `<unknown>` if it is none.
pub(super) fn ago(time: &str, now: Timestamp) -> String {
    parse(time).map_or_else(|| "<unknown>".to_owned(), |then| human(now.duration_since(then)))
}

/// The time at a place of an object.
pub(super) fn time(object: &Json<'_>, pointer: &str) -> Option<Timestamp> {
    parse(text(object, pointer))
}

/// The year one, which stands for no time, is none.
fn parse(time: &str) -> Option<Timestamp> {
    if time.is_empty() {
        return None;
    }
    let zero = SignedDuration::from_secs(-62_135_596_800);
    time.parse::<Timestamp>().ok().filter(|time| time.as_duration() != zero)
}

/// A duration in few figures. One that is more than a second below zero is `<invalid>`: clocks may differ
/// by so much, but not by more.
pub(super) fn human(duration: SignedDuration) -> String {
    // What a server calculates with ends here, after 292 years.
    let longest = i64::MAX / 1_000_000_000;
    let seconds = duration.as_secs().min(longest);
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if hours < 3 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => pair(days, "d", hours % 24, "h"),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => pair(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

/// Two figures, the second only where it is not zero.
fn pair(large: i64, unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Outline;

    #[test]
    fn a_duration_is_shown_in_two_or_three_figures() {
        let (minute, hour, day, year) = (60, 3600, 86_400, 365 * 86_400);
        let expected = [
            (0, "0s"),
            (1, "1s"),
            (minute, "60s"),
            (2 * minute - 1, "119s"),
            (2 * minute, "2m"),
            (2 * minute + 30, "2m30s"),
            (10 * minute - 1, "9m59s"),
            (10 * minute + 59, "10m"),
            (3 * hour - 1, "179m"),
            (3 * hour, "3h"),
            (3 * hour + 5 * minute + 7, "3h5m"),
            (8 * hour - 1, "7h59m"),
            (8 * hour + 59 * minute, "8h"),
            (48 * hour - 1, "47h"),
            (2 * day, "2d"),
            (2 * day + 3 * hour + 59 * minute, "2d3h"),
            (8 * day - 1, "7d23h"),
            (9 * day + 23 * hour, "9d"),
            (2 * year - 1, "729d"),
            (2 * year, "2y"),
            (3 * year + 20 * day, "3y20d"),
            (8 * year - 1, "7y364d"),
            (8 * year + 300 * day, "8y"),
            (5000 * year, "292y"),
        ];
        for (seconds, shown) in expected {
            assert_eq!(human(SignedDuration::from_secs(seconds)), shown);
        }
    }

    #[test]
    fn the_future_is_now_within_two_seconds_and_invalid_beyond() {
        for (millis, shown) in [(-999, "0s"), (-1999, "0s"), (-2000, "<invalid>"), (i64::MIN, "<invalid>")] {
            assert_eq!(human(SignedDuration::from_millis(millis)), shown);
        }
    }

    #[test]
    fn a_missing_broken_or_zero_time_is_unknown() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let shown = |at: &str| since(&Outline::of(at).root(), "", now);
        for at in ["null", "\"soon\"", "5", "\"0001-01-01T00:00:00Z\""] {
            assert_eq!(shown(at), "<unknown>");
        }
        assert_eq!(shown("\"2025-12-31T23:59:55.250000Z\""), "4s");
        assert_eq!(shown("\"2026-01-01T00:59:55+01:00\""), "5s");
    }
}

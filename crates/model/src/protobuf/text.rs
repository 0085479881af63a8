//! Bytes and times as JSON texts.

use std::fmt::Write;

const SECONDS_OF_DAY: i64 = 86_400;

/// Standard base64 with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, i| bits << 8 | u32::from(chunk.get(i).copied().unwrap_or(0)));
        for digit in 0..4 {
            let sextet = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit <= chunk.len() { char::from(DIGITS[sextet as usize]) } else { '=' });
        }
    }
    text
}

/// A time in UTC, from seconds since 1970, with six decimals if there are microseconds. None outside of the
/// years 0 to 9999, for which the text has no room.
pub(super) fn rfc3339(seconds: i64, micros: Option<i64>) -> Option<String> {
    let (year, month, day) = date(seconds.div_euclid(SECONDS_OF_DAY));
    if !(0..=9999).contains(&year) {
        return None;
    }
    let second = seconds.rem_euclid(SECONDS_OF_DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if let Some(micros) = micros {
        write!(text, ".{micros:06}").ok()?;
    }
    text.push('Z');
    Some(text)
}

/// Year, month and day in the Gregorian calendar, from days since 1970. Years are taken from March, so that
/// the leap day is the last of a year, and in groups of 400, which are all of one length.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_TO_1970: i64 = 719_468;
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let days = days + DAYS_TO_1970;
    let day = days.rem_euclid(DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = year + days.div_euclid(DAYS_OF_400_YEARS) * 400;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn times_follow_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-62_135_596_800, "0001-01-01T00:00:00Z"),
            (-62_167_219_200, "0000-01-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds, None).as_deref(), Some(text));
        }
        assert_eq!(rfc3339(0, Some(7)).as_deref(), Some("1970-01-01T00:00:00.000007Z"));
        for seconds in [-62_167_219_201, 253_402_300_800, i64::MIN, i64::MAX] {
            assert_eq!(rfc3339(seconds, None), None);
        }
    }

    #[test]
    fn every_day_is_the_day_after_the_one_before() {
        let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let mut expected = (0, 1, 1);
        for day in -719_528..2_932_897 {
            assert_eq!(date(day), expected);
            let (year, month, day) = expected;
            let length = match month {
                4 | 6 | 9 | 11 => 30,
                2 => 28 + i64::from(leap(year)),
                _ => 31,
            };
            expected = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, day) if day == length => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
        assert_eq!(expected, (10_000, 1, 1));
    }
}

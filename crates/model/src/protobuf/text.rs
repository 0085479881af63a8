//! Bytes and times as JSON texts.

use std::ops::Range;

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
    // Digit by digit, because an object has a dozen times and `format!` takes ten times as long.
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    let mut put = |at: Range<usize>, mut number: i64| {
        for digit in text[at].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    };
    put(0..4, year);
    put(5..7, month);
    put(8..10, day);
    put(11..13, second / 3600);
    put(14..16, second / 60 % 60);
    put(17..19, second % 60);
    put(20..26, micros.unwrap_or_default());
    let length = if micros.is_some() { text.len() } else { 20 };
    text[length - 1] = b'Z';
    String::from_utf8(text[..length].into()).ok()
}

/// The bytes of standard base64 with padding; Go passes over the ends of lines.
pub(super) fn base64_bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut digits, mut padding) = (0_u32, 0, 0);
    for byte in text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')) {
        let sextet = match byte {
            b'=' if digits >= 2 => {
                padding += 1;
                0
            }
            _ if padding > 0 => return None,
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(sextet);
        digits += 1;
        if digits == 4 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
            (bits, digits) = (0, 0);
        }
    }
    (digits == 0).then_some(bytes)
}

/// Seconds since 1970 and nanoseconds of a time as RFC 3339 has it: a date, a time with or without a fraction of a
/// second, and a zone. None for anything else, and outside of the years 0 to 9999.
pub(super) fn rfc3339_time(text: &str) -> Option<(i64, i64)> {
    const YEARS_0_TO_9999: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;
    let (start, rest) = text.split_at_checked(19)?;
    let number = |text: &str, from: usize, most: i64| {
        let digits = text.get(from..from + 2)?.as_bytes();
        let value = digits.iter().try_fold(0, |value, digit| {
            digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0'))
        })?;
        (value <= most).then_some(value)
    };
    let marks = start.as_bytes();
    let marked = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')].iter().all(|&(at, mark)| marks[at] == mark)
        && matches!(marks[10], b'T' | b't');
    let year = number(start, 0, 99)? * 100 + number(start, 2, 99)?;
    let (month, day) = (number(start, 5, 12)?, number(start, 8, 31)?);
    let days = days(year, month, day);
    if !marked || date(days) != (year, month, day) {
        return None;
    }
    let of_day = number(start, 11, 23)? * 3600 + number(start, 14, 59)? * 60 + number(start, 17, 59)?;
    let (nanos, zone) = match rest.strip_prefix('.') {
        None => (0, rest),
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            let digits = fraction.len() - zone.len();
            if digits == 0 {
                return None;
            }
            let digit = |at: usize| if at < digits { i64::from(fraction.as_bytes()[at] - b'0') } else { 0 };
            ((0..9).fold(0, |nanos, at| nanos * 10 + digit(at)), zone)
        }
    };
    let offset = match zone.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let offset = number(zone, 1, 23)? * 3600 + number(zone, 4, 59)? * 60;
            if *sign == b'-' { -offset } else { offset }
        }
        _ => return None,
    };
    let seconds = days * SECONDS_OF_DAY + of_day - offset;
    YEARS_0_TO_9999.contains(&seconds).then_some((seconds, nanos))
}

const DAYS_TO_1970: i64 = 719_468;
const DAYS_OF_400_YEARS: i64 = 146_097;

/// Days since 1970 of a day in the Gregorian calendar, the inverse of [`date`] for every day that there is.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (group, year) = (year.div_euclid(400), year.rem_euclid(400));
    let of_group = 365 * year + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 1;
    group * DAYS_OF_400_YEARS + of_group - DAYS_TO_1970
}

/// Year, month and day in the Gregorian calendar, from days since 1970. Years are taken from March, so that
/// the leap day is the last of a year, and in groups of 400, which are all of one length.
fn date(days: i64) -> (i64, i64, i64) {
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
    fn base64_is_read_back_and_nothing_else() {
        for length in 0..50 {
            let bytes: Vec<u8> = (0..length).map(|i: u8| i.wrapping_mul(37)).collect();
            assert_eq!(base64_bytes(&base64(&bytes)), Some(bytes));
        }
        assert_eq!(base64_bytes("Zm9v\r\nYg==\n").as_deref(), Some(&b"foob"[..]));
        for text in
            ["Z", "Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zg==Zg==", "Zm=v", "Zm9v ", "Zm-_", "\u{e9}"]
        {
            assert_eq!(base64_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_read_with_fractions_and_zones() {
        for (text, seconds, nanos) in [
            ("1970-01-01T00:00:00Z", 0, 0),
            ("2024-02-29T23:59:59.12z", 1_709_251_199, 120_000_000),
            ("2024-03-01t01:59:59.1234567899+02:00", 1_709_251_199, 123_456_789),
            ("2024-02-29T13:29:59-10:30", 1_709_251_199, 0),
            ("0000-01-01T00:00:00Z", -62_167_219_200, 0),
            ("9999-12-31T23:59:59Z", 253_402_300_799, 0),
        ] {
            assert_eq!(rfc3339_time(text), Some((seconds, nanos)), "{text}");
        }
        for text in [
            "",
            "2024-02-30T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01 00:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+0200",
            "2024-01-01T00:00:00+24:00",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "+024-01-01T00:00:00Z",
            "2024-01-01T00:00:00Z ",
            "2024-01-01T00:00:0\u{e9}Z",
        ] {
            assert_eq!(rfc3339_time(text), None, "{text}");
        }
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
            assert_eq!((date(day), days(expected.0, expected.1, expected.2)), (expected, day));
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

//! Quantities, as resources and sizes are written in Kubernetes: `100m`, `1.5Gi`, `2e3`.

use std::{cmp::Ordering, fmt, iter};

use serde_json::Value;

/// An amount, exact to the billionth. It is compared by value (`1024Mi` equals `1Gi`) and printed in its canonical
/// form (`1024Mi` as `1Gi`, `0.5` as `500m`).
///
/// As on a server, what is finer than a billionth is rounded away from zero, and no amount is larger than 2⁶³ − 1.
///
/// ```
/// use informer_serving::Quantity;
///
/// let parse = |text| Quantity::parse(text).unwrap();
/// assert!(parse("100m") < parse("0.2"));
/// assert_eq!(parse("1.5Gi"), parse("1536Mi"));
/// assert_eq!(parse("1.5Gi").to_string(), "1536Mi");
/// assert_eq!(Quantity::parse("much"), None);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    /// The amount in billionths.
    nanos: i128,
    notation: Notation,
}

/// How the suffix of a quantity was written, and is written again.
#[derive(Debug, Clone, Copy)]
enum Notation {
    Decimal,
    Exponent,
    Binary,
}

const NANO_DIGITS: i32 = 9;
const ONE: i128 = 1_000_000_000;
const LARGEST: i128 = i64::MAX as i128 * ONE;
/// More digits than any amount up to the largest has in billionths.
const ENOUGH_DIGITS: i64 = 40;

const DECIMAL_SUFFIXES: [(i32, &str); 10] =
    [(18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k"), (0, ""), (-3, "m"), (-6, "u"), (-9, "n")];
const BINARY_SUFFIXES: [(u32, &str); 6] =
    [(60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")];

impl Quantity {
    /// Reads a quantity. `None` for what is none.
    pub fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let number_end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(number_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (exponent, unit, notation) = unit(suffix)?;
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
        let point = i64::try_from(whole.len()).ok()? + exponent;
        let nanos = product(&digits, point, unit).min(LARGEST);
        Some(Self { nanos: if text.starts_with('-') { -nanos } else { nanos }, notation })
    }

    /// The amount in whole units, rounded up.
    pub fn ceil(&self) -> i64 {
        let whole = self.nanos.div_euclid(ONE) + i128::from(self.nanos.rem_euclid(ONE) > 0);
        i64::try_from(whole).unwrap_or(i64::MAX)
    }

    /// The quantity in a field: a text or a number. `None` for what is none.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text.trim()),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => None,
        }
    }
}

/// What a suffix stands for: by how many places the point moves, and what is then counted, in billionths.
fn unit(suffix: &str) -> Option<(i64, i128, Notation)> {
    let decimal = |exponent: i32| i64::from(exponent) + i64::from(NANO_DIGITS);
    if let Some((exponent, _)) = DECIMAL_SUFFIXES.iter().find(|(_, name)| *name == suffix) {
        return Some((decimal(*exponent), 1, Notation::Decimal));
    }
    if let Some((shift, _)) = BINARY_SUFFIXES.iter().find(|(_, name)| *name == suffix) {
        return Some((0, ONE << shift, Notation::Binary));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((decimal(exponent), 1, Notation::Exponent))
}

/// The number that has these digits and its point behind so many of them, times a unit. It is rounded up.
fn product(digits: &[u8], point: i64, unit: i128) -> i128 {
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let digits = digits.get(zeros..).unwrap_or_default();
    let point = point.saturating_sub(i64::try_from(zeros).unwrap_or(i64::MAX));
    if digits.is_empty() {
        return 0;
    }
    if point > ENOUGH_DIGITS {
        return LARGEST;
    }
    let places = usize::try_from(point).unwrap_or(0);
    let whole = digits.iter().copied().chain(iter::repeat(0)).take(places);
    let whole = whole.fold(0_i128, |whole, digit| whole.saturating_mul(10).saturating_add(digit.into()));
    // From the last digit to the first. To round up at each of them is to round up once.
    let fraction = digits.get(places..).unwrap_or_default().iter().rev();
    let fraction = fraction.fold(0, |behind, &digit| divide_up(i128::from(digit) * unit + behind, 10));
    let leading_zeros = point.saturating_neg().clamp(0, ENOUGH_DIGITS);
    let fraction = (0..leading_zeros).fold(fraction, |fraction, _| divide_up(fraction, 10));
    whole.saturating_mul(unit).saturating_add(fraction)
}

/// Divides, away from zero where it does not come out even.
fn divide_up(value: i128, divisor: i128) -> i128 {
    let away = if value % divisor == 0 { 0 } else { value.signum() };
    value / divisor + away
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        if matches!(self.notation, Notation::Binary) && self.nanos.abs() >= 1024 * ONE {
            let whole = divide_up(self.nanos, ONE);
            let fits = |(shift, _): &&(u32, &str)| whole % (1 << shift) == 0;
            let (shift, suffix) = BINARY_SUFFIXES.iter().find(fits).copied().unwrap_or((0, ""));
            return write!(f, "{}{suffix}", whole >> shift);
        }
        let unit = |exponent: i32| 10_i128.pow((exponent + NANO_DIGITS).unsigned_abs());
        let fits = |(exponent, _): &&(i32, &str)| self.nanos % unit(*exponent) == 0;
        let (exponent, suffix) = DECIMAL_SUFFIXES.iter().find(fits).copied().unwrap_or((-NANO_DIGITS, "n"));
        let number = self.nanos / unit(exponent);
        match self.notation {
            Notation::Exponent if exponent != 0 => write!(f, "{number}e{exponent}"),
            _ => write!(f, "{number}{suffix}"),
        }
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

#[cfg(test)]
mod tests {
    use super::*;
    use informer_testing::histories;
    use serde_json::json;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).unwrap_or_else(|| panic!("{text} is a quantity"))
    }

    #[test]
    fn a_quantity_is_printed_in_its_canonical_form() {
        let expected = [
            ("0", "0"),
            ("0Gi", "0"),
            ("1", "1"),
            ("+1", "1"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("1000000", "1M"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.5", "1500m"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("-2500m", "-2500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1500Mi", "1500Mi"),
            ("512Ki", "512Ki"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("2048", "2048"),
            ("952.147713468648Ki", "975000"),
            ("10E", "9223372036854775807"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("5E", "5E"),
            ("0.0000000001", "1n"),
        ];
        for (text, printed) in expected {
            assert_eq!(quantity(text).to_string(), printed, "{text}");
        }
        assert_eq!(Quantity::of(&json!(5)).unwrap().to_string(), "5");
        assert_eq!(Quantity::of(&json!(0.25)).unwrap().to_string(), "250m");
        assert_eq!(Quantity::of(&json!(" 2Gi ")).unwrap().to_string(), "2Gi");
    }

    #[test]
    fn quantities_are_ordered_by_value_however_they_are_written() {
        let ascending = ["-1Gi", "-1", "-1m", "0", "1n", "100m", "0.2", "1", "1k", "1Ki", "2e3", "1M", "1Mi"];
        for pair in ascending.windows(2) {
            assert!(quantity(pair[0]) < quantity(pair[1]), "{pair:?}");
        }
        for (one, other) in [
            ("1024Mi", "1Gi"),
            ("1000m", "1"),
            ("2e3", "2k"),
            ("2E3", "2000"),
            ("-0", "0"),
            ("0.1Gi", "107374182400m"),
            ("0.0010", "1e-3"),
            ("0.00000000000000000000000001e26", "1"),
        ] {
            assert_eq!(quantity(one), quantity(other), "{one} {other}");
        }
    }

    #[test]
    fn no_digit_is_lost_that_counts() {
        let large = "9000000000000000000.123456789";
        assert_eq!(quantity(large).to_string(), "9000000000000000000123456789n");
        let third = format!("0.{}", "3".repeat(99));
        assert_eq!(quantity(&third).to_string(), "333333334n");
        assert_eq!(quantity(&format!("{third}Ki")).to_string(), "341333333334n");
        assert_eq!(quantity(&format!("1.{}", "0".repeat(99))), quantity("1"));
        assert_eq!(quantity(&format!("{}1", "0".repeat(99))), quantity("1"));
    }

    #[test]
    fn what_is_too_large_is_the_largest_and_what_is_too_small_the_smallest() {
        let nines = "9".repeat(99);
        for text in ["10E", "8Ei", "1e30", "1e2147483647", &nines, &format!("{nines}Ei")] {
            assert_eq!(quantity(text).to_string(), "9223372036854775807", "{text}");
            assert_eq!(quantity(&format!("-{text}")).to_string(), "-9223372036854775807", "{text}");
        }
        for text in ["0.1n", "1e-10", "1e-2147483648", "0.00000000000000000000000000000001Ki"] {
            assert_eq!(quantity(text), quantity("1n"), "{text}");
            assert_eq!(quantity(&format!("-{text}")), quantity("-1n"), "{text}");
        }
        assert_eq!(quantity("0e2147483647"), quantity("0"));
    }

    #[test]
    fn a_quantity_is_rounded_up_to_a_whole_number() {
        for (text, whole) in [
            ("0", 0),
            ("1n", 1),
            ("1500m", 2),
            ("512Mi", 512 << 20),
            ("-1n", 0),
            ("-1500m", -1),
            ("-2", -2),
            ("10E", i64::MAX),
            ("-10E", -i64::MAX),
        ] {
            assert_eq!(quantity(text).ceil(), whole, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_none() {
        for text in [
            "",
            ".",
            "-",
            "much",
            "1 Gi",
            "1.2.3",
            "--1",
            "1e",
            "1eE",
            "1e999999999999",
            "1gi",
            "Gi",
            "é",
            "1é",
        ] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
        for value in [json!(null), json!(true), json!([]), json!({})] {
            assert_eq!(Quantity::of(&value), None);
        }
    }

    #[test]
    fn any_text_can_be_read_and_what_is_printed_reads_as_the_same() {
        let texts =
            "[+-]?[0-9]{0,30}[.]?[0-9]{0,30}(|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e[+-]?[0-9]{0,10}|.{0,3})";
        histories(&(texts,), |(text,)| {
            if let Some(quantity) = Quantity::parse(&text) {
                let printed = quantity.to_string();
                let again = Quantity::parse(&printed).unwrap();
                // A binary size may be printed without a suffix (`1000` bytes), and is then read as a decimal (`1k`).
                assert_eq!(Quantity::parse(&again.to_string()), Some(again), "{text}");
                // Binary sizes are printed without fractions.
                assert!(again >= quantity || quantity.nanos < 0, "{text}");
            }
        });
    }
}

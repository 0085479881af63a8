//! Quantities in their canonical form: `1024Mi` is `1Gi`, `0.5` is `500m`.

use serde_json::Value;

use super::fields::entries;

/// The quantity of a resource in the map at a place; zero if there is none.
pub(super) fn of_resource(object: &Value, pointer: &str, resource: &str) -> String {
    let quantity = entries(object, pointer).and_then(|quantities| quantities.get(resource));
    quantity.map_or_else(|| "0".to_owned(), shown)
}

/// A quantity as a server writes it. What is none is shown as it is: a server would not have stored it.
pub(super) fn shown(quantity: &Value) -> String {
    let text = match quantity {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return "0".to_owned(),
    };
    canonical(&text).unwrap_or(text)
}

/// A billionth: nothing smaller is told apart.
const NANO_DIGITS: i32 = 9;
const DECIMAL_SUFFIXES: [(i32, &str); 10] =
    [(18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k"), (0, ""), (-3, "m"), (-6, "u"), (-9, "n")];
const BINARY_SUFFIXES: [(u32, &str); 6] =
    [(60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")];

/// How the suffix of a quantity was written, and is written again.
enum Format {
    Decimal,
    Exponent,
    Binary,
}

fn canonical(text: &str) -> Option<String> {
    let (nanos, format) = parse(text)?;
    if nanos == 0 {
        return Some("0".to_owned());
    }
    let one = 10_i128.pow(NANO_DIGITS as u32);
    if matches!(format, Format::Binary) && nanos.abs() >= 1024 * one {
        let whole = divide_up(nanos, one);
        let fits = |(shift, _): &&(u32, &str)| whole % (1_i128 << shift) == 0;
        let (shift, suffix) = BINARY_SUFFIXES.iter().find(fits).copied().unwrap_or((0, ""));
        return Some(format!("{}{suffix}", whole >> shift));
    }
    let unit = |exponent: i32| 10_i128.pow((exponent + NANO_DIGITS).unsigned_abs());
    let fits = |(exponent, _): &&(i32, &str)| nanos % unit(*exponent) == 0;
    let (exponent, suffix) = DECIMAL_SUFFIXES.iter().find(fits).copied()?;
    let number = nanos / unit(exponent);
    Some(match format {
        Format::Exponent if exponent != 0 => format!("{number}e{exponent}"),
        _ => format!("{number}{suffix}"),
    })
}

/// The quantity in billionths. `None` for what is no quantity, or has more digits than make sense.
fn parse(text: &str) -> Option<(i128, Format)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number_end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(number_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 25 {
        return None;
    }
    let mut value: i128 = digits.parse().ok()?;
    let (mut exponent, mut format) = (0, Format::Decimal);
    if let Some((decimal, _)) = DECIMAL_SUFFIXES.iter().find(|(_, name)| *name == suffix) {
        exponent = *decimal;
    } else if let Some((shift, _)) = BINARY_SUFFIXES.iter().find(|(_, name)| *name == suffix) {
        value = value.checked_mul(1 << shift)?;
        format = Format::Binary;
    } else {
        exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        format = Format::Exponent;
    }
    let shift = exponent.checked_add(NANO_DIGITS)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let power = 10_i128.checked_pow(shift.unsigned_abs())?;
    let nanos = if shift < 0 { divide_up(value, power) } else { value.checked_mul(power)? };
    let largest = i128::from(i64::MAX) * 1_000_000_000;
    let nanos = nanos.min(largest);
    Some((if text.starts_with('-') { -nanos } else { nanos }, format))
}

/// Divides, away from zero where it does not come out even.
fn divide_up(value: i128, divisor: i128) -> i128 {
    let away = if value % divisor == 0 { 0 } else { value.signum() };
    value / divisor + away
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_quantity_is_shown_in_its_canonical_form() {
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
            ("10E", "9223372036854775807"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("5E", "5E"),
            ("0.0000000001", "1n"),
        ];
        for (text, shown_as) in expected {
            assert_eq!(shown(&json!(text)), shown_as, "{text}");
        }
        assert_eq!(shown(&json!(5)), "5");
        assert_eq!(shown(&json!(0.25)), "250m");
    }

    #[test]
    fn what_is_no_quantity_is_shown_as_it_is() {
        for text in
            ["", "much", "1 Gi", "1.2.3", "--1", "1e999999999999", "1e2147483647", "1e-2147483648", "é"]
        {
            assert_eq!(shown(&json!(text)), text);
        }
        assert_eq!(shown(&json!("9".repeat(99))), "9".repeat(99));
        assert_eq!(shown(&json!(null)), "0");
        assert_eq!(of_resource(&json!({ "capacity": [] }), "/capacity", "storage"), "0");
    }
}

//! Text from a server, made fit for a person and a terminal.

/// Writes control characters as escapes: nothing in an object can move the cursor or change colours.
pub(crate) fn printable(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().collect() } else { String::from(c) };
    text.chars().map(escape).collect()
}

/// The beginning of a text, with an ellipsis for the rest.
pub(crate) fn shorten(mut text: String, width: usize) -> String {
    if let Some((cut, _)) = text.char_indices().nth(width) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// The beginning of a text of many lines, as one.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4 * width {
            break;
        }
    }
    printable(&shorten(line, width))
}

/// `1,234,567`.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        assert_eq!(printable("a\u{1b}[2J\u{9b}\u{7f}\tü"), "a\\u{1b}[2J\\u{9b}\\u{7f}\\tü");
        assert_eq!(one_line(" a\n\tb \u{7}c ", 99), "a b \\u{7}c");
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        assert_eq!(shorten("äöü".into(), 3), "äöü");
        assert_eq!(shorten("äöü".into(), 2), "äö…");
        assert_eq!(one_line(&"x ".repeat(1_000_000), 4), "x x …");
    }

    #[test]
    fn large_numbers_are_grouped() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (123_456, "123,456"), (1_234_567, "1,234,567")]
        {
            assert_eq!(thousands(number), text);
        }
    }
}

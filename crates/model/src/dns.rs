//! The DNS names that Kubernetes makes names of: a label, labels with dots between them, and labels with capitals.

/// Whether this is a DNS label, as the names of namespaces are: up to 63 small letters, digits and `-`, with a
/// letter or digit at both ends.
///
/// ```
/// use informer_model::is_dns_label;
///
/// assert!(is_dns_label("kube-system"));
/// assert!(!is_dns_label("../secrets") && !is_dns_label("Shop") && !is_dns_label(""));
/// ```
pub const fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_name(text.as_bytes(), false, false)
}

/// Whether this is a DNS subdomain, as the names of most objects are: up to 253 characters, parts like labels with
/// dots between them. A part may be longer than a label.
pub const fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && is_name(text.as_bytes(), true, false)
}

/// Whether this can be the name of a kind: a DNS label that begins with a letter and may have capitals.
pub const fn is_kind_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.len() <= 63 && is_name(bytes, false, true) && bytes[0].is_ascii_alphabetic()
}

/// Whether all is letters and digits and, between these, `-` and perhaps `.`.
const fn is_name(name: &[u8], dots: bool, capitals: bool) -> bool {
    let mut at = 0;
    while at < name.len() {
        let is_edge = at == 0 || at + 1 == name.len() || name[at - 1] == b'.' || name[at + 1] == b'.';
        let fits = match name[at] {
            b'a'..=b'z' | b'0'..=b'9' => true,
            b'A'..=b'Z' => capitals,
            b'-' => !is_edge,
            b'.' => dots && !is_edge,
            _ => false,
        };
        if !fits {
            return false;
        }
        at += 1;
    }
    !name.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BUILTIN_KINDS;

    #[test]
    fn a_label_has_letters_digits_and_dashes_between_them() {
        let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
        for text in ["a", "0", "kube-system", "a--b", &longest] {
            assert!(is_dns_label(text), "{text}");
        }
        for text in ["", "a/b", "..", "A", "a b", "-a", "a-", "-", "ä", "a.b", "a\n", &too_long] {
            assert!(!is_dns_label(text), "{text}");
        }
    }

    #[test]
    fn a_subdomain_has_dots_between_parts_that_may_be_long() {
        let (long_part, too_long) = ("a".repeat(100), "a.".repeat(127) + "a");
        for text in ["a", "a.b-c.0", &long_part] {
            assert!(is_dns_subdomain(text), "{text}");
        }
        for text in ["", ".", "a.", ".a", "a..b", "a.-b", "a-.b", "A.b", "a_b", &too_long] {
            assert!(!is_dns_subdomain(text), "{text}");
        }
    }

    #[test]
    fn a_kind_may_have_capitals_and_begins_with_a_letter() {
        assert!(BUILTIN_KINDS.iter().all(|row| is_kind_name(row.kind)));
        assert!(is_kind_name("my-Kind") && is_kind_name("a"));
        for text in ["", "1a", "a.b", "-a", "a-", "a b", "a/b", "Ä", &"A".repeat(64)] {
            assert!(!is_kind_name(text), "{text}");
        }
    }
}

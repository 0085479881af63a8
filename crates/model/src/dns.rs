//! The two kinds of DNS names that Kubernetes makes names of: a label, and labels with dots between them.

/// Whether this is a DNS label, as the names of namespaces are: up to 63 small letters, digits and `-`, with a
/// letter or digit at both ends.
///
/// ```
/// use informer_model::is_dns_label;
///
/// assert!(is_dns_label("kube-system"));
/// assert!(!is_dns_label("../secrets") && !is_dns_label("Shop") && !is_dns_label(""));
/// ```
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_part(text)
}

/// Whether this is a DNS subdomain, as the names of most objects are: up to 253 characters, parts like labels with
/// dots between them. A part may be longer than a label.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_part)
}

fn is_dns_part(text: &str) -> bool {
    let is_letter_or_digit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(is_letter_or_digit)
        && text.ends_with(is_letter_or_digit)
        && text.chars().all(|c| is_letter_or_digit(c) || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for text in ["", ".", "a.", ".a", "a..b", "a.-b", "A.b", "a_b", &too_long] {
            assert!(!is_dns_subdomain(text), "{text}");
        }
    }
}

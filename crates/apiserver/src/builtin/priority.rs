//! Which version of an API group is preferred.

use std::{cmp::Ordering, cmp::Reverse};

/// Compares two names of versions so that the preferred one comes first: stable before beta before alpha,
/// newer before older, and names of another form last, in alphabetical order.
pub(crate) fn by_priority(one: &str, other: &str) -> Ordering {
    match (parse(one), parse(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Stable,
    Beta,
    Alpha,
}

/// `v2beta1` is (Beta, 2, 1).
fn parse(name: &str) -> Option<(Stability, Reverse<u64>, Reverse<u64>)> {
    let numbers = name.strip_prefix('v')?;
    let (stability, major, minor) = if let Some((major, minor)) = numbers.split_once("alpha") {
        (Stability::Alpha, major, number(minor)?)
    } else if let Some((major, minor)) = numbers.split_once("beta") {
        (Stability::Beta, major, number(minor)?)
    } else {
        (Stability::Stable, numbers, 0)
    };
    Some((stability, Reverse(number(major)?), Reverse(minor)))
}

/// Digits only: no sign.
fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_comes_before_beta_before_alpha_and_newer_before_older_and_odd_names_last() {
        let sorted = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v",
            "v+1",
            "v1alpha",
            "v1beta1x",
            "v99999999999999999999",
        ];
        for (i, one) in sorted.iter().enumerate() {
            for (j, other) in sorted.iter().enumerate() {
                assert_eq!(by_priority(one, other), i.cmp(&j), "{one} {other}");
            }
        }
    }
}

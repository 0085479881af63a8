//! The kinds that Kubernetes has built in: what they are called, in which versions there are, and what a
//! server does with them.
//!
//! There is one table of them, [`for_each_kind!`](crate::for_each_kind). As data it is [`BUILTIN_KINDS`].

mod table;

/// A kind of a version of an API group that can be listed. Kinds that are only a question to the server
/// (`TokenReview`) or a part of another (`Scale`) are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltinKind {
    /// The API group; empty for the core one.
    pub group: &'static str,
    /// The version of the group: `v1`.
    pub version: &'static str,
    /// `Pod`.
    pub kind: &'static str,
    /// As in the path of a request: `pods`.
    pub plural: &'static str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// What a person may type: `po`.
    pub short_names: &'static [&'static str],
    /// Sets of resources it is part of: `all`.
    pub categories: &'static [&'static str],
    /// What can be done with it, in alphabetical order.
    pub verbs: &'static [&'static str],
    /// Which of `status` and `scale` it has.
    pub subresources: &'static [&'static str],
    /// The first minor version of Kubernetes in which this row holds; 0 when it is older than all that are
    /// supported.
    pub since_minor: u32,
    /// The last one; `u32::MAX` when none is known.
    pub until_minor: u32,
}

impl BuiltinKind {
    /// What can be done with nearly every kind, and with every custom resource.
    pub const USUAL_VERBS: &'static [&'static str] =
        &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

    /// Whether this row holds in Kubernetes 1.`minor`.
    pub const fn is_in(&self, minor: u32) -> bool {
        self.since_minor <= minor && minor <= self.until_minor
    }

    /// The kind in lower case: the name of one object, as in `kubectl get pod web-0`.
    pub fn singular(&self) -> String {
        self.kind.to_ascii_lowercase()
    }

    /// Whether it has this subresource.
    pub fn has(&self, subresource: &str) -> bool {
        self.subresources.contains(&subresource)
    }
}

macro_rules! builtin_kinds {
    ($(group $group:ident = $name:literal $group_when:tt in $($path:ident)::+ {
        $(version $version:ident $version_when:tt {
            $($kind:ident $accessor:ident $plural:literal $scope:ident $kind_when:tt {
                $(short_names [$($short:literal),*])?
                $(categories [$($category:literal),*])?
                $(subresources [$($subresource:literal),*])?
                $(verbs [$($verb:literal),*])?
            })*
        })*
    })*) => {
        /// Every built-in kind of every supported version of Kubernetes: groups in the order of discovery,
        /// versions by preference, kinds by name. A kind that changed between two versions of Kubernetes has
        /// a row for each; [`is_in`](BuiltinKind::is_in) tells which row holds.
        ///
        /// ```
        /// use informer_model::BUILTIN_KINDS;
        ///
        /// let pod = BUILTIN_KINDS.iter().find(|kind| kind.kind == "Pod").unwrap();
        /// assert_eq!((pod.group, pod.version, pod.plural), ("", "v1", "pods"));
        /// assert!(pod.namespaced && pod.has("status") && pod.is_in(37));
        /// ```
        pub static BUILTIN_KINDS: &[BuiltinKind] = &[$($($(BuiltinKind {
            group: $name,
            version: stringify!($version),
            kind: stringify!($kind),
            plural: $plural,
            namespaced: is_namespaced!($scope),
            short_names: &[$($($short),*)?],
            categories: &[$($($category),*)?],
            verbs: verbs!($($($verb),*)?),
            subresources: &[$($($subresource),*)?],
            since_minor: largest(&[since!($group_when), since!($version_when), since!($kind_when)]),
            until_minor: smallest(&[until!($group_when), until!($version_when), until!($kind_when)]),
        }),*),*),*];
    };
}

macro_rules! is_namespaced {
    (namespaced) => {
        true
    };
    (cluster) => {
        false
    };
}

macro_rules! verbs {
    () => {
        BuiltinKind::USUAL_VERBS
    };
    ($($verb:literal),+) => {
        &[$($verb),+]
    };
}

macro_rules! since {
    ([since $minor:literal $($until:tt)*]) => {
        $minor
    };
    ($always:tt) => {
        0
    };
}

macro_rules! until {
    ([$(since $since:literal)? until $minor:literal]) => {
        $minor
    };
    ($always:tt) => {
        u32::MAX
    };
}

const fn largest(minors: &[u32]) -> u32 {
    match minors {
        [] => 0,
        [first, rest @ ..] => {
            let rest = largest(rest);
            if *first > rest { *first } else { rest }
        }
    }
}

const fn smallest(minors: &[u32]) -> u32 {
    match minors {
        [] => u32::MAX,
        [first, rest @ ..] => {
            let rest = smallest(rest);
            if *first < rest { *first } else { rest }
        }
    }
}

crate::for_each_kind!(builtin_kinds);

#[cfg(test)]
mod tests {
    use super::*;

    const MINORS: std::ops::RangeInclusive<u32> = 33..=37;

    /// As Kubernetes documents what `kubectl api-resources` lists for each version with all APIs enabled.
    #[test]
    fn every_minor_version_has_as_many_kinds_as_kubernetes() {
        let count = |minor| BUILTIN_KINDS.iter().filter(|kind| kind.is_in(minor)).count();
        assert_eq!(MINORS.map(count).collect::<Vec<_>>(), [81, 83, 83, 88, 93]);
    }

    #[test]
    fn no_kind_has_two_rows_that_hold_in_one_minor_version() {
        for minor in MINORS {
            let mut names: Vec<_> = (BUILTIN_KINDS.iter().filter(|kind| kind.is_in(minor)))
                .map(|kind| (kind.group, kind.version, kind.plural))
                .collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|two| two[0] != two[1]), "1.{minor}: {names:?}");
        }
    }

    #[test]
    fn what_differs_between_versions_of_one_resource_is_neither_its_names_nor_its_scope() {
        for (i, one) in BUILTIN_KINDS.iter().enumerate() {
            for other in &BUILTIN_KINDS[i + 1..] {
                if (one.group, one.plural) == (other.group, other.plural) {
                    assert_eq!(
                        (one.kind, one.namespaced, one.short_names, one.categories, one.verbs),
                        (other.kind, other.namespaced, other.short_names, other.categories, other.verbs)
                    );
                }
            }
        }
    }

    #[test]
    fn every_row_is_complete() {
        for kind in BUILTIN_KINDS {
            assert!(kind.since_minor <= kind.until_minor, "{kind:?}");
            assert!(kind.verbs.contains(&"get") && kind.verbs.contains(&"list"), "{kind:?}");
            assert!(kind.subresources.iter().all(|name| ["status", "scale"].contains(name)), "{kind:?}");
            assert!(kind.plural.starts_with(&kind.singular()[..kind.kind.len() - 1]), "{kind:?}");
        }
    }
}

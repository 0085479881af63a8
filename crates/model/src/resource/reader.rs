//! Takes a text apart into group, version and name, and knows where in it an error is.

/// Why a text names no resource or kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{noun} {input:?}: expected {expected} at byte {position}, found {}", in_words(.found))]
pub struct ResourceArgError {
    /// What the text should have been.
    noun: &'static str,
    /// The whole text.
    pub input: String,
    /// Where the error was found, in bytes: always the beginning of a character, or the end.
    pub position: usize,
    /// What can stand there.
    pub expected: &'static str,
    /// The part or the character that stands there; empty at the end of the text.
    pub found: String,
}

fn in_words(found: &str) -> String {
    match found {
        "" => "the end".to_owned(),
        found => format!("`{}`", found.escape_debug()),
    }
}

/// The text of a resource or a kind; the core group has no name where it can do without.
pub(super) fn spell(group: &str, version: &str, name: &str) -> String {
    match (looks_like_version(version), group) {
        (true, "") => format!("{name}.{version}"),
        (true, group) => format!("{name}.{version}.{group}"),
        (false, "") => format!("core/{version}/{name}"),
        (false, group) => format!("{group}/{version}/{name}"),
    }
}

/// `v1`, `v12`, `v1alpha1`, `v2beta3`.
fn looks_like_version(text: &str) -> bool {
    fn after_number(text: &str) -> Option<&str> {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        (rest.len() < text.len() && !text.starts_with('0')).then_some(rest)
    }
    let stage = text.strip_prefix('v').and_then(after_number);
    stage.is_some_and(|stage| {
        let numbered = stage.strip_prefix("alpha").or_else(|| stage.strip_prefix("beta"));
        stage.is_empty() || numbered.and_then(after_number) == Some("")
    })
}

/// What a part of a name consists of, apart from `-` between other characters.
pub(super) struct Rule {
    noun: &'static str,
    allowed: fn(&u8) -> bool,
    expected: &'static str,
}

pub(super) const RESOURCE: Rule = Rule {
    noun: "resource",
    allowed: is_lower_or_digit,
    expected: "a resource (lower-case letters, digits and inner `-`)",
};
pub(super) const KIND: Rule = Rule {
    noun: "kind",
    allowed: u8::is_ascii_alphanumeric,
    expected: "a kind (letters, digits and inner `-`)",
};
pub(super) const VERSION: Rule = Rule {
    noun: "version",
    allowed: is_lower_or_digit,
    expected: "a version such as `v1` (lower-case letters, digits and inner `-`)",
};
pub(super) const GROUP: Rule = Rule {
    noun: "group",
    allowed: is_lower_or_digit,
    expected: "a group such as `apps` (lower-case letters, digits, inner `-` and `.`)",
};

fn is_lower_or_digit(b: &u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

/// The parts that a text has.
pub(super) struct Parts<'a> {
    pub(super) group: Option<&'a str>,
    pub(super) version: Option<&'a str>,
    pub(super) name: &'a str,
}

/// Takes a text apart and knows where in it an error is.
pub(super) struct Reader<'a> {
    pub(super) noun: &'static str,
    pub(super) input: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(rule: &Rule, input: &'a str) -> Self {
        Self { noun: rule.noun, input }
    }

    /// All parts there are; `name` is the rule for the one that is never missing.
    pub(super) fn read(&self, name: &Rule) -> Result<Parts<'a>, ResourceArgError> {
        match self.input.split_once('/') {
            Some((first, rest)) => self.slashes(name, first, rest),
            None => self.dots(name),
        }
    }

    fn slashes(&self, name: &Rule, first: &'a str, rest: &'a str) -> Result<Parts<'a>, ResourceArgError> {
        let second = first.len() + 1;
        match rest.split_once('/') {
            Some((version, last)) => Ok(Parts {
                group: Some(self.group(0, first)?),
                version: Some(self.part(&VERSION, second, version)?),
                name: self.part(name, second + version.len() + 1, last)?,
            }),
            None if looks_like_version(first) => Ok(Parts {
                group: Some(""),
                version: Some(self.part(&VERSION, 0, first)?),
                name: self.part(name, second, rest)?,
            }),
            None => Err(self.error(0, first, "a version such as `v1`, or `group/version/`")),
        }
    }

    fn dots(&self, name: &Rule) -> Result<Parts<'a>, ResourceArgError> {
        let Some((first, rest)) = self.input.split_once('.') else {
            return Ok(Parts { group: None, version: None, name: self.part(name, 0, self.input)? });
        };
        let name = self.part(name, 0, first)?;
        let second = first.len() + 1;
        let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
        if !looks_like_version(version) {
            return Ok(Parts { group: Some(self.group(second, rest)?), version: None, name });
        }
        let version = self.part(&VERSION, second, version)?;
        let group = match group {
            "" => "",
            group => self.group(second + version.len() + 1, group)?,
        };
        Ok(Parts { group: Some(group), version: Some(version), name })
    }

    /// All parts, of which none may be missing.
    pub(super) fn read_full(&self, name: &Rule) -> Result<(String, String, String), ResourceArgError> {
        let parts = self.read(name)?;
        let (Some(group), Some(version)) = (parts.group, parts.version) else {
            let position = self.input.len().min(parts.name.len() + 1);
            let found = self.input[position..].split('.').next().unwrap_or_default();
            return Err(self.error(position, found, "a version such as `v1`"));
        };
        Ok((group.to_owned(), version.to_owned(), parts.name.to_owned()))
    }

    /// The text as one part.
    pub(super) fn whole(&self, rule: &Rule) -> Result<String, ResourceArgError> {
        self.part(rule, 0, self.input).map(str::to_owned)
    }

    /// A part that begins at a position, if it keeps the rule.
    pub(super) fn part(&self, rule: &Rule, at: usize, part: &'a str) -> Result<&'a str, ResourceArgError> {
        let inner = |i: usize| i > 0 && i + 1 < part.len();
        let wrong = |(i, b): (usize, u8)| !((rule.allowed)(&b) || b == b'-' && inner(i));
        let fault = match part {
            "" => Some(0),
            part => part.bytes().enumerate().position(wrong),
        };
        match fault {
            Some(i) => Err(self.error(at + i, "", rule.expected)),
            None if part.len() > 63 => Err(self.error(at + 63, "", "at most 63 characters")),
            None => Ok(part),
        }
    }

    /// A group that begins at a position, as its API knows it: the core group has the empty name.
    pub(super) fn group(&self, at: usize, group: &'a str) -> Result<&'a str, ResourceArgError> {
        match group {
            "" => return Err(self.error(at, "", "a group (the core group is written `core`)")),
            "core" => return Ok(""),
            _ => {}
        }
        let mut start = at;
        for part in group.split('.') {
            self.part(&GROUP, start, part)?;
            start += part.len() + 1;
        }
        match group.len() {
            ..=253 => Ok(group),
            _ => Err(self.error(at + 253, "", "at most 253 characters")),
        }
    }

    /// The error that something else was `expected`; without `found`, than the character there.
    pub(super) fn error(&self, position: usize, found: &str, expected: &'static str) -> ResourceArgError {
        let found = match found {
            "" => self.input[position..].chars().take(1).collect(),
            found => found.to_owned(),
        };
        ResourceArgError { noun: self.noun, input: self.input.to_owned(), position, expected, found }
    }
}

#[cfg(test)]
mod tests {
    use crate::{GroupVersionKind, GroupVersionResource, ResourceArg};

    #[test]
    fn bad_names_are_refused_with_their_position() {
        let long = "x".repeat(64);
        let long_group = format!("{}x", "abcdefgh.".repeat(29));
        for (text, position, found) in [
            ("", 0, "the end"),
            ("/", 0, "`/`"),
            ("/v1/pods", 0, "`/`"),
            ("//", 0, "`/`"),
            ("v1/", 3, "the end"),
            ("apps/v1/", 8, "the end"),
            ("apps//deployments", 5, "`/`"),
            ("apps/deployments", 0, "`apps`"),
            ("pods/status", 0, "`pods`"),
            ("apps/v1/deployments/status", 19, "`/`"),
            ("apps/v1/deployments/", 19, "`/`"),
            ("../v1/pods", 0, "`.`"),
            ("apps/../pods", 5, "`.`"),
            ("apps/v1/..", 8, "`.`"),
            ("v1/..", 3, "`.`"),
            ("apps/v1.2/pods", 7, "`.`"),
            ("v1/pods.apps", 7, "`.`"),
            (".", 0, "`.`"),
            (".apps", 0, "`.`"),
            ("pods.", 5, "the end"),
            ("pods..", 5, "`.`"),
            ("pods.v1..", 8, "`.`"),
            ("pods.v1.a..b", 10, "`.`"),
            ("deployments.apps.", 17, "the end"),
            ("Pods", 0, "`P`"),
            ("pods.V1", 5, "`V`"),
            ("pods.v1.Apps", 8, "`A`"),
            ("-pods", 0, "`-`"),
            ("pods-", 4, "`-`"),
            ("-", 0, "`-`"),
            ("pods.a.-b", 7, "`-`"),
            ("po ds", 2, "` `"),
            ("po_ds", 2, "`_`"),
            ("pöds", 1, "`ö`"),
            ("pods%2f", 4, "`%`"),
            ("pods\n", 4, r"`\n`"),
            (&long, 63, "`x`"),
            (&format!("pods.v{}", "1".repeat(70)), 68, "`1`"),
            (&format!("pods.{long}"), 68, "`x`"),
            (&format!("pods.{long_group}"), 258, "`b`"),
        ] {
            let error = text.parse::<ResourceArg>().unwrap_err();
            assert_eq!(error.position, position, "{text:?}: {error}");
            assert!(error.to_string().ends_with(&format!("at byte {position}, found {found}")), "{error}");
            assert_eq!(text.parse::<GroupVersionResource>(), Err(error));
        }
    }

    #[test]
    fn the_error_says_what_to_write() {
        let error = |text: &str| text.parse::<GroupVersionResource>().unwrap_err().to_string();
        assert_eq!(
            error("/v1/pods"),
            r#"resource "/v1/pods": expected a group (the core group is written `core`) at byte 0, found `/`"#
        );
        assert_eq!(
            error("apps/deployments"),
            r#"resource "apps/deployments": expected a version such as `v1`, or `group/version/` at byte 0, found `apps`"#
        );
    }

    #[test]
    fn a_full_name_has_a_version() {
        for (text, position, found) in [
            ("deployments", 11, "the end"),
            ("deployments.apps", 12, "`apps`"),
            ("networkpolicies.networking.k8s.io", 16, "`networking`"),
        ] {
            let error = text.parse::<GroupVersionResource>().unwrap_err().to_string();
            let end = format!("expected a version such as `v1` at byte {position}, found {found}");
            assert!(error.ends_with(&end), "{error}");
            assert!(text.parse::<ResourceArg>().is_ok() && text.parse::<GroupVersionKind>().is_err());
        }
    }
}

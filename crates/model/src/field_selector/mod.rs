//! Field selectors: which objects are meant, by what stands in them.
//!
//! The grammar is that of `fieldSelector=` in a request. An API server knows a few fields of each kind; here
//! any [`FieldPath`] into the object's JSON will do.

mod parser;
mod path;

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

pub use parser::FieldSelectorError;
pub use path::FieldPath;

/// A field selector: requirements of which all must hold.
///
/// `path=value`, `path==value` (the same) and `path!=value`, joined by commas. Empty terms between commas
/// are skipped, blanks are not: one in a value belongs to it. In a value, `\`, `,` and `=` are written `\\`,
/// `\,` and `\=`. See [`FieldPath`] for the left side.
///
/// Fields are compared as text:
/// - a field that is missing or null is the empty text, so that `spec.nodeName=` finds pods without a node;
/// - a number or a boolean is its JSON text: `spec.replicas=3`, `spec.paused=true`;
/// - an object or an array equals nothing, not even the empty text;
/// - with `[*]` in the path, `=` holds when it holds for one element at least. Where there are no elements,
///   because the array is empty or missing, no `=` holds, `path=` included.
///
/// `!=` always is the opposite of `=`.
///
/// ```
/// use informer_model::FieldSelector;
/// use serde_json::json;
///
/// let selector: FieldSelector = "status.phase!=Running,spec.containers[*].image=nginx".parse()?;
/// let pod = json!({
///     "spec": { "containers": [{ "image": "envoy" }, { "image": "nginx" }] },
///     "status": { "phase": "Pending" },
/// });
/// assert!(selector.matches(&pod));
///
/// let error = FieldSelector::parse("spec.nodeName").unwrap_err();
/// assert_eq!(error.position, 13);
/// # Ok::<(), informer_model::FieldSelectorError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector(Vec<FieldRequirement>);

/// How a [`FieldRequirement`] compares a field with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldOperator {
    /// `=` or `==`.
    Equals,
    /// `!=`.
    NotEquals,
}

/// One condition of a [`FieldSelector`].
///
/// ```
/// use informer_model::{FieldOperator, FieldRequirement};
///
/// let requirement = FieldRequirement::new("data['a=b']".parse()?, FieldOperator::Equals, "x,y");
/// assert_eq!(requirement.to_string(), r"data['a=b']=x\,y");
/// assert_eq!(requirement.exact_value(), Some("x,y"));
/// # Ok::<(), informer_model::FieldSelectorError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FieldRequirement {
    path: FieldPath,
    operator: FieldOperator,
    value: String,
}

impl FieldSelector {
    /// Reads a selector. The empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, FieldSelectorError> {
        parser::parse(text).map(Self)
    }

    /// The selector of these requirements.
    pub fn new(requirements: impl IntoIterator<Item = FieldRequirement>) -> Self {
        Self(requirements.into_iter().collect())
    }

    /// The selector that every object matches. Its text is empty.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The requirements in the order in which they were written.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.0
    }

    /// Whether there is no requirement, so that every object matches.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all requirements hold for an object.
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.matches(object))
    }

    /// Whether all requirements hold for an object whose fields somebody else knows, as a server knows the
    /// fields it supports. A field that is not there, `None`, is the empty text.
    ///
    /// ```
    /// use informer_model::FieldSelector;
    ///
    /// let selector = FieldSelector::parse("metadata.name=web,spec.nodeName=")?;
    /// assert!(selector.matches_with(|path| match path.as_str() {
    ///     "metadata.name" => Some("web".into()),
    ///     _ => None,
    /// }));
    /// # Ok::<(), informer_model::FieldSelectorError>(())
    /// ```
    pub fn matches_with<'a>(&self, mut field: impl FnMut(&FieldPath) -> Option<Cow<'a, str>>) -> bool {
        self.0.iter().all(|requirement| {
            let text = field(&requirement.path).unwrap_or_default();
            requirement.holds_if(text == requirement.value)
        })
    }
}

impl FieldRequirement {
    /// A requirement. Any text is a value.
    pub fn new(path: FieldPath, operator: FieldOperator, value: impl Into<String>) -> Self {
        Self { path, operator, value: value.into() }
    }

    /// The field that the requirement is about.
    pub fn path(&self) -> &FieldPath {
        &self.path
    }

    /// How the field is compared.
    pub fn operator(&self) -> FieldOperator {
        self.operator
    }

    /// What it is compared with, without escapes.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The text that the field must have, or `None` when the operator leaves it open.
    pub fn exact_value(&self) -> Option<&str> {
        (self.operator == FieldOperator::Equals).then_some(&self.value)
    }

    /// Whether the requirement holds for an object.
    pub fn matches(&self, object: &Value) -> bool {
        self.holds_if(self.path.any_equals(object, &self.value))
    }

    fn holds_if(&self, equal: bool) -> bool {
        equal == (self.operator == FieldOperator::Equals)
    }
}

impl FromStr for FieldSelector {
    type Err = FieldSelectorError;

    fn from_str(text: &str) -> Result<Self, FieldSelectorError> {
        Self::parse(text)
    }
}

impl fmt::Display for FieldOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Equals => "=",
            Self::NotEquals => "!=",
        })
    }
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.path, self.operator)?;
        for part in self.value.split_inclusive(['\\', ',', '=']) {
            match part.strip_suffix(['\\', ',', '=']) {
                Some(plain) => write!(f, "{plain}\\{}", &part[plain.len()..])?,
                None => f.write_str(part)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.0.iter().enumerate() {
            write!(f, "{}{requirement}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Debug for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl fmt::Debug for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl Serialize for FieldSelector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FieldSelector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod() -> Value {
        json!({
            "metadata": {
                "name": "web-0",
                "labels": { "app.kubernetes.io/name": "shop", "a,b=c": "odd", "": "nameless" },
                "generation": 7,
                "managedFields": [],
            },
            "spec": {
                "nodeName": null,
                "hostNetwork": true,
                "weight": 1.50,
                "containers": [
                    { "image": "nginx", "ports": [{ "port": 80 }, { "port": 443 }] },
                    { "ports": [{ "port": 9090 }] },
                ],
                "args": ["-v", ""],
            },
        })
    }

    #[test]
    fn fields_are_compared_as_text() {
        for (text, equal) in [
            ("metadata.name=web-0", true),
            ("metadata.name==web-0", true),
            ("metadata.name=web", false),
            ("metadata.generation=7", true),
            ("metadata.generation=07", false),
            ("spec.hostNetwork=true", true),
            ("spec.hostNetwork=True", false),
            ("spec.weight=1.5", true),
            ("spec.nodeName=", true),
            ("spec.nodeName=null", false),
            ("spec.nothing=", true),
            ("no.such.thing=", true),
            ("metadata.name.deeper=", true),
            ("metadata=", false),
            ("metadata.managedFields=", false),
            ("metadata.managedFields=[]", false),
            ("metadata.labels['app.kubernetes.io/name']=shop", true),
            (r#"metadata.labels["app.kubernetes.io/name"]=shop"#, true),
            ("metadata.labels['a,b=c']=odd", true),
            ("metadata.labels['']=nameless", true),
            ("['metadata']['name']=web-0", true),
            ("spec.containers[0].image=nginx", true),
            ("spec.containers[1].image=", true),
            ("spec.containers[2].image=", true),
            ("spec.containers.image=", true),
            ("metadata[0]=", true),
            ("spec.args[0]=-v", true),
        ] {
            assert_eq!(FieldSelector::parse(text).unwrap().matches(&pod()), equal, "{text}");
            if !text.contains("==") {
                let at = text.rfind('=').unwrap();
                let negated = format!("{}!{}", &text[..at], &text[at..]);
                assert_eq!(FieldSelector::parse(&negated).unwrap().matches(&pod()), !equal, "{negated}");
            }
        }
    }

    #[test]
    fn a_star_is_any_element_and_none_where_there_are_none() {
        for (text, equal) in [
            ("spec.containers[*].image=nginx", true),
            ("spec.containers[*].image=", true),
            ("spec.containers[*].image=envoy", false),
            ("spec.containers[*].ports[*].port=9090", true),
            ("spec.containers[*].ports[1].port=443", true),
            ("spec.containers[*].ports[*].port=", false),
            ("spec.args[*]=", true),
            ("spec.args[*]=-v", true),
            ("metadata.managedFields[*]=", false),
            ("metadata.managedFields[*].manager=", false),
            ("spec.volumes[*].name=", false),
            ("spec.nodeName[*]=", false),
            ("metadata.labels[*]=shop", false),
        ] {
            assert_eq!(FieldSelector::parse(text).unwrap().matches(&pod()), equal, "{text}");
            let negated = text.replace('=', "!=");
            assert_eq!(FieldSelector::parse(&negated).unwrap().matches(&pod()), !equal, "{negated}");
        }
    }

    #[test]
    fn all_requirements_must_hold() {
        let matches = |text| FieldSelector::parse(text).unwrap().matches(&pod());
        assert!(matches("") && matches(",") && matches("metadata.name=web-0,spec.nodeName=,"));
        assert!(
            !matches("metadata.name=web-0,spec.nodeName=n1")
                && !matches("spec.nodeName=n1,metadata.name=web-0")
        );
    }

    #[test]
    fn a_long_path_does_not_exhaust_the_stack() {
        let path = vec!["a"; 200_000].join(".");
        let selector = FieldSelector::parse(&format!("{path}=,{path}[*]!=x")).unwrap();
        assert!(selector.matches(&pod()) && selector.matches(&json!({ "a": { "a": 1 } })));
    }

    #[test]
    fn fields_from_elsewhere() {
        let selector =
            FieldSelector::parse("metadata['name']=web,status.phase!=Running,spec.nodeName=").unwrap();
        let with_phase = |phase: &'static str| {
            selector.matches_with(|path| match path.as_str() {
                "metadata.name" => Some("web".into()),
                "status.phase" => Some(Cow::Owned(phase.to_owned())),
                _ => None,
            })
        };
        assert!(with_phase("Pending") && !with_phase("Running"));
    }

    #[test]
    fn serde_writes_the_text() {
        let selector = FieldSelector::parse(r"a.b=x\,y,c!=1").unwrap();
        let json = serde_json::to_value(&selector).unwrap();
        assert_eq!(json, r"a.b=x\,y,c!=1");
        assert_eq!(serde_json::from_value::<FieldSelector>(json).unwrap(), selector);
        assert!(serde_json::from_str::<FieldSelector>(r#""a""#).is_err());
    }
}

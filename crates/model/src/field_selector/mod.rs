//! Field selectors: which objects are meant, by what stands in them.
//!
//! The grammar is that of `fieldSelector=` in a request, and one with more operators for those who match
//! objects themselves. An API server knows a few fields of each kind; here any [`FieldPath`] into the object's
//! JSON will do.

mod parser;
mod path;
mod requirement;

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

pub use parser::FieldSelectorError;
pub use path::{FieldPath, FieldStep, FieldValue};
pub use requirement::{FieldOperator, FieldRequirement, FieldRequirementError};

use parser::Grammar;

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
/// `!=` always is the opposite of `=`. [`parse_extended`](Self::parse_extended) knows more operators.
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

impl FieldSelector {
    /// Reads a selector as an API server reads it. The empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, FieldSelectorError> {
        parser::parse(text, Grammar::Kubernetes).map(Self)
    }

    /// Reads a selector that may use operators which no API server knows. What [`parse`](Self::parse) reads,
    /// this reads as the same.
    ///
    /// | text | holds when the field `a` |
    /// |---|---|
    /// | `a in (x,y)` | equals one of these |
    /// | `a notin (x,y)` | equals none of these |
    /// | `a exists` | is there and not null, whatever it is; with `[*]`, for one element at least |
    /// | `!a` | is not there, or null |
    ///
    /// Blanks may stand around these words, brackets and commas, and before a term. In a list, a blank within
    /// a value belongs to it. `\`, `,`, `(`, `)`, and a blank at either end of a value, are written with a `\`
    /// before them; quotes are characters like any other. A value may be empty: `a in ()` asks for the empty
    /// text alone, `a in (x,)` for `x` or the empty text.
    ///
    /// ```
    /// use informer_model::FieldSelector;
    /// use serde_json::json;
    ///
    /// let selector = FieldSelector::parse_extended("status.phase notin (Running, Succeeded), !spec.nodeName")?;
    /// assert!(selector.matches(&json!({ "status": { "phase": "Pending" } })));
    /// assert_eq!(selector.to_string(), "status.phase notin (Running,Succeeded),!spec.nodeName");
    ///
    /// let error = FieldSelector::parse_extended("status.phase on (Running)").unwrap_err();
    /// assert_eq!((error.position, error.expected), (13, "`in`, `notin` or `exists`"));
    /// # Ok::<(), informer_model::FieldSelectorError>(())
    /// ```
    pub fn parse_extended(text: &str) -> Result<Self, FieldSelectorError> {
        parser::parse(text, Grammar::Extended).map(Self)
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
    /// fields it supports. A field that is not there is `None`, and compared as the empty text.
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
            let text = field(requirement.path());
            requirement
                .holds_if(requirement.seeks(text.as_deref().map_or(FieldValue::Missing, FieldValue::Text)))
        })
    }
}

impl FromStr for FieldSelector {
    type Err = FieldSelectorError;

    fn from_str(text: &str) -> Result<Self, FieldSelectorError> {
        Self::parse(text)
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
        Self::parse_extended(&String::deserialize(deserializer)?).map_err(de::Error::custom)
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
    fn lists_hold_for_any_of_their_values() {
        for (text, is_in) in [
            ("metadata.name in (web-1,web-0)", true),
            ("metadata.name in (web-1,web)", false),
            ("metadata.generation in (6, 7)", true),
            ("spec.nodeName in (n1,)", true),
            ("spec.nodeName in ()", true),
            ("spec.nodeName in (n1)", false),
            ("spec.nothing in ()", true),
            ("metadata in ()", false),
            ("spec.containers[*].image in (envoy,nginx)", true),
            ("spec.containers[*].ports[*].port in (1,2,9090)", true),
            ("metadata.managedFields[*] in ()", false),
        ] {
            assert_eq!(FieldSelector::parse_extended(text).unwrap().matches(&pod()), is_in, "{text}");
            let negated = text.replace(" in ", " notin ");
            assert_eq!(FieldSelector::parse_extended(&negated).unwrap().matches(&pod()), !is_in, "{negated}");
        }
    }

    #[test]
    fn a_field_exists_that_is_there_and_not_null() {
        for (path, exists) in [
            ("metadata.name", true),
            ("metadata", true),
            ("metadata.managedFields", true),
            ("metadata.managedFields[0]", false),
            ("metadata.managedFields[*]", false),
            ("metadata.labels['']", true),
            ("spec.nodeName", false),
            ("spec.nothing", false),
            ("metadata.name.deeper", false),
            ("spec.hostNetwork", true),
            ("spec.args[1]", true),
            ("spec.containers[1].image", false),
            ("spec.containers[*].image", true),
            ("spec.containers[*].command", false),
            ("spec.containers[*].ports[1]", true),
            ("spec.volumes[*]", false),
        ] {
            let matches = |text: &str| FieldSelector::parse_extended(text).unwrap().matches(&pod());
            assert_eq!(matches(&format!("{path} exists")), exists, "{path}");
            assert_eq!(matches(&format!("!{path}")), !exists, "{path}");
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

        let there = FieldSelector::parse_extended("a exists,!b,a in (,x),b notin (x)").unwrap();
        assert!(there.matches_with(|path| (path.as_str() == "a").then_some("".into())));
        assert!(!there.matches_with(|path| (path.as_str() == "b").then_some("".into())));
    }

    #[test]
    fn serde_writes_the_text() {
        let selector = FieldSelector::parse(r"a.b=x\,y,c!=1").unwrap();
        let json = serde_json::to_value(&selector).unwrap();
        assert_eq!(json, r"a.b=x\,y,c!=1");
        assert_eq!(serde_json::from_value::<FieldSelector>(json).unwrap(), selector);
        let extended = FieldSelector::parse_extended("a in (x,y),!b").unwrap();
        let json = serde_json::to_value(&extended).unwrap();
        assert_eq!(serde_json::from_value::<FieldSelector>(json).unwrap(), extended);
        assert!(serde_json::from_str::<FieldSelector>(r#""a""#).is_err());
    }
}

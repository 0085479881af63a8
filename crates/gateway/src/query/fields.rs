//! Which objects a field selector means, read from their JSON text.

use informer_model::{FieldRequirement, FieldSelector, ObjectKey};

use super::reader::Paths;

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

/// A field selector of the extended grammar, ready for many objects. It matches the objects that
/// [`FieldSelector::matches`] matches once they are decoded.
#[derive(Debug)]
pub(crate) struct FieldFilter {
    /// What the key decides.
    by_key: FieldSelector,
    /// What only the text tells, each with its path.
    in_text: Vec<FieldRequirement>,
    paths: Paths,
}

impl FieldFilter {
    pub(crate) fn new(selector: FieldSelector) -> Self {
        let requirements = selector.requirements().iter().cloned();
        let is_in_key =
            |requirement: &FieldRequirement| matches!(requirement.path().as_str(), NAME | NAMESPACE);
        let (by_key, in_text): (Vec<_>, Vec<_>) = requirements.partition(is_in_key);
        let paths = Paths::new(in_text.iter().map(FieldRequirement::path));
        Self { by_key: FieldSelector::new(by_key), in_text, paths }
    }

    /// The one name that an object must have, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        let named = |requirement: &&FieldRequirement| requirement.path().as_str() == NAME;
        self.by_key
            .requirements()
            .iter()
            .filter(named)
            .find_map(FieldRequirement::exact_value)
            .filter(|name| !name.is_empty())
    }

    /// Whether the text of objects is looked at.
    pub(crate) fn reads_text(&self) -> bool {
        !self.in_text.is_empty()
    }

    /// Whether the object with this key and text is meant. The text is read only if the key leaves it open.
    pub(crate) fn matches(&self, key: &ObjectKey, json: &str) -> bool {
        let in_key = |path: &str| if path == NAME { Some(key.name()) } else { key.namespace() };
        self.by_key.matches_with(|path| in_key(path.as_str()).map(Into::into))
            && (self.in_text.is_empty() || self.text_matches(json))
    }

    fn text_matches(&self, json: &str) -> bool {
        let found = self.paths.find(json, |path, value| self.in_text[path].seeks(value));
        self.in_text.iter().zip(found).all(|(requirement, found)| requirement.holds_if(found.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(selector: &str) -> FieldFilter {
        FieldFilter::new(FieldSelector::parse_extended(selector).unwrap())
    }

    #[test]
    fn name_and_namespace_are_known_without_the_text() {
        let namespaced: ObjectKey = "shop/web-0".parse().unwrap();
        let cluster: ObjectKey = "node-1".parse().unwrap();
        for (selector, in_shop, in_cluster) in [
            ("metadata.name=web-0", true, false),
            ("metadata['name'] in (node-1,node-2)", false, true),
            ("metadata.namespace=shop", true, false),
            ("metadata.namespace!=shop", false, true),
            ("metadata.namespace=", false, true),
            ("metadata.namespace exists", true, false),
            ("!metadata.namespace,metadata.name=node-1", false, true),
            ("!metadata.name", false, false),
            ("", true, true),
        ] {
            let filter = filter(selector);
            assert_eq!(filter.matches(&namespaced, "not read"), in_shop, "{selector}");
            assert_eq!(filter.matches(&cluster, "not read"), in_cluster, "{selector}");
        }
    }

    #[test]
    fn the_key_and_the_text_must_both_match() {
        let filter = filter("status.phase in (Pending,Failed),metadata.name=web-0,!spec.nodeName");
        let matches = |key: &str, json: &str| filter.matches(&key.parse().unwrap(), json);
        let pending = r#"{"metadata":{"name":"web-0"},"spec":{},"status":{"phase":"Pending"}}"#;
        assert!(matches("shop/web-0", pending));
        assert!(!matches("shop/web-1", pending));
        assert!(!matches("shop/web-0", &pending.replace("Pending", "Running")));
        assert!(!matches("shop/web-0", &pending.replace(r#""spec":{}"#, r#""spec":{"nodeName":"n"}"#)));
    }
}

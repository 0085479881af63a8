//! Which objects a field selector means, read from their JSON text.

use informer_model::{FieldRequirement, FieldSelector, ObjectKey};

use super::{
    readable::Readable,
    reader::{Paths, with_value},
};
use crate::cache::beside::Slot;

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

/// A field selector of the extended grammar, ready for many objects. It matches the objects that
/// [`FieldSelector::matches`] matches once they are decoded.
#[derive(Debug)]
pub(crate) struct FieldFilter {
    /// What the key decides.
    by_key: FieldSelector,
    /// What only the text tells.
    in_text: Requirements,
    /// Those of them that what stands beside an object tells too, and those that it does not.
    beside: Vec<(FieldRequirement, Slot)>,
    not_beside: Requirements,
}

/// Requirements of a text, each with its path.
#[derive(Debug)]
struct Requirements {
    all: Vec<FieldRequirement>,
    paths: Paths,
}

impl Requirements {
    fn new(all: Vec<FieldRequirement>) -> Self {
        Self { paths: Paths::new(all.iter().map(FieldRequirement::path)), all }
    }

    fn hold(&self, object: &impl Readable) -> bool {
        self.all.is_empty() || object.with_json(|json| self.hold_in(json))
    }

    fn hold_in(&self, json: &str) -> bool {
        let found = self.paths.find(json, |path, value| self.all[path].seeks(value));
        self.all.iter().zip(found).all(|(requirement, found)| requirement.holds_if(found.is_some()))
    }
}

impl FieldFilter {
    pub(crate) fn new(selector: FieldSelector) -> Self {
        let requirements = selector.requirements().iter().cloned();
        let is_in_key =
            |requirement: &FieldRequirement| matches!(requirement.path().as_str(), NAME | NAMESPACE);
        let (by_key, in_text): (Vec<_>, Vec<_>) = requirements.partition(is_in_key);
        let (mut beside, mut not_beside) = (Vec::new(), Vec::new());
        for requirement in &in_text {
            match Slot::of(requirement.path()) {
                Some(slot) => beside.push((requirement.clone(), slot)),
                None => not_beside.push(requirement.clone()),
            }
        }
        let (in_text, not_beside) = (Requirements::new(in_text), Requirements::new(not_beside));
        Self { by_key: FieldSelector::new(by_key), in_text, beside, not_beside }
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

    /// Whether the text of objects may be looked at.
    pub(crate) fn reads_text(&self) -> bool {
        !self.in_text.all.is_empty()
    }

    /// Whether the object with this key is meant. The text is read only if the key, and what stands beside the object, leave it
    /// open.
    pub(crate) fn matches(&self, key: &ObjectKey, object: &impl Readable) -> bool {
        let in_key = |path: &str| if path == NAME { Some(key.name()) } else { key.namespace() };
        if !self.by_key.matches_with(|path| in_key(path.as_str()).map(Into::into)) {
            return false;
        }
        let Some(beside) = object.beside() else { return self.in_text.hold(object) };
        let holds = |(requirement, slot): &(FieldRequirement, Slot)| {
            requirement.holds_if(with_value(beside.get(*slot), |value| requirement.seeks(value)))
        };
        self.beside.iter().all(holds) && self.not_beside.hold(object)
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
            assert_eq!(filter.matches(&namespaced, &"not read"), in_shop, "{selector}");
            assert_eq!(filter.matches(&cluster, &"not read"), in_cluster, "{selector}");
        }
    }

    #[test]
    fn the_key_and_the_text_must_both_match() {
        let filter = filter("status.phase in (Pending,Failed),metadata.name=web-0,!spec.nodeName");
        let matches = |key: &str, json: &str| filter.matches(&key.parse().unwrap(), &json);
        let pending = r#"{"metadata":{"name":"web-0"},"spec":{},"status":{"phase":"Pending"}}"#;
        assert!(matches("shop/web-0", pending));
        assert!(!matches("shop/web-1", pending));
        assert!(!matches("shop/web-0", &pending.replace("Pending", "Running")));
        assert!(!matches("shop/web-0", &pending.replace(r#""spec":{}"#, r#""spec":{"nodeName":"n"}"#)));
    }
}

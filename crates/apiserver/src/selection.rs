//! Which objects of a collection a request means: those in its namespace that its selectors match.

use std::borrow::Cow;

use informer_model::{FieldSelector, Selector, Status};
use informer_serving::{envelope::EventType, options::Parameters, path::Place};

use crate::{
    catalog::Resource,
    store::{Change, Objects, Stored, from_key},
};

/// What a request selects, checked against what the resource can be selected by.
#[derive(Debug)]
pub(crate) struct Filter {
    namespace: Option<String>,
    name: Option<String>,
    labels: Selector,
    fields: FieldSelector,
    /// The fields that each object of the resource has ready, in the order in which it has them.
    selectable: Vec<String>,
}

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

impl Filter {
    pub(crate) fn new(
        resource: &Resource,
        place: &Place,
        parameters: &Parameters<'_>,
    ) -> Result<Self, Status> {
        let selectable: Vec<String> = resource.selectable_fields().map(Into::into).collect();
        let (labels, fields) = (parameters.labels()?, parameters.fields(FieldSelector::parse)?);
        for requirement in fields.requirements() {
            let path = requirement.path().as_str();
            if path != NAME && path != NAMESPACE && !selectable.iter().any(|field| field == path) {
                // Kinds without fields of their own are refused in other words.
                return Err(Status::bad_request(if resource.custom || !selectable.is_empty() {
                    format!("field label not supported: {path}")
                } else {
                    format!("{path:?} is not a known field selector: only {NAME:?}, {NAMESPACE:?}")
                }));
            }
        }
        let (namespace, name) = (place.namespace.clone(), place.name.clone());
        Ok(Self { namespace, name, labels, fields, selectable })
    }

    /// Whether nothing but the place was asked for.
    pub(crate) fn is_everything(&self) -> bool {
        self.name.is_none() && self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether an object is meant.
    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| object.key.namespace() == Some(namespace))
            && self.name.as_deref().is_none_or(|name| object.key.name() == name)
            && self.labels.matches(&object.labels)
            && (self.fields.is_everything()
                || self.fields.matches_with(|path| self.field(object, path.as_str())))
    }

    fn field<'o>(&self, object: &'o Stored, path: &str) -> Option<Cow<'o, str>> {
        Some(Cow::Borrowed(match path {
            NAME => object.key.name(),
            NAMESPACE => object.key.namespace().unwrap_or_default(),
            _ => object.field(self.selectable.iter().position(|field| field == path)?),
        }))
    }

    /// What a change is to somebody who sees only what is meant: an object that begins to match is added,
    /// one that stops to match is deleted.
    pub(crate) fn event(&self, change: &Change) -> Option<EventType> {
        let before = change.before.as_ref().is_some_and(|before| self.matches(before));
        let after = !change.deleted && self.matches(&change.after);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(EventType::Added),
            (true, true) => Some(EventType::Modified),
            (true, false) => Some(EventType::Deleted),
        }
    }

    /// The objects in the namespace from a key on, in the order of keys, whether they match or not.
    pub(crate) fn range<'o>(
        &'o self,
        objects: &'o Objects,
        from: Option<&str>,
    ) -> impl Iterator<Item = &'o std::sync::Arc<Stored>> + use<'o> {
        let prefix = self.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let start = from.filter(|from| **from > *prefix.as_str()).unwrap_or(&prefix).to_owned();
        from_key(objects, &start).take_while(move |object| object.key.as_str().starts_with(&prefix))
    }
}

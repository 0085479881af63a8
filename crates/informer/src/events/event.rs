//! What a program says about an object, and the form in which the API takes it.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use informer_model::is_dns_label;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;

use crate::Object;

/// The most bytes of a note that the API takes, and of a reason or an action.
const NOTE: usize = 1024;
const WORD: usize = 128;
/// What a reference may have in all its texts together: several times what that of a real object has.
const REFERENCE: usize = 4096;
/// The reason of an event that has neither a reason nor an action.
const UNSPECIFIED: &str = "Unspecified";

/// Something that happened to an object.
///
/// The API takes 1,024 bytes of a note and 128 of a reason and an action: what is longer is cut. It takes no event without a reason
/// or an action: of the two, one that is empty becomes what the other is.
///
/// ```
/// use informer::events::{RecordedEvent, EventType};
///
/// let event = RecordedEvent::warning("FailedMount", "the volume \"data\" is not there").action("Mount");
/// assert_eq!(event.type_, EventType::Warning);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEvent {
    /// Whether it needs attention.
    pub type_: EventType,
    /// Why it happened, in one word for machines: `FailedMount`.
    pub reason: String,
    /// What was done or tried, in one word for machines: `Mount`. Empty: the same as the reason.
    pub action: String,
    /// What happened, for a person.
    pub note: String,
    /// Another object that has to do with it.
    pub related: Option<ObjectReference>,
}

/// Whether it needs attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// All is well.
    Normal,
    /// Something is not as it should be.
    Warning,
}

impl EventType {
    /// As the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl RecordedEvent {
    /// An event that is as it should be.
    pub fn normal(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self::new(EventType::Normal, reason.into(), note.into())
    }

    /// An event that needs attention.
    pub fn warning(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self::new(EventType::Warning, reason.into(), note.into())
    }

    fn new(type_: EventType, reason: String, note: String) -> Self {
        Self { type_, reason, action: String::new(), note, related: None }
    }

    /// What was done or tried.
    #[must_use]
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = action.into();
        self
    }

    /// Another object that has to do with it.
    #[must_use]
    pub fn related(mut self, object: &impl Regarding) -> Self {
        self.related = Some(object.reference());
        self
    }
}

/// What an event can be about: every object whose type says its kind.
pub trait Regarding {
    /// How an event refers to it.
    fn reference(&self) -> ObjectReference;
}

impl<K: Resource<DynamicType: Default>> Regarding for K {
    fn reference(&self) -> ObjectReference {
        self.object_ref(&K::DynamicType::default())
    }
}

impl<K: Resource<DynamicType: Default>> Regarding for Object<K> {
    fn reference(&self) -> ObjectReference {
        K::reference(self)
    }
}

/// An event as the API takes it.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) topic: Arc<Topic>,
    pub(super) note: String,
}

/// An event but for its note: those that have this in common are similar.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Topic {
    pub(super) regarding: Subject,
    pub(super) related: Option<Subject>,
    pub(super) type_: EventType,
    pub(super) reason: String,
    pub(super) action: String,
}

/// An object, whichever version of it.
#[derive(Debug, Clone)]
pub(super) struct Subject(pub(super) ObjectReference);

/// Why an event can never be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unsendable(pub(super) &'static str);

impl Report {
    pub(super) fn new(regarding: ObjectReference, event: RecordedEvent) -> Result<Self, Unsendable> {
        let RecordedEvent { type_, mut reason, mut action, note, related } = event;
        let (regarding, related) = (Subject(regarding), related.map(Subject));
        if !is_dns_label(regarding.namespace()) {
            // It would become another path.
            return Err(Unsendable("the namespace of the object is not the name of one"));
        }
        if [Some(&regarding), related.as_ref()].into_iter().flatten().any(|subject| subject.len() > REFERENCE)
        {
            return Err(Unsendable("the reference to the object is longer than that of any object"));
        }
        if reason.is_empty() {
            reason = if action.is_empty() { UNSPECIFIED.to_owned() } else { action.clone() };
        }
        if action.is_empty() {
            action.clone_from(&reason);
        }
        let (reason, action) = (cut(reason, WORD), cut(action, WORD));
        Ok(Self {
            topic: Arc::new(Topic { regarding, related, type_, reason, action }),
            note: cut(note, NOTE),
        })
    }
}

/// The note of an event that stands for similar ones.
pub(super) fn combined(note: &str) -> String {
    cut(format!("(combined from similar events): {note}"), NOTE)
}

/// No more than so many bytes of a text, and no part of a character. Nothing is kept of the rest, not even its memory.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let whole = (0..=most).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(whole.unwrap_or_default());
    }
    text.shrink_to_fit();
    text
}

impl Subject {
    /// Where its events are: those of an object without a namespace are in `default`.
    pub(super) fn namespace(&self) -> &str {
        self.0.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or("default")
    }

    pub(super) fn name(&self) -> &str {
        self.0.name.as_deref().unwrap_or_default()
    }

    /// Everything but the version: the same object in another version is the same object.
    fn identity(&self) -> [Option<&str>; 6] {
        let ObjectReference { api_version, field_path, kind, name, namespace, resource_version: _, uid } =
            &self.0;
        [api_version, field_path, kind, name, namespace, uid].map(Option::as_deref)
    }

    fn len(&self) -> usize {
        let version = self.0.resource_version.as_deref();
        self.identity().into_iter().chain([version]).flatten().map(str::len).sum()
    }
}

impl PartialEq for Subject {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Subject {}

impl Hash for Subject {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use informer_testing::histories;

    #[test]
    fn whatever_the_words_are_they_fit_and_the_beginning_of_them_is_kept() {
        let text = "(?s).{0,200}";
        histories(&((text, text), (text, 0..100_usize)), |((reason, action), (part, times))| {
            let note = part.repeat(times);
            let event = RecordedEvent::normal(reason.clone(), note.clone()).action(action.clone());
            let report = Report::new(ObjectReference::default(), event).expect("a reference");
            let Topic { reason: told_reason, action: told_action, .. } = &*report.topic;
            assert!((1..=WORD).contains(&told_reason.len()) && (1..=WORD).contains(&told_action.len()));
            assert!(report.note.capacity() <= NOTE && combined(&note).len() <= NOTE);
            assert!(note.starts_with(&report.note) && note.len().min(NOTE) < report.note.len() + 4);
            assert!(reason.is_empty() || reason.starts_with(told_reason));
            assert!(action.is_empty() || action.starts_with(told_action));
        });
    }

    #[test]
    fn an_object_is_the_same_in_every_version_and_another_one_by_any_other_field() {
        let of = |reference: &ObjectReference| Subject(reference.clone());
        let web = ObjectReference { name: Some("web".into()), ..ObjectReference::default() };
        assert_eq!(of(&web), of(&ObjectReference { resource_version: Some("7".into()), ..web.clone() }));
        let some = || Some("x".to_owned());
        let others = [
            ObjectReference { name: some(), ..web.clone() },
            ObjectReference { namespace: some(), ..web.clone() },
            ObjectReference { kind: some(), ..web.clone() },
            ObjectReference { api_version: some(), ..web.clone() },
            ObjectReference { uid: some(), ..web.clone() },
            ObjectReference { field_path: some(), ..web.clone() },
        ];
        assert!(others.iter().all(|other| of(other) != of(&web)));
    }
}

//! Which objects of a kind an informer is about.

use std::collections::BTreeSet;

use informer_model::{FieldSelector, Selector, is_dns_label};

use crate::Namespaces;

/// Which objects of a kind the informers of a factory hold. A factory has one informer for each type and scope.
///
/// Kinds without namespaces are held whole, whatever namespaces the scope names.
///
/// ```
/// use informer::factory::Scope;
///
/// let web = Scope::namespaces(["shop", "bank"])?.labels(&"app=web".parse()?);
/// assert_eq!(Scope::namespace("")?, Scope::everything());
/// assert!(Scope::namespace("no/such").is_err());
/// # let _ = web;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    namespaces: Which,
    labels: Selector,
    fields: FieldSelector,
}

/// Which namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Which {
    /// These; none of them is all of them.
    Fixed(BTreeSet<String>),
    /// Those that are in a set at the time.
    Followed(Namespaces),
    /// Those that have certain labels at the time.
    Matching(Selector),
}

impl Default for Which {
    fn default() -> Self {
        Self::Fixed(BTreeSet::new())
    }
}

/// Why a scope cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// Not a name that a namespace can have.
    #[error(
        "{name:?} is not the name of a namespace: it has up to 63 small letters, digits and `-`, with a letter or digit at both ends"
    )]
    Namespace {
        /// What was given.
        name: String,
    },
    /// All namespaces, in a list with others.
    #[error("the empty name stands for all namespaces and cannot be one of several")]
    AllAmongOthers,
    /// A list without a namespace.
    #[error("the list of namespaces is empty: name at least one, or leave the list out for all of them")]
    NoNamespace,
}

impl Scope {
    /// All objects in all namespaces.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The objects of one namespace; the empty text stands for all.
    pub fn namespace(name: impl Into<String>) -> Result<Self, ScopeError> {
        Self::namespaces([name])
    }

    /// The objects of some namespaces: one informer over one watch for each of them. A name may be said twice.
    pub fn namespaces(names: impl IntoIterator<Item: Into<String>>) -> Result<Self, ScopeError> {
        let mut namespaces: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        if namespaces.is_empty() {
            return Err(ScopeError::NoNamespace);
        }
        if namespaces.remove("") && !namespaces.is_empty() {
            return Err(ScopeError::AllAmongOthers);
        }
        match namespaces.iter().find(|name| !is_dns_label(name)) {
            Some(name) => Err(ScopeError::Namespace { name: name.clone() }),
            None => Ok(Self { namespaces: Which::Fixed(namespaces), ..Self::default() }),
        }
    }

    /// The objects of the namespaces that are in a set, which may change at any time. Two scopes with the same set are the
    /// same, and with another set they are not, whatever is in them.
    pub fn following(namespaces: &Namespaces) -> Self {
        Self { namespaces: Which::Followed(namespaces.clone()), ..Self::default() }
    }

    /// The objects of the namespaces that have these labels at the time. The factory follows the namespaces with one more
    /// informer, of their metadata, for which the client must be allowed to list and watch `namespaces`.
    pub fn namespaces_matching(selector: &Selector) -> Self {
        Self { namespaces: Which::Matching(selector.clone()), ..Self::default() }
    }

    /// Only objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: &Selector) -> Self {
        self.labels = selector.clone();
        self
    }

    /// Only objects with these fields, of which an API server knows a few for each kind: `spec.nodeName=node-1`.
    #[must_use]
    pub fn fields(mut self, selector: &FieldSelector) -> Self {
        self.fields = selector.clone();
        self
    }

    /// What is left of it for a kind without namespaces.
    pub(super) fn of_cluster(&self) -> Self {
        Self { namespaces: Which::default(), ..self.clone() }
    }

    pub(super) fn which_namespaces(&self) -> &Which {
        &self.namespaces
    }

    /// What each source asks for that is always there: the namespace, or `None` for all.
    pub(super) fn each_namespace(&self) -> Vec<Option<&str>> {
        match &self.namespaces {
            Which::Fixed(names) if names.is_empty() => vec![None],
            Which::Fixed(names) => names.iter().map(|name| Some(name.as_str())).collect(),
            Which::Followed(_) | Which::Matching(_) => Vec::new(),
        }
    }

    /// Where the objects lie that come and go with their namespaces, in words.
    pub(super) fn place(&self) -> String {
        match &self.namespaces {
            Which::Fixed(_) => String::new(),
            Which::Followed(set) => format!(" in followed namespaces #{}", set.id()),
            Which::Matching(selector) => format!(" in namespaces labelled {:?}", selector.to_string()),
        }
    }

    pub(super) fn label_selector(&self) -> &Selector {
        &self.labels
    }

    pub(super) fn field_selector(&self) -> &FieldSelector {
        &self.fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c33_the_order_and_number_of_names_do_not_matter() {
        assert_eq!(Scope::namespaces(["b", "a", "b"]), Scope::namespaces(["a", "b"]));
        assert_eq!(Scope::namespaces(["a", "b"]).unwrap().each_namespace(), [Some("a"), Some("b")]);
        assert_eq!(Scope::namespaces([""]).unwrap().each_namespace(), [None]);
    }

    #[test]
    fn a_name_that_would_leave_its_place_in_a_path_is_refused_by_name() {
        for name in ["a/b", "..", "Shop", "shop?watch=1", "a b", "-", &"x".repeat(64)] {
            let error = Scope::namespaces(["shop", name]).unwrap_err();
            assert_eq!(error, ScopeError::Namespace { name: name.to_owned() });
        }
        assert_eq!(Scope::namespaces(["", "shop"]), Err(ScopeError::AllAmongOthers));
        assert_eq!(Scope::namespaces(Vec::<String>::new()), Err(ScopeError::NoNamespace));
    }
}

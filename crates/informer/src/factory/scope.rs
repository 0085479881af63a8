//! Which objects of a kind an informer is about.

use std::collections::BTreeSet;

use informer_model::{FieldSelector, Selector, is_dns_label};

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
    /// None of them is all of them.
    namespaces: BTreeSet<String>,
    labels: Selector,
    fields: FieldSelector,
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
            None => Ok(Self { namespaces, ..Self::default() }),
        }
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
        Self { namespaces: BTreeSet::new(), ..self.clone() }
    }

    /// What each source asks for: the namespace, or `None` for all.
    pub(super) fn each_namespace(&self) -> Vec<Option<&str>> {
        match self.namespaces.len() {
            0 => vec![None],
            _ => self.namespaces.iter().map(|name| Some(name.as_str())).collect(),
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

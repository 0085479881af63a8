//! Who may see what.
//!
//! In: the headers of a request and what it wants to do. Out: yes, or the failure that an API server would answer
//! with. The gateway has no rules of its own: it asks the cluster, with the caller's token and then with the
//! caller's name, and remembers the answers for some seconds. An answer that cannot be had is a no.

mod authority;
mod memo;
mod rbac;
mod reviewer;
mod token;

use std::{collections::BTreeSet, fmt, net::IpAddr, sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};
use http::HeaderMap;
use informer_model::Status;

use crate::{cache::Cache, listener::client_of};
use reviewer::{Identity, Question};
pub(crate) use reviewer::{Reviewer, UnknownTokens};
use token::Token;

/// How often a stream [renews](Access::renew) its caller and asks again. With the life of an answer it makes ten
/// seconds: what a stream acts on is never older.
pub(crate) const RECHECK: Duration = Duration::from_secs(3);

/// How many namespaces of one question are reviewed at a time.
const NAMESPACES_AT_A_TIME: usize = 8;

/// Whose word counts.
#[derive(Clone)]
pub(crate) enum Access {
    /// Everybody may see everything.
    Open,
    /// The cluster decides.
    Kubernetes(Arc<Reviewer>),
}

/// A caller.
#[derive(Clone)]
pub(crate) struct Caller(Option<Arc<Known>>);

struct Known {
    identity: Arc<Identity>,
    token: Token,
}

/// What somebody wants to do to objects. Without a namespace it is about all of them, or about the cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
}

/// The namespaces that somebody may see objects of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Visible {
    All,
    /// Never empty.
    Only(BTreeSet<String>),
}

impl Access {
    /// Who asks, from this address. 401 when nobody knows.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        address: Option<IpAddr>,
    ) -> Result<Caller, Status> {
        // To answer for the caller instead would show more than was asked for.
        if let Some(header) = headers.keys().find(|name| name.as_str().starts_with("impersonate-")) {
            return Err(Status::bad_request(format!(
                "the gateway does not impersonate: {header} is not supported"
            )));
        }
        match self {
            Self::Open => Ok(Caller(None)),
            Self::Kubernetes(reviewer) => known(reviewer, Token::of(headers)?, address.map(client_of)).await,
        }
    }

    /// The same caller as the cluster knows it now: the token may have ended, the groups may be others. 401 when
    /// the token is no longer good.
    pub(crate) async fn renew(&self, caller: &Caller) -> Result<Caller, Status> {
        match (self, &caller.0) {
            (Self::Open, _) => Ok(caller.clone()),
            (Self::Kubernetes(reviewer), Some(old)) => known(reviewer, old.token.clone(), None).await,
            (Self::Kubernetes(_), None) => Err(token::unknown()),
        }
    }

    /// Whether the caller may do this. 503 when that cannot be found out.
    pub(crate) async fn allows(&self, caller: &Caller, what: &Attributes<'_>) -> Result<bool, Status> {
        self.review(caller, Question::Resource(what.placed())).await
    }

    /// 403 unless the caller may do this.
    pub(crate) async fn require(&self, caller: &Caller, what: &Attributes<'_>) -> Result<(), Status> {
        if self.allows(caller, what).await? { Ok(()) } else { Err(forbidden(caller, what)) }
    }

    /// 403 unless the caller may get a path that is no object, like `/metrics`.
    pub(crate) async fn require_path(&self, caller: &Caller, path: &str) -> Result<(), Status> {
        if self.review(caller, Question::Path(path)).await? {
            return Ok(());
        }
        let why = format!("User {:?} cannot get path {path:?}", caller.user());
        Err(Status::forbidden("", "", "", why))
    }

    /// The part of these namespaces in which the caller may be allowed something. The others need not be asked about.
    pub(crate) async fn within_reach(
        &self,
        caller: &Caller,
        what: &Attributes<'_>,
        mut candidates: Vec<String>,
        cache: &Arc<Cache>,
    ) -> Vec<String> {
        if let (Self::Kubernetes(reviewer), Some(known)) = (self, &caller.0)
            && let Some(rules) = reviewer.authority().rules(cache).await
        {
            let reach = rules.reach(known.identity.name(), known.identity.groups(), what);
            candidates.retain(|namespace| reach.includes(namespace));
        }
        candidates
    }

    /// Which of the candidates the caller may see objects of. 403 when it is none.
    pub(crate) async fn visible(
        &self,
        caller: &Caller,
        everywhere: &Attributes<'_>,
        candidates: Vec<String>,
    ) -> Result<Visible, Status> {
        let allowed: BTreeSet<String> = stream::iter(candidates)
            .map(|namespace| async move {
                let there = Attributes { namespace: Some(&namespace), ..*everywhere };
                // An empty name would stand for all namespaces.
                let allowed = !namespace.is_empty() && self.allows(caller, &there).await?;
                Ok::<_, Status>(allowed.then_some(namespace))
            })
            .buffer_unordered(NAMESPACES_AT_A_TIME)
            .try_filter_map(async |namespace| Ok(namespace))
            .try_collect()
            .await?;
        if allowed.is_empty() { Err(forbidden(caller, everywhere)) } else { Ok(Visible::Only(allowed)) }
    }

    async fn review(&self, caller: &Caller, question: Question<'_>) -> Result<bool, Status> {
        match (self, &caller.0) {
            (Self::Open, _) => Ok(true),
            (Self::Kubernetes(reviewer), Some(known)) => reviewer.allows(&known.identity, question).await,
            (Self::Kubernetes(_), None) => Err(token::unknown()),
        }
    }
}

async fn known(reviewer: &Arc<Reviewer>, token: Token, address: Option<IpAddr>) -> Result<Caller, Status> {
    match reviewer.identify(&token, address).await? {
        Some(identity) => Ok(Caller(Some(Arc::new(Known { identity, token })))),
        None => Err(token::unknown()),
    }
}

impl Attributes<'_> {
    /// A namespace is in itself, as Kubernetes sees it: a role in it may allow to get it. A list or a watch of that name is
    /// one of the cluster all the same.
    fn placed(self) -> Self {
        let is_got = self.verb == "get" && self.group.is_empty() && self.resource == "namespaces";
        let itself = self.name.filter(|_| is_got);
        Self { namespace: self.namespace.or(itself), ..self }
    }
}

impl Caller {
    /// The name that the cluster has for the caller; empty for everybody.
    pub(crate) fn user(&self) -> &str {
        self.0.as_ref().map_or("", |known| known.identity.name())
    }
}

impl Visible {
    /// The namespaces that are seen here and not there. There are none where both, or there, see all.
    pub(crate) fn beyond(&self, other: &Self) -> Vec<String> {
        match (self, other) {
            (Self::Only(here), Self::Only(there)) => here.difference(there).cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether objects of this namespace are seen.
    pub(crate) fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(namespaces) => namespaces.contains(namespace),
        }
    }
}

/// 403 in the words of an API server.
pub(crate) fn forbidden(caller: &Caller, what: &Attributes<'_>) -> Status {
    let Attributes { verb, group, resource, namespace, name } = what.placed();
    let place = match namespace {
        None | Some("") => "at the cluster scope".to_owned(),
        Some(namespace) => format!("in the namespace {namespace:?}"),
    };
    let why = format!(
        "User {:?} cannot {verb} resource {resource:?} in API group {group:?} {place}",
        caller.user()
    );
    Status::forbidden(resource, group, name.unwrap_or_default(), why)
}

/// Without the token.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Caller").field(&self.user()).finish()
    }
}

#[cfg(test)]
mod tests;

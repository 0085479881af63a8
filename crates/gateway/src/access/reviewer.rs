//! The cluster's answers to the two questions: whose token is this, and may they do that.

use std::{
    fmt::Debug,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use informer_model::Status;
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{
        NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
    },
};
use kube::{Api, Client, Resource, api::PostParams};
use ring::digest::{Context, SHA256};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::timeout;

use super::{
    Attributes,
    authority::Authority,
    memo::{Key, Memo, Recent},
    token::Token,
};
use crate::{
    allowance::Allowances,
    fair::{FairLimits, FairQueue, TooMany},
    log_limit::LogLimit,
    work::Account,
};

/// How long a review may take, waiting for its turn included.
const DEADLINE: Duration = Duration::from_secs(5);

/// How many reviews are on their way at a time: a flood of bad tokens does not become one at the API server. One user, or
/// one address with tokens that are not known, never has all of them.
const LIMITS: FairLimits = FairLimits { at_a_time: 32, by_one: 8, waiting: 512 };

/// How many tokens that nobody knows an address may show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnknownTokens {
    pub(crate) at_once: u32,
    /// How many more after that.
    pub(crate) each_second: u32,
}

impl Default for UnknownTokens {
    fn default() -> Self {
        Self { at_once: 50, each_second: 5 }
    }
}

/// How many tokens are remembered.
const USERS: usize = 10_000;

/// How many answers about access are remembered: one for each user and namespace. Half as many are certain to stay while all
/// of them are in use, so 1,000 users and 200 namespaces fit. One takes less than 150 bytes.
const GRANTS: usize = 1 << 19;

/// Asks the cluster with `TokenReview` and `SubjectAccessReview`.
///
/// Tokens are remembered as SHA-256 digests: the memory holds nothing that somebody could log in with, and digests
/// of tokens that an attacker chooses do not collide with those of others. The client must not retry for ever: a
/// review has five seconds.
pub(crate) struct Reviewer {
    client: Client,
    turns: Arc<FairQueue<Account>>,
    log: Arc<LogLimit>,
    /// Whose tokens were good before: they do not wait behind those that nobody knows.
    known: Arc<Mutex<Recent<Arc<str>>>>,
    /// The tokens that nobody knows, by address.
    strangers: Arc<Allowances<Option<IpAddr>>>,
    authority: Arc<Authority>,
    users: Arc<Memo<Option<Arc<Identity>>>>,
    grants: Arc<Memo<bool>>,
}

/// Somebody the cluster knows.
pub(super) struct Identity {
    user: UserInfo,
    /// Of everything that the cluster said about the user.
    digest: Key,
}

/// What somebody wants to do.
#[derive(Clone, Copy)]
pub(super) enum Question<'a> {
    Resource(Attributes<'a>),
    /// To get a path that is no object.
    Path(&'a str),
}

impl Reviewer {
    /// Asks through this client, whose user needs the role `system:auth-delegator`.
    pub(crate) fn new(client: Client, unknown: UnknownTokens) -> Self {
        let UnknownTokens { at_once, each_second } = unknown;
        let one_every = Duration::from_secs(1) / each_second.max(1);
        Self {
            client,
            turns: FairQueue::new(LIMITS),
            log: Arc::default(),
            known: Arc::new(Mutex::new(Recent::new(USERS))),
            strangers: Arc::new(Allowances::new(at_once.max(1), one_every)),
            authority: Arc::default(),
            users: Arc::new(Memo::new(USERS)),
            grants: Arc::new(Memo::new(GRANTS)),
        }
    }

    /// What is known of the rules of the cluster.
    pub(crate) fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// Whose token this is, which came from this address; nobody's, when the cluster does not accept it. 503 when there is
    /// no answer, 429 when too many wrong ones came from there.
    pub(super) async fn identify(
        &self,
        token: &Token,
        address: Option<IpAddr>,
    ) -> Result<Option<Arc<Identity>>, Status> {
        let key = digest(&[token.as_str().as_bytes()]);
        let ask = || {
            let user = lock(&self.known).get(&key).cloned();
            let is_admitted = user.is_some() || self.strangers.admit(address);
            let account = user.clone().map_or(Account::at(address), Account::User);
            let spec = TokenReviewSpec { token: token.as_str().to_owned(), audiences: None };
            let review = self.review(account, TokenReview { spec, ..TokenReview::default() });
            let (known, strangers) = (Arc::clone(&self.known), Arc::clone(&self.strangers));
            async move {
                if !is_admitted {
                    let why = "too many tokens that the cluster does not know came from this address";
                    return Err(Status::too_many_requests(why, 1));
                }
                let identity = review.await.and_then(identity);
                if let (None, Ok(Some(_)) | Err(_)) = (user, &identity) {
                    strangers.forgive(address);
                }
                if let Ok(Some(identity)) = &identity {
                    lock(&known).put(key, identity.name().into());
                }
                identity
            }
        };
        self.users.answer(key, None, ask).await
    }

    /// Whether somebody may do this. 503 when there is no answer.
    pub(super) async fn allows(&self, identity: &Identity, question: Question<'_>) -> Result<bool, Status> {
        let ask = || {
            let spec = question.about(&identity.user);
            let account = Account::User(identity.name().into());
            let review = self.review(account, SubjectAccessReview { spec, ..SubjectAccessReview::default() });
            async move {
                let status = review.await?.status.ok_or_else(no_answer)?;
                Ok(status.allowed && status.denied != Some(true))
            }
        };
        self.grants.answer(question.key(identity), self.authority.settled(), ask).await
    }

    /// Has the API server fill in the status of a review. Every failure of it is a 503, with the reason in the log alone.
    fn review<K>(
        &self,
        account: Account,
        object: K,
    ) -> impl Future<Output = Result<K, Status>> + Send + use<K>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
    {
        let (client, turns, log) = (self.client.clone(), Arc::clone(&self.turns), Arc::clone(&self.log));
        async move {
            let asked = timeout(DEADLINE, async {
                let _turn = turns.turn(account).await?;
                Ok(Api::all(client).create(&PostParams::default(), &object).await)
            });
            let answered = match asked.await {
                Ok(Ok(answered)) => Ok(answered),
                Ok(Err(TooMany)) => {
                    let why = "too many questions of yours wait for an answer of the cluster";
                    return Err(Status::too_many_requests(why, 1));
                }
                Err(late) => Err(late),
            };
            let reason = match answered {
                Ok(Ok(reviewed)) => return Ok(reviewed),
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => {
                    format!(
                        "{} (the gateway's own user needs the role system:auth-delegator)",
                        status.message
                    )
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer in {} seconds", DEADLINE.as_secs()),
            };
            let kind = K::kind(&());
            if let Some(suppressed) = log.admit("review") {
                tracing::warn!(suppressed, "a {kind} failed, so the request is refused: {reason}");
            }
            Err(no_answer())
        }
    }
}

impl Identity {
    fn new(user: UserInfo) -> Result<Self, Status> {
        let text = serde_json::to_vec(&user).map_err(|_| no_answer())?;
        Ok(Self { user, digest: digest(&[&text]) })
    }

    pub(super) fn name(&self) -> &str {
        self.user.username.as_deref().unwrap_or_default()
    }

    pub(super) fn groups(&self) -> &[String] {
        self.user.groups.as_deref().unwrap_or_default()
    }
}

/// Who the cluster says it is.
fn identity(review: TokenReview) -> Result<Option<Arc<Identity>>, Status> {
    let status = review.status.ok_or_else(no_answer)?;
    let is_named = |user: &UserInfo| user.username.as_deref().is_some_and(|name| !name.is_empty());
    let user = status.user.filter(is_named).filter(|_| status.authenticated == Some(true));
    user.map(|user| Identity::new(user).map(Arc::new)).transpose()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Question<'_> {
    fn key(&self, identity: &Identity) -> Key {
        match self {
            Self::Resource(Attributes { verb, group, resource, namespace, name }) => {
                let parts = [*verb, group, resource, namespace.unwrap_or_default(), name.unwrap_or_default()];
                let [verb, group, resource, namespace, name] = parts.map(str::as_bytes);
                digest(&[&identity.digest, verb, group, resource, namespace, name])
            }
            Self::Path(path) => digest(&[&identity.digest, path.as_bytes()]),
        }
    }

    fn about(&self, user: &UserInfo) -> SubjectAccessReviewSpec {
        let user = user.clone();
        let mut spec = SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            ..SubjectAccessReviewSpec::default()
        };
        match self {
            Self::Resource(Attributes { verb, group, resource, namespace, name }) => {
                spec.resource_attributes = Some(ResourceAttributes {
                    verb: Some((*verb).to_owned()),
                    group: Some((*group).to_owned()),
                    resource: Some((*resource).to_owned()),
                    namespace: namespace.map(str::to_owned),
                    name: name.map(str::to_owned),
                    ..ResourceAttributes::default()
                });
            }
            Self::Path(path) => {
                let (path, verb) = (Some((*path).to_owned()), Some("get".to_owned()));
                spec.non_resource_attributes = Some(NonResourceAttributes { path, verb });
            }
        }
        spec
    }
}

/// A digest of several parts, in which `ab, c` is not `a, bc`.
fn digest(parts: &[&[u8]]) -> Key {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part);
    }
    let mut key = Key::default();
    key.copy_from_slice(context.finish().as_ref());
    key
}

fn no_answer() -> Status {
    let message = "the Kubernetes API server did not say whether this is allowed: try again later";
    Status::service_unavailable(message).with_retry_after(1)
}

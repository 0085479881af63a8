//! The cluster's answers to the two questions: whose token is this, and may they do that.

use std::{fmt::Debug, sync::Arc, time::Duration};

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
use tokio::{sync::Semaphore, time::timeout};

use super::{
    Attributes,
    memo::{Key, Memo},
    token::Token,
};
use crate::log_limit::LogLimit;

/// How long a review may take, waiting for its turn included.
const DEADLINE: Duration = Duration::from_secs(5);

/// How many reviews are on their way at a time: a flood of bad tokens does not become one at the API server.
const AT_A_TIME: usize = 32;

/// How many answers of each sort are remembered.
const REMEMBERED: usize = 10_000;

/// Asks the cluster with `TokenReview` and `SubjectAccessReview`.
///
/// Tokens are remembered as SHA-256 digests: the memory holds nothing that somebody could log in with, and digests
/// of tokens that an attacker chooses do not collide with those of others. The client must not retry for ever: a
/// review has five seconds.
pub(crate) struct Reviewer {
    client: Client,
    turns: Arc<Semaphore>,
    log: Arc<LogLimit>,
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
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
            log: Arc::default(),
            users: Arc::new(Memo::new(REMEMBERED)),
            grants: Arc::new(Memo::new(REMEMBERED)),
        }
    }

    /// Whose token this is; nobody's, when the cluster does not accept it. 503 when there is no answer.
    pub(super) async fn identify(&self, token: &Token) -> Result<Option<Arc<Identity>>, Status> {
        let ask = || {
            let spec = TokenReviewSpec { token: token.as_str().to_owned(), audiences: None };
            let review = self.review(TokenReview { spec, ..TokenReview::default() });
            async move {
                let status = review.await?.status.ok_or_else(no_answer)?;
                let user =
                    status.user.filter(|user| user.username.as_deref().is_some_and(|name| !name.is_empty()));
                let user = user.filter(|_| status.authenticated == Some(true));
                user.map(|user| Identity::new(user).map(Arc::new)).transpose()
            }
        };
        self.users.answer(digest(&[token.as_str().as_bytes()]), ask).await
    }

    /// Whether somebody may do this. 503 when there is no answer.
    pub(super) async fn allows(&self, identity: &Identity, question: Question<'_>) -> Result<bool, Status> {
        let ask = || {
            let spec = question.about(&identity.user);
            let review = self.review(SubjectAccessReview { spec, ..SubjectAccessReview::default() });
            async move {
                let status = review.await?.status.ok_or_else(no_answer)?;
                Ok(status.allowed && status.denied != Some(true))
            }
        };
        self.grants.answer(question.key(identity), ask).await
    }

    /// Has the API server fill in the status of a review. Every failure is a 503, with the reason in the log alone.
    fn review<K>(&self, object: K) -> impl Future<Output = Result<K, Status>> + Send + use<K>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
    {
        let (client, turns, log) = (self.client.clone(), Arc::clone(&self.turns), Arc::clone(&self.log));
        async move {
            let asked = timeout(DEADLINE, async {
                // It is never closed; if it were, nobody would be counted and nobody would be harmed.
                let _turn = turns.acquire().await;
                Api::all(client).create(&PostParams::default(), &object).await
            });
            let reason = match asked.await {
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

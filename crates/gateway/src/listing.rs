//! From a query to a page of objects: who may see what, from which moment, and whether the client has it already.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use informer::{discovery::ServedResource, store::WaitError};
use informer_model::{ResourceArg, ResourceVersion, Status};

use crate::{
    access::{Attributes, Visible, forbidden},
    answer::{self, Frame},
    app::{App, Asker},
    cache::collection::Collection,
    pages::{Asked, Next, Page, Token},
    present::Presentation,
    query::Query,
};

/// How long a request waits until the cache has the version that it asks for.
const VERSION_WITHIN: Duration = Duration::from_secs(5);

/// What has become of the access of somebody who follows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Same,
    /// Some namespaces are no longer there, the second ones: this is what is left to see.
    Narrowed(Visible, Vec<String>),
    /// This may be seen now.
    Changed(Visible),
    Revoked,
    /// The cluster did not say.
    Unknown,
}

/// What a request found, ready to be written.
pub(crate) struct Listing {
    pub(crate) collection: Arc<Collection>,
    pub(crate) page: Page,
    etag: Option<HeaderValue>,
    explain: bool,
}

/// What comes of a request for a list.
pub(crate) enum Found {
    Listing(Listing),
    /// The client has it.
    NotModified(Response),
}

impl App {
    /// The resource that somebody wants to do something with. What another name than its own means, like a short one, is
    /// for those who may read which there are.
    pub(crate) async fn resolve(
        &self,
        asker: &Asker,
        resource: &ResourceArg,
        what: &Attributes<'_>,
    ) -> Result<ServedResource, Status> {
        let may_ask = || self.unknown_kinds.admit(asker.account.clone());
        let resolved = self.cache.resolve_if(resource, may_ask).await;
        let is_told = match &resolved {
            Ok(served) => {
                resource.group() == Some(&served.api.group) && resource.resource() == served.api.plural
            }
            Err(status) => !matches!(status.code, 404 | 405),
        };
        if !is_told {
            self.discoverable(asker, resource, what).await?;
        }
        resolved
    }

    /// Whether it may be told if there is a resource. Who may not read which there are hears the same as of one that may not
    /// be seen.
    pub(crate) async fn discoverable(
        &self,
        asker: &Asker,
        resource: &ResourceArg,
        what: &Attributes<'_>,
    ) -> Result<(), Status> {
        let document = match (resource.group(), resource.version()) {
            (Some(""), Some(version)) => format!("/api/{version}"),
            (Some(group), Some(version)) => format!("/apis/{group}/{version}"),
            _ => "/apis".to_owned(),
        };
        match self.access.require_path(&asker.caller, &document).await {
            Err(refused) if refused.code == 403 => Err(forbidden(&asker.caller, what)),
            checked => checked,
        }
    }

    /// The collection of a resource, and which part of it a caller may see.
    pub(crate) async fn open(
        &self,
        asker: &Asker,
        verb: &str,
        served: &ServedResource,
        query: &Query,
    ) -> Result<(Arc<Collection>, Visible), Status> {
        // A caller that can see nothing does not get to start anything.
        let visible = self.visible(asker, verb, served, query).await?;
        Ok((self.cache.collection(served).await?, visible))
    }

    /// Which part of a resource a caller may see. 403 when it is none.
    pub(crate) async fn visible(
        &self,
        asker: &Asker,
        verb: &str,
        served: &ServedResource,
        query: &Query,
    ) -> Result<Visible, Status> {
        let (group, resource) = (&served.api.group, &served.api.plural);
        // Who may see only one object may ask for it by its name, in a list and in a watch too.
        let everywhere = Attributes { namespace: None, ..query.attributes(verb, group, resource) };
        match query.namespaces.first() {
            _ if self.is_open() => Ok(Visible::All),
            _ if !served.namespaced => {
                self.access.require(&asker.caller, &everywhere).await?;
                Ok(Visible::All)
            }
            Some(namespace) if query.namespaces.len() == 1 => {
                let there = Attributes { namespace: Some(namespace), ..everywhere };
                self.access.require(&asker.caller, &there).await?;
                Ok(Visible::Only(query.namespaces.clone()))
            }
            _ if self.access.allows(&asker.caller, &everywhere).await? => Ok(Visible::All),
            asked => {
                let candidates = match asked {
                    Some(_) => query.namespaces.iter().cloned().collect(),
                    None => self.all_namespaces().await?,
                };
                let caller = &asker.caller;
                let candidates = self.access.within_reach(caller, &everywhere, candidates, &self.cache).await;
                self.access.visible(caller, &everywhere, candidates).await
            }
        }
    }

    /// The namespaces that there are, whether something is in them or not.
    async fn all_namespaces(&self) -> Result<Vec<String>, Status> {
        if !self.namespaces.is_empty() {
            return Ok(self.namespaces.clone());
        }
        let namespaces = ResourceArg::try_from("core/v1/namespaces").map_err(Status::internal_error)?;
        let namespaces = self.cache.collection(&self.cache.resolve(&namespaces).await?).await?;
        Ok(namespaces.snapshot().iter().map(|namespace| namespace.key().name().to_owned()).collect())
    }

    /// What has become of the access of a caller who has been following. The credentials are asked about again, too.
    pub(crate) async fn recheck(
        &self,
        asker: &mut Asker,
        served: &ServedResource,
        query: &Query,
        was: &Visible,
    ) -> Standing {
        let checked = async {
            asker.caller = self.access.renew(&asker.caller).await?;
            let visible = self.visible(asker, "watch", served, query).await?;
            let lost = was.beyond(&visible);
            if !lost.is_empty() && visible.beyond(was).is_empty() {
                // What is seen no longer because it is no longer there is no change of access.
                let there = self.all_namespaces().await?;
                if !lost.iter().any(|namespace| there.contains(namespace)) {
                    return Ok(Standing::Narrowed(visible, lost));
                }
            }
            Ok::<_, Status>(if visible == *was { Standing::Same } else { Standing::Changed(visible) })
        };
        match checked.await {
            Ok(standing) => standing,
            Err(status) if matches!(status.code, 401 | 403) => Standing::Revoked,
            Err(_) => Standing::Unknown,
        }
    }

    /// Waits for the version that a query asks for.
    pub(crate) async fn wait_for_version(
        &self,
        collection: &Collection,
        wanted: &ResourceVersion,
    ) -> Result<(), Status> {
        match collection.store.wait_for_resource_version(wanted, VERSION_WITHIN).await {
            Ok(_) => Ok(()),
            Err(WaitError::Deadline { wanted, current, .. }) => {
                Err(Status::too_large_resource_version(&wanted, &current))
            }
            Err(error @ WaitError::Incomparable { .. }) => Err(Status::bad_request(error.to_string())),
            Err(error) => Err(Status::service_unavailable(error.to_string())),
        }
    }

    /// The page that a query asks for, in this form.
    pub(crate) async fn list(
        &self,
        asker: &Asker,
        served: &ServedResource,
        query: &Arc<Query>,
        form: &str,
        headers: &HeaderMap,
    ) -> Result<Found, Status> {
        let (collection, visible) = self.open(asker, "list", served, query).await?;
        if let Some(wanted) = &query.min_version {
            self.wait_for_version(&collection, wanted).await?;
        }
        let asks = format!("{} {}", collection.path, query.text);
        let question = format!("{asks} {visible:?}");
        let account = &asker.account;
        let replaced = &collection.changes.replaced;
        let asked = Asked { account, query: &asks, question: &question, limit: query.limit, replaced };
        let snapshot = collection.snapshot();
        if let Some(token) = &query.continue_from {
            let token = Token::read(token, &asks)?;
            let page = match self.pages.next(asked, &token).await {
                Next::Page(page) => page,
                Next::Gone(why) if query.order.is_some() => {
                    return Err(Status::expired(format!(
                        "the list that continue= belongs to is no longer kept ({why}), and one with sort= cannot go on without it: start again without continue="
                    )));
                }
                Next::Gone(_) => {
                    let after = Some(token.after().clone());
                    let rest = query.select_aside(after, snapshot, &visible, &self.work, account).await;
                    self.pages.first(asked, rest, Some(&token)).await
                }
            };
            return Ok(Found::Listing(Listing { collection, page, etag: None, explain: query.explain }));
        }
        // A table tells ages, so it is never the same.
        let etag = (form != "table" && !query.explain && !query.table && query.limit.is_none())
            .then(|| answer::etag(&[&question, form, &snapshot.resource_version().to_string()]));
        if let Some(etag) = &etag
            && answer::is_known(headers, etag)
        {
            let mut response = answer::not_modified();
            fresh(response.headers_mut(), &collection, snapshot.resource_version());
            response.headers_mut().insert(header::ETAG, etag.clone());
            return Ok(Found::NotModified(response));
        }
        let selection = query.select_aside(None, snapshot, &visible, &self.work, account).await;
        let page = self.pages.first(asked, selection, None).await;
        Ok(Found::Listing(Listing { collection, page, etag, explain: query.explain }))
    }
}

/// How fresh an answer is.
pub(crate) fn fresh(headers: &mut HeaderMap, collection: &Collection, version: &ResourceVersion) {
    headers.insert(answer::RESOURCE_VERSION, answer::header_text(&version.to_string()));
    headers.insert(answer::CACHE_AGE, HeaderValue::from(collection.age().as_secs()));
}

impl Listing {
    /// The answer, with the items in this form between these texts.
    pub(crate) async fn respond(
        self,
        frame: Frame,
        presentation: Presentation,
        app: &App,
        asker: &Asker,
    ) -> Result<Response, Status> {
        let Self { collection, page, etag, explain } = self;
        let (version, total, next) = (page.version.clone(), page.total, page.next.clone());
        let explanation = explain.then(|| page.selection.explanation.json().to_string());
        let mut response = answer::list(frame, page, presentation, app, asker)?;
        let headers = response.headers_mut();
        fresh(headers, &collection, &version);
        headers.insert(answer::TOTAL, HeaderValue::from(total));
        let optional = [(answer::CONTINUE, next), (answer::EXPLAIN, explanation)]
            .map(|(name, text)| (name, text.map(|t| answer::header_text(&t))));
        for (name, value) in optional.into_iter().chain([(header::ETAG, etag)]) {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        Ok(response)
    }

    /// `,"explain":{…}` for the end of a list, if it was asked for.
    pub(crate) fn explained(&self) -> String {
        match self.explain {
            true => format!(",\"explain\":{}", self.page.selection.explanation.json()),
            false => String::new(),
        }
    }
}

//! From a query to a page of objects: who may see what, from which moment, and whether the client has it already.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use informer::{
    discovery::ServedResource,
    store::{NAMESPACE_INDEX, WaitError},
};
use informer_model::{ResourceArg, ResourceVersion, Status};

use crate::{
    access::{Attributes, Visible},
    answer::{self, Frame},
    app::{App, Asker},
    cache::collection::{Collection, path},
    pages::Page,
    present::Presentation,
    query::Query,
};

/// How long a request waits until the cache has the version that it asks for.
const VERSION_WITHIN: Duration = Duration::from_secs(5);

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
    /// The collection of a resource, and which part of it a caller may see.
    pub(crate) async fn open(
        &self,
        asker: &Asker,
        verb: &str,
        served: &ServedResource,
        query: &Query,
    ) -> Result<(Arc<Collection>, Visible), Status> {
        let (group, resource) = (&served.api.group, &served.api.plural);
        let everywhere = Attributes { verb, group, resource, namespace: None, name: None };
        let visible = match query.namespaces.first() {
            _ if !served.namespaced => {
                self.access.require(&asker.caller, &everywhere).await?;
                Visible::All
            }
            Some(namespace) if query.namespaces.len() == 1 => {
                let there = Attributes { namespace: Some(namespace), ..everywhere };
                self.access.require(&asker.caller, &there).await?;
                Visible::Only(query.namespaces.clone())
            }
            Some(_) => {
                let asked = query.namespaces.iter().cloned().collect();
                self.access.visible(&asker.caller, verb, group, resource, asked).await?
            }
            None if self.access.allows(&asker.caller, &everywhere).await? => Visible::All,
            None => {
                let candidates = self.namespaces_of(served).await?;
                self.access.visible(&asker.caller, verb, group, resource, candidates).await?
            }
        };
        // Whoever may see nothing does not get to start anything.
        Ok((self.cache.collection(served).await?, visible))
    }

    /// The namespaces that can have objects of a resource.
    async fn namespaces_of(&self, served: &ServedResource) -> Result<Vec<String>, Status> {
        let in_memory = self.cache.peek(&path(served)).filter(|collection| collection.informer.has_synced());
        if let Some(collection) = in_memory {
            return Ok(collection.snapshot().index_values(NAMESPACE_INDEX).unwrap_or_default());
        }
        if !self.namespaces.is_empty() {
            return Ok(self.namespaces.clone());
        }
        let namespaces = ResourceArg::try_from("core/v1/namespaces").map_err(Status::internal_error)?;
        let namespaces = self.cache.collection(&self.cache.resolve(&namespaces).await?).await?;
        Ok(namespaces.snapshot().iter().map(|namespace| namespace.key().name().to_owned()).collect())
    }

    /// What a caller who has been following may see now. The credentials are asked about again, too.
    pub(crate) async fn reopen(
        &self,
        asker: &mut Asker,
        served: &ServedResource,
        query: &Query,
    ) -> Result<Visible, Status> {
        asker.caller = self.access.renew(&asker.caller).await?;
        Ok(self.open(asker, "watch", served, query).await?.1)
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
            Err(error @ WaitError::Stopped { .. }) => Err(Status::service_unavailable(error.to_string())),
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
        let question = format!("{} {} {visible:?}", collection.path, query.text);
        if let Some(token) = &query.continue_from {
            let page = self.pages.next(&question, token, query.limit)?;
            return Ok(Found::Listing(Listing { collection, page, etag: None, explain: query.explain }));
        }
        let snapshot = collection.snapshot();
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
        let selection = query.select_aside(snapshot, &visible).await;
        let page = self.pages.first(question, selection, query.limit);
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
    pub(crate) fn respond(self, frame: Frame, presentation: Presentation) -> Response {
        let Self { collection, page, etag, explain } = self;
        let version = page.selection.version.clone();
        let (total, next) = (page.selection.objects.len(), page.next.clone());
        let explanation = explain.then(|| page.selection.explanation.json().to_string());
        let mut response = answer::list(frame, page, presentation);
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
        response
    }

    /// `,"explain":{…}` for the end of a list, if it was asked for.
    pub(crate) fn explained(&self) -> String {
        match self.explain {
            true => format!(",\"explain\":{}", self.page.selection.explanation.json()),
            false => String::new(),
        }
    }
}

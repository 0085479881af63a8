//! The Kubernetes API, for reading: discovery, lists, single objects and watches, from memory.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{RawQuery, Request, State},
    response::Response,
};
use http::{HeaderMap, HeaderValue, header};
use informer::discovery::ServedResource;
use informer_model::{GroupVersionResource, ObjectKey, Reason, ResourceArg, ResourceVersion, Status};
use informer_serving::{
    discovery,
    envelope::{LIST_END, ListMeta},
    media::{self, Shape},
    options::{Match, Parameters, Requested, WatchOptions},
    path::{self, Place, Target},
};
use serde_json::Value;

use super::{catalog, watch};
use crate::{
    access::Attributes,
    answer::{self, Frame, Refusal},
    app::{App, Asker},
    listing::{Found, fresh},
    present::{Form, Presentation},
    query::{Dialect, Query},
};

/// Everything below `/api` and `/apis`.
pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Refusal> {
    let headers = request.headers();
    match path::target(request.uri().path())? {
        Target::Objects(place) => objects(&app, &asker, place, query.as_deref(), headers).await,
        target => documents(&app, &asker, &target, headers).await,
    }
}

/// What the server says that it serves.
async fn documents(
    app: &App,
    asker: &Asker,
    target: &Target,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let missing = path::no_such_path;
    // The cluster is asked about what is answered, however it was spelled.
    let path = match target {
        Target::Core => "/api".to_owned(),
        Target::Groups => "/apis".to_owned(),
        Target::Group(group) => format!("/apis/{group}"),
        Target::GroupVersion { group, version } if group.is_empty() => format!("/api/{version}"),
        Target::GroupVersion { group, version } => format!("/apis/{group}/{version}"),
        _ => return Err(missing().into()),
    };
    app.access.require_path(&asker.caller, &path).await?;
    let groups = catalog::groups(&*app.cache.recent_catalog().await?);
    let is_aggregated = || media::aggregated_discovery(headers);
    let document = match target {
        Target::Core if is_aggregated()? => return Ok(aggregated(&groups.aggregated_core())),
        Target::Groups if is_aggregated()? => return Ok(aggregated(&groups.aggregated_groups())),
        Target::Core => groups.api_versions(discovery::server_address(headers)),
        Target::Groups => groups.api_group_list(),
        Target::Group(group) => groups.api_group(group).ok_or_else(missing)?,
        Target::GroupVersion { group, version } => {
            groups.api_resource_list(group, version).ok_or_else(missing)?
        }
        _ => return Err(missing().into()),
    };
    Ok(answer::document(&document))
}

fn aggregated(document: &Value) -> Response {
    let mut response = answer::document(document);
    let r#type = HeaderValue::from_static(media::AGGREGATED_DISCOVERY);
    response.headers_mut().insert(header::CONTENT_TYPE, r#type);
    response
}

/// Objects, or one object.
async fn objects(
    app: &Arc<App>,
    asker: &Asker,
    place: Place,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    if let Some(part) = &place.subresource {
        let name = format!("{}/{part}", place.plural);
        let message =
            format!("the gateway serves objects from memory and has no {name}: ask the API server itself");
        let status = Status::failure(Reason::MethodNotAllowed, message);
        return Err(status.about(&name, &place.group, place.name.as_deref().unwrap_or_default()).into());
    }
    let resource = GroupVersionResource::new(&place.group, &place.version, &place.plural);
    let resource = resource.map_err(|_| path::no_such_path())?;
    let resource = ResourceArg::from(resource);
    let parameters = Parameters::new(query).with_large_numbers();
    let mut parsed = Query::read(&parameters, Dialect::Kubernetes)?;
    if let Some(namespace) = &place.namespace {
        parsed.text.push_str(&format!("in={}:{namespace};", namespace.len()));
        parsed.namespaces = [namespace.clone()].into();
    }
    let read = Read::of(&parameters, place.name.is_some())?;
    let mut what = parsed.attributes(read.verb(), &place.group, &place.plural);
    what.name = place.name.as_deref().or(what.name);
    let served = app.resolve(asker, &resource, &what).await?;
    // A client of Kubernetes means the plural of just that group, and a namespace only where there are some.
    let is_meant = (&served.api.group, &served.api.plural) == (&place.group, &place.plural);
    if !is_meant || (place.namespace.is_some() && !served.namespaced) {
        app.discoverable(asker, &resource, &what).await?;
        return Err(path::no_such_path().into());
    }
    let include = parameters.get("includeObject");
    match read {
        Read::Get(version) => {
            let name = place.name.as_deref().unwrap_or_default();
            let wanted = watch::not_older_than(version);
            get(app, asker, &served, (place.namespace.as_deref(), name), wanted, include, headers).await
        }
        Read::List(version) => {
            parsed.min_version = parsed.min_version.or_else(|| watch::not_older_than(version));
            let form = form(headers, include, Shape::List, &parsed)?;
            list(app, asker, &served, &Arc::new(parsed), form, headers).await
        }
        Read::Watch(options) => {
            if let Some(name) = place.name {
                parsed = parsed.named(name);
            }
            let form = form(headers, include, Shape::Watch, &parsed)?;
            watch::open(app, asker, &served, Arc::new(parsed), options, form).await
        }
    }
}

/// What a client of Kubernetes asks for.
enum Read {
    Get(Requested),
    List(Requested),
    Watch(WatchOptions),
}

impl Read {
    /// Reads the options of one object or of several. What is wrong with them is 400 here, whatever it is.
    fn of(parameters: &Parameters<'_>, one: bool) -> Result<Self, Status> {
        for name in ["watch", "allowWatchBookmarks", "sendInitialEvents"] {
            check_flag(name, parameters.text(name).unwrap_or_default())?;
        }
        let wrong = |status: Status| Status::bad_request(status.message);
        if parameters.switch("watch") == Some(true) {
            return parameters.watch().map(Self::Watch).map_err(wrong);
        }
        if one {
            return parameters.version().map(Self::Get);
        }
        let options = parameters.list().map_err(wrong)?;
        if options.version_match == Some(Match::Exact) {
            return Err(Status::expired(
                "resourceVersionMatch=Exact: the gateway has the newest state only; leave it out",
            ));
        }
        Ok(Self::List(options.version))
    }

    fn verb(&self) -> &'static str {
        match self {
            Self::Get(_) => "get",
            Self::List(_) => "list",
            Self::Watch(_) => "watch",
        }
    }
}

/// A real server takes anything for true. Here it is an error, before somebody waits for what is no watch.
fn check_flag(name: &str, value: &str) -> Result<(), Status> {
    match value {
        "" | "1" | "true" | "True" | "TRUE" | "t" | "T" => Ok(()),
        "0" | "false" | "False" | "FALSE" | "f" | "F" => Ok(()),
        _ => Err(Status::bad_request(format!("{name}={value:?} is neither true nor false"))),
    }
}

fn form(headers: &HeaderMap, include: Option<&str>, shape: Shape, query: &Query) -> Result<Form, Status> {
    Ok(match media::form(headers, include, shape)? {
        media::Form::Table(include) => Form::Table(include),
        media::Form::Metadata => Form::Metadata,
        media::Form::Object => query.projection.clone().map_or(Form::Whole, Form::Fields),
    })
}

async fn list(
    app: &App,
    asker: &Asker,
    served: &ServedResource,
    query: &Arc<Query>,
    form: Form,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let name = match form {
        Form::Table(_) => "table",
        Form::Metadata => "metadata",
        _ => "list",
    };
    let listing = match app.list(asker, served, query, name, headers).await? {
        Found::Listing(listing) => listing,
        Found::NotModified(response) => return Ok(response),
    };
    let page = &listing.page;
    let meta = ListMeta {
        version: page.version.to_string(),
        continue_from: page.next.clone(),
        remaining: page.next.is_some().then(|| page.remaining()),
    };
    let presentation = Presentation::new(form, &listing.collection);
    let frame = Frame { before: presentation.envelope.list_start(&meta), after: LIST_END.to_owned() };
    Ok(listing.respond(frame, presentation, app, asker).await?)
}

async fn get(
    app: &App,
    asker: &Asker,
    served: &ServedResource,
    (namespace, name): (Option<&str>, &str),
    wanted: Option<ResourceVersion>,
    include: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let api = &served.api;
    let what =
        Attributes { verb: "get", group: &api.group, resource: &api.plural, namespace, name: Some(name) };
    app.access.require(&asker.caller, &what).await?;
    let missing = || Status::not_found(&api.plural, &api.group, name);
    let key = ObjectKey::new(namespace, name).map_err(|_| missing())?;
    let form = form(headers, include, Shape::One, &Query::default())?;
    let collection = app.cache.collection(served).await?;
    if let Some(wanted) = &wanted {
        app.wait_for_version(&collection, wanted).await?;
    }
    let snapshot = collection.snapshot();
    let object = snapshot.get(&key).ok_or_else(missing)?;
    let etag = (!matches!(form, Form::Table(_))).then(|| {
        answer::etag(&[
            &collection.path,
            key.as_str(),
            &format!("{form:?}"),
            &object.resource_version().to_string(),
        ])
    });
    let known = etag.as_ref().is_some_and(|etag| answer::is_known(headers, etag));
    let mut response = match known {
        true => answer::not_modified(),
        false => answer::json_text(Presentation::new(form, &collection).one(object)),
    };
    fresh(response.headers_mut(), &collection, snapshot.resource_version());
    if let Some(etag) = etag {
        response.headers_mut().insert(header::ETAG, etag);
    }
    Ok(response)
}

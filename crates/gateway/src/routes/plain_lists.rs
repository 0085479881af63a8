//! Lists by path, with the two routes and the shapes of the small Go server over listers whose place the gateway takes:
//! `/deploy` answers `{"data":[…]}`, `/{group}/{version}/{resource}` answers `{"msg":[…]}`, and errors are `{"msg":"…"}`.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, RawQuery, State},
    response::Response,
};
use http::HeaderMap;
use informer_model::{Reason, ResourceArg, Selector, Status, validate_label_key, validate_label_value};
use informer_serving::options::Parameters;
use serde_json::json;

use crate::{
    answer::{Frame, Msg},
    app::{App, Asker},
    listing::Found,
    present::{Form, Presentation},
    query::{Dialect, Query},
};

/// `GET /{group}/{version}/{resource}`
pub(crate) async fn resource(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
    Path((group, version, resource)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Msg> {
    let query = Query::parse(query.as_deref(), Dialect::List)?;
    respond(&app, &asker, &named(&group, &version, &resource)?, query, "msg", &headers).await
}

/// `GET /deploy?labels[k8s-app]=kube-dns`
pub(crate) async fn deployments(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Msg> {
    let query = labelled(query.as_deref())?;
    respond(&app, &asker, &named("apps", "v1", "deployments")?, query, "data", &headers).await
}

/// A query in which labels may be written `labels[key]=value`, too. Everything that is asked for must hold.
fn labelled(query: Option<&str>) -> Result<Query, Status> {
    fn key(name: &str) -> Option<&str> {
        name.strip_prefix("labels[")?.strip_suffix(']')
    }
    let mut parameters = Parameters::new(query);
    let labels = parameters.take(|name| key(name).is_some());
    let labels = labels.iter().filter_map(|(name, value)| Some(label(key(name)?, value)));
    let labels = labels.collect::<Result<Vec<_>, _>>()?.join(",");
    let asked = Selector::parse(&labels).map_err(|error| Status::bad_request(error.to_string()))?;
    let mut query = Query::read(&parameters, Dialect::List)?;
    let both = query.labels.requirements().iter().chain(asked.requirements()).cloned();
    query.labels = Selector::new(both.collect::<Vec<_>>());
    query.text.push_str(&format!("labels={asked};"));
    Ok(query)
}

/// One `labels[key]=value` as a requirement.
fn label(key: &str, value: &str) -> Result<String, Status> {
    let wrong = |what: &str, at: usize, why: &dyn std::fmt::Display| {
        Status::bad_request(format!("labels[{key}]={value}: the {what} is wrong at position {at}: {why}"))
    };
    validate_label_key(key).map_err(|(at, why)| wrong("key", at, &why))?;
    validate_label_value(value).map_err(|(at, why)| wrong("value", at, &why))?;
    Ok(format!("{key}={value}"))
}

/// The resource of a path. `core` is the group without a name.
pub(crate) fn named(group: &str, version: &str, resource: &str) -> Result<ResourceArg, Status> {
    let path = format!("{group}/{version}/{resource}");
    ResourceArg::try_from(path.as_str()).map_err(|error| {
        Status::failure(Reason::NotFound, format!("{path:?} is not the path of a resource: {error}"))
    })
}

async fn respond(
    app: &App,
    asker: &Asker,
    resource: &ResourceArg,
    query: Query,
    member: &str,
    headers: &HeaderMap,
) -> Result<Response, Msg> {
    let query = Arc::new(query);
    let what = query.attributes("list", resource.group().unwrap_or_default(), resource.resource());
    let served = app.resolve(asker, resource, &what).await?;
    let listing = match app.list(asker, &served, &query, member, headers).await? {
        Found::Listing(listing) => listing,
        Found::NotModified(response) => return Ok(response),
    };
    let page = &listing.page;
    let explained = listing.explained();
    let next = page.next.as_ref().map(|token| format!(",\"continue\":{}", json!(token))).unwrap_or_default();
    if query.table {
        let before = format!(
            "{{\"resourceVersion\":{},\"total\":{},\"columns\":{},\"rows\":[",
            json!(page.version),
            page.total,
            listing.collection.columns.definitions(),
        );
        let frame = Frame { before, after: format!("]{next}{explained}}}") };
        let presentation = Presentation::new(Form::Row, &listing.collection);
        return Ok(listing.respond(frame, presentation, app, asker).await?);
    }
    let frame = Frame { before: format!("{{\"{member}\":["), after: format!("]{next}{explained}}}") };
    let form = query.projection.clone().map_or(Form::Whole, Form::Fields);
    let presentation = Presentation::new(form, &listing.collection);
    Ok(listing.respond(frame, presentation, app, asker).await?)
}

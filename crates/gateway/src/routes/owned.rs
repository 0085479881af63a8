//! Everything that an object owns, and what that owns, from the indexes by owner.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use axum::{
    Extension,
    extract::{Path, RawQuery, State},
    response::Response,
};
use informer::Object;
use informer_model::{ResourceArg, Status};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    access::Visible,
    answer::{self, Refusal},
    app::{App, Asker},
    cache::{Stored, collection::Collection},
    query::Query,
};

/// How far down is looked when nothing else is asked for, and at most.
const DEPTH: usize = 10;
/// How many objects are found at most.
const LIMIT: usize = 50_000;
/// How many resources one request can begin with.
const RESOURCES: usize = 20;

struct Request {
    depth: usize,
    resources: Vec<ResourceArg>,
}

#[derive(Deserialize)]
struct Identity {
    #[serde(default)]
    uid: String,
}

/// `GET /_owned/{uid}`
pub(crate) async fn owned(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
    Path(uid): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let request = Request::parse(query.as_deref())?;
    for resource in &request.resources {
        let query = Query::default();
        let what = query.attributes("list", resource.group().unwrap_or_default(), resource.resource());
        let served = app.resolve(&asker, resource, &what).await?;
        app.open(&asker, "list", &served, &query).await?;
    }
    let mut searched = Vec::new();
    for collection in app.cache.all() {
        if !collection.informer.has_synced() {
            continue;
        }
        // What the caller may not see is not searched. To be searched is no use of it: that would keep everything for ever.
        match app.visible(&asker, "list", &collection.served, &Query::default()).await {
            Ok(visible) => searched.push((collection, visible)),
            Err(status) if status.code == 403 => {}
            Err(status) => return Err(status.into()),
        }
    }
    let depth = request.depth;
    let document = move || {
        let (items, complete) = search(&searched, &uid, depth);
        let searched: Vec<&str> = searched.iter().map(|(collection, _)| collection.path.as_str()).collect();
        json!({"uid": uid, "items": items, "complete": complete, "searched": searched}).to_string()
    };
    // Nobody knows beforehand how much it is.
    Ok(answer::json_text(app.work.run(&asker.account, usize::MAX, document).await))
}

impl Request {
    fn parse(query: Option<&str>) -> Result<Self, Status> {
        let mut request = Self { depth: DEPTH, resources: Vec::new() };
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "depth" => {
                    let depth = value.parse().ok().filter(|depth| (1..=DEPTH).contains(depth));
                    request.depth = depth.ok_or_else(|| {
                        Status::bad_request(format!("depth={value:?}: it must be a number from 1 to {DEPTH}"))
                    })?;
                }
                "resources" => {
                    for name in value.split(',').filter(|name| !name.is_empty()) {
                        let resource = ResourceArg::try_from(name)
                            .map_err(|error| Status::bad_request(format!("resources={value:?}: {error}")))?;
                        request.resources.push(resource);
                    }
                }
                _ => {
                    return Err(Status::bad_request(format!(
                        "there is no parameter {name:?} here; there are depth, resources"
                    )));
                }
            }
        }
        if request.resources.len() > RESOURCES {
            return Err(Status::bad_request(format!("resources= names more than {RESOURCES} resources")));
        }
        Ok(request)
    }
}

/// Breadth first: what an object owns, then what that owns. Whether that was all.
fn search(collections: &[(Arc<Collection>, Visible)], root: &str, depth: usize) -> (Vec<Value>, bool) {
    let (mut items, mut seen) = (Vec::new(), HashSet::from([root.to_owned()]));
    let mut next = VecDeque::from([(root.to_owned(), 1)]);
    while let Some((owner, level)) = next.pop_front() {
        for (collection, visible) in collections {
            for object in collection.owned_by(&owner) {
                let uid = uid(&object);
                // Owners can own each other: nothing is told twice.
                if !visible.contains(object.key().namespace().unwrap_or_default())
                    || !seen.insert(uid.clone())
                {
                    continue;
                }
                if items.len() == LIMIT {
                    return (items, false);
                }
                items.push(json!({
                    "depth": level,
                    "owner": owner,
                    "path": collection.path,
                    "kind": collection.served.api.kind,
                    "namespace": object.key().namespace(),
                    "name": object.key().name(),
                    "uid": uid,
                }));
                if level < depth {
                    next.push_back((uid, level + 1));
                }
            }
        }
    }
    (items, true)
}

fn uid(object: &Object<Stored>) -> String {
    let read = |metadata: &str| serde_json::from_str::<Identity>(metadata);
    object.with_metadata_json(read).map(|identity| identity.uid).unwrap_or_default()
}

//! What can be asked for: as documents of Kubernetes' discovery, and as one list for the page.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};
use informer::discovery::{Catalog, ServedResource};
use informer_serving::discovery::{Groups, Served};
use serde_json::{Value, json};

use crate::{
    answer::{self, Refusal},
    app::{App, Asker},
    cache::collection,
};

/// What the gateway does with every resource.
const VERBS: [&str; 3] = ["get", "list", "watch"];

/// Whether a resource can be kept in memory.
fn is_followed(served: &&ServedResource) -> bool {
    ["list", "watch"].iter().all(|verb| served.verbs.iter().any(|other| other == verb))
}

/// The catalog in the order in which the server has it, as discovery documents are made of it.
pub(crate) fn groups(catalog: &Catalog) -> Groups {
    let mut groups = Groups::default();
    for served in catalog.resources.iter().filter(is_followed) {
        groups.add(&served.api.group, &served.api.version, resource(served));
    }
    // A version of the core group has no slash, and is never served by somebody else.
    for (group, version) in catalog.silent.iter().filter_map(|silent| silent.split_once('/')) {
        groups.mark_stale(group, version);
    }
    groups
}

fn resource(served: &ServedResource) -> Served {
    Served {
        resource: served.api.plural.clone(),
        singular: served.singular.clone(),
        kind: served.api.kind.clone(),
        namespaced: served.namespaced,
        verbs: VERBS.map(str::to_owned).to_vec(),
        short_names: served.short_names.clone(),
        categories: served.categories.clone(),
        subresources: Vec::new(),
    }
}

/// `GET /_resources`
pub(crate) async fn resources(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
) -> Result<Response, Refusal> {
    // It says what discovery says, so the right to read that is enough.
    app.access.require_path(&asker.caller, "/apis").await?;
    let catalog = app.cache.recent_catalog().await?;
    let resources: Vec<Value> =
        catalog.resources.iter().filter(is_followed).map(|served| entry(&app, served)).collect();
    Ok(answer::document(&json!({"resources": resources, "silent": catalog.silent})))
}

fn entry(app: &App, served: &ServedResource) -> Value {
    let path = collection::path(served);
    let state = app.cache.peek(&path).map_or("idle", |collection| collection.state());
    json!({
        "group": served.api.group,
        "version": served.api.version,
        "resource": served.api.plural,
        "kind": served.api.kind,
        "singular": served.singular,
        "shortNames": served.short_names,
        "categories": served.categories,
        "namespaced": served.namespaced,
        "path": path,
        "state": state,
    })
}

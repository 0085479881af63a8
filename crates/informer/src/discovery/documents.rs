//! Asks a server what it serves.
//!
//! A server of this decade answers that in two documents. An older one has a document for each version of each
//! group, and one of these may be missing because whoever serves it is down.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, header::ACCEPT};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList, APIVersions};
use kube::{
    Client,
    client::Body,
    core::{
        ApiResource,
        discovery::v2::{
            ACCEPT_AGGREGATED_DISCOVERY_V2, APIGroupDiscovery, APIGroupDiscoveryList, APIResourceDiscovery,
        },
    },
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::timeout;

use super::catalog::{Catalog, ServedResource};
use crate::{
    beginning,
    request::{SourceError, read_document},
};

/// So many documents of an older server are asked for at a time.
const AT_A_TIME: usize = 8;
/// The largest document that is read. Those of large clusters have a few MiB.
const LARGEST: usize = 64 << 20;
/// How long a document may take: others may wait for the same round.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks a server for all that it serves.
pub(super) async fn ask(client: &Client) -> Result<Catalog, SourceError> {
    let mut catalog = Catalog::default();
    for root in ["/api", "/apis"] {
        let document = get(client, root, ACCEPT_AGGREGATED_DISCOVERY_V2).await?;
        match read::<Document>(&document)?.kind.as_deref() {
            Some("APIGroupDiscoveryList") => {
                let groups: APIGroupDiscoveryList = read(&document)?;
                groups.items.into_iter().for_each(|group| catalog.take_group(group));
            }
            Some("APIVersions") => catalog.ask_each(client, root, core_versions(read(&document)?)).await?,
            Some("APIGroupList") => catalog.ask_each(client, root, group_versions(read(&document)?)).await?,
            _ => {
                let begins = beginning(&document);
                return Err(SourceError::Malformed(format!("{root} should list API groups and is {begins}")));
            }
        }
    }
    Ok(catalog)
}

/// A version of a group; the core group is the empty text.
struct GroupVersion {
    group: String,
    version: String,
}

impl GroupVersion {
    /// As an object has it: `v1`, `apps/v1`.
    fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    fn resource(&self, kind: String, plural: String) -> ApiResource {
        let (group, version) = (self.group.clone(), self.version.clone());
        ApiResource { api_version: self.api_version(), group, version, kind, plural }
    }
}

impl Catalog {
    fn take_group(&mut self, group: APIGroupDiscovery) {
        let group_name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
        for version in group.versions {
            let served_in =
                GroupVersion { group: group_name.clone(), version: version.version.unwrap_or_default() };
            if version.freshness.as_deref() == Some("Stale") {
                self.silent.push(served_in.api_version());
            }
            let resources = version.resources.into_iter();
            self.resources.extend(resources.filter_map(|resource| from_aggregated(&served_in, resource)));
        }
    }

    /// Asks an older server for each version of each group.
    async fn ask_each(
        &mut self,
        client: &Client,
        root: &str,
        versions: Vec<GroupVersion>,
    ) -> Result<(), SourceError> {
        let answers = stream::iter(versions).map(|served_in| async move {
            let path = format!("{root}/{}", served_in.api_version());
            let document = get(client, &path, "application/json").await;
            (served_in, document.and_then(|document| read::<APIResourceList>(&document)))
        });
        let mut answers = answers.buffered(AT_A_TIME);
        while let Some((served_in, answer)) = answers.next().await {
            match answer {
                Ok(list) => self.take_list(&served_in, list),
                // Somebody else serves that group, and is down. The core group is the server's own.
                Err(_) if !served_in.group.is_empty() => self.silent.push(served_in.api_version()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn take_list(&mut self, served_in: &GroupVersion, list: APIResourceList) {
        // A name with a slash is that of a subresource.
        for resource in list.resources.into_iter().filter(|resource| !resource.name.contains('/')) {
            self.resources.push(ServedResource {
                api: served_in.resource(resource.kind, resource.name),
                singular: resource.singular_name,
                short_names: resource.short_names.unwrap_or_default(),
                categories: resource.categories.unwrap_or_default(),
                namespaced: resource.namespaced,
                verbs: resource.verbs,
            });
        }
    }
}

fn from_aggregated(served_in: &GroupVersion, resource: APIResourceDiscovery) -> Option<ServedResource> {
    Some(ServedResource {
        api: served_in.resource(resource.response_kind?.kind?, resource.resource?),
        singular: resource.singular_resource.unwrap_or_default(),
        short_names: resource.short_names,
        categories: resource.categories,
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
        verbs: resource.verbs,
    })
}

fn core_versions(versions: APIVersions) -> Vec<GroupVersion> {
    let in_core = |version| GroupVersion { group: String::new(), version };
    versions.versions.into_iter().map(in_core).collect()
}

/// All versions of all groups, the preferred one of each group first.
fn group_versions(groups: APIGroupList) -> Vec<GroupVersion> {
    let mut all = Vec::new();
    for group in groups.groups {
        let preferred = group.preferred_version.map(|version| version.version);
        let mut versions: Vec<String> = group.versions.into_iter().map(|version| version.version).collect();
        // The sort is stable: the others stay in the server's order.
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        all.extend(versions.into_iter().map(|version| GroupVersion { group: group.name.clone(), version }));
    }
    all
}

async fn get(client: &Client, path: &str, accept: &str) -> Result<Bytes, SourceError> {
    let request = Request::get(path).header(ACCEPT, accept).body(Body::empty());
    let request = request.map_err(|error| {
        SourceError::Malformed(format!("{path:?}, which it names, cannot be asked for: {error}"))
    })?;
    let answer = timeout(PATIENCE, read_document(client.clone(), request, LARGEST)).await;
    answer.unwrap_or_else(|_| Err(SourceError::Unreachable(format!("no answer within {PATIENCE:?}"))))
}

#[derive(Deserialize)]
struct Document {
    kind: Option<String>,
}

fn read<T: DeserializeOwned>(document: &[u8]) -> Result<T, SourceError> {
    serde_json::from_slice(document)
        .map_err(|error| SourceError::Malformed(format!("{error}; it begins with {}", beginning(document))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use informer_apiserver::ApiServer;

    #[tokio::test]
    async fn an_older_server_is_asked_for_each_document_and_answers_the_same() {
        let client = ApiServer::builder().build().client();
        let plain = async |path: &str| get(&client, path, "application/json").await.unwrap();
        let mut pieces = Catalog::default();
        let core = core_versions(read(&plain("/api").await).unwrap());
        pieces.ask_each(&client, "/api", core).await.unwrap();
        let groups = group_versions(read(&plain("/apis").await).unwrap());
        pieces.ask_each(&client, "/apis", groups).await.unwrap();
        assert_eq!(pieces, ask(&client).await.unwrap());
        assert!(pieces.silent.is_empty());
    }

    #[tokio::test]
    async fn the_preferred_version_comes_first_and_what_does_not_answer_is_silent() {
        let groups = serde_json::json!({ "groups": [{
            "name": "nowhere.example.com",
            "versions": [
                { "groupVersion": "nowhere.example.com/v1", "version": "v1" },
                { "groupVersion": "nowhere.example.com/v2", "version": "v2" },
            ],
            "preferredVersion": { "groupVersion": "nowhere.example.com/v2", "version": "v2" },
        }] });
        let groups = group_versions(serde_json::from_value(groups).unwrap());
        let mut catalog = Catalog::default();
        catalog.ask_each(&ApiServer::builder().build().client(), "/apis", groups).await.unwrap();
        assert_eq!(catalog.silent, ["nowhere.example.com/v2", "nowhere.example.com/v1"]);
    }

    #[test]
    fn a_version_that_is_not_fresh_is_remembered_as_silent() {
        let group = serde_json::json!({
            "metadata": { "name": "metrics.k8s.io" },
            "versions": [{ "version": "v1beta1", "freshness": "Stale" }],
        });
        let mut catalog = Catalog::default();
        catalog.take_group(serde_json::from_value(group).unwrap());
        assert_eq!(catalog.silent, ["metrics.k8s.io/v1beta1"]);
    }
}

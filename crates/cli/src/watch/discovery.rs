//! What a server serves: every resource with the names that a user may call it by.
//!
//! A server of this decade answers that in two documents. An older one has a document for each version of each
//! group, and one of these may be missing because whoever serves it is down.

use futures_util::{StreamExt, stream};
use http::{Request, header::ACCEPT};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList, APIVersions};
use kube::{
    Client,
    core::{
        ApiResource,
        discovery::v2::{
            ACCEPT_AGGREGATED_DISCOVERY_V2, APIGroupDiscovery, APIGroupDiscoveryList, APIResourceDiscovery,
        },
    },
};
use serde::{Deserialize, de::DeserializeOwned};

use super::failure::{Cause, Failure};

/// So many documents of an older server are asked for at a time.
const AT_A_TIME: usize = 8;

/// A resource that is served.
#[derive(Debug, Clone)]
pub(super) struct Served {
    pub(super) api: ApiResource,
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    pub(super) namespaced: bool,
    pub(super) verbs: Vec<String>,
}

/// All that is served: the core group first, then the others as the server orders them; of each group the
/// preferred version first.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    pub(super) resources: Vec<Served>,
    /// The versions of groups that could not be asked.
    pub(super) silent: Vec<String>,
}

/// Asks a server for all that it serves.
pub(super) async fn discover(client: &Client) -> Result<Catalog, Failure> {
    let mut catalog = Catalog::default();
    for root in ["/api", "/apis"] {
        let text = get(client, root).await?;
        if document_kind(&text).as_deref() == Some("APIGroupDiscoveryList") {
            let groups: APIGroupDiscoveryList = parse(&text)?;
            groups.items.iter().for_each(|group| catalog.take_group(group));
        } else {
            let versions = if root == "/api" { core_versions(&text)? } else { group_versions(&text)? };
            catalog.ask_each(client, root, versions).await?;
        }
    }
    Ok(catalog)
}

impl Catalog {
    fn take_group(&mut self, group: &APIGroupDiscovery) {
        let name = group.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default();
        for version in &group.versions {
            let label = version.version.as_deref().unwrap_or_default();
            if version.freshness.as_deref() == Some("Stale") {
                self.silent.push(api_version(name, label));
            }
            let served =
                version.resources.iter().filter_map(|resource| from_aggregated(name, label, resource));
            self.resources.extend(served);
        }
    }

    /// Asks an older server for each version of each group.
    async fn ask_each(
        &mut self,
        client: &Client,
        root: &str,
        versions: Vec<(String, String)>,
    ) -> Result<(), Failure> {
        let answers = stream::iter(versions).map(|(group, version)| async move {
            let path = format!("{root}/{}", api_version(&group, &version));
            let answer = get(client, &path).await.and_then(|text| parse::<APIResourceList>(&text));
            (group, version, answer)
        });
        let mut answers = answers.buffered(AT_A_TIME);
        while let Some((group, version, answer)) = answers.next().await {
            match answer {
                Ok(list) => self.take_list(&group, &version, list),
                // Somebody else serves that group, and is down. The core group is the server's own.
                Err(_) if !group.is_empty() => self.silent.push(api_version(&group, &version)),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    fn take_list(&mut self, group: &str, version: &str, list: APIResourceList) {
        // A name with a slash is that of a subresource.
        for resource in list.resources.into_iter().filter(|resource| !resource.name.contains('/')) {
            self.resources.push(Served {
                api: api_resource(group, version, &resource.kind, &resource.name),
                singular: resource.singular_name,
                short_names: resource.short_names.unwrap_or_default(),
                namespaced: resource.namespaced,
                verbs: resource.verbs,
            });
        }
    }
}

fn from_aggregated(group: &str, version: &str, resource: &APIResourceDiscovery) -> Option<Served> {
    let kind = resource.response_kind.as_ref()?.kind.as_deref()?;
    Some(Served {
        api: api_resource(group, version, kind, resource.resource.as_deref()?),
        singular: resource.singular_resource.clone().unwrap_or_default(),
        short_names: resource.short_names.clone(),
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
        verbs: resource.verbs.clone(),
    })
}

fn api_resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        api_version: api_version(group, version),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn core_versions(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let versions: APIVersions = parse(text)?;
    Ok(versions.versions.into_iter().map(|version| (String::new(), version)).collect())
}

/// Group and version, the preferred version of each group first.
fn group_versions(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let groups: APIGroupList = parse(text)?;
    let mut all = Vec::new();
    for group in groups.groups {
        let preferred = group.preferred_version.map(|version| version.version);
        let mut versions: Vec<String> = group.versions.into_iter().map(|version| version.version).collect();
        // The sort is stable: the others stay in the server's order.
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        all.extend(versions.into_iter().map(|version| (group.name.clone(), version)));
    }
    Ok(all)
}

async fn get(client: &Client, path: &str) -> Result<String, Failure> {
    let request = Request::get(path).header(ACCEPT, ACCEPT_AGGREGATED_DISCOVERY_V2).body(Vec::new());
    let request = request.map_err(|error| Failure::new(Cause::Rejected, &format!("{path}: {error}")))?;
    Ok(client.request_text(request).await?)
}

fn document_kind(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Document {
        kind: String,
    }
    serde_json::from_str(text).ok().map(|document: Document| document.kind)
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|_| Failure::malformed(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use informer_apiserver::ApiServer;
    use std::collections::VecDeque;

    fn names(catalog: &Catalog) -> VecDeque<String> {
        let name = |served: &Served| format!("{} {}", served.api.api_version, served.api.plural);
        catalog.resources.iter().map(name).collect()
    }

    #[tokio::test]
    async fn the_core_group_comes_first() {
        let catalog = discover(&ApiServer::builder().build().client()).await.unwrap();
        let names = names(&catalog);
        assert!(
            names[0].starts_with("v1 ") && names.contains(&"apps/v1 deployments".to_owned()),
            "{names:?}"
        );
        let pods = catalog.resources.iter().find(|served| served.api.plural == "pods").unwrap();
        assert_eq!((pods.api.kind.as_str(), pods.singular.as_str()), ("Pod", "pod"));
        assert!(
            pods.namespaced && pods.short_names == ["po"] && pods.verbs.iter().any(|verb| verb == "watch")
        );
    }

    #[tokio::test]
    async fn an_older_server_is_asked_for_each_document_and_answers_the_same() {
        let server = ApiServer::builder().build();
        let (whole, mut pieces) = (discover(&server.client()).await.unwrap(), Catalog::default());
        let client = server.client();
        let plain = async |path: &str| {
            let request = Request::get(path).header(ACCEPT, "application/json").body(Vec::new()).unwrap();
            client.request_text(request).await.unwrap()
        };
        pieces.ask_each(&client, "/api", core_versions(&plain("/api").await).unwrap()).await.unwrap();
        pieces.ask_each(&client, "/apis", group_versions(&plain("/apis").await).unwrap()).await.unwrap();
        assert_eq!(names(&whole), names(&pieces));
        assert!(pieces.silent.is_empty());
    }

    #[test]
    fn a_version_that_is_not_fresh_is_remembered_as_silent() {
        let group = serde_json::json!({
            "metadata": {"name": "metrics.k8s.io"},
            "versions": [{"version": "v1beta1", "freshness": "Stale"}],
        });
        let mut catalog = Catalog::default();
        catalog.take_group(&serde_json::from_value(group).unwrap());
        assert_eq!(catalog.silent, ["metrics.k8s.io/v1beta1"]);
    }

    #[test]
    fn an_answer_of_somebody_else_is_told_from_one_of_a_server() {
        let failure = parse::<APIVersions>("<!DOCTYPE html><title>Log in</title>").unwrap_err();
        assert!(!failure.may_pass() && failure.to_string().contains("<!DOCTYPE html>"), "{failure}");
    }
}

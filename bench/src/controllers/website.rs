//! The problem that both sides solve: a `Website` becomes a ConfigMap, a Deployment and a Service of its name.
//!
//! This file is compiled on both sides, and counted on neither: what is asked for, and of each child the fields that are the controller's.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, ConfigMapEnvSource, EnvFromSource, Service, ServicePort},
    },
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
};
use kube::{CustomResource, Resource, ResourceExt};
use serde::{Deserialize, Serialize};

/// The finalizer and the field manager of both.
pub(crate) const NAME: &str = "bench.example.com/websites";

#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(group = "bench.example.com", version = "v1", kind = "Website", namespaced)]
#[kube(status = "WebsiteStatus", schema = "disabled", derive = "PartialEq", derive = "Default")]
pub(crate) struct WebsiteSpec {
    pub(crate) image: String,
    pub(crate) replicas: i32,
    pub(crate) settings: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebsiteStatus {
    pub(crate) observed_generation: Option<i64>,
    pub(crate) ready_replicas: i32,
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

/// Something of the name of a website, and nothing else.
pub(crate) fn named<K: Resource + Default>(site: &Website) -> K {
    let mut object = K::default();
    (object.meta_mut().name, object.meta_mut().namespace) = (site.metadata.name.clone(), site.namespace());
    object
}

pub(crate) fn shape_config_map(site: &Website, map: &mut ConfigMap) {
    own(site, &mut map.metadata);
    map.data = Some(site.spec.settings.clone());
}

pub(crate) fn shape_deployment(site: &Website, deployment: &mut Deployment) {
    let labels = own(site, &mut deployment.metadata);
    let mut settings = DefaultHasher::new();
    site.spec.settings.hash(&mut settings);
    let spec = &mut deployment.spec;
    spec.replicas = Some(site.spec.replicas);
    spec.selector.match_labels = Some(labels.clone());
    let pods = spec.template.metadata.get_or_insert_default();
    pods.labels = Some(labels);
    // Other settings are other pods.
    pods.annotations.get_or_insert_default().insert("settings".into(), settings.finish().to_string());
    let containers = &mut spec.template.spec.get_or_insert_default().containers;
    containers.resize_with(1, Default::default);
    containers[0].name = "web".into();
    containers[0].image = Some(site.spec.image.clone());
    let from = ConfigMapEnvSource { name: site.name_any(), ..Default::default() };
    containers[0].env_from = Some(vec![EnvFromSource { config_map_ref: Some(from), ..Default::default() }]);
}

pub(crate) fn shape_service(site: &Website, service: &mut Service) {
    let labels = own(site, &mut service.metadata);
    let spec = service.spec.get_or_insert_default();
    spec.selector = Some(labels);
    let ports = spec.ports.get_or_insert_default();
    ports.resize_with(1, ServicePort::default);
    (ports[0].port, ports[0].protocol) = (80, Some("TCP".into()));
}

/// The owner of what belongs to a website, and the labels of its pods.
fn own(site: &Website, meta: &mut ObjectMeta) -> BTreeMap<String, String> {
    meta.owner_references = site.controller_owner_ref(&()).map(|owner| vec![owner]);
    BTreeMap::from([("website".into(), site.name_any())])
}

/// How many pods of a deployment are ready, and whether these are all of the newest kind.
pub(crate) fn readiness(deployment: &Deployment) -> (i32, bool) {
    let status = deployment.status.clone().unwrap_or_default();
    let ready = status.ready_replicas.unwrap_or(0);
    let newest = status.observed_generation == deployment.metadata.generation;
    (ready, newest && Some(ready) == deployment.spec.replicas)
}

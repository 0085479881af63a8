//! The resources that are served without being defined first, and those a CustomResourceDefinition defines.
//!
//! In: the table of built-in kinds for the version of Kubernetes that `k8s-openapi` is compiled for, or a
//! CustomResourceDefinition. Out: [`Resource`]s.

mod crd;
mod crd_rules;
mod priority;

use informer_model::{BUILTIN_KINDS, BuiltinKind};
use serde_json::Value;

use crate::catalog::{Resource, Scale, Version};
pub(crate) use crd::{default_crd, established_crd_status, from_crd};
pub(crate) use priority::by_priority;

k8s_openapi::k8s_if_1_33! { const ENABLED_MINOR: u32 = 33; }
k8s_openapi::k8s_if_1_34! { const ENABLED_MINOR: u32 = 34; }
k8s_openapi::k8s_if_1_35! { const ENABLED_MINOR: u32 = 35; }
k8s_openapi::k8s_if_1_36! { const ENABLED_MINOR: u32 = 36; }
k8s_openapi::k8s_if_1_37! { const ENABLED_MINOR: u32 = 37; }

/// The minor version of Kubernetes that is served: the one that `k8s-openapi` is compiled for.
pub(crate) const MINOR: u32 = ENABLED_MINOR;

/// The version of this server: that of Kubernetes, marked as not being Kubernetes itself.
pub(crate) fn version_name() -> String {
    format!("v1.{MINOR}.0+informer")
}

/// Every built-in resource, in the order of discovery.
pub(crate) fn resources() -> Vec<Resource> {
    let mut resources: Vec<Resource> = Vec::new();
    for row in BUILTIN_KINDS.iter().filter(|row| row.is_in(MINOR)) {
        match resources.iter_mut().find(|known| known.group == row.group && known.plural == row.plural) {
            Some(known) => known.versions.push(version(row)),
            None => resources.push(resource(row)),
        }
    }
    for resource in &mut resources {
        resource.versions.sort_by(|a, b| by_priority(&a.name, &b.name));
    }
    resources
}

fn resource(row: &BuiltinKind) -> Resource {
    Resource {
        group: row.group.to_owned(),
        plural: row.plural.to_owned(),
        singular: row.singular(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        short_names: owned(row.short_names),
        categories: owned(row.categories),
        namespaced: row.namespaced,
        versions: vec![version(row)],
        custom: false,
    }
}

fn version(row: &BuiltinKind) -> Version {
    Version {
        name: row.version.to_owned(),
        status: row.has("status"),
        scale: row.has("scale").then(|| Scale {
            spec_replicas: "spec.replicas".to_owned(),
            status_replicas: "status.replicas".to_owned(),
            selector: Some("spec.selector".to_owned()),
        }),
        columns: Vec::new(),
        selectable_fields: owned(selectable_fields(row)),
        schema: None,
    }
}

/// What can be done with the objects of a resource, in alphabetical order.
pub(crate) fn verbs(resource: &Resource) -> &'static [&'static str] {
    let is_of = |row: &&BuiltinKind| row.group == resource.group && row.plural == resource.plural;
    match BUILTIN_KINDS.iter().find(is_of) {
        Some(row) if !resource.custom => row.verbs,
        _ => BuiltinKind::USUAL_VERBS,
    }
}

/// What a field selector may name beside name and namespace.
fn selectable_fields(row: &BuiltinKind) -> &'static [&'static str] {
    match (row.group, row.kind) {
        ("", "Pod") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
            "spec.host",
        ],
        ("", "Node") => &["spec.unschedulable"],
        ("", "ReplicationController") => &["status.replicas"],
        ("", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("", "Namespace") => &["status.phase"],
        ("", "Secret") => &["type"],
        ("", "Service") => &["spec.clusterIP", "spec.type"],
        ("batch", "Job") => &["status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest" | "ClusterTrustBundle") => &["spec.signerName"],
        ("certificates.k8s.io", "PodCertificateRequest") => {
            &["spec.signerName", "spec.podName", "spec.nodeName"]
        }
        ("events.k8s.io", "Event") => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        ("resource.k8s.io", "ResourceSlice") => &["spec.nodeName", "spec.driver", "spec.pool.name"],
        _ => &[],
    }
}

/// What a field selector compares with: the text of a field of `object`, empty when there is none.
///
/// Some selectable fields of built-in kinds are not where their name says, or have a value when nothing is
/// written.
pub(crate) fn selectable_value(resource: &Resource, object: &Value, field: &str) -> String {
    let built_in = if resource.custom { "" } else { resource.kind.as_str() };
    match (built_in, field) {
        ("Job", "status.successful") => text_or(object, "status.succeeded", "0"),
        ("ReplicationController", "status.replicas") => text_or(object, field, "0"),
        ("Node", "spec.unschedulable") | ("Pod", "spec.hostNetwork") => text_or(object, field, "false"),
        ("Pod", "spec.host") => text_or(object, "spec.nodeName", ""),
        ("Pod", "status.podIP") => match text_or(object, field, "") {
            ip if ip.is_empty() => text(object.pointer("/status/podIPs/0/ip")),
            ip => ip,
        },
        ("Event", "source") => match text_or(object, "source.component", "") {
            component if component.is_empty() => text_or(object, "reportingComponent", ""),
            component => component,
        },
        _ => text_or(object, field, ""),
    }
}

/// The text at a dotted path, or `default` when there is none.
fn text_or(object: &Value, path: &str, default: &str) -> String {
    match text(path.split('.').try_fold(object, |value, name| value.get(name))) {
        none if none.is_empty() => default.to_owned(),
        text => text,
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
        _ => String::new(),
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find(group: &str, plural: &str) -> Resource {
        resources().into_iter().find(|known| known.group == group && known.plural == plural).unwrap()
    }

    #[test]
    fn versions_of_one_resource_are_one_resource_with_the_preferred_version_first() {
        let autoscalers = find("autoscaling", "horizontalpodautoscalers");
        let names: Vec<&str> = autoscalers.versions.iter().map(|version| version.name.as_str()).collect();
        assert_eq!(names, ["v2", "v1"]);

        let mut names: Vec<_> = resources().into_iter().map(|known| (known.group, known.plural)).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
        let rows = BUILTIN_KINDS.iter().filter(|row| row.is_in(MINOR)).count();
        assert_eq!(resources().iter().map(|known| known.versions.len()).sum::<usize>(), rows);
    }

    #[test]
    fn what_the_table_says_of_a_kind_is_in_its_resource() {
        let deployments = find("apps", "deployments");
        assert_eq!((&*deployments.kind, &*deployments.singular), ("Deployment", "deployment"));
        assert!(deployments.namespaced && !deployments.custom);
        assert_eq!((deployments.short_names, deployments.categories), (owned(&["deploy"]), owned(&["all"])));
        assert!(deployments.versions[0].status);
        let scale = deployments.versions[0].scale.clone().unwrap();
        assert_eq!((&*scale.spec_replicas, &*scale.status_replicas), ("spec.replicas", "status.replicas"));
        assert!(!find("", "nodes").namespaced);
        assert!(find("", "configmaps").versions[0].scale.is_none());
    }

    #[test]
    fn a_selectable_field_has_the_value_that_kubernetes_selects_by() {
        let pods = find("", "pods");
        let pod = json!({"spec": {"nodeName": "n1"}, "status": {"podIPs": [{"ip": "10.0.0.1"}]}});
        for (field, value) in [
            ("spec.nodeName", "n1"),
            ("spec.host", "n1"),
            ("spec.hostNetwork", "false"),
            ("status.phase", ""),
            ("status.podIP", "10.0.0.1"),
            ("spec", ""),
        ] {
            assert_eq!(selectable_value(&pods, &pod, field), value, "{field}");
        }
        let job = json!({"status": {"succeeded": 2}});
        assert_eq!(selectable_value(&find("batch", "jobs"), &job, "status.successful"), "2");
        let nothing = Value::Null;
        assert_eq!(selectable_value(&find("batch", "jobs"), &nothing, "status.successful"), "0");
        let event = json!({"reportingComponent": "kubelet", "source": {}});
        assert_eq!(selectable_value(&find("", "events"), &event, "source"), "kubelet");
        let custom = Resource { custom: true, ..pods };
        assert_eq!(selectable_value(&custom, &nothing, "spec.hostNetwork"), "");
    }
}

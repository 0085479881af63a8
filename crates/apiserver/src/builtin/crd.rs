//! CustomResourceDefinitions: what they define, and what a server adds to them.

use std::sync::Arc;

use informer_model::{Status, StatusCause};
use informer_serving::table::PrinterColumn;
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as api;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{by_priority, crd_rules};
use crate::catalog::{Resource, Scale, Version};

pub(super) const KIND: &str = "CustomResourceDefinition";
pub(super) const GROUP: &str = "apiextensions.k8s.io";

/// The resource that a CustomResourceDefinition (`apiextensions.k8s.io/v1`) defines, with the versions that
/// it serves; or the failure a server answers with when the definition breaks a rule.
///
/// Defaults need not be filled in. A definition that serves no version is refused: a server would keep it and
/// serve nothing.
pub(crate) fn from_crd(crd: &Value) -> Result<Resource, Status> {
    let mut definition = crd.clone();
    default_crd(&mut definition);
    let crd = api::CustomResourceDefinition::deserialize(&definition).map_err(|error| {
        Status::bad_request(format!("{KIND} in version \"v1\" cannot be handled as a {KIND}: {error}"))
    })?;
    let causes = crd_rules::broken(&crd);
    if !causes.is_empty() {
        let name = crd.metadata.name.as_deref().unwrap_or_default();
        return Err(Status::invalid(KIND, GROUP, name, causes));
    }
    let api::CustomResourceDefinitionSpec { group, names, scope, versions, .. } = crd.spec;
    let served = versions.into_iter().filter(|version| version.served);
    let mut versions: Vec<Version> = served.map(|served| version(&definition, served)).collect();
    versions.sort_by(|a, b| by_priority(&a.name, &b.name));
    if versions.is_empty() {
        let cause = StatusCause::new(
            StatusCause::FIELD_VALUE_INVALID,
            "spec.versions",
            "Invalid value: []: must have at least one version that is served",
        );
        return Err(Status::invalid(KIND, GROUP, crd.metadata.name.as_deref().unwrap_or_default(), [cause]));
    }
    Ok(Resource {
        group,
        singular: names.singular.unwrap_or_else(|| names.kind.to_lowercase()),
        plural: names.plural,
        list_kind: names.list_kind.unwrap_or_else(|| format!("{}List", names.kind)),
        kind: names.kind,
        short_names: names.short_names.unwrap_or_default(),
        categories: names.categories.unwrap_or_default(),
        namespaced: scope == "Namespaced",
        versions,
        custom: true,
    })
}

fn version(definition: &Value, version: api::CustomResourceDefinitionVersion) -> Version {
    let subresources = version.subresources.unwrap_or_default();
    let fields = version.selectable_fields.unwrap_or_default().into_iter();
    Version {
        status: subresources.status.is_some(),
        scale: subresources.scale.map(|scale| Scale {
            spec_replicas: dotted(&scale.spec_replicas_path),
            status_replicas: dotted(&scale.status_replicas_path),
            selector: scale.label_selector_path.filter(|path| !path.is_empty()).map(|path| dotted(&path)),
        }),
        columns: PrinterColumn::of_crd(definition, &version.name),
        selectable_fields: fields.map(|field| dotted(&field.json_path)).collect(),
        schema: schema_of(definition, &version.name).map(Arc::new),
        name: version.name,
    }
}

/// What a definition says of the fields of a version.
fn schema_of(definition: &Value, version: &str) -> Option<Value> {
    let mut versions = definition.pointer("/spec/versions")?.as_array()?.iter();
    let version = versions.find(|known| known.get("name").is_some_and(|name| name == version))?;
    version.pointer("/schema/openAPIV3Schema").cloned()
}

/// `.spec.replicas` without the dot that it begins with.
fn dotted(json_path: &str) -> String {
    json_path.strip_prefix('.').unwrap_or(json_path).to_owned()
}

/// Fills in what a CustomResourceDefinition may leave out: the singular name, the kind of a list, and the
/// strategy of conversion.
pub(crate) fn default_crd(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else { return };
    let Some(kind) = text(names, "kind").map(str::to_owned) else { return };
    for (name, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        let unset = names.get(name).is_none_or(|value| value.is_null() || value == "");
        if unset {
            names.insert(name.to_owned(), default.into());
        }
    }
}

/// The `status` of a definition that is being served: its names are accepted, it is established, and the
/// version it is stored in is among the stored ones. What the status already says stays, the times too.
pub(crate) fn established_crd_status(crd: &Value, now: Timestamp) -> Value {
    let mut defaulted = crd.clone();
    default_crd(&mut defaulted);
    let names = defaulted.pointer("/spec/names").cloned().unwrap_or_else(|| json!({}));

    let mut stored = array(crd, "/status/storedVersions");
    for version in array(crd, "/spec/versions") {
        let name = version.get("name").cloned().unwrap_or_default();
        if version.get("storage") == Some(&Value::Bool(true)) && !stored.contains(&name) {
            stored.push(name);
        }
    }

    let mut conditions = array(crd, "/status/conditions");
    for (r#type, reason, message) in [
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ] {
        let known = conditions.iter().position(|condition| condition["type"] == r#type);
        if known.is_some_and(|i| conditions[i]["status"] == "True") {
            continue;
        }
        let condition = json!({
            "type": r#type,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        });
        match known {
            Some(i) => conditions[i] = condition,
            None => conditions.push(condition),
        }
    }
    json!({"acceptedNames": names, "conditions": conditions, "storedVersions": stored})
}

fn array(object: &Value, pointer: &str) -> Vec<Value> {
    object.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mk_crd() -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "crontabs.stable.example.com", "creationTimestamp": null},
            "spec": {
                "group": "stable.example.com",
                "scope": "Namespaced",
                "names": {"plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"]},
                "versions": [
                    {"name": "v1beta1", "served": true, "storage": false,
                     "schema": {"openAPIV3Schema": {"type": "object"}}},
                    {"name": "v1alpha1", "served": false, "storage": false,
                     "schema": {"openAPIV3Schema": {"type": "object"}}},
                    {"name": "v1", "served": true, "storage": true,
                     "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
                     "subresources": {"status": {}, "scale": {
                        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector"}},
                     "selectableFields": [{"jsonPath": ".spec.color"}],
                     "additionalPrinterColumns": [
                        {"name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec", "priority": 1}]}
                ]
            }
        })
    }

    #[test]
    fn a_definition_becomes_a_resource_with_its_served_versions_the_preferred_one_first() {
        let resource = from_crd(&mk_crd()).unwrap();
        assert_eq!((&*resource.group, &*resource.plural), ("stable.example.com", "crontabs"));
        assert_eq!((&*resource.kind, &*resource.singular), ("CronTab", "crontab"));
        assert!(resource.namespaced && resource.custom);
        assert_eq!(resource.short_names, ["ct"]);
        let names: Vec<_> = resource.versions.iter().map(|version| version.name.as_str()).collect();
        assert_eq!(names, ["v1", "v1beta1"]);
        let v1 = &resource.versions[0];
        assert!(v1.status && !resource.versions[1].status);
        let scale = v1.scale.clone().unwrap();
        assert_eq!((&*scale.spec_replicas, &*scale.status_replicas), ("spec.replicas", "status.replicas"));
        assert_eq!(scale.selector.as_deref(), Some("status.selector"));
        assert_eq!(v1.selectable_fields, ["spec.color"]);
        assert_eq!((&*v1.columns[0].json_path, v1.columns[0].priority), (".spec.cronSpec", 1));
    }

    #[test]
    fn a_definition_that_serves_nothing_or_is_of_the_wrong_shape_is_refused_and_nothing_panics() {
        let mut crd = mk_crd();
        for version in crd["spec"]["versions"].as_array_mut().unwrap() {
            version["served"] = false.into();
        }
        assert_eq!(from_crd(&crd).unwrap_err().code, 422);
        for odd in [json!(null), json!([]), json!({"spec": 1}), json!({"spec": {"names": {"kind": 1}}})] {
            assert!(from_crd(&odd).is_err());
            default_crd(&mut odd.clone());
            established_crd_status(&odd, Timestamp::UNIX_EPOCH);
        }
        let odd = json!({"status": {"conditions": [1, null]}, "spec": {"versions": [1, {"storage": true}]}});
        established_crd_status(&odd, Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn an_established_definition_has_accepted_names_conditions_and_stored_versions() {
        let mut crd = mk_crd();
        default_crd(&mut crd);
        assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
        assert_eq!(crd["spec"]["names"]["singular"], "crontab");

        let status = established_crd_status(&crd, Timestamp::UNIX_EPOCH);
        assert_eq!(status["acceptedNames"], crd["spec"]["names"]);
        assert_eq!(status["acceptedNames"]["listKind"], "CronTabList");
        assert_eq!(status["storedVersions"], json!(["v1"]));
        let names: Vec<_> = array(&status, "/conditions").iter().map(|c| c["type"].clone()).collect();
        assert_eq!(names, ["NamesAccepted", "Established"]);
        assert_eq!(status["conditions"][1]["lastTransitionTime"], "1970-01-01T00:00:00Z");
    }

    #[test]
    fn a_later_status_keeps_times_and_the_versions_that_were_stored_before() {
        let mut crd = mk_crd();
        crd["status"] = established_crd_status(&crd, Timestamp::UNIX_EPOCH);
        crd["spec"]["versions"][0]["storage"] = true.into();
        crd["spec"]["versions"][2]["storage"] = false.into();
        let later = established_crd_status(&crd, Timestamp::from_second(60).unwrap());
        assert_eq!(later["storedVersions"], json!(["v1", "v1beta1"]));
        assert_eq!(later["conditions"], crd["status"]["conditions"]);
    }
}

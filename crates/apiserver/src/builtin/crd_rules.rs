//! The rules a CustomResourceDefinition has to keep, as far as what it defines is served from them.
//!
//! In: a definition with its defaults. Out: one cause for each broken rule, in the words of Kubernetes.
//! Schemas have to be there but are not looked into.

use std::collections::BTreeSet;

use informer_model::{StatusCause, is_dns_label, is_dns_subdomain};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as api;
use serde_json::{Value, json};

const NOT_A_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
     start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
     'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const NOT_A_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
     characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
     regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const MIXED_CASE: &str = "may have mixed case, but should otherwise match: ";
const APPROVED: &str = "api-approved.kubernetes.io";
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const MAX_SELECTABLE_FIELDS: usize = 8;

/// Every rule that the definition breaks.
pub(super) fn broken(crd: &api::CustomResourceDefinition) -> Vec<StatusCause> {
    let mut found = Broken::default();
    let spec = &crd.spec;
    found.name(crd);
    found.group(&spec.group);
    match spec.scope.as_str() {
        "Cluster" | "Namespaced" => {}
        "" => found.required("spec.scope", ""),
        scope => found.unsupported("spec.scope", scope, &["Cluster", "Namespaced"]),
    }
    for (i, version) in spec.versions.iter().enumerate() {
        found.version(version, &format!("spec.versions[{i}]"));
    }
    found.versions(&spec.versions);
    found.names(&spec.names);
    found.approval(crd);
    found.0
}

#[derive(Default)]
struct Broken(Vec<StatusCause>);

impl Broken {
    fn required(&mut self, field: &str, detail: &str) {
        let message =
            if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        self.0.push(StatusCause::new(StatusCause::FIELD_VALUE_REQUIRED, field, message));
    }

    fn invalid(&mut self, field: &str, value: impl Into<Value>, detail: &str) {
        let message = format!("Invalid value: {}: {detail}", value.into());
        self.0.push(StatusCause::new(StatusCause::FIELD_VALUE_INVALID, field, message));
    }

    fn unsupported(&mut self, field: &str, value: &str, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let message = format!("Unsupported value: {value:?}: supported values: {}", supported.join(", "));
        self.0.push(StatusCause::new(StatusCause::FIELD_VALUE_NOT_SUPPORTED, field, message));
    }

    fn name(&mut self, crd: &api::CustomResourceDefinition) {
        let (names, group) = (&crd.spec.names, &crd.spec.group);
        match crd.metadata.name.as_deref().unwrap_or_default() {
            "" => self.required("metadata.name", "name or generateName is required"),
            name => {
                for detail in subdomain(name) {
                    self.invalid("metadata.name", name, detail);
                }
                if name != format!("{}.{group}", names.plural) {
                    self.invalid("metadata.name", name, r#"must be spec.names.plural+"."+spec.group"#);
                }
            }
        }
    }

    fn group(&mut self, group: &str) {
        let errors = subdomain(group);
        if group.is_empty() {
            self.required("spec.group", "");
        } else if !errors.is_empty() {
            self.invalid("spec.group", group, &errors.join(","));
        } else if !group.contains('.') {
            self.invalid("spec.group", group, "should be a domain with at least one dot");
        }
    }

    /// Groups of the Kubernetes project are for APIs that went through its review.
    fn approval(&mut self, crd: &api::CustomResourceDefinition) {
        let group = crd.spec.group.as_str();
        let protected =
            ["k8s.io", "kubernetes.io"].into_iter().any(|domain| match group.strip_suffix(domain) {
                Some(rest) => rest.is_empty() || rest.ends_with('.'),
                None => false,
            });
        let annotations = crd.metadata.annotations.as_ref();
        let approval = annotations.and_then(|all| all.get(APPROVED)).map_or("", String::as_str);
        let is_url = approval
            .split_once("://")
            .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/'));
        if !protected || is_url || approval.starts_with("unapproved") {
            return;
        }
        let field = format!("metadata.annotations[{APPROVED}]");
        let see = "see https://github.com/kubernetes/enhancements/pull/1111";
        let rule = format!("protected groups must have approval annotation {APPROVED:?}");
        match approval {
            "" => self.required(&field, &format!("{rule}, {see}")),
            other => {
                let either = r#"with either a URL or a reason starting with "unapproved""#;
                self.invalid(&field, other, &format!("{rule} {either}, {see}"));
            }
        }
    }

    fn names(&mut self, names: &api::CustomResourceDefinitionNames) {
        let list_kind = names.list_kind.as_deref().unwrap_or_default();
        let singular = names.singular.as_deref().unwrap_or_default();
        for (field, name) in [
            ("spec.names.plural", names.plural.as_str()),
            ("spec.names.singular", singular),
            ("spec.names.kind", &names.kind),
            ("spec.names.listKind", list_kind),
        ] {
            let is_kind = field.ends_with("ind");
            let errors = if is_kind { label(&name.to_lowercase()) } else { label(name) };
            if name.is_empty() {
                self.required(field, "");
            } else if !errors.is_empty() {
                let prefix = if is_kind { MIXED_CASE } else { "" };
                self.invalid(field, name, &format!("{prefix}{}", errors.join(",")));
            }
        }
        let lists = [("shortNames", &names.short_names), ("categories", &names.categories)];
        for (list, values) in lists {
            for (i, value) in values.iter().flatten().enumerate() {
                self.label(&format!("spec.names.{list}[{i}]"), value);
            }
        }
        if !names.kind.is_empty() && names.kind == list_kind {
            self.invalid("spec.names.listKind", list_kind, "kind and listKind may not be the same");
        }
    }

    fn label(&mut self, field: &str, value: &str) {
        let errors = label(value);
        if !errors.is_empty() {
            self.invalid(field, value, &errors.join(","));
        }
    }

    fn versions(&mut self, versions: &[api::CustomResourceDefinitionVersion]) {
        let names: Value = versions.iter().map(|version| json!({"name": version.name})).collect();
        let unique: BTreeSet<&str> = versions.iter().map(|version| version.name.as_str()).collect();
        if unique.len() < versions.len() {
            self.invalid("spec.versions", names.clone(), "must contain unique version names");
        }
        if versions.iter().filter(|version| version.storage).count() != 1 {
            self.invalid("spec.versions", names, "must have exactly one version marked as storage version");
        }
    }

    fn version(&mut self, version: &api::CustomResourceDefinitionVersion, path: &str) {
        self.label(&format!("{path}.name"), &version.name);
        if version.schema.as_ref().is_none_or(|schema| schema.open_api_v3_schema.is_none()) {
            self.required(&format!("{path}.schema.openAPIV3Schema"), "");
        }
        if let Some(scale) = version.subresources.as_ref().and_then(|all| all.scale.as_ref()) {
            let path = format!("{path}.subresources.scale");
            self.replicas_path(&format!("{path}.specReplicasPath"), &scale.spec_replicas_path, ".spec");
            self.replicas_path(&format!("{path}.statusReplicasPath"), &scale.status_replicas_path, ".status");
            let selector = scale.label_selector_path.as_deref().unwrap_or_default();
            let is_under = [".spec.", ".status."].into_iter().any(|root| selector.starts_with(root));
            if !selector.is_empty() && !is_under {
                let detail = "should be a json path under either .spec or .status";
                self.invalid(&format!("{path}.labelSelectorPath"), selector, detail);
            }
        }
        for (i, column) in version.additional_printer_columns.iter().flatten().enumerate() {
            self.column(column, &format!("{path}.additionalPrinterColumns[{i}]"));
        }
        let fields: Vec<&str> =
            version.selectable_fields.iter().flatten().map(|field| field.json_path.as_str()).collect();
        self.selectable_fields(&fields, &format!("{path}.selectableFields"));
    }

    fn replicas_path(&mut self, field: &str, json_path: &str, root: &str) {
        if json_path.is_empty() {
            self.required(field, "");
        } else if !json_path.starts_with(&format!("{root}.")) {
            self.invalid(field, json_path, &format!("should be a json path under {root}"));
        }
    }

    fn column(&mut self, column: &api::CustomResourceColumnDefinition, path: &str) {
        if column.name.is_empty() {
            self.required(&format!("{path}.name"), "");
        }
        let types = format!("must be one of {}", COLUMN_TYPES.join(","));
        match column.type_.as_str() {
            "" => self.required(&format!("{path}.type"), &types),
            known if COLUMN_TYPES.contains(&known) => {}
            other => self.invalid(&format!("{path}.type"), other, &types),
        }
        let format = column.format.as_deref().unwrap_or_default();
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let formats = format!("must be one of {}", COLUMN_FORMATS.join(","));
            self.invalid(&format!("{path}.format"), format, &formats);
        }
        match column.json_path.as_str() {
            "" => self.required(&format!("{path}.JSONPath"), ""),
            path if path.starts_with('.') => {}
            other => {
                let detail = "must be a simple json path starting with .";
                self.invalid(&format!("{path}.JSONPath"), other, detail);
            }
        }
    }

    fn selectable_fields(&mut self, json_paths: &[&str], path: &str) {
        let mut unique = BTreeSet::new();
        for (i, &json_path) in json_paths.iter().enumerate() {
            let field = format!("{path}[{i}].jsonPath");
            let mut names = json_path.split('.');
            let is_path =
                names.next() == Some("") && names.clone().all(is_field_name) && names.clone().count() > 0;
            if json_path.is_empty() {
                self.required(&field, "");
            } else if !is_path {
                self.invalid(
                    &field,
                    json_path,
                    "is an invalid path: expected names of fields, each after a dot",
                );
            } else if names.next() == Some("metadata") {
                self.invalid(&field, json_path, "must not point to fields in metadata");
            } else if !unique.insert(json_path) {
                let message = format!("Duplicate value: {json_path:?}");
                self.0.push(StatusCause::new(StatusCause::FIELD_VALUE_DUPLICATE, field, message));
            }
        }
        if unique.len() > MAX_SELECTABLE_FIELDS {
            let message =
                format!("Too many: {}: must have at most {MAX_SELECTABLE_FIELDS} items", unique.len());
            self.0.push(StatusCause::new(StatusCause::FIELD_VALUE_TOO_MANY, path, message));
        }
    }
}

fn is_field_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// What is wrong with the name as a DNS label that begins with a letter.
fn label(name: &str) -> Vec<&'static str> {
    let mut errors = Vec::new();
    if name.len() > 63 {
        errors.push("must be no more than 63 characters");
    } else if !is_dns_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        errors.push(NOT_A_LABEL);
    }
    errors
}

/// What is wrong with the name as a DNS subdomain.
fn subdomain(name: &str) -> Vec<&'static str> {
    let mut errors = Vec::new();
    if name.len() > 253 {
        errors.push("must be no more than 253 characters");
    } else if !is_dns_subdomain(name) {
        errors.push(NOT_A_SUBDOMAIN);
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::from_crd;
    use super::*;

    fn mk_crd() -> Value {
        json!({
            "metadata": {"name": "crontabs.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "crontabs", "kind": "CronTab"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                              "schema": {"openAPIV3Schema": {"type": "object"}}}]
            }
        })
    }

    /// The causes after one change, as `field: message`.
    fn causes(pointer: &str, value: Value) -> Vec<String> {
        let mut crd = mk_crd();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        crd.pointer_mut(parent).unwrap()[name] = value;
        let status = from_crd(&crd).unwrap_err();
        assert_eq!(status.code, 422);
        status.details.unwrap().causes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_definition_that_keeps_all_rules_is_taken() {
        assert!(from_crd(&mk_crd()).is_ok());
    }

    #[test]
    fn each_broken_rule_is_one_cause_that_names_the_field() {
        let scale =
            |path: &str| json!({"scale": {"specReplicasPath": path, "statusReplicasPath": ".status.n"}});
        let version = json!({"name": "v1", "served": true, "schema": {"openAPIV3Schema": {}}});
        for (pointer, value, cause) in [
            (
                "/metadata/name",
                json!("tabs.example.com"),
                r#"metadata.name: Invalid value: "tabs.example.com": must be spec.names.plural+"#,
            ),
            ("/spec/scope", json!(""), "spec.scope: Required value"),
            (
                "/spec/scope",
                json!("namespaced"),
                r#"spec.scope: Unsupported value: "namespaced": supported values: "Cluster", "Namespaced""#,
            ),
            (
                "/spec/versions",
                json!([]),
                "spec.versions: Invalid value: []: must have exactly one version marked as storage version",
            ),
            (
                "/spec/versions",
                json!([version]),
                "spec.versions: Invalid value: [{\"name\":\"v1\"}]: must have exactly",
            ),
            (
                "/spec/names/listKind",
                json!("Cron Tabs"),
                "spec.names.listKind: Invalid value: \"Cron Tabs\": may have mixed case",
            ),
            (
                "/spec/names/singular",
                json!("1tab"),
                "spec.names.singular: Invalid value: \"1tab\": a DNS-1035 label",
            ),
            (
                "/spec/names/shortNames",
                json!(["a", "B"]),
                "spec.names.shortNames[1]: Invalid value: \"B\": a DNS-1035",
            ),
            (
                "/spec/names/listKind",
                json!("CronTab"),
                "spec.names.listKind: Invalid value: \"CronTab\": kind and listKind may not be the same",
            ),
            (
                "/spec/versions/0/schema",
                json!(null),
                "spec.versions[0].schema.openAPIV3Schema: Required value",
            ),
            (
                "/spec/versions/0/subresources",
                scale(".metadata.n"),
                "spec.versions[0].subresources.scale.specReplicasPath: Invalid value: \".metadata.n\":",
            ),
            (
                "/spec/versions/0/selectableFields",
                json!([{"jsonPath": ".metadata.name"}]),
                "spec.versions[0].selectableFields[0].jsonPath: Invalid value: \".metadata.name\": must not",
            ),
            (
                "/spec/versions/0/additionalPrinterColumns",
                json!([{"name": "A", "type": "text", "jsonPath": ".a"}]),
                "spec.versions[0].additionalPrinterColumns[0].type: Invalid value: \"text\": must be",
            ),
        ] {
            let found = causes(pointer, value);
            assert_eq!(found.len(), 1, "{pointer}: {found:?}");
            assert!(found[0].starts_with(cause), "{pointer}: {found:?}");
        }
    }

    #[test]
    fn a_group_is_a_domain_with_a_dot_and_one_of_kubernetes_needs_approval() {
        for (group, fact) in [
            ("", "spec.group: Required value"),
            ("example", "should be a domain with at least one dot"),
            ("Example.com", "a lowercase RFC 1123 subdomain"),
            ("example..com", "a lowercase RFC 1123 subdomain"),
            (
                "x.k8s.io",
                "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups",
            ),
        ] {
            let found = causes("/spec/group", json!(group));
            assert!(found.iter().any(|cause| cause.contains(fact)), "{group}: {found:?}");
        }
        let mut crd = mk_crd();
        crd["spec"]["group"] = "x.k8s.io".into();
        crd["metadata"]["name"] = "crontabs.x.k8s.io".into();
        for (approval, taken) in
            [("https://example.com/1", true), ("unapproved, a test", true), ("yes", false)]
        {
            crd["metadata"]["annotations"] = json!({(APPROVED): approval});
            assert_eq!(from_crd(&crd).is_ok(), taken, "{approval}");
        }
    }

    #[test]
    fn two_versions_of_one_name_are_refused() {
        let mut crd = mk_crd();
        let again =
            json!({"name": "v1", "served": false, "storage": false, "schema": {"openAPIV3Schema": {}}});
        crd["spec"]["versions"].as_array_mut().unwrap().push(again);
        assert!(from_crd(&crd).unwrap_err().message.contains("must contain unique version names"));
    }
}

//! Whether an object has only fields that its kind has, each of the right type.
//!
//! In: an object of a built-in kind, as it came. Out: the fields that the kind does not have, by their paths,
//! or the reason why the object cannot be of that kind. A server refuses unknown fields, warns of them or
//! drops them, as `fieldValidation` says.

use informer_model::check_fields;
use serde_json::Value;

/// The paths of all fields that objects of this kind do not have, as Kubernetes spells them
/// (`spec.containers[0].foo`); or which value is of the wrong type, and where.
///
/// Of a kind that is not built in nothing is known, so no field of it is unknown.
pub(crate) fn check(group: &str, version: &str, kind: &str, object: &Value) -> Result<Vec<String>, String> {
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    check_fields(&group_version, kind, object).unwrap_or_else(|| Ok(Vec::new()))
}

/// As [`check`], for the metadata alone: all that is known of a custom object.
pub(crate) fn check_metadata(object: &Value) -> Result<Vec<String>, String> {
    let metadata = serde_json::json!({ "metadata": object.get("metadata").unwrap_or(&Value::Null) });
    check("meta.k8s.io", "v1", "PartialObjectMetadata", &metadata)
}

/// Removes the fields at these paths, which are those that [`check`] found in the object.
pub(crate) fn prune(object: &mut Value, unknown: &[String]) {
    if !unknown.is_empty() {
        prune_below(object, "", unknown);
    }
}

fn prune_below(value: &mut Value, path: &str, unknown: &[String]) {
    let leads_on = |path: &str| unknown.iter().any(|field| field.starts_with(path));
    match value {
        Value::Object(fields) => {
            let dot = if path.is_empty() { "" } else { "." };
            fields.retain(|name, value| {
                let path = format!("{path}{dot}{name}");
                if unknown.contains(&path) {
                    return false;
                }
                if leads_on(&path) {
                    prune_below(value, &path, unknown);
                }
                true
            });
        }
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                let path = format!("{path}[{i}]");
                if leads_on(&path) {
                    prune_below(item, &path, unknown);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unknown(kind: (&str, &str, &str), object: &Value) -> Vec<String> {
        check(kind.0, kind.1, kind.2, object).unwrap()
    }

    const POD: (&str, &str, &str) = ("", "v1", "Pod");
    const DEPLOYMENT: (&str, &str, &str) = ("apps", "v1", "Deployment");

    fn mk_deployment() -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "creationTimestamp": null, "labels": null, "managedFields": [
                {"manager": "kubectl", "operation": "Update", "time": "2026-01-01T00:00:00Z",
                 "fieldsV1": {"f:spec": {"f:replicas": {}, "k:{\"name\":\"a\"}": {".": {}}}}}]},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
                "template": {
                    "metadata": {"creationTimestamp": null, "labels": {"app": "web"}},
                    "spec": {"volumes": null, "containers": [{
                        "name": "web", "image": "nginx",
                        "resources": {"limits": {"cpu": 1, "memory": "1Gi", "x.com/y": 1.5, "z": null}},
                        "livenessProbe": {"httpGet": {"path": "/", "port": "http"}}}]}
                }
            },
            "status": {}
        })
    }

    #[test]
    fn an_object_with_known_fields_only_has_no_unknown_ones() {
        assert_eq!(unknown(DEPLOYMENT, &mk_deployment()), [""; 0]);
    }

    #[test]
    fn unknown_fields_are_found_at_any_depth_and_spelled_as_kubernetes_does() {
        let mut object = mk_deployment();
        object["foo"] = json!({"bar": 1});
        object["spec"]["foo"] = json!(null);
        object["metadata"]["nmae"] = json!("x");
        object["spec"]["template"]["spec"]["containers"][0]["imagePullPolicies"] = json!([]);
        object["spec"]["strategy"]["rollingUpdate"]["maxSurge "] = json!(1);
        let found = unknown(DEPLOYMENT, &object);
        assert_eq!(
            found,
            [
                "foo",
                "metadata.nmae",
                "spec.foo",
                "spec.strategy.rollingUpdate.maxSurge ",
                "spec.template.spec.containers[0].imagePullPolicies",
            ]
        );
        prune(&mut object, &found);
        assert_eq!(object, mk_deployment());
    }

    #[test]
    fn pruning_takes_only_the_fields_it_is_told() {
        let mut object = json!({"spec": {"a": 1, "ab": [{"a": 1, "b": 2}, {"a": 1}], "abc": 3}});
        prune(&mut object, &["spec.ab[0].a".to_owned(), "spec.abc".to_owned(), "status".to_owned()]);
        assert_eq!(object, json!({"spec": {"a": 1, "ab": [{"b": 2}, {"a": 1}]}}));
    }

    #[test]
    fn keys_of_maps_are_not_fields() {
        let object = json!({"data": {"any.key": "v"}, "metadata": {"annotations": {"a/b": "c"}}});
        assert_eq!(unknown(("", "v1", "ConfigMap"), &object), [""; 0]);
    }

    #[test]
    fn null_is_the_empty_value_of_every_type() {
        let object = json!({
            "metadata": {"labels": {"a": null}, "finalizers": [null], "generation": null,
                         "ownerReferences": [null]},
            "spec": {"containers": [{"name": null, "ports": [{"containerPort": null}], "resources": null}],
                     "hostNetwork": null, "tolerations": null},
            "status": null
        });
        assert_eq!(unknown(POD, &object), [""; 0]);
    }

    #[test]
    fn a_value_of_the_wrong_type_is_an_error_that_names_its_place() {
        for (pointer, value, message) in [
            (
                "/spec/replicas",
                json!("two"),
                "json: cannot unmarshal string into field spec.replicas of type int32",
            ),
            (
                "/spec/replicas",
                json!(5_000_000_000_i64),
                "json: cannot unmarshal number 5000000000 into field spec.replicas of type int32",
            ),
            (
                "/spec/replicas",
                json!(1.5),
                "json: cannot unmarshal number 1.5 into field spec.replicas of type int32",
            ),
            (
                "/spec/template/spec/containers/0/image",
                json!(7),
                "json: cannot unmarshal number 7 into field spec.template.spec.containers[0].image of type",
            ),
            (
                "/spec/template/spec/containers",
                json!({}),
                "json: cannot unmarshal object into field spec.template.spec.containers of type list",
            ),
            ("/spec", json!([]), "json: cannot unmarshal array into field spec of type DeploymentSpec"),
            (
                "/metadata/labels",
                json!("a"),
                "json: cannot unmarshal string into field metadata.labels of type map",
            ),
            ("/metadata/creationTimestamp", json!("now"), "metadata.creationTimestamp: "),
        ] {
            let mut object = mk_deployment();
            *object.pointer_mut(pointer).unwrap() = value;
            let error = check("apps", "v1", "Deployment", &object).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn bytes_must_be_base64_and_schemas_are_read_at_any_depth() {
        let secret = ("", "v1", "Secret");
        assert_eq!(unknown(secret, &json!({"data": {"a": "aGk=", "b": null}})), [""; 0]);
        let error = check("", "v1", "Secret", &json!({"data": {"a": "?"}})).unwrap_err();
        assert!(error.contains("data.a: "), "{error}");
        let crd = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
            "type": "object", "additionalProperties": {"type": "string", "typo": 1},
            "properties": {"a": {"default": {"any": [null]}, "items": {"type": "x", "typo": 2}}}
        }}}]}});
        let at = "spec.versions[0].schema.openAPIV3Schema";
        assert_eq!(
            unknown(("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), &crd),
            [format!("{at}.additionalProperties.typo"), format!("{at}.properties.a.items.typo")]
        );
    }

    #[test]
    fn of_a_kind_that_is_not_built_in_nothing_is_unknown() {
        assert_eq!(unknown(("example.com", "v1", "Pod"), &json!({"a": 1})), [""; 0]);
        assert_eq!(
            check("", "v1", "Pod", &json!([])),
            Err("json: cannot unmarshal array into Pod".to_owned())
        );
    }

    #[test]
    fn every_kind_that_is_served_can_be_checked() {
        for resource in crate::builtin::resources() {
            for version in &resource.versions {
                let object = json!({"metadata": {"name": "a"}, "typo": 1});
                assert_eq!(unknown((&resource.group, &version.name, &resource.kind), &object), ["typo"]);
            }
        }
    }
}

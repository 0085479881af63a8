use super::*;
use crate::builtin;

fn filled(group: &str, kind: &str, mut object: Value) -> Value {
    let resource = builtin::resources().into_iter().find(|known| known.group == group && known.kind == kind);
    let resource = resource.unwrap();
    fill(&mut object, &resource);
    fill_new(&mut object, &resource);
    fill_status(&mut object, &resource, Timestamp::UNIX_EPOCH);
    object
}

#[test]
fn an_image_without_a_lasting_name_is_always_pulled() {
    for (image, policy) in [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("registry.example:5000/nginx", "Always"),
        ("registry.example:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:0", "IfNotPresent"),
    ] {
        let pod = json!({"spec": {"containers": [{"name": "a", "image": image}]}});
        assert_eq!(filled("", "Pod", pod)["spec"]["containers"][0]["imagePullPolicy"], policy, "{image}");
    }
}

#[test]
fn a_pod_is_of_the_class_that_its_resources_say() {
    for (resources, class) in [
        (json!({}), "BestEffort"),
        (json!({"requests": {"cpu": "1"}}), "Burstable"),
        (json!({"limits": {"cpu": "1", "memory": "1Gi"}}), "Guaranteed"),
        (json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}), "Burstable"),
    ] {
        let pod = json!({"spec": {"containers": [{"name": "a", "resources": resources}]}});
        assert_eq!(filled("", "Pod", pod)["status"]["qosClass"], class);
    }
}

#[test]
fn what_was_said_stays() {
    let pod = json!({"spec": {"restartPolicy": "Never", "tolerations": [{"operator": "Exists"}],
        "serviceAccountName": "robot", "containers": [{"name": "a", "livenessProbe": {"periodSeconds": 3}}]}});
    let pod = filled("", "Pod", pod);
    assert_eq!(pod["spec"]["restartPolicy"], "Never");
    assert_eq!(pod["spec"]["serviceAccount"], "robot");
    assert_eq!(pod["spec"]["tolerations"], json!([{"operator": "Exists"}]));
    let probe =
        json!({"periodSeconds": 3, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3});
    assert_eq!(pod["spec"]["containers"][0]["livenessProbe"], probe);
    let deployment = filled("apps", "Deployment", json!({"spec": {"strategy": {"type": "Recreate"}}}));
    assert_eq!(deployment["spec"]["strategy"], json!({"type": "Recreate"}));
}

#[test]
fn a_job_selects_its_pods_by_its_uid() {
    let job = json!({"metadata": {"name": "once", "uid": "u"}, "spec": {"template": {"spec": {}}}});
    let job = filled("batch", "Job", job);
    assert_eq!(job["spec"]["completions"], 1);
    assert_eq!(job["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}));
    assert_eq!(job["spec"]["template"]["metadata"]["labels"], job["metadata"]["labels"]);
    let many = filled("batch", "Job", json!({"metadata": {}, "spec": {"parallelism": 3}}));
    assert_eq!(many["spec"].get("completions"), None);
}

#[test]
fn a_limit_is_what_containers_get_and_ask_for() {
    let limits =
        json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}]}});
    let limit = &filled("", "LimitRange", limits)["spec"]["limits"][0];
    assert_eq!(limit["default"], json!({"cpu": "2"}));
    assert_eq!(limit["defaultRequest"], json!({"cpu": "2", "memory": "1Mi"}));
}

/// A cluster is loaded from files that nobody has checked.
#[test]
fn parts_of_the_wrong_type_are_left_alone() {
    for resource in builtin::resources() {
        for odd in [json!("x"), json!([1, "x", [null]]), json!({"spec": 1, "template": [], "limits": "x"})] {
            let mut object = json!({"metadata": {"name": "a"}, "spec": odd, "template": odd, "status": {}, "ports": odd,
                "subjects": odd, "roleRef": odd, "data": odd, "stringData": odd});
            fill(&mut object, &resource);
            for list in
                ["containers", "volumes", "limits", "ports", "ingress", "volumeClaimTemplates", "hostPath"]
            {
                object["spec"] = json!({list: odd, "strategy": odd, "updateStrategy": odd, "template": odd,
                    "persistentVolumeClaimRetentionPolicy": odd, "sessionAffinity": "ClientIP",
                    "sessionAffinityConfig": odd, "behavior": odd, "jobTemplate": odd});
                fill(&mut object, &resource);
            }
            fill_status(&mut object, &resource, Timestamp::UNIX_EPOCH);
        }
    }
}

//! What caching a cluster will cost, told from the outside.

use informer_apiserver::{Fault, Rule};
use informer_model::Status;
use serde_json::Value;

use crate::command::{Server, failed, informer, pod, run};

fn estimate_on(server: &Server, args: &[&str]) -> (Value, String) {
    let output =
        informer("estimate", args).args(["-o", "json", "--kubeconfig", server.kubeconfig.path()]).output();
    let output = output.expect("the binary");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    (serde_json::from_slice(&output.stdout).expect("JSON"), said)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_objects_are_counted_and_a_sample_says_what_they_take() {
    let server = Server::start().await;
    for number in 0..1_200 {
        server.put(pod(&format!("web-{number}"), "Running"));
    }
    let (whole, _) = estimate_on(&server, &["pods"]);
    let (sampled, _) = estimate_on(&server, &["po", "pods", "--sample", "100"]);
    for estimate in [&whole, &sampled] {
        assert_eq!(estimate["resources"].as_array().map(Vec::len), Some(1), "each once: {estimate}");
        let pods = &estimate["resources"][0];
        assert_eq!((&pods["resource"], &pods["objects"]), (&"pods".into(), &1_200.into()));
        let bytes = |form: &str| pods[form].as_f64().expect("a number");
        assert!(bytes("packed") < bytes("json") && bytes("json") < bytes("typed"), "{pods}");
        assert!(bytes("metadata") < bytes("typed") && bytes("onTheWire") > 100_000.0, "{pods}");
    }
    let typed = |estimate: &Value| estimate["sum"]["typed"].as_f64().expect("a number");
    assert!((typed(&sampled) / typed(&whole) - 1.0).abs() < 0.05, "{sampled} is not like {whole}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_named_and_the_rest_is_counted() {
    let server = Server::with_pods().await;
    let forbidden = Status::forbidden("secrets", "", "", "eve may not list them");
    server.api.faults().add(Rule::new(Fault::Status(forbidden)).resource("secrets"));
    let (estimate, said) = estimate_on(&server, &[]);
    let rows = estimate["resources"].as_array().expect("rows");
    let named = |name: &str| rows.iter().filter(|row| row["resource"] == name).count();
    assert_eq!((named("pods"), named("secrets"), named("deployments.apps")), (1, 0, 1));
    assert_eq!(named("events") + named("events.events.k8s.io"), 1, "two views of the same objects");
    assert!(said.contains("not counted: secrets: ") && said.contains("eve may not list them"), "{said}");
    let nothing = informer("estimate", &["secrets", "--kubeconfig", server.kubeconfig.path()]).output();
    let nothing = nothing.expect("the binary");
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("error: nothing of "));
}

#[test]
fn a_demo_cluster_is_a_table_with_a_sum() {
    let output = run("estimate", &["--demo", "pods", "deploy"]);
    let table = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    assert!(lines[0].starts_with("RESOURCE") && lines[0].ends_with("PACKED"), "{table}");
    assert!(lines[1].starts_with("pods ") && lines[3].starts_with("all of them "), "{table}");
    let empty = run("estimate", &["--demo", "pods", "roles"]);
    assert!(
        String::from_utf8_lossy(&empty.stdout).ends_with("\nThere are no roles.rbac.authorization.k8s.io.\n")
    );
    let unknown = failed(&run("estimate", &["--demo", "psd"]), 1);
    assert!(unknown.contains("did you mean pods?"), "{unknown}");
}

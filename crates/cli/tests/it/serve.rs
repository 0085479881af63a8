//! `informer serve`: what it prints, what it serves, how it refuses, how it ends.

use std::{
    net::SocketAddr,
    process::{Command, Output},
};

use informer_apiserver::{Fault, Rule};
use informer_model::Status;
use informer_testing::socket;

use crate::command::{self, Running, Scratch, Server, failed};

fn run(args: &[&str]) -> Output {
    command::run("serve", args)
}

/// The gateway while it runs, and its address.
fn start(args: &[&str]) -> (Running, SocketAddr) {
    let args = [&["--listen", "127.0.0.1:0"], args].concat();
    let mut running = Running::start(command::informer("serve", &args));
    let url = running.line();
    let address = url.strip_prefix("http://").expect("the URL is the first line of stdout");
    (running, address.parse().expect("an address"))
}

#[test]
fn help_teaches() {
    let help = run(&["--help"]);
    let text = String::from_utf8_lossy(&help.stdout);
    for word in [
        "--listen",
        "--demo",
        "--preload",
        "--memory-limit",
        "--pack",
        "--auth",
        "--tls-cert",
        "Examples:",
        "kubectl",
        "curl",
    ] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
}

#[tokio::test]
async fn without_a_cluster_it_makes_one_up_and_says_so() {
    let (mut running, address) = start(&["--preload", "pods,deploy"]);
    running.said("no cluster is configured, so here is a made-up one: 500 pods, 5 changes a second");
    running.said("objects in memory");
    let answer = socket::get(address, "/core/v1/pods?limit=1&fields=metadata.name", &[]).await;
    assert_eq!(answer.code, 200, "{answer:?}");
    assert!(answer.body.contains("{\"msg\":[{\"metadata\":{\"name\":"), "{answer:?}");
    let page = socket::get(address, "/", &[]).await;
    assert_eq!(page.code, 200, "{page:?}");
    assert!(page.body.contains("<script"), "{page:?}");
    running.signal("-INT");
    let (code, _, said) = running.end();
    assert_eq!(code, Some(0), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_serves_the_cluster_of_a_kubeconfig_and_sigterm_ends_it() {
    let server = Server::with_pods().await;
    let (running, address) = start(&["--kubeconfig", server.kubeconfig.path(), "-n", "default"]);
    let answer = socket::get(address, "/api/v1/namespaces/default/pods/web-1", &[]).await;
    assert_eq!(answer.code, 200, "{answer:?}");
    assert!(answer.body.contains("\"phase\":\"Pending\""), "{answer:?}");
    running.signal("-TERM");
    assert_eq!(running.end().0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_refuses_to_the_gateway_is_told_on_stderr() {
    let server = Server::with_pods().await;
    let forbidden = Status::forbidden("pods", "", "", "User \"gateway\" cannot list resource \"pods\"");
    server.api.faults().add(Rule::new(Fault::Status(forbidden)).resource("pods"));
    let (mut running, address) = start(&["--kubeconfig", server.kubeconfig.path()]);
    let answer = socket::get(address, "/core/v1/pods", &[]).await;
    assert_eq!(answer.code, 403, "{answer:?}");
    let told = running.said("WARN");
    assert!(told.contains("pods") && told.contains("cannot list resource"), "{told}");
    running.signal("-TERM");
    assert_eq!(running.end().0, Some(0));
}

#[test]
fn a_cluster_that_is_configured_and_does_not_answer_is_an_error_with_the_reason() {
    let closed =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let kubeconfig = Scratch::new(&format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters: [{{name: a, cluster: {{server: 'http://{closed}'}}}}]\nusers: [{{name: a, user: {{}}}}]\n"
    ));
    let error = failed(&run(&["--listen", "127.0.0.1:0", "--kubeconfig", kubeconfig.path()]), 1);
    assert!(error.contains("cannot serve") && error.contains(&closed.to_string()), "{error}");
    let error = failed(&run(&["--kubeconfig", "/nowhere/config"]), 1);
    assert!(error.contains("/nowhere/config"), "{error}");
}

#[test]
fn a_port_in_use_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let error = failed(&run(&["--demo", "--listen", &address]), 1);
    assert!(error.contains(&address) && error.contains("in use") && error.contains("--listen"), "{error}");
}

#[test]
fn other_machines_are_let_in_only_with_tls_and_tokens() {
    for args in [&[][..], &["--tls-self-signed"], &["--auth", "kubernetes"]] {
        let output = run(&[&["--demo", "--demo-pods", "1", "--listen", "0.0.0.0:0"], args].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("error: ") && (said.contains("--tls") || said.contains("--auth kubernetes")),
            "{said}"
        );
    }
}

#[test]
fn options_that_mean_nothing_are_refused() {
    for args in [
        &["--listen", "here"][..],
        &["--memory-limit", "much"],
        &["--memory-limit", "0"],
        &["--pack", "sometimes"],
        &["--idle-timeout", "-1s"],
        &["--preload", "po ds"],
        &["-n", "A/B"],
        &["-n", "a", "-A"],
        &["--demo", "--context", "a"],
        &["--tls-cert", "a"],
        &["--allow-host", "https://a/"],
        &["--auth", "basic"],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_certificate_that_is_none_is_told() {
    let wrong = Scratch::new("no certificate");
    let error = failed(&run(&["--demo", "--tls-cert", wrong.path(), "--tls-key", wrong.path()]), 1);
    assert!(error.contains(wrong.path()), "{error}");
}

#[test]
fn completions_and_manual_pages_are_made() {
    let bin = env!("CARGO_BIN_EXE_informer");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let made = Command::new(bin).args(["completions", shell]).output().expect("the binary");
        assert!(
            made.status.success() && String::from_utf8_lossy(&made.stdout).contains("preload"),
            "{shell}"
        );
    }
    let page = Command::new(bin).arg("man").output().expect("the binary");
    assert!(String::from_utf8_lossy(&page.stdout).contains(".TH informer 1"));
    let dir = format!("{}/man-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    assert!(Command::new(bin).args(["man", "--dir", &dir]).status().expect("the binary").success());
    let serve = std::fs::read_to_string(format!("{dir}/informer-serve.1")).expect("a page for each command");
    assert!(serve.contains("memory"));
    std::fs::remove_dir_all(dir).expect("gone");
}

#[test]
fn cargo_run_in_the_workspace_is_this_program() {
    let mut cargo = Command::new(env!("CARGO"));
    // In a member's folder, that member is the default.
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let metadata = cargo.args(["metadata", "--no-deps", "--format-version=1", "--offline"]).output();
    let metadata: serde_json::Value =
        serde_json::from_slice(&metadata.expect("cargo").stdout).expect("a document");
    let default = metadata["workspace_default_members"].as_array().expect("members");
    let packages = metadata["packages"].as_array().expect("packages").iter();
    let targets = packages.filter(|package| default.contains(&package["id"])).flat_map(|package| {
        let targets = package["targets"].as_array().expect("targets").iter();
        targets.filter(|target| target["kind"][0] == "bin").map(|target| target["name"].as_str())
    });
    assert_eq!(targets.collect::<Vec<_>>(), [Some("informer")]);
}

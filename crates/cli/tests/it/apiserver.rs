//! `informer apiserver`: what it prints, what it serves, how it ends.

use std::process::Output;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Api, Client, Config, api::ListParams, config::Kubeconfig};

use crate::command::{self, Running, Scratch, failed};

fn run(args: &[&str]) -> Output {
    command::run("apiserver", args)
}

/// A server that is ready, and the line to copy.
fn start(args: &[&str]) -> (Running, String) {
    let mut running = Running::start(command::informer("apiserver", args));
    let line = running.line();
    assert!(line.starts_with("kubectl "), "the line to copy, not {line:?}");
    (running, line)
}

/// The code with which a signal ends it, and what it said.
fn end(running: Running, signal: &str) -> (Option<i32>, String) {
    running.signal(signal);
    let (code, _, said) = running.end();
    (code, said.join("\n"))
}

#[test]
fn help_teaches() {
    let help = run(&["--help"]);
    let text = String::from_utf8_lossy(&help.stdout);
    for word in
        ["--listen", "--write-kubeconfig", "--load", "--pods", "--churn", "--seed", "Examples:", "kubectl"]
    {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
    assert_eq!(help.status.code(), Some(0));
}

#[test]
fn more_than_loopback_is_refused_with_the_reason() {
    let error = failed(&run(&["--listen", "0.0.0.0:0"]), 1);
    assert!(error.contains("0.0.0.0:0") && error.contains("no passwords"), "{error}");
}

#[test]
fn a_port_in_use_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let error = failed(&run(&["--listen", &address]), 1);
    assert!(error.contains(&address) && error.contains("--listen"), "{error}");
}

#[test]
fn what_cannot_be_loaded_is_told_by_file_and_place() {
    let missing = failed(&run(&["--listen", "127.0.0.1:0", "--load", "no/such/file.yaml"]), 1);
    assert!(missing.contains("no/such/file.yaml"), "{missing}");
    let broken = Scratch::new("apiVersion: v1\nkind: [\n");
    let error = failed(&run(&["--listen", "127.0.0.1:0", "--load", broken.path()]), 1);
    assert!(error.contains(broken.path()) && error.contains("line"), "{error}");
    let unknown = Scratch::new("apiVersion: example.com/v1\nkind: Website\nmetadata: {name: a}\n");
    let error = failed(&run(&["--listen", "127.0.0.1:0", "--load", unknown.path()]), 1);
    assert!(error.contains("Website"), "{error}");
    let directory = env!("CARGO_TARGET_TMPDIR");
    let error = failed(&run(&["--listen", "127.0.0.1:0", "--write-kubeconfig", directory]), 1);
    assert!(error.contains("directory"), "{error}");
}

#[test]
fn options_that_mean_nothing_are_refused() {
    for args in
        [&["--churn", "5"][..], &["--pods", "1", "--churn", "-1"], &["--listen", "here"], &["--history", "0"]]
    {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[tokio::test]
async fn it_serves_what_it_loaded_and_generated_and_ends_cleanly() {
    let manifest = Scratch::new("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n");
    let kubeconfig = Scratch::new("");
    let (server, line) = start(&[
        "--listen",
        "127.0.0.1:0",
        "--pods",
        "30",
        "--churn",
        "50",
        "--seed",
        "7",
        "--load",
        manifest.path(),
        "--write-kubeconfig",
        kubeconfig.path(),
    ]);
    assert!(line.contains(kubeconfig.path()), "{line}");
    let config = Kubeconfig::read_from(kubeconfig.path()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(config, &Default::default()).await.expect("a config");
    let client = Client::try_from(config).expect("a client");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    assert!(maps.get_opt("settings").await.expect("an answer").is_some());
    let pods = Api::<Pod>::all(client).list(&ListParams::default()).await.expect("pods");
    assert!((25..=40).contains(&pods.items.len()), "{} pods", pods.items.len());
    let (code, said) = end(server, "-INT");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("stopping"), "{said}");
}

#[test]
fn sigterm_ends_it_cleanly_too() {
    let (code, said) = end(start(&["--listen", "127.0.0.1:0"]).0, "-TERM");
    assert_eq!(code, Some(0), "{said}");
}

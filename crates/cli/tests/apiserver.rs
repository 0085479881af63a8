//! `informer apiserver` from the outside: what it prints, what it serves, how it ends.

#![cfg(unix)]

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Api, Client, Config, api::ListParams, config::Kubeconfig};

fn informer(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_informer"));
    command.arg("apiserver").args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A file of this test's own, gone with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::write(&path, text).expect("a scratch file");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A server that is ready; it is killed with the test if that has not ended it.
struct Running(Child, String);

impl Running {
    fn start(args: &[&str]) -> Self {
        let mut child = informer(args).spawn().expect("the binary");
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        assert!(line.starts_with("kubectl "), "the line to copy, not {line:?}");
        Self(child, line)
    }

    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status().expect("kill");
        assert!(sent.success());
        let code = self.0.wait().expect("its end").code();
        let mut said = String::new();
        self.0.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        (code, said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn failed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "one line says what is wrong: {said}");
    errors[0].to_owned()
}

fn run(args: &[&str]) -> Output {
    informer(args).output().expect("the binary")
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
    let error = failed(&run(&["--listen", "0.0.0.0:0"]));
    assert!(error.contains("0.0.0.0:0") && error.contains("no passwords"), "{error}");
}

#[test]
fn a_port_in_use_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let error = failed(&run(&["--listen", &address]));
    assert!(error.contains(&address) && error.contains("--listen"), "{error}");
}

#[test]
fn what_cannot_be_loaded_is_told_by_file_and_place() {
    let missing = failed(&run(&["--listen", "127.0.0.1:0", "--load", "no/such/file.yaml"]));
    assert!(missing.contains("no/such/file.yaml"), "{missing}");
    let broken = Scratch::new("broken.yaml", "apiVersion: v1\nkind: [\n");
    let error = failed(&run(&["--listen", "127.0.0.1:0", "--load", broken.path()]));
    assert!(error.contains(broken.path()) && error.contains("line"), "{error}");
    let unknown =
        Scratch::new("unknown.yaml", "apiVersion: example.com/v1\nkind: Website\nmetadata: {name: a}\n");
    let error = failed(&run(&["--listen", "127.0.0.1:0", "--load", unknown.path()]));
    assert!(error.contains("Website"), "{error}");
    let directory = env!("CARGO_TARGET_TMPDIR");
    let error = failed(&run(&["--listen", "127.0.0.1:0", "--write-kubeconfig", directory]));
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
    let manifest =
        Scratch::new("settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n");
    let kubeconfig = Scratch::new("kubeconfig", "");
    let server = Running::start(&[
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
    assert!(server.1.contains(kubeconfig.path()), "{}", server.1);
    let config = Kubeconfig::read_from(kubeconfig.path()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(config, &Default::default()).await.expect("a config");
    let client = Client::try_from(config).expect("a client");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    assert!(maps.get_opt("settings").await.expect("an answer").is_some());
    let pods = Api::<Pod>::all(client).list(&ListParams::default()).await.expect("pods");
    assert!((25..=40).contains(&pods.items.len()), "{} pods", pods.items.len());
    let (code, said) = server.end("-INT");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("stopping"), "{said}");
}

#[test]
fn sigterm_ends_it_cleanly_too() {
    let (code, said) = Running::start(&["--listen", "127.0.0.1:0"]).end("-TERM");
    assert_eq!(code, Some(0), "{said}");
}

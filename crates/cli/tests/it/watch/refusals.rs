//! What is wrong before anything can be watched: one line each, and a code.

use informer_apiserver::{Fault, Rule, Verb};
use informer_model::Status;

use super::{informer, run, run_on};
use crate::command::{Running, Scratch, Server, failed};

#[test]
fn help_teaches() {
    let help = run(&["--help"]);
    let text = String::from_utf8_lossy(&help.stdout);
    for word in [
        "--demo",
        "-A",
        "--selector",
        "--field-selector",
        "--resync",
        "Examples:",
        "Exit code:",
        "json",
        "wide",
    ] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
    assert_eq!(help.status.code(), Some(0));
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_the_reason() {
    for (args, reason) in [
        (&["pods", "-l", "app in web"][..], "at byte 7"),
        (&["pods", "--field-selector", "status.phase"], "status.phase"),
        (&["pods", "-n", "a", "-A"], "cannot be used with"),
        (&["pods", "-n", "a/b"], "small letters"),
        (&["pods", "-o", "xml"], "possible values: wide, json, yaml, name"),
        (&["pods", "--resync", "-5s"], "negative"),
        (&["pods", "--resync", "10ms"], "a second at least"),
        (&["pods", "--resync", "often"], "such as 30s"),
        (&["pods", "--timeout", "99h"], "a day at most"),
        (&["po ds"], "expected"),
        (&["pods", "--demo", "--context", "x"], "cannot be used with"),
        (&[], "<RESOURCE>"),
    ] {
        // A negative duration looks like a flag unless it is joined to its own.
        let args: Vec<String> = match args {
            [resource, flag, value] => vec![(*resource).to_owned(), format!("{flag}={value}")],
            other => other.iter().map(|arg| (*arg).to_owned()).collect(),
        };
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let error = run(&args);
        let said = String::from_utf8_lossy(&error.stderr);
        assert_eq!(error.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(reason), "{args:?}: {said}");
    }
}

#[test]
fn without_a_cluster_it_says_where_it_looked_and_offers_the_demo() {
    let error = failed(&run(&["pods"]), 1);
    for word in ["--kubeconfig", "$KUBECONFIG", "/nowhere/.kube/config", "pod", "--demo"] {
        assert!(error.contains(word), "{word} is not in {error}");
    }
    let mut command = informer(&["pods"]);
    let missing = command.env("KUBECONFIG", "/nowhere/a:/nowhere/b").output().expect("the binary");
    assert!(failed(&missing, 1).contains("--demo"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_cannot_be_used_is_named() {
    let error = failed(&run(&["pods", "--kubeconfig", "/nowhere/config"]), 1);
    assert!(error.contains("/nowhere/config") && error.contains("No such file"), "{error}");
    for text in [
        "{",
        "- a\n",
        "clusters: 5\n",
        "\u{0}\u{1}",
        "contexts: [{name: a, context: {cluster: 7, user: []}}]",
    ] {
        let broken = Scratch::new(text);
        let error = failed(&run(&["pods", "--kubeconfig", broken.path()]), 1);
        assert!(error.contains(broken.path()), "{text:?}: {error}");
    }
    let empty = Scratch::new("apiVersion: v1\nkind: Config\n");
    let error = failed(&run(&["pods", "--kubeconfig", empty.path()]), 1);
    assert!(error.contains("--context"), "{error}");
    let server = Server::start().await;
    let error = failed(&run_on(&server, &["pods", "--context", "production"]), 1);
    assert!(error.contains("\"production\"") && error.contains("it has informer"), "{error}");
    let dangling = Scratch::new(&server.listener.kubeconfig().replace("cluster: informer", "cluster: other"));
    let error = failed(&run(&["pods", "--kubeconfig", dangling.path()]), 1);
    assert!(error.contains("\"other\""), "{error}");
}

#[test]
fn a_login_that_fails_is_told_in_the_words_of_the_program() {
    let login = "user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, \
         args: [-c, 'echo secret; echo your session has ended >&2; exit 3']}}";
    let kubeconfig = Scratch::new(&format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:1'}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\nusers: [{{name: a, {login}}}]\n"
    ));
    let error = failed(&run(&["pods", "--kubeconfig", kubeconfig.path()]), 1);
    assert!(
        error.contains("(exit status: 3): your session has ended; check the user in the kubeconfig"),
        "{error}"
    );
    assert!(!error.contains("secret"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_kubeconfigs_are_merged_and_missing_ones_not_missed() {
    let server = Server::with_pods().await;
    let other = Scratch::new(
        "apiVersion: v1\nkind: Config\ncontexts: [{name: b, context: {cluster: informer, user: b}}]\n",
    );
    let list = format!("/nowhere/x:{}:{}", other.path(), server.kubeconfig.path());
    let mut command = informer(&["pods", "--context", "b"]);
    command.env("KUBECONFIG", list);
    Running::start(command).said("synced: 2 pods");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_resource_is_answered_with_the_nearest() {
    let server = Server::start().await;
    let error = failed(&run_on(&server, &["deplyoments"]), 1);
    assert!(error.contains("\"deplyoments\"") && error.contains("did you mean deployments.apps?"), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_tried_for_a_while() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let kubeconfig = Scratch::new(&format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: a, cluster: {{server: 'http://{port}'}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
    ));
    let output = run(&["pods", "--kubeconfig", kubeconfig.path(), "--timeout", "500ms"]);
    let error = failed(&output, 1);
    assert!(error.contains(&port.to_string()) && error.contains("refused"), "{error}");
    assert!(error.contains("check that the cluster runs"), "{error}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("trying again").count(), 1, "told once, not for every attempt: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_nothing_is_given_up() {
    let server = Server::start().await;
    server.api.faults().add(Rule::new(Fault::StallAfter(0)));
    let error = failed(&run_on(&server, &["pods", "--timeout", "300ms"]), 1);
    assert!(error.contains("no answer within 0.3 s"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_speaks_no_tls_is_told_from_one_that_is_down() {
    let server = Server::start().await;
    let secure = Scratch::new(&server.listener.kubeconfig().replace("http://", "https://"));
    let error = failed(&run(&["pods", "--kubeconfig", secure.path()]), 1);
    assert!(error.contains("https is spoken there"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waiting_will_not_cure_ends_it_at_once() {
    let forbidden = Status::forbidden("pods", "", "", "User \"eve\" cannot list resource \"pods\"");
    for (fault, words) in [
        (Fault::Status(Status::unauthorized("token expired")), ["401", "credentials"]),
        (Fault::Status(forbidden), ["eve", "verbs list and watch"]),
        (Fault::Html, ["html", "proxy"]),
    ] {
        // First whatever is asked, then only the list and the watch.
        for verbs in [&[][..], &[Verb::List, Verb::Watch]] {
            let server = Server::with_pods().await;
            let rule = verbs.iter().fold(Rule::new(fault.clone()), |rule, verb| rule.verb(*verb));
            server.api.faults().add(rule);
            let error = failed(&run_on(&server, &["pods"]), 1);
            assert!(words.iter().all(|word| error.contains(word)), "{verbs:?}: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_the_server_cannot_select_by_is_told() {
    let server = Server::with_pods().await;
    let error = failed(&run_on(&server, &["pods", "--field-selector", "spec.colour=red"]), 1);
    assert!(error.contains("spec.colour") && error.contains("check the selectors"), "{error}");
}

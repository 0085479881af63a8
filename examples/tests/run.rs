//! Runs every example as a user would, against a server of the test's own, and reads what it prints.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use informer_apiserver::ApiServer;
use informer_testing::Deadline;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{
    Api,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams,
    },
    config::Kubeconfig,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// A server on a port, and the file that leads to it.
struct Cluster {
    server: ApiServer,
    kubeconfig: PathBuf,
    /// What was in it at first.
    own: String,
    /// It serves for as long as this is there.
    runtime: Runtime,
}

impl Cluster {
    /// With two nodes, a few pods, a service and a deployment.
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let server = ApiServer::builder().seed(1).build();
        let listening = server.listen(([127, 0, 0, 1], 0).into());
        let listener = runtime.block_on(listening).expect("a free port");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let kubeconfig = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("examples-{}-{number}.kubeconfig", std::process::id()));
        let own = listener.kubeconfig();
        fs::write(&kubeconfig, &own).expect("written");
        runtime.spawn(listener.closed());
        let cluster = Self { server, kubeconfig, own, runtime };
        cluster.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } }));
        for (name, ready) in [("n1", "True"), ("n2", "False")] {
            let status = json!({ "conditions": [{ "type": "Ready", "status": ready }] });
            cluster.put(
                json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name }, "status": status }),
            );
        }
        cluster.put_pod("web-0", "Running", Some("n1"));
        cluster.put_pod("web-1", "Running", Some("n1"));
        cluster.put_pod("job-0", "Succeeded", Some("n2"));
        cluster.put_service("80");
        for (namespace, name, replicas) in [("shop", "web", 3), ("kube-system", "coredns", 2)] {
            let metadata = json!({ "name": name, "namespace": namespace, "labels": { "app": name } });
            let template = json!({
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            });
            let spec = json!({
                "replicas": replicas,
                "selector": { "matchLabels": { "app": name } },
                "template": template,
            });
            cluster.put(
                json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec }),
            );
        }
        cluster
    }

    fn put(&self, object: Value) {
        self.server.put(object).expect("written");
    }

    fn put_pod(&self, name: &str, phase: &str, node: Option<&str>) {
        let resources = json!({ "requests": { "cpu": "100m" } });
        let containers =
            json!([{ "name": "c", "image": "i", "resources": resources }, { "name": "d", "image": "i" }]);
        self.put(json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": name, "namespace": "shop" },
            "spec": { "nodeName": node, "containers": containers },
            "status": { "phase": phase },
        }));
    }

    fn put_service(&self, port: &str) {
        let metadata = json!({ "name": "web", "namespace": "shop", "labels": { "port": port } });
        let ports = json!([{ "port": port.parse::<u16>().expect("a port") }]);
        self.put(json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": { "ports": ports } }));
    }

    fn delete_pod(&self, name: &str) {
        let key = format!("shop/{name}").parse().expect("a key");
        assert!(self.server.discard("", "pods", &key));
    }

    fn run(&self, example: &str, arguments: &[&str]) -> Running {
        let folder = std::env::current_exe().expect("this program").with_file_name("").join("../examples");
        let program = folder.join(example);
        let mut command = Command::new(&program);
        command
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!(
                "{}: {error}; `cargo test -p informer-examples` builds the examples first",
                program.display()
            )
        });
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        Running { child, out }
    }

    /// Everything that an example prints that ends by itself.
    fn output(&self, example: &str, arguments: &[&str]) -> Vec<String> {
        let mut running = self.run(example, arguments);
        let lines = (&mut running.out).lines().map(|line| line.expect("a line")).collect();
        running.ends_well();
        lines
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.kubeconfig);
    }
}

/// An example while it runs; it is killed with the test if that has not ended it.
struct Running {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn line(&mut self) -> String {
        let mut line = String::new();
        if self.out.read_line(&mut line).expect("readable") == 0 {
            let mut said = String::new();
            let _ = self.child.stderr.take().expect("a pipe").read_to_string(&mut said);
            panic!("it ended: {said}");
        }
        line.trim_end().to_owned()
    }

    fn lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.line()).collect()
    }

    /// The next line that begins like this.
    fn until(&mut self, beginning: &str) -> String {
        let deadline = Deadline::start();
        loop {
            deadline.check(beginning);
            let line = self.line();
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    /// What it has said besides.
    fn ends_well(&mut self) -> String {
        let status = self.child.wait().expect("it ends");
        let mut said = String::new();
        let _ = self.child.stderr.take().expect("a pipe").read_to_string(&mut said);
        assert!(status.success(), "{status}: {said}");
        said
    }

    /// The term in which it leads, which it says first.
    fn term(&mut self) -> u64 {
        let (line, leads) = (self.line(), format!("website-{} leads, term ", self.child.id()));
        let term = line.strip_prefix(&leads).and_then(|term| term.parse().ok());
        term.unwrap_or_else(|| panic!("{line:?}"))
    }

    /// Until it listens to Ctrl-C: an example says that Ctrl-C ends it, and listens then.
    #[cfg(target_os = "linux")]
    fn listening(&mut self) {
        let (status, deadline) = (format!("/proc/{}/status", self.child.id()), Deadline::start());
        while self.child.try_wait().expect("known").is_none() {
            let status = fs::read_to_string(&status).expect("it runs");
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).expect("signals");
            if u64::from_str_radix(caught, 16).expect("a mask") & 0b10 != 0 {
                return;
            }
            deadline.check("it listens to Ctrl-C");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ctrl-C. What it has said besides.
    #[cfg(unix)]
    fn interrupt(mut self) -> String {
        #[cfg(target_os = "linux")]
        self.listening();
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
        self.ends_well()
    }

    #[cfg(not(unix))]
    fn interrupt(self) -> String {
        String::new()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn pods_tells_what_becomes_of_pods() {
    let cluster = Cluster::new();
    let mut pods = cluster.run("pods", &[]);
    // The handler and the program go each at their own pace.
    let mut first = pods.lines(4);
    first.sort();
    let were_there = ["job-0", "web-0", "web-1"].map(|name| format!("+ shop/{name} (was there)"));
    assert_eq!(first[..3], were_there);
    assert_eq!(first[3], "3 pods; Ctrl-C ends");
    cluster.put_pod("web-2", "Pending", None);
    assert_eq!(pods.line(), "+ shop/web-2");
    cluster.put_pod("web-2", "Running", None);
    assert_eq!(pods.line(), "~ shop/web-2 Pending → Running");
    cluster.delete_pod("web-2");
    assert_eq!(pods.line(), "- shop/web-2");
    pods.interrupt();
}

#[test]
fn nodes_lists_nodes() {
    assert_eq!(Cluster::new().output("nodes", &[]), ["n1 ready", "n2 not ready"]);
}

#[test]
fn services_shows_every_service_again_and_again() {
    let cluster = Cluster::new();
    let mut services = cluster.run("services", &["1"]);
    let mut first = services.lines(2);
    first.sort();
    assert_eq!(first, ["+ shop/web", "1 services; Ctrl-C ends"]);
    assert_eq!(services.until("= "), "= shop/web");
    cluster.put_service("81");
    assert_eq!(services.until("~ "), "~ shop/web");
    assert_eq!(services.until("= "), "= shop/web");
    services.interrupt();
}

#[test]
fn deployments_lists_by_label_and_namespace() {
    let cluster = Cluster::new();
    let all = cluster.output("deployments", &[]);
    assert_eq!(all[..3], ["kube-system/coredns × 2", "shop/web × 3", "1 in kube-system"]);
    assert!(all[3].starts_with("DNS is there, at version "), "{all:?}");
    let web = cluster.output("deployments", &["app in (web,db)"]);
    assert_eq!(web[..2], ["shop/web × 3", "0 in kube-system"]);
}

#[test]
fn active_pods_leaves_out_what_has_ended() {
    let cluster = Cluster::new();
    let mut pods = cluster.run("active_pods", &[]);
    let mut first = pods.lines(3);
    first.sort();
    assert_eq!(first, ["+ shop/web-0", "+ shop/web-1", "2 active pods; Ctrl-C ends"]);
    cluster.put_pod("web-1", "Failed", Some("n1"));
    assert_eq!(pods.line(), "- shop/web-1");
    pods.interrupt();
}

#[test]
fn pods_by_node_counts() {
    assert_eq!(Cluster::new().output("pods_by_node", &[]), ["n1: 2 pods", "n2: 1 pods"]);
}

#[test]
fn custom_resource_watches_a_resource_that_nothing_here_was_compiled_for() {
    let cluster = Cluster::new();
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version =
        json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } });
    let names = json!({ "plural": "websites", "singular": "website", "kind": "Website" });
    cluster.put(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "websites.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced", "names": names, "versions": [version] },
    }));
    let put_site = |host: &str| {
        let metadata = json!({ "name": "blog", "namespace": "shop" });
        let spec = json!({ "host": host });
        cluster.put(
            json!({ "apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata, "spec": spec }),
        );
    };
    put_site("a.example.com");
    let mut sites = cluster.run("custom_resource", &["websites.v1.example.com"]);
    let mut first = sites.lines(2);
    first.sort();
    assert_eq!(first, [r#"+ shop/blog {"host":"a.example.com"}"#, "1 of websites; Ctrl-C ends"]);
    put_site("b.example.com");
    assert_eq!(sites.line(), r#"~ shop/blog {"host":"b.example.com"}"#);
    sites.interrupt();

    let mut typo = cluster.run("custom_resource", &["website.example.con"]);
    let mut said = String::new();
    typo.child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(said.contains("did you mean websites.example.com"), "{said}");
    assert!(!typo.child.wait().expect("it ends").success());
}

/// What leads to several clusters, each a context of its name.
fn kubeconfig(clusters: &[(&str, &Cluster)]) -> String {
    let mut all = Kubeconfig::default();
    for (name, cluster) in clusters {
        let mut one = Kubeconfig::from_yaml(&cluster.own).expect("a kubeconfig");
        one.clusters.iter_mut().for_each(|cluster| cluster.name = name.to_string());
        one.auth_infos.iter_mut().for_each(|user| user.name = name.to_string());
        for context in &mut one.contexts {
            context.name = name.to_string();
            let context = context.context.as_mut().expect("a context");
            (context.cluster, context.user) = (name.to_string(), Some(name.to_string()));
        }
        all = all.merge(one).expect("both of one form");
    }
    serde_json::to_string(&all).expect("writable")
}

#[test]
fn clusters_come_and_go_with_the_contexts_of_a_kubeconfig() {
    let (east, west) = (Cluster::new(), Cluster::new());
    let write = |clusters: &[(&str, &Cluster)]| {
        let (new, text) = (east.kubeconfig.with_extension("new"), kubeconfig(clusters));
        fs::write(&new, text).expect("written");
        fs::rename(&new, &east.kubeconfig).expect("in its place");
    };
    write(&[("east", &east), ("west", &west)]);
    let mut clusters = east.run("clusters", &[]);
    let mut first = clusters.lines(6);
    first.sort();
    assert_eq!(first[0], "east: shop/job-0 Succeeded");
    assert_eq!(first[5], "west: shop/web-1 Running");
    west.put_pod("web-2", "Pending", None);
    assert_eq!(clusters.line(), "west: shop/web-2 Pending");
    write(&[("east", &east)]);
    let mut left = clusters.lines(8);
    left.sort();
    assert_eq!(left[0], "- west: shop/job-0 left with its cluster");
    assert_eq!(left[7], "west: shop/web-2 is gone");
    east.put_pod("web-2", "Running", None);
    assert_eq!(clusters.line(), "east: shop/web-2 Running", "the other goes on");
    write(&[("east", &east), ("west", &west)]);
    assert_eq!(clusters.lines(4).len(), 4, "it is back");
    clusters.interrupt();
}

#[test]
fn metadata_counts_without_reading_the_objects() {
    let cluster = Cluster::new();
    assert_eq!(cluster.output("metadata", &["pods"]), ["shop: 3 pods"]);
}

#[test]
fn projection_tells_where_pods_run() {
    let cluster = Cluster::new();
    cluster.put_pod("web-2", "Pending", None);
    let placed = cluster.output("projection", &[]);
    assert_eq!(placed[0], "shop/job-0 on n2 asks for 100m");
    assert_eq!(placed[3], "shop/web-2 on no node asks for 100m");
}

#[cfg(unix)]
#[test]
fn traces_follows_a_change_from_the_watch_to_the_end_of_its_reconcile() {
    let cluster = Cluster::new();
    let put = |name: &str| {
        let metadata = json!({ "name": name, "namespace": "shop" });
        cluster.put(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }));
    };
    put("before");
    let mut traces = cluster.run("traces", &[]);
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&traces.line())[1], "reconcile", "what was there before");
    put("settings");
    let spans: Vec<_> = traces.lines(4).iter().map(|line| words(line)).collect();
    assert_eq!(
        spans.iter().map(|span| &*span[1]).collect::<Vec<_>>(),
        ["handler", "queued", "reconcile", "change"]
    );
    assert!(spans.iter().all(|span| span[0] == spans[0][0]), "one trace: {spans:?}");
    traces.interrupt();
}

#[cfg(unix)]
#[test]
fn website_works_in_one_of_two_processes_and_in_the_other_after_ctrl_c() {
    let cluster = Cluster::new();
    let mut first = cluster.run("website", &[]);
    let first_term = first.term();
    let mut second = cluster.run("website", &[]);
    let metadata = json!({ "name": "blog", "namespace": "shop" });
    let spec = json!({ "image": "blog:1", "replicas": 2 });
    cluster.put(
        json!({ "apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata, "spec": spec }),
    );
    let deployment = cluster.runtime.block_on(async {
        let client = cluster.server.client();
        // Made after the deployment.
        let services = Api::<Service>::namespaced(client.clone(), "shop");
        let deadline = Deadline::start();
        while services.get_opt("blog").await.expect("an answer").is_none() {
            deadline.check("a service");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Api::<Deployment>::namespaced(client, "shop").get("blog").await.expect("a deployment")
    });
    assert_eq!(deployment.spec.replicas, Some(2));
    first.interrupt();
    assert!(second.term() > first_term);
    second.interrupt();
}

#[cfg(unix)]
#[test]
fn website_prints_no_warning_when_twenty_sites_come_and_go() {
    let cluster = Cluster::new();
    let mut website = cluster.run("website", &[]);
    website.term();
    let _entered = cluster.runtime.enter();
    let client = cluster.server.client();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Website"));
    let sites = Api::<DynamicObject>::namespaced_with(client.clone(), "shop", &kind);
    let deployments = Api::<Deployment>::namespaced(client.clone(), "shop");
    let services = Api::<Service>::namespaced(client, "shop");
    let (before, all) = (1, ListParams::default());
    cluster.runtime.block_on(async {
        for number in 0..20 {
            let site = DynamicObject::new(&format!("site-{number}"), &kind)
                .data(json!({ "spec": { "image": "blog:1", "replicas": 1 } }));
            sites.create(&PostParams::default(), &site).await.expect("created");
        }
        // Made after the deployments.
        let deadline = Deadline::start();
        while services.list(&all).await.expect("a list").items.len() < before + 20 {
            deadline.check("all services");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for number in 0..20 {
            let name = format!("site-{number}");
            // Others work on them too.
            if number % 3 == 0 {
                let change = Patch::Merge(json!({ "spec": { "image": "blog:2" } }));
                sites.patch(&name, &PatchParams::default(), &change).await.expect("changed");
            }
            sites.delete(&name, &DeleteParams::default()).await.expect("deleted");
            if number % 4 == 0 {
                let _ = deployments.delete(&name, &DeleteParams::default()).await;
            }
        }
        let deadline = Deadline::start();
        while !sites.list(&all).await.expect("a list").items.is_empty() {
            deadline.check("no sites");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(services.list(&all).await.expect("a list").items.len(), before);
        assert_eq!(deployments.list(&all).await.expect("a list").items.len(), before);
    });
    let said = website.interrupt();
    assert!(said.contains("INFO") && !said.contains("WARN") && !said.contains("ERROR"), "{said}");
}

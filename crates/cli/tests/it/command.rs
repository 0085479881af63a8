//! The command as a child process, and a server for it to look at.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Output, Stdio},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use informer_apiserver::{ApiServer, Listener};
use serde_json::{Value, json};

/// How long a line that must come is waited for.
const LONGEST: Duration = Duration::from_secs(120);

/// The command, with nothing from the environment of whoever runs the tests.
pub(crate) fn informer(subcommand: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_informer"));
    command.arg(subcommand).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "NO_COLOR", "RUST_LOG", "HTTPS_PROXY", "HTTP_PROXY"]
    {
        command.env_remove(name);
    }
    command.env("HOME", "/nowhere");
    command
}

pub(crate) fn run(subcommand: &str, args: &[&str]) -> Output {
    informer(subcommand, args).output().expect("the binary")
}

/// The one line that says what is wrong, of a run that failed with this code.
pub(crate) fn failed(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(output.stdout.is_empty());
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "one line says what is wrong: {said}");
    errors[0].to_owned()
}

/// A file of this test's own, gone with it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(text: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("scratch-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, text).expect("a scratch file");
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A server with a port and a kubeconfig.
pub(crate) struct Server {
    pub(crate) api: ApiServer,
    pub(crate) listener: Listener,
    pub(crate) kubeconfig: Scratch,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let api = ApiServer::builder().seed(1).build();
        let listener = api.listen("127.0.0.1:0".parse().expect("an address")).await.expect("a port");
        let kubeconfig = Scratch::new(&listener.kubeconfig());
        Self { api, listener, kubeconfig }
    }

    /// A server with two pods.
    pub(crate) async fn with_pods() -> Self {
        let server = Self::start().await;
        server.put(pod("web-0", "Running"));
        server.put(pod("web-1", "Pending"));
        server
    }

    pub(crate) fn put(&self, object: Value) {
        self.api.put(object).expect("taken");
    }

    pub(crate) fn discard(&self, name: &str) {
        assert!(self.api.discard("", "pods", &format!("default/{name}").parse().expect("a key")));
    }
}

pub(crate) fn pod(name: &str, phase: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": name, "uid": name, "labels": {"app": name}},
        "spec": {"nodeName": "node-1", "containers": [{"name": "web", "image": "web:1"}]},
        "status": {"phase": phase},
    })
}

/// The command while it runs; it is killed with the test if that has not ended it.
pub(crate) struct Running {
    child: Child,
    out: Option<BufReader<ChildStdout>>,
    err: mpsc::Receiver<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the binary");
        let out = child.stdout.take().map(BufReader::new);
        let (sender, err) = mpsc::channel();
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, out, err }
    }

    /// The next line of stdout.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.as_mut().expect("open").read_line(&mut line).expect("text");
        assert!(
            line.ends_with('\n'),
            "a whole line, not {line:?}; stderr: {:?}",
            self.err.try_iter().collect::<Vec<_>>()
        );
        line.truncate(line.len() - 1);
        line
    }

    pub(crate) fn lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.line()).collect()
    }

    /// The next line of stderr with this text.
    pub(crate) fn said(&mut self, text: &str) -> String {
        let (mut before, deadline) = (Vec::new(), Instant::now() + LONGEST);
        while let Ok(line) = self.err.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if line.contains(text) {
                return line;
            }
            before.push(line);
        }
        panic!("{text:?} is not in {before:#?}");
    }

    /// Stops reading its output.
    pub(crate) fn hang_up(&mut self) {
        self.out = None;
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
    }

    /// Waits for its end without reading what it still has to say on stdout.
    pub(crate) fn end_unread(mut self) -> (Option<i32>, Option<BufReader<ChildStdout>>, Vec<String>) {
        let code = self.child.wait().expect("its end").code();
        (code, self.out.take(), self.err.iter().collect())
    }

    /// Waits for its end: the exit code, the rest of stdout, the rest of stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String, Vec<String>) {
        let mut rest = String::new();
        if let Some(out) = &mut self.out {
            out.read_to_string(&mut rest).expect("text");
        }
        let code = self.child.wait().expect("its end").code();
        (code, rest, self.err.iter().collect())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

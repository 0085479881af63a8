//! A server, a namespace on it, and the transcript of what is asked and answered there.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use informer_apiserver::ApiServer;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::{runtime, time::timeout};

use crate::{cluster::Cluster, expected, plane::Plane, transcript::Transcript, watch::Watch};

pub(crate) const JSON: &str = "application/json";
/// A server that says nothing for so long is broken.
const LONGEST: Duration = Duration::from_secs(60);
/// Headers that are part of an answer's meaning.
const HEADERS: [&str; 4] = ["content-type", "retry-after", "warning", "www-authenticate"];
/// Of a body that is sent, and of a value that comes back, so much is shown.
const SHOWN: usize = 1_000;

/// Where a scenario is played.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    /// A namespace of the scenario's own.
    pub(crate) namespace: String,
    client: Client,
    transcript: Mutex<Transcript>,
}

/// What is asked of a server.
#[derive(Default)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) parameters: &'a [(&'a str, &'a str)],
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: String,
    /// Another client than the one that may do everything.
    pub(crate) client: Option<&'a Client>,
    /// Each server says in its own words what is wrong: they are not compared.
    pub(crate) own_words: bool,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
    /// Null if it is not JSON.
    pub(crate) body: Value,
}

/// Plays a scenario on the embedded server and, where there is one, on the real one beside others.
pub(crate) fn play(scenario: &str, story: impl AsyncFn(&Stage)) {
    perform(scenario, story, false);
}

/// Plays a scenario that disturbs everybody else on the server.
pub(crate) fn play_alone(scenario: &str, story: impl AsyncFn(&Stage)) {
    perform(scenario, story, true);
}

fn perform(scenario: &str, story: impl AsyncFn(&Stage), alone: bool) {
    let server = ApiServer::builder().seed(1).build();
    // The embedded server has no sockets: where everybody waits, time is skipped.
    let embedded = lines(scenario, Cluster::Embedded(server), &story, true);
    let real = Plane::get().map(|plane| {
        let _turn = plane.turn(alone);
        lines(scenario, Cluster::Real(plane), &story, false)
    });
    expected::check(scenario, &embedded, real.as_deref());
}

fn lines(scenario: &str, cluster: Cluster, story: &impl AsyncFn(&Stage), paused: bool) -> Vec<String> {
    let runtime = runtime::Builder::new_current_thread().enable_all().start_paused(paused).build();
    runtime.expect("a runtime").block_on(async {
        let client = cluster.admin().await;
        let namespace = format!("e2e-{}", scenario.replace('_', "-"));
        let stage = Stage { cluster, namespace, client, transcript: Mutex::default() };
        stage.make("/api/v1/namespaces", json!({ "metadata": { "name": stage.namespace } })).await;
        stage.transcript().forget();
        story(&stage).await;
        std::mem::take(&mut stage.transcript().lines)
    })
}

/// A path with a query, encoded as it must be.
fn uri(path: &str, parameters: &[(&str, &str)]) -> String {
    if parameters.is_empty() {
        return path.to_owned();
    }
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    format!("{path}?{query}")
}

impl Stage {
    pub(crate) fn transcript(&self) -> MutexGuard<'_, Transcript> {
        self.transcript.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down a line.
    pub(crate) fn note(&self, line: impl Into<String>) {
        self.transcript().lines.push(line.into());
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The path of a resource of the core group in the scenario's namespace.
    pub(crate) fn core(&self, plural: &str) -> String {
        format!("/api/v1/namespaces/{}/{plural}", self.namespace)
    }

    /// The path of the config maps in the scenario's namespace.
    pub(crate) fn maps(&self) -> String {
        self.core("configmaps")
    }

    /// The path of a resource of a group in the scenario's namespace.
    pub(crate) fn group(&self, group_version: &str, plural: &str) -> String {
        format!("/apis/{group_version}/namespaces/{}/{plural}", self.namespace)
    }

    pub(crate) async fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Answer {
        self.ask(Ask { method: "GET", path, parameters, ..Ask::default() }).await
    }

    /// A read that is refused, by each server in its own words.
    pub(crate) async fn get_refused(&self, path: &str, parameters: &[(&str, &str)]) -> Answer {
        self.ask(Ask { method: "GET", path, parameters, own_words: true, ..Ask::default() }).await
    }

    pub(crate) async fn get_as(&self, path: &str, parameters: &[(&str, &str)], accept: &str) -> Answer {
        let headers = &[("accept", accept)];
        self.ask(Ask { method: "GET", path, parameters, headers, ..Ask::default() }).await
    }

    pub(crate) async fn post(&self, path: &str, parameters: &[(&str, &str)], object: &Value) -> Answer {
        self.write("POST", path, parameters, JSON, object).await
    }

    pub(crate) async fn put(&self, path: &str, parameters: &[(&str, &str)], object: &Value) -> Answer {
        self.write("PUT", path, parameters, JSON, object).await
    }

    pub(crate) async fn patch(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
        r#type: &str,
        patch: &Value,
    ) -> Answer {
        self.write("PATCH", path, parameters, r#type, patch).await
    }

    pub(crate) async fn delete(&self, path: &str, parameters: &[(&str, &str)]) -> Answer {
        self.ask(Ask { method: "DELETE", path, parameters, ..Ask::default() }).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.write("DELETE", path, &[], JSON, options).await
    }

    pub(crate) async fn write(
        &self,
        method: &str,
        path: &str,
        parameters: &[(&str, &str)],
        r#type: &str,
        body: &Value,
    ) -> Answer {
        let headers = &[("content-type", r#type)];
        self.ask(Ask { method, path, parameters, headers, body: body.to_string(), ..Ask::default() }).await
    }

    /// A write that is refused, by each server in its own words.
    pub(crate) async fn write_refused(
        &self,
        method: &str,
        path: &str,
        parameters: &[(&str, &str)],
        r#type: &str,
        body: &Value,
    ) -> Answer {
        let (headers, body) = (&[("content-type", r#type)], body.to_string());
        self.ask(Ask { method, path, parameters, headers, body, own_words: true, ..Ask::default() }).await
    }

    /// Sends a request and writes down what it was and what came back.
    pub(crate) async fn ask(&self, ask: Ask<'_>) -> Answer {
        self.note_request(&ask);
        let answer = self.send(&ask).await;
        self.note_answer(&answer, ask.own_words);
        answer
    }

    fn note_request(&self, ask: &Ask<'_>) {
        let mut transcript = self.transcript();
        let mut line = format!("{} {}", ask.method, ask.path);
        for (name, value) in ask.parameters {
            line.push(' ');
            line.push_str(&transcript.parameter(name, value));
        }
        for (name, value) in ask.headers.iter().filter(|header| **header != ("content-type", JSON)) {
            line.push_str(&format!(" {name}: {value}"));
        }
        if !ask.body.is_empty() {
            let body = match serde_json::from_str(&ask.body) {
                Ok(value) => transcript.stable(value).to_string(),
                Err(_) => format!("{:?}", ask.body),
            };
            line.push(' ');
            line.push_str(&short(body));
        }
        transcript.lines.push(line);
    }

    fn note_answer(&self, answer: &Answer, own_words: bool) {
        let mut transcript = self.transcript();
        let mut line = format!("  {}", answer.code);
        for name in HEADERS {
            for value in answer.headers.get_all(name) {
                let name = if name == "content-type" { String::new() } else { format!("{name}: ") };
                line.push_str(&format!(" {name}{}", value.to_str().unwrap_or("?")));
            }
        }
        transcript.lines.push(line);
        let body = transcript.stable(answer.body.clone());
        let lines = match (&body, body["kind"].as_str()) {
            (Value::Null, _) => text(&answer.bytes),
            (_, Some("Status")) => status(&body, own_words),
            _ if body.get("items").is_some() => list(&body),
            _ => vec![body.to_string()],
        };
        transcript.lines.extend(lines.into_iter().map(|line| format!("  {}", short(line))));
    }

    /// Opens a watch, and writes down how it was answered.
    pub(crate) async fn watch(&self, path: &str, parameters: &[(&str, &str)]) -> Watch<'_> {
        self.watch_as(path, parameters, JSON).await
    }

    pub(crate) async fn watch_as(&self, path: &str, parameters: &[(&str, &str)], accept: &str) -> Watch<'_> {
        let parameters = [&[("watch", "true")], parameters].concat();
        let headers = if accept == JSON { &[][..] } else { &[("accept", accept)] };
        let ask = Ask { method: "GET", path, parameters: &parameters, headers, ..Ask::default() };
        self.note_request(&ask);
        let (parts, body) = self.response(&ask).await.into_parts();
        let r#type =
            parts.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        self.note(format!("  {} {type}", parts.status.as_u16()));
        Watch::new(self, body)
    }

    async fn response(&self, ask: &Ask<'_>) -> http::Response<Body> {
        let mut request = Request::builder().method(ask.method).uri(uri(ask.path, ask.parameters));
        for (name, value) in ask.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(ask.body.clone().into_bytes())).expect("a request");
        let response = timeout(LONGEST, ask.client.unwrap_or(&self.client).send(request)).await;
        let asked = || format!("{} {} {:?}", ask.method, ask.path, ask.parameters);
        let response = response.unwrap_or_else(|_| panic!("{}: no answer", asked()));
        response.unwrap_or_else(|e| panic!("{}: {e}", asked()))
    }

    /// Sends a request of which nothing is written down.
    pub(crate) async fn send(&self, ask: &Ask<'_>) -> Answer {
        let (parts, body) = self.response(ask).await.into_parts();
        let body = timeout(LONGEST, body.collect()).await.expect("a body in time");
        let bytes = body.expect("a whole body").to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answer { code: parts.status.as_u16(), headers: parts.headers, bytes, body }
    }

    /// Writes something; what is written down of it is nothing but its version.
    pub(crate) async fn send_quietly(&self, method: &str, path: &str, body: Value) -> Answer {
        let r#type = if method == "PATCH" { "application/merge-patch+json" } else { JSON };
        let headers = &[("content-type", r#type)];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.send(&Ask { method, path, headers, body, ..Ask::default() }).await;
        self.transcript().stable(answer.body.clone());
        answer
    }

    /// Writes something in a format of its own; nothing of it is written down.
    pub(crate) async fn send_typed(&self, method: &str, path: &str, r#type: &str, body: &Value) -> Answer {
        let (headers, body) = (&[("content-type", r#type)], body.to_string());
        self.send(&Ask { method, path, headers, body, ..Ask::default() }).await
    }

    /// Reads again and again until the answer is as it should be.
    pub(crate) async fn until(&self, path: &str, condition: impl Fn(&Answer) -> bool) {
        let began = tokio::time::Instant::now();
        loop {
            let answer = self.send(&Ask { method: "GET", path, ..Ask::default() }).await;
            if condition(&answer) {
                return;
            }
            assert!(began.elapsed() < LONGEST, "GET {path}: still {} {}", answer.code, answer.body);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Makes an object, which must succeed.
    pub(crate) async fn make(&self, path: &str, object: Value) -> Value {
        let answer = self.send_quietly("POST", path, object).await;
        assert!((200..300).contains(&answer.code), "POST {path}: {} {}", answer.code, answer.body);
        answer.body
    }

    /// Changes an object by a merge patch, which must succeed.
    pub(crate) async fn change(&self, path: &str, patch: Value) -> Value {
        let answer = self.send_quietly("PATCH", path, patch).await;
        assert_eq!(answer.code, 200, "PATCH {path}: {}", answer.body);
        answer.body
    }

    /// Deletes what a path names, which must succeed.
    pub(crate) async fn remove(&self, path: &str) {
        let answer = self.send_quietly("DELETE", path, Value::Null).await;
        assert!((200..300).contains(&answer.code), "DELETE {path}: {} {}", answer.code, answer.body);
    }
}

/// Not more of a line than somebody would read, and one line.
fn short(line: String) -> String {
    let line = line.replace('\n', "\\n");
    if line.chars().count() <= SHOWN {
        return line;
    }
    let begin: String = line.chars().take(SHOWN).collect();
    format!("{begin}…")
}

/// A failure or a success: why, in which words, and what about.
fn status(body: &Value, own_words: bool) -> Vec<String> {
    let message =
        body["message"].as_str().map(|message| if own_words { "(in its own words)" } else { message });
    let mut lines = vec![format!(
        "{} {}: {}",
        body["status"].as_str().unwrap_or("?"),
        body["reason"].as_str().unwrap_or("-"),
        message.unwrap_or("-"),
    )];
    if let Some(mut details) = body.get("details").cloned() {
        let causes = details.get_mut("causes").and_then(Value::as_array_mut);
        for cause in causes.into_iter().flatten().filter(|_| own_words) {
            cause["message"] = "(in its own words)".into();
        }
        lines.push(format!("details {details}"));
    }
    if let Some(metadata) = body.get("metadata").filter(|metadata| **metadata != json!({})) {
        lines.push(format!("metadata {metadata}"));
    }
    lines
}

/// A list: what it says of itself, and what is in it.
fn list(body: &Value) -> Vec<String> {
    let mut around = body.clone();
    around.as_object_mut().and_then(|fields| fields.remove("items"));
    let items = body["items"].as_array().into_iter().flatten();
    let names = items.map(|item| match item["metadata"]["resourceVersion"].as_str() {
        Some(version) => format!("{}@{version}", item["metadata"]["name"].as_str().unwrap_or("?")),
        None => item.to_string(),
    });
    vec![around.to_string(), format!("items: {}", names.collect::<Vec<_>>().join(" "))]
}

/// A body that is not JSON: text, or what protobuf says first.
fn text(bytes: &Bytes) -> Vec<String> {
    match bytes.strip_prefix(b"k8s\0") {
        Some(_) => vec!["protobuf: k8s\\0".to_owned()],
        None if bytes.is_empty() => Vec::new(),
        None => vec![format!("{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(200)]))],
    }
}

//! The cluster and what is outside of it: every write goes through here, and is judged when the server has accepted it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Method, Request, Response, request::Parts};
use http_body_util::{BodyExt, Full};
use informer::{Object, model::ObjectKey};
use informer_apiserver::{ApiServer, Body, View};
use informer_testing::widgets;
use kube::ResourceExt;
use serde_json::{Value, json};
use tower_service::Service;

use super::{
    process::Life,
    program::{FINALIZER, Widget},
};

pub(crate) const SHOP: &str = "shop";
/// The annotation that carries the token of the Lease `default/boss`.
const STAMP: &str = "boss.default.lease.informer/fence";

/// Who sends a write, and in which term, as far as that is known.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) life: Arc<Life>,
    pub(crate) token: Option<u64>,
}

/// A write on its way.
pub(crate) struct InFlight {
    pub(crate) due: Duration,
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    pub(crate) sender: Sender,
    pub(crate) answer: tokio::sync::oneshot::Sender<Answer>,
}

/// What the server says.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) parts: (http::StatusCode, http::HeaderMap),
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn response(self) -> Response<Body> {
        let body = Full::new(self.body).map_err(|never| match never {}).boxed_unsync();
        let mut response = Response::new(body);
        (*response.status_mut(), *response.headers_mut()) = self.parts;
        response
    }

    pub(crate) fn is_success(&self) -> bool {
        self.parts.0.is_success()
    }

    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What has happened, counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) writes: u64,
    pub(crate) refused: u64,
    pub(crate) terms: u64,
    pub(crate) kills: u64,
    pub(crate) pauses: u64,
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) collected: u64,
    pub(crate) outdated_outside: u64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            writes: self.writes + other.writes,
            refused: self.refused + other.refused,
            terms: self.terms + other.terms,
            kills: self.kills + other.kills,
            pauses: self.pauses + other.pauses,
            lost: self.lost + other.lost,
            late: self.late + other.late,
            collected: self.collected + other.collected,
            outdated_outside: self.outdated_outside + other.outdated_outside,
        }
    }
}

#[derive(Default)]
pub(crate) struct State {
    now: Duration,
    pub(crate) calm: bool,
    pub(crate) troubled: bool,
    /// Whether the Lease may be deleted: then two terms may hold for a while, and what is outside has to compare tokens.
    pub(crate) lease_goes: bool,
    pub(crate) lease_deleted: Option<Duration>,
    pub(crate) wire: Vec<InFlight>,
    pub(crate) counts: Counts,
    pub(crate) lives: Vec<Arc<Life>>,
    wrong: Vec<String>,
    story: Vec<String>,
    /// The latest term that has written an object, by its uid.
    written_by: HashMap<String, u64>,
    /// What was made outside: the colour of each widget, by its uid.
    outside: HashMap<String, String>,
    /// The latest term that was there, by the uid of the widget.
    seen_outside: HashMap<String, u64>,
}

pub(crate) struct World {
    pub(crate) server: ApiServer,
    state: Mutex<State>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let server = ApiServer::builder().seed(seed).bookmark_interval(Duration::from_secs(7)).build();
        server.put(widgets("example.com")).unwrap();
        server.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": SHOP } })).unwrap();
        Arc::new(Self { server, state: Mutex::default() })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn now(&self) -> Duration {
        self.state().now
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.state().now += time;
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.state().calm
    }

    pub(crate) fn is_troubled(&self) -> bool {
        self.state().troubled
    }

    pub(crate) fn tell(&self, what: impl Into<String>) {
        let mut state = self.state();
        let line = format!("{:>9.3} {}", state.now.as_secs_f64(), what.into());
        state.story.push(line);
    }

    /// A promise is broken.
    pub(crate) fn wrong(&self, what: impl Into<String>) {
        let what = what.into();
        self.tell(format!("WRONG: {what}"));
        self.state().wrong.push(what);
    }

    pub(crate) fn first_wrong(&self) -> Option<String> {
        self.state().wrong.first().cloned()
    }

    pub(crate) fn take_story(&self) -> Vec<String> {
        std::mem::take(&mut self.state().story)
    }

    pub(crate) fn get(&self, plural: &str, key: &ObjectKey) -> Option<Value> {
        let group = match plural {
            "widgets" => "example.com",
            "leases" => "coordination.k8s.io",
            _ => "",
        };
        self.server.get((group, plural), key.namespace().unwrap_or_default(), key.name())
    }

    /// Carries out a request at once.
    pub(crate) fn ask(&self, parts: Parts, body: Bytes) -> Answer {
        let request = Request::from_parts(parts, Full::new(body));
        let response = self.server.service().call(request).now_or_never().expect("it is answered at once");
        let (parts, body) = response.expect("no fault refuses it").into_parts();
        let body = body.collect().now_or_never().expect("the answer is there").expect("nothing breaks it");
        Answer { parts: (parts.status, parts.headers), body: body.to_bytes() }
    }

    /// What a user or the cluster itself asks for.
    pub(crate) fn user(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let r#type = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder().method(method).uri(path).header("content-type", r#type).body(());
        let (parts, ()) = request.unwrap().into_parts();
        self.write(parts, body.map_or_else(Bytes::new, |body| body.to_string().into()), None)
    }

    pub(crate) fn list(&self, plural: &str) -> Vec<Value> {
        let group = if plural == "widgets" { "/apis/example.com/v1" } else { "/api/v1" };
        let path = format!("{group}/namespaces/{SHOP}/{plural}");
        let (parts, ()) = Request::builder().uri(path).body(()).unwrap().into_parts();
        let mut list = self.ask(parts, Bytes::new()).value();
        match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        }
    }

    /// Carries out a write, and judges it.
    pub(crate) fn write(&self, parts: Parts, body: Bytes, sender: Option<&Sender>) -> Answer {
        let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
        let place = Place::of(&path);
        let known = |name: &str| {
            let key = ObjectKey::new(Some(&place.namespace), name).ok()?;
            self.get(&place.plural, &key)
        };
        let before = place.name.as_deref().and_then(known);
        let answer = self.ask(parts, body);
        let who = sender.map_or("user", |sender| sender.life.identity.as_str());
        if place.plural != "leases" || !answer.is_success() {
            let why = text(&answer.value(), "/message").unwrap_or_default();
            self.tell(format!("{who}: {method} {path} → {} {why}", answer.parts.0.as_u16()));
        }
        if !answer.is_success() {
            let ours = sender.is_some() && place.plural != "leases";
            self.state().counts.refused += u64::from(ours);
            return answer;
        }
        let name = place.name.clone().or_else(|| text(&answer.value(), "/metadata/name"));
        let after = name.as_deref().and_then(known);
        if place.plural == "leases" {
            return answer;
        }
        if place.plural == "widgets" {
            self.check_gone(before.as_ref(), after.as_ref());
        }
        if let Some(sender) = sender {
            self.state().counts.writes += 1;
            let what = format!("{who}: {method} {path}");
            self.judge(&what, sender, before.as_ref(), after.as_ref());
        }
        answer
    }

    /// Nothing outside is left of a widget that has gone with this write.
    fn check_gone(&self, before: Option<&Value>, after: Option<&Value>) {
        let Some(uid) = before.and_then(|before| text(before, "/metadata/uid")) else { return };
        let is_gone = after.and_then(|after| text(after, "/metadata/uid")).as_ref() != Some(&uid);
        if is_gone && self.state().outside.contains_key(&uid) {
            self.wrong(format!("widget {uid} is gone, and what was made outside for it is left behind"));
        }
    }

    /// A write of a process was accepted.
    fn judge(&self, what: &str, sender: &Sender, before: Option<&Value>, after: Option<&Value>) {
        let same = |pointer: &str| {
            before.and_then(|before| before.pointer(pointer))
                == after.and_then(|after| after.pointer(pointer))
        };
        if same("/metadata/resourceVersion") {
            return;
        }
        let others = |object: Option<&Value>| -> BTreeSet<String> {
            let all = object.and_then(|object| object["metadata"]["finalizers"].as_array());
            let all = all.into_iter().flatten().filter_map(Value::as_str);
            all.filter(|name| *name != FINALIZER).map(str::to_owned).collect()
        };
        if others(before) != others(after) && before.is_some() {
            self.wrong(format!("{what} changes finalizers of others: {before:?} → {after:?}"));
        }
        let Some(token) = sender.token else {
            return self.wrong(format!("{what} was sent without a term"));
        };
        let Some(uid) = before.or(after).and_then(|object| text(object, "/metadata/uid")) else { return };
        let before_carried = carried(before);
        if before_carried.is_some_and(|carried| carried > token) {
            self.wrong(format!("{what} of term {token}, and the object is of term {:?}", carried(before)));
        }
        if carried(after).is_some_and(|carried| carried > token || Some(carried) < before_carried) {
            self.wrong(format!("{what} of term {token} was stamped {:?}", carried(after)));
        }
        let is_unstamped = what.ends_with("/status") || what.contains("DELETE");
        if after.is_some() && !is_unstamped && carried(after) != Some(token) {
            self.wrong(format!("{what} of term {token} is not stamped, but {:?}", carried(after)));
        }
        let mut state = self.state();
        let latest = state.written_by.insert(uid, token).unwrap_or_default();
        if latest > token {
            drop(state);
            self.wrong(format!("{what} of term {token}, and term {latest} has written the object before"));
        }
    }

    fn current(&self, widget: &Object<Widget>) -> Option<Value> {
        let current = self.get("widgets", widget.key())?;
        (text(&current, "/metadata/uid") == widget.uid()).then_some(current)
    }

    /// Somebody of an earlier term comes too late. Where the Lease is not deleted, terms alone have to prevent that.
    fn admit(&self, uid: &str, life: &Life, token: u64, what: &str) -> Result<(), String> {
        let term = life.terms.lock().unwrap().at(life.now()).map(|term| term.token);
        if term != Some(token) {
            self.wrong(format!("{}: {what} {uid} in term {token}, and it has {term:?}", life.identity));
        }
        let mut state = self.state();
        let latest = state.seen_outside.get(uid).copied().unwrap_or_default();
        if latest <= token {
            state.seen_outside.insert(uid.to_owned(), token);
            return Ok(());
        }
        let error = format!("{what} {uid} in term {token}, and term {latest} was there before");
        state.counts.outdated_outside += 1;
        if !state.lease_goes {
            drop(state);
            self.wrong(error.clone());
        }
        Err(error)
    }

    /// Works outside of the cluster.
    pub(crate) fn apply(&self, widget: &Object<Widget>, life: &Life, token: u64) -> Result<(), String> {
        let uid = widget.uid().unwrap_or_default();
        self.admit(&uid, life, token, "work for")?;
        let ours = |current: &Value| {
            let finalizers = current["metadata"]["finalizers"].as_array();
            finalizers.is_some_and(|names| names.iter().any(|name| name == FINALIZER))
        };
        if !self.current(widget).as_ref().is_some_and(ours) {
            self.wrong(format!(
                "term {token} works outside for {} {uid} at version {:?}, which does not have our finalizer: {:?}",
                widget.key(),
                widget.resource_version(),
                self.get("widgets", widget.key()).map(|mut now| now["metadata"].take())
            ));
        }
        self.tell(format!("outside: {} {uid} is {}", widget.key(), widget.spec.color));
        self.state().outside.insert(uid, widget.spec.color.clone());
        Ok(())
    }

    pub(crate) fn clean_up(&self, widget: &Object<Widget>, life: &Life, token: u64) -> Result<(), String> {
        let uid = widget.uid().unwrap_or_default();
        self.admit(&uid, life, token, "cleaning up")?;
        self.tell(format!("outside: {} {uid} is cleaned up", widget.key()));
        self.state().outside.remove(&uid);
        Ok(())
    }

    pub(crate) fn outside(&self) -> HashMap<String, String> {
        self.state().outside.clone()
    }

    /// What the cluster itself does: children whose owner is gone are deleted.
    pub(crate) fn collect_garbage(&self) {
        let owners: BTreeSet<String> =
            self.list("widgets").iter().filter_map(|widget| text(widget, "/metadata/uid")).collect();
        for plural in ["configmaps", "secrets"] {
            for child in self.list(plural) {
                let owner = text(&child, "/metadata/ownerReferences/0/uid");
                if owner.is_some_and(|owner| !owners.contains(&owner)) {
                    let name = child["metadata"]["name"].as_str().unwrap_or_default();
                    let path = format!("/api/v1/namespaces/{SHOP}/{plural}/{name}");
                    self.state().counts.collected += 1;
                    self.user(Method::DELETE, &path, None);
                }
            }
        }
    }
}

fn carried(object: Option<&Value>) -> Option<u64> {
    object?["metadata"]["annotations"][STAMP].as_str()?.parse().ok()
}

pub(crate) fn text(object: &Value, pointer: &str) -> Option<String> {
    Some(object.pointer(pointer)?.as_str()?.to_owned())
}

/// What a path names.
pub(crate) struct Place {
    pub(crate) namespace: String,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
}

impl Place {
    pub(crate) fn of(path: &str) -> Self {
        let Some((_, rest)) = path.split_once("/namespaces/") else {
            let plural = path.rsplit('/').next().unwrap_or_default().to_owned();
            return Self { namespace: String::new(), plural, name: None };
        };
        let mut parts = rest.split('/').map(str::to_owned);
        let (namespace, plural) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        Self { namespace, plural, name: parts.next() }
    }
}

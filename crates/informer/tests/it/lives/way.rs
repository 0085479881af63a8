//! The way between a process and the server, on which everything can happen.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use http::{HeaderMap, Method, Request, Response, StatusCode, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use informer::model::{ObjectKey, Status};
use informer_apiserver::{ApiServer, Body, BoxError};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;
use tokio::{
    sync::{oneshot, watch},
    time::sleep,
};
use tower_service::Service;

use super::{
    process::{Answered, Life},
    program::DEADLINE,
    world::{Answer, InFlight, Place, Sender, World, text},
};

/// How much goes wrong with requests, each a probability, and how long things take.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weather {
    /// It does not reach the server.
    pub(crate) refused: f64,
    /// The server does not want to.
    pub(crate) busy: f64,
    /// It is carried out, and nobody hears of that.
    pub(crate) lost: f64,
    /// It is carried out later than it was sent, up to so much.
    pub(crate) late: f64,
    pub(crate) later: Duration,
    /// What every request takes at most, there and back.
    pub(crate) slow: Duration,
    /// How late at most the pieces of watches come.
    pub(crate) behind: Duration,
}

/// The way between one process and the server. It is cheap to clone (an `Arc`).
#[derive(Clone)]
pub(crate) struct Way(Arc<Shared>);

struct Shared {
    world: Arc<World>,
    life: Arc<Life>,
    weather: Mutex<Weather>,
    seed: u64,
    /// Of each resource and each widget, so that it does not matter which of those comes first that come at one moment: tokio leaves that to chance.
    chance: Mutex<HashMap<String, Pcg64Mcg>>,
    /// Nothing passes.
    cut_off: watch::Sender<bool>,
    /// Which watches wait, by the plural of their resource.
    held: watch::Sender<Vec<&'static str>>,
    /// Watches that began before this number are broken.
    broken: watch::Sender<u64>,
    open: AtomicUsize,
}

/// A watch that is open.
struct Open(Way);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Way {
    pub(crate) fn new(world: &Arc<World>, life: &Arc<Life>, seed: u64) -> Self {
        Self(Arc::new(Shared {
            world: Arc::clone(world),
            life: Arc::clone(life),
            weather: Mutex::default(),
            seed,
            chance: Mutex::default(),
            cut_off: watch::Sender::new(false),
            held: watch::Sender::default(),
            broken: watch::Sender::new(0),
            open: AtomicUsize::new(0),
        }))
    }

    pub(crate) fn set_weather(&self, weather: Weather) {
        *self.0.weather.lock().unwrap() = weather;
    }

    pub(crate) fn cut_off(&self, cut: bool) {
        self.0.cut_off.send_replace(cut);
    }

    pub(crate) fn hold(&self, held: Vec<&'static str>) {
        self.0.held.send_replace(held);
    }

    pub(crate) fn break_watches(&self) {
        self.0.broken.send_modify(|times| *times += 1);
    }

    pub(crate) fn open_watches(&self) -> usize {
        self.0.open.load(Ordering::Relaxed)
    }

    fn weather(&self) -> Weather {
        *self.0.weather.lock().unwrap()
    }

    /// A number between nothing and one.
    fn draw(&self, about: &str) -> f64 {
        let mut chances = self.0.chance.lock().unwrap();
        let seed =
            || about.bytes().fold(self.0.seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let chance = chances.entry(about.to_owned()).or_insert_with(|| Pcg64Mcg::seed_from_u64(seed()));
        chance.random_range(0.0..1.0)
    }

    fn happens(&self, about: &str, probability: f64) -> bool {
        probability > 0.0 && self.draw(about) < probability
    }

    async fn take_a_while(&self, about: &str, most: Duration) {
        if !most.is_zero() {
            sleep(most.mul_f64(self.draw(about))).await;
        }
    }

    async fn send(self, parts: Parts, body: Bytes) -> Result<Response<Body>, BoxError> {
        let (weather, cut_off) = (self.weather(), *self.0.cut_off.borrow());
        // Decided before anything is awaited: that is the moment at which it is sent.
        let (sent, decided) = (self.0.life.now(), self.0.life.decided());
        let token = self.0.life.terms.lock().unwrap().at(decided).map(|term| term.token);
        let place = Place::of(parts.uri.path());
        let about = about(&place, &body);
        let a_while = || self.take_a_while(&about, weather.slow);
        if cut_off || self.happens(&about, weather.refused) {
            a_while().await;
            return Err(error("the way is cut"));
        }
        if self.happens(&about, weather.busy) {
            a_while().await;
            return Ok(self.refusal(&about).response());
        }
        let query = parts.uri.query().unwrap_or_default();
        if parts.method == Method::GET
            && query.split('&').any(|part| matches!(part, "watch=1" | "watch=true"))
        {
            a_while().await;
            return self.watch(parts, place).await;
        }
        let (method, name) = (parts.method.clone(), place.name.clone());
        if place.plural == "leases" && body.windows(19).any(|part| part == br#""holderIdentity":"""#) {
            // It gives the Lease back: whatever becomes of that, its term is over.
            self.0.life.terms.lock().unwrap().read(None, sent);
        }
        let lost = self.happens(&about, weather.lost);
        let answer = if method == Method::GET {
            a_while().await;
            self.0.world.ask(parts, body)
        } else {
            let sender = Sender { life: Arc::clone(&self.0.life), token };
            let is_late = self.happens(&about, weather.late);
            let later = if is_late { weather.later.mul_f64(self.draw(&about)) } else { Duration::ZERO };
            a_while().await;
            self.deliver(parts, body, sender, later).await?
        };
        a_while().await;
        if lost || *self.0.cut_off.borrow() {
            self.0.world.state().counts.lost += u64::from(method != Method::GET);
            return Err(error("the answer was lost"));
        }
        self.hear(&method, &place, name, &answer, sent);
        Ok(answer.response())
    }

    /// Carries a write to the server. It goes on its way whatever becomes of who has sent it.
    async fn deliver(
        &self,
        parts: Parts,
        body: Bytes,
        sender: Sender,
        later: Duration,
    ) -> Result<Answer, BoxError> {
        let world = &self.0.world;
        if later.is_zero() {
            return Ok(world.write(parts, body, Some(&sender)));
        }
        let (answer, answered) = oneshot::channel();
        {
            let mut state = world.state();
            state.counts.late += u64::from(later > Duration::from_secs(1));
            let due = self.0.life.globally(self.0.life.now()) + later;
            state.wire.push(InFlight { due, parts, body, sender, answer });
        }
        answered.await.map_err(|_| error("the way has ended"))
    }

    /// An answer has come.
    fn hear(&self, method: &Method, place: &Place, name: Option<String>, answer: &Answer, sent: Duration) {
        let life = &self.0.life;
        if place.plural == "leases" {
            let now = life.now();
            let is_read = *method == Method::GET;
            if is_read || answer.parts.0 == StatusCode::NOT_FOUND {
                let lease = answer.is_success().then(|| answer.value());
                if answer.is_success() || answer.parts.0 == StatusCode::NOT_FOUND {
                    life.terms.lock().unwrap().read(lease.as_ref(), now);
                }
            } else if answer.is_success() {
                let began = life.terms.lock().unwrap().written(&answer.value(), &life.identity, sent, now);
                if let Some(token) = began {
                    self.check_term(token, life.globally(now));
                }
            }
            return;
        }
        if *method == Method::GET || !answer.is_success() {
            return;
        }
        let object = answer.value();
        let meta = &object["metadata"];
        let Some(name) = name.or_else(|| meta["name"].as_str().map(str::to_owned)) else { return };
        let Ok(key) = ObjectKey::new(Some(&place.namespace), &name) else { return };
        let uid = |value: &Value| value["uid"].as_str().unwrap_or_default().to_owned();
        let last =
            meta["deletionTimestamp"].is_string() && meta["finalizers"].as_array().is_none_or(Vec::is_empty);
        let answered = match meta["resourceVersion"].as_str().and_then(|version| version.parse().ok()) {
            Some(version) if !last => Answered::Version(version),
            Some(_) => Answered::Gone(uid(meta)),
            None => Answered::Gone(uid(&object["details"])),
        };
        life.answered(&place.plural, key, answered);
    }

    /// A term begins: no other one holds.
    fn check_term(&self, token: u64, now: Duration) {
        let (world, life) = (&self.0.world, &self.0.life);
        world.state().counts.terms += 1;
        world.tell(format!("{} leads: term {token}", life.identity));
        let (lives, deleted) = {
            let state = world.state();
            (state.lives.clone(), state.lease_deleted)
        };
        // A leader of the Lease that was deleted may go on for its deadline.
        let excepted = deleted.is_some_and(|deleted| now.saturating_sub(deleted) <= DEADLINE.mul_f64(1.2));
        for other in lives.iter().filter(|other| !Arc::ptr_eq(other, life)) {
            let at = other.locally(now);
            // In a slice of time some are at its beginning and others at its end.
            let holding = other
                .terms
                .lock()
                .unwrap()
                .at(at + Duration::from_millis(200))
                .map(|term| (term.token, term.until));
            if let Some((held, until)) = holding.filter(|_| !excepted) {
                world.wrong(format!(
                    "{} begins term {token}, and {} has term {held} until {until:?} of its clock, where it is {at:?}",
                    life.identity, other.identity
                ));
            }
        }
    }

    async fn watch(self, parts: Parts, place: Place) -> Result<Response<Body>, BoxError> {
        let server: ApiServer = self.0.world.server.clone();
        let response =
            server.service().call(Request::from_parts(parts, http_body_util::Empty::<Bytes>::new())).await?;
        // Of all namespaces: the resource is the end of the path.
        let plural = place.plural;
        let (parts, body) = response.into_parts();
        self.0.open.fetch_add(1, Ordering::Relaxed);
        let (broken, held, open) = (self.0.broken.subscribe(), self.0.held.subscribe(), Open(self.clone()));
        let pieces = Box::pin(body.into_data_stream());
        let pieces = stream::unfold(Some((pieces, broken, held, open, plural)), |rest| async move {
            let (mut pieces, mut broken, mut held, open, plural) = rest?;
            let way = open.0.clone();
            let waits = |held: &Vec<&str>| held.contains(&plural.as_str());
            let piece = async {
                let piece = pieces.next().await?;
                way.take_a_while(&plural, way.weather().behind).await;
                let _ = held.wait_for(|held| !waits(held)).await;
                Some(piece.map_err(|broken| broken.to_string()))
            };
            let piece = tokio::select! {
                biased;
                _ = broken.changed() => Some(Err("the watch is broken".to_owned())),
                piece = piece => piece,
            };
            match piece? {
                Ok(piece) => Some((Ok(Frame::data(piece)), Some((pieces, broken, held, open, plural)))),
                Err(broken) => Some((Err(error(&broken)), None)),
            }
        });
        Ok(Response::from_parts(parts, StreamBody::new(pieces).boxed_unsync()))
    }

    fn refusal(&self, about: &str) -> Answer {
        let status = match self.happens(about, 0.5) {
            true => Status::too_many_requests("not now", 1),
            false => Status::internal_error("it broke"),
        };
        let code = StatusCode::from_u16(status.code).unwrap();
        let body = serde_json::to_vec(&status).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json".parse().unwrap());
        Answer { parts: (code, headers), body: body.into() }
    }
}

/// The resource and the widget that a request is about.
fn about(place: &Place, body: &Bytes) -> String {
    let name = place.name.clone().or_else(|| {
        let object: Value = serde_json::from_slice(body).ok()?;
        text(&object, "/metadata/name").or_else(|| text(&object, "/metadata/generateName"))
    });
    let name = name.unwrap_or_default();
    format!("{} {}", place.plural, name.split('-').next().unwrap_or_default())
}

fn error(what: &str) -> BoxError {
    Box::new(std::io::Error::new(std::io::ErrorKind::ConnectionReset, what.to_owned()))
}

impl Service<Request<kube::client::Body>> for Way {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let way = self.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            way.send(parts, body).await
        }
        .boxed()
    }
}

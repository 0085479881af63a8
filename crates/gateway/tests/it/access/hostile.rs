//! Whatever is asked, by whomever: nobody sees an object, or a count, a token, a name or an event of one, that the rules
//! of the cluster do not allow. And nobody is refused what they do.
//!
//! Random worlds are asked random requests, and every answer, header and event is searched for marks of objects that the
//! [model](super::model) does not show to the caller.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    net::SocketAddr,
    time::Duration,
};

use axum::{Router, body::Body};
use flate2::read::GzDecoder;
use http::{HeaderValue, Request, Response, Version};
use http_body_util::BodyExt;
use informer_gateway::{Auth, Gateway, Packing};
use informer_testing::{number, seed};
use rand::RngExt;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tower_service::Service;

use super::{
    model::{Ask, Binding, GRACE, Subject},
    requests::{Aim, Asked, Loot},
    world::{KINDS, NAMESPACES, SECRETS, World, mark, marks, numbers},
};

/// How many requests one world gets, and a run unless it is said otherwise.
const OF_A_WORLD: u64 = 500;
const REQUESTS: u64 = 20_000;
const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 8888);
/// How many streams are open at a time.
const STREAMS: usize = 12;

/// What a body says.
fn plain(coding: Option<&HeaderValue>, body: &[u8]) -> String {
    let mut plain = Vec::new();
    match coding.map(HeaderValue::as_bytes) {
        None => plain.extend(body),
        // The answer to HEAD has no body.
        Some(_) if body.is_empty() => {}
        Some(b"gzip") => drop(GzDecoder::new(body).read_to_end(&mut plain).expect("gzip")),
        Some(b"zstd") => zstd::stream::copy_decode(body, &mut plain).expect("zstd"),
        Some(coding) => panic!("nobody asked for {coding:?}"),
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// How often each route was answered how.
#[derive(Default)]
struct Tally {
    outcomes: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    requests: u64,
    objects: u64,
    pieces: u64,
    compared: u64,
    compressed: u64,
}

/// A stream that somebody reads.
struct Open {
    asked: Asked,
    reader: tokio::task::JoinHandle<()>,
}

struct Trial {
    world: World,
    router: Router,
    gateway: Gateway,
    loot: Loot,
    open: Vec<Option<Open>>,
    heard: mpsc::UnboundedReceiver<(usize, Instant, String)>,
    tell: mpsc::UnboundedSender<(usize, Instant, String)>,
    /// Whether the cluster answers all reviews.
    answers: bool,
    wrong: Option<String>,
}

/// Asks one world so many requests. What was wrong, if something was.
fn play(seed: u64, requests: u64, prepare: fn(&mut World), tally: &mut Tally) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let mut trial = Trial::new(seed, prepare);
        for _ in 0..requests {
            trial.step(tally).await;
            if trial.wrong.is_some() {
                break;
            }
        }
        trial.gateway.stop();
        trial.wrong
    })
}

impl Trial {
    fn new(seed: u64, prepare: fn(&mut World)) -> Self {
        let mut world = World::new(seed);
        prepare(&mut world);
        // Every other gateway keeps packed what it can.
        let packing = if seed.is_multiple_of(2) { Packing::Always } else { Packing::Never };
        let builder = Gateway::builder(world.cluster.client()).auth(Auth::Kubernetes).packing(packing);
        let gateway = builder.build().expect("a gateway");
        let router = gateway.router(SocketAddr::from(ADDRESS)).expect("a router");
        let (tell, heard) = mpsc::unbounded_channel();
        let (loot, open) = (Loot::default(), Vec::new());
        Self { world, router, gateway, loot, open, heard, tell, answers: true, wrong: None }
    }

    /// Something changes, perhaps; time passes, perhaps; somebody asks.
    async fn step(&mut self, tally: &mut Tally) {
        // In a calm world rules stay for long, and what is known of them counts for long.
        let moment = self.world.random.random_range(if self.world.calm { 40..4_000 } else { 0..1_000 });
        match moment {
            0..60 => self.world.change_object(),
            60..75 => self.world.change_policy(),
            75..85 => {
                self.world.change_policy();
                sleep(GRACE + Duration::from_millis(1)).await;
            }
            85..88 | 1_200..1_230 if !self.loot.asked.is_empty() => self.repeat_revoked(tally).await,
            88..94 | 1_230..1_260 => self.world.replace_namespace().await,
            94..97 => {
                self.answers ^= true;
                self.world.cluster.break_reviews(!self.answers);
            }
            97..180 | 1_000..1_200 => {
                let moment = Duration::from_millis(self.world.random.random_range(10..4_000));
                sleep(moment).await;
            }
            _ => {}
        }
        if !self.answers && self.world.chance(10) {
            self.answers = true;
            self.world.cluster.break_reviews(false);
        }
        self.world.settle().await;
        self.listen(tally);
        let asked = self.world.request(&mut self.loot);
        self.ask(asked, tally).await;
        self.listen(tally);
    }

    /// Somebody who may no longer do anything asks what was allowed before, and nobody has asked in between.
    async fn repeat_revoked(&mut self, tally: &mut Tally) {
        self.open.iter_mut().flatten().for_each(|open| open.reader.abort());
        let again = self.world.any(&self.loot.asked).clone();
        let before = self.world.history.newest();
        self.world.revoke(again.user);
        sleep(GRACE + Duration::from_millis(1)).await;
        self.ask(again, tally).await;
        self.world.publish((*before).clone());
    }

    async fn ask(&mut self, asked: Asked, tally: &mut Tally) {
        let mut request = Request::builder().method(asked.method);
        request = match asked.http2 {
            // There is no Host header: the name stands in the URI.
            true => request.version(Version::HTTP_2).uri(format!("http://127.0.0.1:8888{}", asked.uri())),
            false => request.uri(asked.uri()).header("host", "127.0.0.1:8888"),
        };
        for (name, value) in &asked.headers {
            request = request.header(*name, value);
        }
        // Not everything is something that HTTP can carry.
        let Ok(request) = request.body(Body::empty()) else { return };
        tally.requests += 1;
        let begun = Instant::now();
        let settled = self.answers && self.world.history.is_settled();
        let response = self.router.clone().call(request).await.expect("an answer");
        let (head, mut body) = response.into_parts();
        let coding = head.headers.get("content-encoding").cloned();
        // What is compressed has an end, and says nothing before it.
        let patience = Duration::from_millis(if coding.is_some() { 60_000 } else { 5 });
        let mut bytes = Vec::new();
        let unread = asked.route == "stream" && self.world.chance(40);
        let ended = loop {
            if unread {
                break false;
            }
            match timeout(patience, body.frame()).await {
                Ok(Some(frame)) => bytes.extend(frame.expect("no cut").into_data().expect("no trailers")),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        tally.compressed += u64::from(coding.is_some());
        let text = plain(coding.as_ref(), &bytes);
        let code = head.status.as_u16();
        let headers: String = head
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())))
            .collect();
        let all = format!("{code}\n{headers}\n{text}");
        let objects = self.check(&asked, begun, &all);
        let outcome = match code {
            200 if objects > 0 => "objects",
            200 => "200",
            304 => "304",
            401 => "401",
            403 => "403",
            404 => "404",
            400..500 => "4xx",
            _ => "5xx",
        };
        *tally.outcomes.entry(asked.route).or_default().entry(outcome).or_default() += 1;
        tally.objects += objects as u64;
        // Waiting for a version takes time, in which rules can come to count.
        if settled && asked.method == "GET" && !unread && self.wrong.is_none() {
            self.compare(&asked, code, &all, tally);
        }
        self.keep(&asked, &Response::from_parts(head, ()), &text);
        if !ended {
            self.loot.unread = Some(asked.clone()).filter(|_| unread);
            self.follow(asked, body, unread);
        }
    }

    /// Reads on, for as long as it lasts: as it comes, or slowly.
    fn follow(&mut self, asked: Asked, mut body: Body, unread: bool) {
        let number = self.open.len();
        let (tell, slow) = (self.tell.clone(), unread || self.world.chance(25));
        let reader = tokio::spawn(async move {
            sleep(Duration::from_secs(if unread { 1 } else { 0 })).await;
            while let Some(Ok(frame)) = body.frame().await {
                let data = frame.into_data().unwrap_or_default();
                if tell.send((number, Instant::now(), String::from_utf8_lossy(&data).into_owned())).is_err() {
                    break;
                }
                if slow {
                    sleep(Duration::from_secs(5)).await;
                }
            }
        });
        self.open.push(Some(Open { asked, reader }));
        if let Some(Some(oldest)) = self.open.len().checked_sub(STREAMS).and_then(|at| self.open.get_mut(at))
        {
            oldest.reader.abort();
        }
    }

    /// Looks at what the streams have said since.
    fn listen(&mut self, tally: &mut Tally) {
        while let Ok((number, at, text)) = self.heard.try_recv() {
            tally.pieces += 1;
            let Some(Some(Open { asked, .. })) = self.open.get(number) else { continue };
            let asked = asked.clone();
            tally.objects += self.check(&asked, at, &text) as u64;
            self.loot
                .ids
                .extend(text.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned));
        }
        let old = self.loot.ids.len().saturating_sub(30);
        self.loot.ids.drain(..old);
    }

    /// Looks for what the caller may not know. How many objects it has.
    fn check(&mut self, asked: &Asked, at: Instant, text: &str) -> usize {
        let since = at.checked_sub(GRACE).unwrap_or(at);
        let known = self.known(asked);
        let world = &self.world;
        let found = marks(text);
        let told: Vec<(usize, char)> = found
            .iter()
            .copied()
            .filter(|(number, letter)| !known.contains(&mark(*number, *letter)))
            .collect();
        for (number, letter) in told {
            if !world.may_know(since, asked.user, asked.verbs, (number, letter), &known) {
                let what = world.things.get(number).map(ToString::to_string).unwrap_or_default();
                return self.fail(asked, text, &format!("{} of {what} is told", mark(number, letter)));
            }
        }
        if asked.has("continue") || asked.verbs.is_empty() {
            return found.len();
        }
        // Of what can be counted, no more than is seen. A slow reader is told what there was a while ago.
        let was_there = |number: &usize| world.things[*number].gone.is_none_or(|gone| gone > since);
        let seen = |number: &usize| {
            let by_name = known.contains(&world.things[*number].name);
            world.sees(since, asked.user, asked.verbs, *number, by_name)
        };
        let there: Vec<usize> = (0..world.things.len()).filter(was_there).filter(seen).collect();
        let kinds = (0..KINDS.len())
            .map(|kind| there.iter().filter(|number| world.things[**number].kind == kind).count());
        let most = match &asked.aim {
            Some(Aim::Objects { kind, .. }) => kinds.clone().nth(*kind).unwrap_or_default(),
            _ => kinds.max().unwrap_or_default(),
        };
        let header = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        let counted = ["total", "count", "matched", "scanned", "remainingItemCount"];
        let counted =
            counted.iter().flat_map(|member| numbers(text, member).map(move |count| (*member, count)));
        let total = header("x-total-count:").map(|count| ("x-total-count", count));
        if let Some((member, count)) = counted.chain(total).find(|(_, count)| *count > most) {
            return self.fail(asked, text, &format!("{member} is {count}, and {most} can be seen"));
        }
        found.len()
    }

    /// All that the caller says, in every spelling of it: it is no news to the caller, and neither is its name.
    fn known(&self, asked: &Asked) -> String {
        let headers: Vec<&str> = asked.headers.iter().map(|(_, value)| value.as_str()).collect();
        let said = format!("{} {}", asked.uri(), headers.join(" "));
        let once = percent_encoding::percent_decode_str(&said).decode_utf8_lossy().into_owned();
        let twice = percent_encoding::percent_decode_str(&once).decode_utf8_lossy().into_owned();
        let users = &self.world.history.newest().users;
        format!("{twice} {} {}", twice.to_lowercase(), users[asked.user].name)
    }

    fn fail(&mut self, asked: &Asked, text: &str, why: &str) -> usize {
        let user = &self.world.history.newest().users[asked.user];
        let text: String = text.chars().take(1_500).collect();
        let headers: Vec<String> =
            asked.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        self.wrong = Some(format!(
            "{why}\n{} {} of {} in {:?}, aim {:?}\n{}\n{text}",
            asked.method,
            asked.uri(),
            user.name,
            user.groups,
            asked.aim,
            headers.join("\n")
        ));
        0
    }

    /// Compares an answer with what the model says, where that is certain.
    fn compare(&mut self, asked: &Asked, code: u16, text: &str, tally: &mut Tally) {
        let Some(aim) = &asked.aim else { return };
        let Some((wanted, objects)) = self.expected(asked.user, aim) else { return };
        tally.compared += 1;
        // A list may have ended, and a version may be one of another kind of object.
        if (asked.has("continue") && matches!(code, 400 | 410)) || (asked.names_version() && code == 504) {
            return;
        }
        if code == 304 {
            let tag = asked.headers.iter().find(|(name, _)| *name == "if-none-match").map(|(_, tag)| tag);
            let stood_for =
                self.loot.tags.iter().find(|(_, known, _)| Some(known) == tag).map(|(_, _, objects)| objects);
            if wanted != 200
                || stood_for.is_some_and(|known| BTreeSet::from_iter(known.iter().copied()) != objects)
            {
                self.fail(asked, text, &format!("not modified, but {wanted} with {objects:?} is right"));
            }
            return;
        }
        if code != wanted {
            self.fail(asked, text, &format!("{code}, but {wanted} is right"));
            return;
        }
        let Aim::Objects { kind, limit, exact: true, .. } = aim else { return };
        if code != 200 {
            return;
        }
        // A stream may begin with what there was two seconds ago, and then tell what has gone since.
        let is_told_of = |gone: &Instant| asked.route == "stream" && gone.elapsed() <= Duration::from_secs(2);
        let things = &self.world.things;
        let is_kind = |number: &usize| {
            let thing = things.get(*number).filter(|thing| thing.kind == *kind);
            thing.is_some_and(|thing| !thing.gone.as_ref().is_some_and(is_told_of))
        };
        let told: BTreeSet<usize> =
            marks(text).into_iter().map(|(number, _)| number).filter(is_kind).collect();
        let total = text.lines().find_map(|line| line.strip_prefix("x-total-count: ")?.parse().ok());
        let is_right = total.is_none_or(|total: usize| total == objects.len())
            && match limit {
                Some(limit) => told.is_subset(&objects) && told.len() == objects.len().min(*limit),
                None => told == objects,
            };
        if !is_right {
            self.fail(asked, text, &format!("{told:?} is told, but {objects:?} is right"));
        }
    }

    /// The code, and the objects, of a plain request.
    fn expected(&self, user: usize, aim: &Aim) -> Option<(u16, BTreeSet<usize>)> {
        let policy = self.world.history.newest();
        let who = &policy.users[user];
        if !who.known {
            return Some((401, BTreeSet::new()));
        }
        let refused = Some((403, BTreeSet::new()));
        let (verb, kind, namespaces, name) = match aim {
            Aim::Path(path) => {
                let allowed = policy.allows(&who.name, &who.groups, &Ask::Path(path));
                return Some((if allowed { 200 } else { 403 }, BTreeSet::new()));
            }
            Aim::Objects { verb, kind, namespaces, name, .. } => (*verb, *kind, namespaces, name.as_deref()),
        };
        if kind == SECRETS {
            return refused;
        }
        let may = |namespace: &str| {
            let (group, resource) = (KINDS[kind].group, KINDS[kind].plural);
            let ask = Ask::Resource { verb, group, resource, namespace, name: name.unwrap_or_default() };
            policy.allows(&who.name, &who.groups, &ask)
        };
        let meant: BTreeSet<usize> =
            self.world.alive().into_iter().filter(|number| self.world.is_meant(aim, *number)).collect();
        if verb == "get" {
            let place = match name {
                Some(name) if kind == NAMESPACES => name,
                _ => namespaces.first().map_or("", String::as_str),
            };
            return match (may(place), meant.is_empty()) {
                (false, _) => refused,
                (true, true) => Some((404, meant)),
                (true, false) => Some((200, meant)),
            };
        }
        // Everywhere, or wherever it is allowed of what was asked for, or of what there is.
        let places: Vec<String> = match namespaces.is_empty() {
            _ if may("") => return Some((200, meant)),
            true if !KINDS[kind].namespaced => return refused,
            true => self
                .world
                .things
                .iter()
                .filter(|thing| thing.gone.is_none() && thing.kind == NAMESPACES)
                .map(|thing| thing.name.clone())
                .collect(),
            false => namespaces.clone(),
        };
        let places: Vec<String> = places.into_iter().filter(|place| may(place)).collect();
        let inside = |number: &usize| places.contains(&self.world.things[*number].namespace);
        match places.is_empty() {
            true => refused,
            false => Some((200, meant.into_iter().filter(inside).collect())),
        }
    }

    /// Keeps what others can try.
    fn keep(&mut self, asked: &Asked, head: &Response<()>, text: &str) {
        let header =
            |name: &str| head.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let plain = asked.aim.is_some() && !asked.has("continue") && head.status() == 200;
        if plain {
            self.loot.asked.push(asked.clone());
        }
        if let (true, Some(token)) = (plain, header("x-continue")) {
            self.loot.tokens.push((asked.clone(), token));
        }
        if let (true, Some(tag), Some(Aim::Objects { kind, exact: true, .. })) =
            (plain, header("etag"), &asked.aim)
        {
            let is_kind =
                |number: &usize| self.world.things.get(*number).is_some_and(|thing| thing.kind == *kind);
            let objects = marks(text).into_iter().map(|(number, _)| number).filter(is_kind);
            let objects = BTreeSet::from_iter(objects).into_iter().collect();
            self.loot.tags.push((asked.clone(), tag, objects));
        }
        let Loot { tokens, tags, asked, .. } = &mut self.loot;
        asked.drain(..asked.len().saturating_sub(30));
        tokens.drain(..tokens.len().saturating_sub(8));
        tags.drain(..tags.len().saturating_sub(8));
    }
}

/// As many worlds as it takes.
fn run(requests: u64, prepare: fn(&mut World)) -> Result<Tally, String> {
    let first = seed();
    let mut tally = Tally::default();
    for seed in (0..requests.div_ceil(OF_A_WORLD)).map(|world| first.wrapping_add(world)) {
        if let Some(wrong) = play(seed, OF_A_WORLD, prepare, &mut tally) {
            let asked = tally.requests;
            return Err(format!(
                "{wrong}\nafter {asked} requests; replay with INFORMER_SEED={seed} INFORMER_HOSTILE_REQUESTS={OF_A_WORLD}"
            ));
        }
    }
    println!("seed {first}");
    Ok(tally)
}

impl Tally {
    fn share(&self, outcome: &str) -> u64 {
        let count: u64 = self.outcomes.values().filter_map(|of_route| of_route.get(outcome)).sum();
        100 * count / self.requests.max(1)
    }

    fn print(&self) {
        let outcomes = ["objects", "200", "304", "401", "403", "404", "4xx", "5xx"];
        println!("{:<18}{}", "", outcomes.map(|outcome| format!("{outcome:>9}")).concat());
        for (route, counts) in &self.outcomes {
            let row =
                outcomes.map(|outcome| format!("{:>9}", counts.get(outcome).copied().unwrap_or_default()));
            println!("{route:<18}{}", row.concat());
        }
        let Self { requests, objects, pieces, compared, compressed, .. } = self;
        println!(
            "{requests} requests, {compared} compared with the model, {compressed} answers compressed; {objects} marks of objects seen, {pieces} pieces of streams"
        );
    }
}

#[test]
fn whatever_is_asked_nobody_sees_what_the_rules_do_not_allow() {
    let requests = number("INFORMER_HOSTILE_REQUESTS").unwrap_or(REQUESTS);
    let tally = run(requests, |_| {}).unwrap_or_else(|wrong| panic!("{wrong}"));
    tally.print();
    if requests >= REQUESTS {
        assert!(tally.share("objects") >= 20, "much is seen");
        assert!(tally.share("403") >= 10, "much is forbidden");
        assert!(tally.compared * 100 >= tally.requests * 25, "much is compared");
        assert!(tally.compressed * 100 >= tally.requests, "some of it is compressed");
    }
}

#[test]
fn a_cluster_that_allows_one_namespace_too_many_is_found_out() {
    let wrong = run(REQUESTS, |world| {
        world.mistake =
            Some(Binding { subject: Subject::User("bob".to_owned()), role: (true, "everything".to_owned()) });
        let policy = (*world.history.newest()).clone();
        world.publish(policy);
    });
    let wrong = wrong.err().expect("bob sees what the rules do not allow");
    assert!(wrong.contains(" of bob in "), "{wrong}");
}

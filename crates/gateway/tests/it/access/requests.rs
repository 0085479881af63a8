//! Requests of all sorts: plain ones whose answer the model knows, and hostile ones.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand::RngExt;

use super::world::{DEPLOYMENTS, KINDS, NAMESPACES, NOBODY, ROOT, World, mark};

/// What a plain request is for.
#[derive(Debug, Clone)]
pub(crate) enum Aim {
    Path(String),
    Objects {
        verb: &'static str,
        kind: usize,
        namespaces: Vec<String>,
        name: Option<String>,
        app: Option<&'static str>,
        limit: Option<usize>,
        /// Whether every object of the answer is told, with a mark.
        exact: bool,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) route: &'static str,
    /// Whose token is shown, or who is known to be behind the request.
    pub(crate) user: usize,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) http2: bool,
    /// What one must be allowed to do for such an answer.
    pub(crate) verbs: &'static [&'static str],
    /// Known for plain requests.
    pub(crate) aim: Option<Aim>,
}

const ANY: &[&str] = &["get", "list", "watch"];

/// What others were told, for those who try it as well.
#[derive(Default)]
pub(crate) struct Loot {
    /// Continue tokens, with the request that they were an answer to.
    pub(crate) tokens: Vec<(Asked, String)>,
    /// Tags, with the request and the objects that they stand for.
    pub(crate) tags: Vec<(Asked, String, Vec<usize>)>,
    /// Where streams were.
    pub(crate) ids: Vec<String>,
    /// What was asked lately, to be asked again.
    pub(crate) asked: Vec<Asked>,
    /// A stream that somebody else asks for while it has not been read.
    pub(crate) unread: Option<Asked>,
}

impl Asked {
    pub(crate) fn uri(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let query: Vec<String> =
            self.query.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        format!("{}?{}", self.path, query.join("&"))
    }

    fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.query.push((name.to_owned(), value.into()));
    }

    /// Whether it waits for a version.
    pub(crate) fn names_version(&self) -> bool {
        self.has("minResourceVersion") || self.has("resourceVersion")
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.query.iter().any(|(known, _)| known == name)
    }
}

impl World {
    /// Any request of anybody.
    pub(crate) fn request(&mut self, loot: &mut Loot) -> Asked {
        let users = self.history.newest().users.len();
        let user = if self.chance(6) { ROOT } else { self.random.random_range(1..users) };
        if let Some(unread) = loot.unread.take() {
            return self.as_other(unread, user);
        }
        let mut asked = match self.random.random_range(0..100) {
            0..26 => self.list(user, false),
            26..46 => self.list(user, true),
            46..62 => self.get(user),
            62..69 => self.watch(user),
            69..76 => self.stream(user, loot),
            76..80 => self.owned(user),
            80..85 => return self.loot(user, loot),
            85..92 if !loot.asked.is_empty() => return self.any(&loot.asked).clone(),
            _ => self.document(user),
        };
        asked = self.as_other(asked, user);
        asked.http2 = self.chance(30);
        if self.chance(20) {
            let codings = ["gzip", "zstd", "gzip;q=0.5, zstd;q=0.1", "br, *", "identity, gzip;q=0"];
            asked.headers.push(("accept-encoding", self.word(&codings).to_owned()));
        }
        if self.chance(22) {
            asked.aim = None;
            asked.verbs = ANY;
            for _ in 0..self.random.random_range(1..=2) {
                self.twist(&mut asked);
            }
            let mut shown = asked.headers.iter().filter(|(name, _)| *name == "authorization");
            if let (Some((_, token)), None) = (shown.next(), shown.next())
                && *token == format!("Bearer {}", self.history.newest().users[ROOT].token)
            {
                asked.user = ROOT;
            }
        }
        asked
    }

    /// An object to aim at: often one that may be seen.
    fn target(&mut self, user: usize, verb: &str) -> usize {
        let alive = self.alive();
        let mut number = *self.any(&alive);
        let tries = if self.chance(75) { 30 } else { 0 };
        for _ in 0..tries {
            if self.sees(tokio::time::Instant::now(), user, &[verb], number, true) {
                break;
            }
            number = *self.any(&alive);
        }
        number
    }

    fn mk(&self, route: &'static str, user: usize, path: String, verbs: &'static [&'static str]) -> Asked {
        let (query, headers) = (Vec::new(), Vec::new());
        Asked { route, user, method: "GET", path, query, headers, http2: false, verbs, aim: None }
    }

    /// Objects of a kind in some namespaces, by the path of Kubernetes or the gateway's own.
    fn objects(&mut self, user: usize, verb: &'static str, route: &'static str) -> Asked {
        let number = self.target(user, verb);
        let (kind, own, name, app) = {
            let thing = &self.things[number];
            (thing.kind, thing.namespace.clone(), thing.name.clone(), thing.app)
        };
        let all = self.namespaces();
        let other = if self.chance(10) { "zq99999n".to_owned() } else { self.any(&all).clone() };
        let mut namespaces = match self.random.random_range(0..12) {
            _ if !KINDS[kind].namespaced => Vec::new(),
            0..5 => Vec::new(),
            5..9 => vec![own],
            9 => vec![other],
            _ => vec![own, other],
        };
        namespaces.dedup();
        let by_kubernetes = matches!(route, "kubernetes list" | "kubernetes watch");
        let (group, plural) = (KINDS[kind].group, KINDS[kind].plural);
        let prefix = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        let named = if group.is_empty() { "core" } else { group };
        let path = match (by_kubernetes, namespaces.as_slice()) {
            (true, [namespace]) => format!("{prefix}/v1/namespaces/{namespace}/{plural}"),
            (true, _) => format!("{prefix}/v1/{plural}"),
            (false, _) if route == "stream" => format!("/_stream/{named}/v1/{plural}"),
            (false, _) if kind == DEPLOYMENTS && self.chance(30) => "/deploy".to_owned(),
            (false, _) => format!("/{named}/v1/{plural}"),
        };
        let mut asked = self.mk(route, user, path, if verb == "list" { &["list"] } else { &["watch"] });
        if !by_kubernetes || namespaces.len() > 1 {
            namespaces.iter().for_each(|namespace| asked.set("namespace", namespace));
        }
        let name = Some(name).filter(|_| self.chance(15));
        let mut fields: Vec<String> = name.iter().map(|name| format!("metadata.name={name}")).collect();
        let exact = !self.chance(8);
        if !exact {
            let more = [
                "status.phase!=Failed",
                "metadata.namespace!=x",
                "spec.mark exists",
                "status.phase in (Running,Failed)",
            ];
            fields.push(self.word(&more).to_owned());
        }
        if !fields.is_empty() {
            asked.set("fieldSelector", fields.join(","));
        }
        let app = Some(app).filter(|_| self.chance(20));
        if let Some(app) = app {
            let is_deploy = asked.path == "/deploy";
            asked.set(
                if is_deploy { "labels[app]" } else { "labelSelector" },
                if is_deploy { app.to_owned() } else { format!("app={app}") },
            );
        }
        asked.aim = Some(Aim::Objects { verb, kind, namespaces, name, app, limit: None, exact });
        asked
    }

    fn list(&mut self, user: usize, by_kubernetes: bool) -> Asked {
        let mut asked =
            self.objects(user, "list", if by_kubernetes { "kubernetes list" } else { "own list" });
        if self.chance(20) {
            let most = self.random.random_range(1..4);
            asked.set("limit", most.to_string());
            if let Some(Aim::Objects { limit, .. }) = &mut asked.aim {
                *limit = Some(most);
            }
        }
        if self.chance(15) {
            asked.set("explain", "1");
        }
        if self.chance(10) {
            let order = *self.any(&[
                "metadata.name",
                "-metadata.uid",
                "spec.mark",
                "-metadata.labels.mark,metadata.name",
            ]);
            asked.set("sort", order);
        }
        if self.chance(5) {
            asked.set("minResourceVersion", self.cluster.version().to_string());
        }
        match self.random.random_range(0..10) {
            0 if !by_kubernetes => asked.set("as", "table"),
            0 => self.accept(&mut asked),
            1 => asked.set(
                "fields",
                self.word(&["metadata.name,metadata.uid", "metadata.uid,spec", "metadata.labels"]),
            ),
            2 if by_kubernetes => asked.set("resourceVersion", "0"),
            _ => {}
        }
        asked
    }

    fn accept(&mut self, asked: &mut Asked) {
        let form = self.word(&["Table", "PartialObjectMetadata", "PartialObjectMetadataList"]);
        asked
            .headers
            .push(("accept", format!("application/json;as={form};v=v1;g=meta.k8s.io,application/json")));
        if self.chance(30) {
            asked.set("includeObject", self.word(&["None", "Metadata", "Object"]));
            // Names alone have no marks where the cluster gave them.
            self.inexact(asked);
        }
    }

    fn get(&mut self, user: usize) -> Asked {
        let number = self.target(user, "get");
        let alive = self.alive();
        let other = *self.any(&alive);
        let thing = &self.things[number];
        let (kind, namespace, name) = (&KINDS[thing.kind], &thing.namespace, &thing.name);
        let name = if number % 9 == 1 { &self.things[other].name } else { name };
        let prefix = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
        let place = if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
        let path = format!("{prefix}/v1/{place}{}/{name}", kind.plural);
        let mut asked = self.mk("kubernetes get", user, path, &["get"]);
        let namespaces = Vec::from_iter([namespace.clone()].into_iter().filter(|place| !place.is_empty()));
        let name = Some(name.clone());
        asked.aim = Some(Aim::Objects {
            verb: "get",
            kind: thing.kind,
            namespaces,
            name,
            app: None,
            limit: None,
            exact: true,
        });
        if self.chance(10) {
            self.accept(&mut asked);
        }
        asked
    }

    fn watch(&mut self, user: usize) -> Asked {
        let mut asked = self.objects(user, "watch", "kubernetes watch").with("watch", "1");
        let seconds = self.random.random_range(5..60);
        asked.set("timeoutSeconds", seconds.to_string());
        match self.random.random_range(0..5) {
            0 => {
                let version = self.cluster.version().saturating_sub(self.random.random_range(0..20));
                asked.set("resourceVersion", version.to_string());
                self.inexact(&mut asked);
            }
            1 => {
                ["sendInitialEvents", "allowWatchBookmarks"].iter().for_each(|name| asked.set(name, "true"));
                asked.set("resourceVersionMatch", "NotOlderThan");
            }
            2 => self.accept(&mut asked),
            _ => {}
        }
        asked
    }

    fn inexact(&self, asked: &mut Asked) {
        if let Some(Aim::Objects { exact, .. }) = &mut asked.aim {
            *exact = false;
        }
    }

    fn stream(&mut self, user: usize, loot: &Loot) -> Asked {
        let mut asked = self.objects(user, "watch", "stream");
        match self.random.random_range(0..7) {
            0 => asked.set("as", "table"),
            1 => asked.set("fields", self.word(&["metadata.name,metadata.uid", "metadata.labels,spec"])),
            2 => asked.set("interval", self.word(&["100ms", "5s"])),
            3 if !loot.ids.is_empty() => {
                self.inexact(&mut asked);
                let id = self.any(&loot.ids).clone();
                match self.chance(50) {
                    true => asked.set("lastEventId", id),
                    false => asked.headers.push(("last-event-id", id)),
                }
            }
            _ => {}
        }
        if self.chance(20) {
            // Over one connection with another one.
            let other = self.objects(user, "watch", "stream");
            let mut several = self.mk("streams", user, "/_streams".to_owned(), &["watch"]);
            for one in [&asked, &other] {
                several.set("of", one.uri().replacen("/_stream/", "", 1));
            }
            return several;
        }
        asked
    }

    fn owned(&mut self, user: usize) -> Asked {
        let alive = self.alive();
        let owners: Vec<usize> =
            alive.iter().copied().filter(|number| self.things[*number].kind == DEPLOYMENTS).collect();
        let number = if owners.is_empty() { *self.any(&alive) } else { *self.any(&owners) };
        let mut asked = self.mk("owned", user, format!("/_owned/{}", mark(number, 'u')), &["list"]);
        if self.chance(40) {
            asked.set("resources", self.word(&["pods", "pods,deployments", "widgets", "secrets"]));
        }
        if self.chance(20) {
            asked.set("depth", "3");
        }
        asked
    }

    fn document(&mut self, user: usize) -> Asked {
        let discovery = ["/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"];
        let documents = ["/_resources", "/_informers", "/metrics", "/version"];
        let open = ["/", "/readyz?verbose=1", "/livez", "/openapi.json", "/_page/main.js"];
        let (route, path) = match self.random.random_range(0..10) {
            0..4 => ("discovery", self.word(&discovery)),
            4..8 => ("about", self.word(&documents)),
            _ => ("open", self.word(&open)),
        };
        let mut asked = self.mk(route, user, path.to_owned(), &[]);
        let right = if path == "/_resources" { "/apis" } else { path };
        asked.aim = Some(Aim::Path(right.to_owned())).filter(|_| route != "open");
        asked
    }

    /// What somebody else was given.
    fn loot(&mut self, user: usize, loot: &Loot) -> Asked {
        let (mut asked, tag) = match (loot.tokens.as_slice(), loot.tags.as_slice()) {
            ([], []) => (self.list(user, true), None),
            (tokens, tags) if tags.is_empty() || (!tokens.is_empty() && self.chance(60)) => {
                let (asked, token) = self.any(tokens).clone();
                let mut asked = asked.with("continue", token);
                self.inexact(&mut asked);
                (asked, None)
            }
            (_, tags) => {
                let (asked, tag, _) = self.any(tags).clone();
                (asked, Some(tag))
            }
        };
        asked.headers.retain(|(name, _)| *name != "if-none-match");
        asked.headers.extend(tag.map(|tag| ("if-none-match", tag)));
        asked.route = "loot";
        // Now and then it is one's own.
        let user = if self.chance(20) { asked.user } else { user };
        self.as_other(asked, user)
    }

    /// The same, as somebody else.
    fn as_other(&self, mut asked: Asked, user: usize) -> Asked {
        asked.headers.retain(|(name, _)| *name != "authorization");
        asked.headers.push(("authorization", format!("Bearer {}", self.history.newest().users[user].token)));
        Asked { user, ..asked }
    }

    /// Something that should not help.
    fn twist(&mut self, asked: &mut Asked) {
        let all = self.namespaces();
        let (place, other) = (self.any(&all).clone(), self.any(&all).clone());
        let root = self.history.newest().users[ROOT].token.clone();
        let at = self.random.random_range(0..=asked.path.len());
        match self.random.random_range(0..26) {
            0 => asked.headers.push(("authorization", format!("Bearer {root}"))),
            1 => asked.headers.insert(0, ("authorization", format!("Bearer {root}"))),
            2 => {
                let name = *self.any(&[
                    "impersonate-user",
                    "impersonate-group",
                    "impersonate-uid",
                    "impersonate-extra-x",
                ]);
                asked.headers.push((name, self.word(&["root", "admins", "system:masters"]).to_owned()));
            }
            3 => {
                let names = [
                    "x-remote-user",
                    "x-remote-group",
                    "x-forwarded-user",
                    "x-forwarded-for",
                    "x-forwarded-access-token",
                    "x-real-ip",
                ];
                asked.headers.push((
                    self.word(&names),
                    self.word(&["root", "admins", "127.0.0.1", "token-0"]).to_owned(),
                ));
            }
            4 => asked.headers.push(("cookie", format!("token={root}; authorization=Bearer {root}"))),
            5 => asked.set(self.word(&["token", "access_token", "authorization", "as", "user"]), root),
            6 => asked.method = self.word(&["POST", "PUT", "DELETE", "OPTIONS", "PATCH"]),
            7 | 8 => asked.method = "HEAD",
            9 => {
                // One letter of the path in another spelling.
                if let Some(letter) = asked.path[at..].chars().next().filter(char::is_ascii_alphanumeric) {
                    asked.path.replace_range(at..=at, &format!("%{:02X}", letter as u8));
                }
            }
            10 => asked.path.insert_str(
                at,
                self.word(&["/", "//", "/./", "/../", "%2f", "%2e%2e/", "%00", ";", "\\", "*", ","]),
            ),
            11 => asked.path.push_str(&format!("/../../{other}/pods")),
            12 => asked.path = format!("/api/v1/namespaces/{place}/pods/../../{other}/pods"),
            13 => asked.path = format!("/api/v1/namespaces/{place}%2f..%2f{other}/pods"),
            14 => asked.path = asked.path.to_uppercase(),
            15 => asked.path = asked.path.replace("/api", "//api").replace("/v1/", "/v1/watch/"),
            16 => {
                let odd = self.word(&["", "*", "%2A", "-", "_all", "%20"]);
                asked.path = format!("/api/v1/namespaces/{odd}/pods");
            }
            17 => asked.set("namespace", other),
            18 => asked.set("namespace", self.word(&["", "*", " ", "%", "..", "default"])),
            19 => asked.set("namespace", format!("{place},{other}")),
            20 => asked.set(
                "fieldSelector",
                self.word(&["", "metadata.name!=x", "metadata.namespace exists", "metadata.name exists"]),
            ),
            21 => {
                let alive = self.alive();
                let number = *self.any(&alive);
                let name = self.things[number].name.clone();
                asked.set("fieldSelector", format!("metadata.name={name}"));
            }
            22 => {
                let number = self.random.random_range(0..self.things.len());
                asked.set("labelSelector", format!("mark={}", mark(number, 'm')));
                asked.set("explain", "1");
            }
            23 => asked.path.push_str(self.word(&["/status", "/log", "/exec", "/", "/proxy/x"])),
            24 => asked.set(
                self.word(&["watch", "explain", "limit", "sort"]),
                self.word(&["1", "true", "0", "metadata.uid"]),
            ),
            _ => {
                asked.headers.retain(|(name, _)| *name != "authorization");
                asked.user = NOBODY;
                match self.random.random_range(0..3) {
                    0 => {}
                    1 => asked.headers.push(("authorization", "Bearer wrong".to_owned())),
                    _ => asked.headers.push(("authorization", format!("Basic {root}"))),
                }
            }
        }
    }

    /// Whether an object is of those that a plain request is for, apart from who asks.
    pub(crate) fn is_meant(&self, aim: &Aim, number: usize) -> bool {
        let Aim::Objects { kind, namespaces, name, app, .. } = aim else { return false };
        let thing = &self.things[number];
        thing.gone.is_none()
            && thing.kind == *kind
            && (namespaces.is_empty() || namespaces.contains(&thing.namespace) || *kind == NAMESPACES)
            && name.as_ref().is_none_or(|name| *name == thing.name)
            && app.is_none_or(|app| app == thing.app)
    }
}

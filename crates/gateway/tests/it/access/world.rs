//! A small random cluster: objects that can be told apart wherever they show, and rules about them that change.

use std::{collections::BTreeSet, time::Duration};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::model::{Ask, Binding, GRACE, History, Policy, Rule, Subject, User};
use crate::cluster::Cluster;

pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
    kind: &'static str,
    pub(crate) namespaced: bool,
}

const fn kind(group: &'static str, plural: &'static str, kind: &'static str, namespaced: bool) -> Kind {
    Kind { group, plural, kind, namespaced }
}

pub(crate) const KINDS: [Kind; 7] = [
    kind("", "pods", "Pod", true),
    kind("", "configmaps", "ConfigMap", true),
    kind("apps", "deployments", "Deployment", true),
    kind("example.com", "widgets", "Widget", true),
    kind("", "nodes", "Node", false),
    kind("", "namespaces", "Namespace", false),
    kind("", "secrets", "Secret", true),
];
pub(crate) const PODS: usize = 0;
pub(crate) const DEPLOYMENTS: usize = 2;
const NODES: usize = 4;
pub(crate) const NAMESPACES: usize = 5;
pub(crate) const SECRETS: usize = 6;
/// A user who is refused nothing, and one who is never allowed anything.
pub(crate) const ROOT: usize = 0;
pub(crate) const NOBODY: usize = 6;
/// A role of a namespace and one of the cluster may have the same name, and are not the same.
const ROLES: [&str; 3] = ["one", "two", "three"];
/// How many bindings there are to begin with.
const BINDINGS: usize = 36;

/// An object. Its number is in its name, its uid and its content, with a letter that says which of them.
pub(crate) struct Thing {
    pub(crate) kind: usize,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) app: &'static str,
    /// When it was deleted.
    pub(crate) gone: Option<Instant>,
    /// Those whose text has the name or the uid of this one.
    mentioned_by: Vec<usize>,
}

pub(crate) fn mark(number: usize, letter: char) -> String {
    format!("zq{number:05}{letter}")
}

/// The marks in a text: numbers, and which mark it is.
pub(crate) fn marks(text: &str) -> BTreeSet<(usize, char)> {
    let mark = |(at, _): (usize, &str)| {
        let rest = text.get(at + 2..at + 8)?;
        let letter = rest.chars().last().filter(|letter| "nmu".contains(*letter))?;
        Some((rest.get(..5)?.parse().ok()?, letter))
    };
    text.match_indices("zq").filter_map(mark).collect()
}

pub(crate) struct World {
    pub(crate) random: Pcg64Mcg,
    pub(crate) cluster: Cluster,
    pub(crate) things: Vec<Thing>,
    pub(crate) history: History,
    /// Whether its rules change seldom.
    pub(crate) calm: bool,
    /// A mistake of the cluster that the model does not make.
    pub(crate) mistake: Option<Binding>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let cluster = Cluster::new();
        if random.random() {
            cluster.list_rules();
        }
        cluster.put(informer_testing::custom_resource("Widget", &[]));
        let history = History::new(Policy::default());
        let calm = random.random();
        let mut world = Self { random, cluster, things: Vec::new(), history, calm, mistake: None };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            world.add_named(NAMESPACES, "", name.to_owned());
        }
        (0..3).for_each(|_| world.add(NODES, ""));
        for _ in 0..4 {
            let namespace = mark(world.things.len(), 'n');
            world.add_named(NAMESPACES, "", namespace.clone());
            world.fill(&namespace);
        }
        let policy = world.first_policy();
        world.publish(policy);
        world
    }

    pub(crate) fn any<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.random.random_range(0..of.len())]
    }

    pub(crate) fn word(&mut self, of: &[&'static str]) -> &'static str {
        of[self.random.random_range(0..of.len())]
    }

    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    /// Lets everything happen that does not wait for time.
    pub(crate) async fn settle(&self) {
        sleep(Duration::from_millis(1)).await;
    }

    pub(crate) fn alive(&self) -> Vec<usize> {
        (0..self.things.len()).filter(|number| self.things[*number].gone.is_none()).collect()
    }

    /// The namespaces that objects of this world are in.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        let named =
            |thing: &&Thing| thing.gone.is_none() && thing.kind == NAMESPACES && thing.name.starts_with("zq");
        self.things.iter().filter(named).map(|thing| thing.name.clone()).collect()
    }

    fn fill(&mut self, namespace: &str) {
        for (kind, most) in [(DEPLOYMENTS, 2), (PODS, 5), (1, 3), (3, 2), (SECRETS, 1)] {
            (0..self.random.random_range(0..=most)).for_each(|_| self.add(kind, namespace));
        }
    }

    fn add(&mut self, kind: usize, namespace: &str) {
        let name = mark(self.things.len(), 'n');
        self.add_named(kind, namespace, name);
    }

    fn add_named(&mut self, kind: usize, namespace: &str, name: String) {
        let number = self.things.len();
        let app = self.word(&["a", "b"]);
        let (namespace, mentioned_by) = (namespace.to_owned(), Vec::new());
        self.things.push(Thing { kind, namespace, name, app, gone: None, mentioned_by });
        self.write(number);
    }

    /// Writes an object; again, it is a change of it.
    fn write(&mut self, number: usize) {
        let Thing { kind, namespace, name, app, .. } = &self.things[number];
        let Kind { group, kind: kind_name, namespaced, .. } = KINDS[*kind];
        let (content, is_pod) = (mark(number, 'm'), *kind == PODS);
        let api = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        let mut object = json!({
            "apiVersion": api, "kind": kind_name,
            "metadata": {
                "name": name, "uid": mark(number, 'u'), "labels": {"app": app, "mark": content},
                "annotations": {"mark": content, "change": self.cluster.version().to_string()},
            },
            "spec": {"mark": content}, "status": {"mark": content, "phase": "Running"},
        });
        if namespaced {
            object["metadata"]["namespace"] = json!(namespace);
        }
        if is_pod {
            let (namespace, app) = (namespace.clone(), *app);
            let find = |kind: usize, namespace: &str| {
                let found = |thing: &&Thing| {
                    thing.gone.is_none() && thing.kind == kind && thing.namespace == namespace
                };
                self.things.iter().position(|thing| found(&thing))
            };
            let (node, owner) = (find(NODES, ""), find(DEPLOYMENTS, &namespace).filter(|_| app == "a"));
            for other in [node, owner].into_iter().flatten() {
                self.things[other].mentioned_by.push(number);
            }
            if let Some(node) = node {
                object["spec"]["nodeName"] = json!(self.things[node].name);
            }
            if let Some(owner) = owner {
                let owner = json!({
                    "apiVersion": "apps/v1", "kind": "Deployment", "name": self.things[owner].name, "uid": mark(owner, 'u'),
                });
                object["metadata"]["ownerReferences"] = json!([owner]);
            }
        }
        self.cluster.put(object);
    }

    fn remove(&mut self, number: usize) {
        let Thing { kind, namespace, name, .. } = &self.things[number];
        let key = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
        self.cluster.discard(KINDS[*kind].group, KINDS[*kind].plural, &key);
        self.things[number].gone = Some(Instant::now());
    }

    /// An object appears, changes or goes.
    pub(crate) fn change_object(&mut self) {
        let alive = self.alive();
        let number = *self.any(&alive);
        let Thing { kind, namespace, .. } = &self.things[number];
        let (kind, namespace) = (*kind, namespace.clone());
        match self.random.random_range(0..4) {
            0 if kind != NAMESPACES => self.remove(number),
            1 if kind != NAMESPACES => self.add(kind, &namespace),
            _ => self.write(number),
        }
    }

    /// A namespace goes with all that is in it. Later another one has its name.
    pub(crate) async fn replace_namespace(&mut self) {
        let namespaces = self.namespaces();
        let namespace = self.any(&namespaces).clone();
        let mut policy = (*self.history.newest()).clone();
        policy.roles.retain(|(place, _), _| *place != namespace);
        policy.bindings.retain(|(place, _), _| *place != namespace);
        let inside = |thing: &Thing| thing.namespace == namespace || thing.name == namespace;
        for number in
            self.alive().into_iter().filter(|number| inside(&self.things[*number])).collect::<Vec<_>>()
        {
            self.remove(number);
        }
        self.publish(policy);
        sleep(GRACE + Duration::from_secs(2)).await;
        let itself = self.things.iter().position(|thing| thing.name == namespace).expect("it was there");
        self.things[itself].gone = None;
        self.write(itself);
        self.fill(&namespace);
        self.settle().await;
    }

    fn first_policy(&mut self) -> Policy {
        let mut policy = Policy::default();
        let home = self.namespaces()[0].clone();
        let bot = (format!("system:serviceaccount:{home}:bot"), vec!["system:serviceaccounts"]);
        let users = [("root", vec!["admins"]), ("ann", vec!["dev"]), ("ann", vec!["ops"]), ("bob", vec![])];
        let users = users.map(|(name, groups)| (name.to_owned(), groups)).into_iter();
        for (number, (name, groups)) in users
            .chain([bot, ("eve".to_owned(), vec!["dev", "ops"]), ("nobody".to_owned(), vec![])])
            .enumerate()
        {
            let groups = groups.into_iter().chain(["system:authenticated"]).map(str::to_owned).collect();
            policy.users.push(User { token: format!("token-{number}"), name, groups, known: true });
        }
        let all = vec!["*".to_owned()];
        let everything = Rule {
            verbs: all.clone(),
            groups: all.clone(),
            resources: all.clone(),
            urls: all,
            ..Rule::default()
        };
        policy.roles.insert((String::new(), "everything".to_owned()), vec![everything]);
        let binding =
            Binding { subject: Subject::Group("admins".to_owned()), role: (true, "everything".to_owned()) };
        policy.bindings.insert((String::new(), "root".to_owned()), binding);
        for place in self.namespaces().into_iter().chain([String::new()]) {
            for role in ROLES {
                let rules = self.rules();
                policy.roles.insert((place.clone(), role.to_owned()), rules);
            }
        }
        (0..BINDINGS).for_each(|_| self.bind(&mut policy));
        policy
    }

    /// A role or a binding comes, changes or goes; or what is known of a user does.
    pub(crate) fn change_policy(&mut self) {
        let mut policy = (*self.history.newest()).clone();
        match self.random.random_range(0..10) {
            0 => {
                let unknown = policy.users.iter().position(|user| !user.known);
                let user = unknown.unwrap_or_else(|| self.random.random_range(1..policy.users.len()));
                policy.users[user].known ^= true;
            }
            1 => {
                let (user, group) = (self.random.random_range(1..NOBODY), self.word(&["dev", "ops"]));
                let groups = &mut policy.users[user].groups;
                match groups.iter().position(|one| one == group) {
                    Some(at) => drop(groups.remove(at)),
                    None => groups.push(group.to_owned()),
                }
            }
            2..4 => {
                let own: Vec<_> =
                    policy.bindings.keys().filter(|(_, name)| name != "root").cloned().collect();
                if !own.is_empty() {
                    policy.bindings.remove(self.any(&own));
                }
            }
            4..7 => {
                let (place, role) = (self.place(), self.word(&ROLES).to_owned());
                let rules = self.rules();
                policy.roles.insert((place, role), rules);
            }
            _ => (0..2).for_each(|_| self.bind(&mut policy)),
        }
        self.publish(policy);
    }

    /// Takes everything away from somebody.
    pub(crate) fn revoke(&mut self, user: usize) {
        let mut policy = (*self.history.newest()).clone();
        let User { name, groups, .. } = policy.users[user].clone();
        policy.bindings.retain(|(place, binding), Binding { subject, .. }| {
            binding == "root" || !subject.is(&name, &groups, place)
        });
        self.publish(policy);
    }

    /// The cluster, or a namespace.
    fn place(&mut self) -> String {
        let namespaces = self.namespaces();
        if self.chance(20) { String::new() } else { self.any(&namespaces).clone() }
    }

    fn bind(&mut self, policy: &mut Policy) {
        let (place, home) = (self.place(), self.namespaces()[0].clone());
        let subject = match self.random.random_range(0..10) {
            0..5 => Subject::User(self.word(&["ann", "bob", "eve"]).to_owned()),
            5..8 => Subject::Group(self.word(&["dev", "ops", "system:serviceaccounts"]).to_owned()),
            8 => Subject::ServiceAccount((home, "bot".to_owned())),
            _ => Subject::ServiceAccount((String::new(), "bot".to_owned())),
        };
        let name = format!("binding-{}", self.random.random_range(0..BINDINGS));
        let role = (place.is_empty() || self.random.random(), self.word(&ROLES).to_owned());
        policy.bindings.insert((place, name), Binding { subject, role });
    }

    fn rules(&mut self) -> Vec<Rule> {
        (0..self.random.random_range(1..=2)).map(|_| self.rule()).collect()
    }

    fn rule(&mut self) -> Rule {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        if self.chance(15) {
            let discovery: &[&str] = &["/api", "/api/*", "/apis", "/apis/*", "/version"];
            let urls =
                *self.any(&[discovery, &["/metrics"], &["/_informers", "/version"], &["*"], &["/api"]]);
            return Rule { verbs: owned(&["get"]), urls: owned(urls), ..Rule::default() };
        }
        let verbs: [&[&str]; 7] = [
            &["*"],
            &["get", "list", "watch"],
            &["get"],
            &["list"],
            &["watch"],
            &["list", "watch"],
            &["get", "list"],
        ];
        let verbs = owned(verbs[self.random.random_range(0..verbs.len())]);
        let kinds: Vec<usize> =
            (0..self.random.random_range(1..=3)).map(|_| self.random.random_range(0..KINDS.len())).collect();
        let of = |part: fn(&Kind) -> &'static str| {
            kinds.iter().map(|kind| part(&KINDS[*kind]).to_owned()).collect()
        };
        let groups = match self.random.random_range(0..20) {
            0..3 => owned(&["*"]),
            3 => owned(&["extensions"]),
            _ => of(|kind| kind.group),
        };
        let resources = if self.chance(15) { owned(&["*"]) } else { of(|kind| kind.plural) };
        let mut names = Vec::new();
        if self.chance(25) {
            let alive = self.alive();
            let meant: Vec<usize> =
                alive.into_iter().filter(|thing| kinds.contains(&self.things[*thing].kind)).collect();
            if !meant.is_empty() {
                let meant: Vec<usize> = (0..3).map(|_| *self.any(&meant)).collect();
                names = meant.into_iter().map(|number| self.things[number].name.clone()).collect();
            }
        }
        Rule { verbs, groups, resources, names, urls: Vec::new() }
    }

    /// The cluster decides by this from now on, and its RBAC objects say the same.
    pub(crate) fn publish(&mut self, policy: Policy) {
        let (old, new) = (self.history.newest().objects(), policy.objects());
        for ((plural, (namespace, name)), _) in old.iter().filter(|(key, _)| !new.contains_key(key)) {
            let key = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
            self.cluster.discard("rbac.authorization.k8s.io", plural, &key);
        }
        for (key, object) in new.iter().filter(|(key, object)| old.get(key) != Some(object)) {
            let place = &key.1.0;
            assert!(place.is_empty() || self.namespaces().contains(place), "{place} is there");
            self.cluster.put(object.clone());
        }
        let mut said = policy.clone();
        if let Some(mistake) = &self.mistake {
            said.bindings.insert((self.namespaces()[0].clone(), "mistake".to_owned()), mistake.clone());
        }
        self.cluster.decide_by(said.judges());
        self.history.push(policy);
        self.history.trim();
    }

    /// Whether somebody was allowed to see an object in one of these ways since then; with a rule for its name alone only
    /// where it is asked for by its name.
    pub(crate) fn sees(
        &self,
        since: Instant,
        user: usize,
        verbs: &[&str],
        number: usize,
        by_name: bool,
    ) -> bool {
        let Thing { kind, namespace, name, .. } = &self.things[number];
        let Kind { group, plural: resource, .. } = KINDS[*kind];
        if *kind == SECRETS {
            return false;
        }
        verbs.iter().any(|verb| {
            // A namespace that is got by its name is in itself.
            let own = if *kind == NAMESPACES && *verb == "get" { name } else { namespace };
            let name = if by_name { name } else { "" };
            self.history.allowed(since, user, &Ask::Resource { verb, group, resource, namespace: own, name })
        })
    }

    /// Whether somebody may know a mark: of an object that may be seen, or that such a one speaks of.
    pub(crate) fn may_know(
        &self,
        since: Instant,
        user: usize,
        verbs: &[&str],
        mark: (usize, char),
        asked: &str,
    ) -> bool {
        let (number, letter) = mark;
        let Some(thing) = self.things.get(number) else { return false };
        let sees = |number: usize| {
            let by_name = verbs == ["get"] || asked.contains(&self.things[number].name);
            self.sees(since, user, verbs, number, by_name)
        };
        sees(number)
            || (letter != 'm' && thing.mentioned_by.iter().any(|other| sees(*other)))
            // Who sees something in a namespace knows its name.
            || (letter == 'n' && thing.kind == NAMESPACES && {
                let inside = |number: &usize| self.things[*number].namespace == thing.name;
                (0..self.things.len()).filter(inside).any(sees)
            })
    }
}

/// What was last said of a thing, for failures.
impl std::fmt::Display for Thing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}/{}", KINDS[self.kind].plural, self.namespace, self.name)
    }
}

/// A value of a member of JSON text, wherever it stands.
pub(crate) fn numbers<'a>(text: &'a str, member: &'a str) -> impl Iterator<Item = usize> + 'a {
    let member = format!("\"{member}\":");
    let at: Vec<usize> = text.match_indices(&member).map(|(at, _)| at + member.len()).collect();
    at.into_iter().filter_map(|at| {
        let digits: String = text[at..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    })
}

//! Role-based access control of Kubernetes, stated as plainly as possible: what the gateway is checked against.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::Judge;

/// After so long nothing may be seen that is allowed no longer.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// A namespace, which is empty for the cluster, and a name in it.
pub(crate) type Key = (String, String);

#[derive(Debug, Clone, Default)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) urls: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum Subject {
    User(String),
    Group(String),
    /// Without a namespace it is of the binding's.
    ServiceAccount(Key),
}

#[derive(Debug, Clone)]
pub(crate) struct Binding {
    pub(crate) subject: Subject,
    /// Whether the role is one of the cluster, and its name.
    pub(crate) role: (bool, String),
}

#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) token: String,
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
    /// Whether the token is good.
    pub(crate) known: bool,
}

/// What somebody wants to do. An empty namespace stands for the cluster or all namespaces, an empty name for no name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ask<'a> {
    Resource { verb: &'a str, group: &'a str, resource: &'a str, namespace: &'a str, name: &'a str },
    Path(&'a str),
}

/// Users, roles and bindings at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policy {
    pub(crate) users: Vec<User>,
    pub(crate) roles: BTreeMap<Key, Vec<Rule>>,
    pub(crate) bindings: BTreeMap<Key, Binding>,
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|one| one == "*" || one == wanted)
}

impl Rule {
    fn allows(&self, ask: &Ask<'_>) -> bool {
        match *ask {
            Ask::Resource { verb, group, resource, name, .. } => {
                has(&self.verbs, verb)
                    && has(&self.groups, group)
                    && has(&self.resources, resource)
                    && (self.names.is_empty() || self.names.iter().any(|one| one == name))
            }
            Ask::Path(path) => {
                let covers = |url: &String| match url.strip_suffix('*') {
                    Some(beginning) => path.starts_with(beginning),
                    None => url == path,
                };
                has(&self.verbs, "get") && self.urls.iter().any(covers)
            }
        }
    }

    fn json(&self) -> Value {
        let Self { verbs, groups, resources, names, urls } = self;
        json!({
            "verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names, "nonResourceURLs": urls,
        })
    }
}

impl Subject {
    pub(crate) fn is(&self, user: &str, groups: &[String], place: &str) -> bool {
        match self {
            Self::User(name) => name == user,
            Self::Group(name) => groups.contains(name),
            Self::ServiceAccount((home, name)) => {
                let home = if home.is_empty() { place } else { home };
                user == format!("system:serviceaccount:{home}:{name}")
            }
        }
    }

    fn json(&self) -> Value {
        let api = "rbac.authorization.k8s.io";
        match self {
            Self::User(name) => json!({"kind": "User", "apiGroup": api, "name": name}),
            Self::Group(name) => json!({"kind": "Group", "apiGroup": api, "name": name}),
            Self::ServiceAccount((home, name)) if home.is_empty() => {
                json!({"kind": "ServiceAccount", "name": name})
            }
            Self::ServiceAccount((home, name)) => {
                json!({"kind": "ServiceAccount", "name": name, "namespace": home})
            }
        }
    }
}

impl Policy {
    /// Whether a binding of the cluster, or one of the namespace that is asked about, is for the user and has a role
    /// with a rule that allows it.
    pub(crate) fn allows(&self, user: &str, groups: &[String], ask: &Ask<'_>) -> bool {
        let here = match *ask {
            Ask::Resource { namespace, .. } => namespace,
            Ask::Path(_) => "",
        };
        self.bindings.iter().any(|((place, _), Binding { subject, role: (of_cluster, name) })| {
            let home = if *of_cluster { "" } else { place };
            (place.is_empty() || place == here)
                && subject.is(user, groups, place)
                && (*of_cluster || !place.is_empty())
                && self
                    .roles
                    .get(&(home.to_owned(), name.clone()))
                    .is_some_and(|rules| rules.iter().any(|rule| rule.allows(ask)))
        })
    }

    /// What answers reviews by this.
    pub(crate) fn judges(self) -> [Judge; 2] {
        let other = self.clone();
        [Box::new(move |spec| self.token_review(spec)), Box::new(move |spec| other.access_review(spec))]
    }

    /// The status of a `TokenReview`.
    fn token_review(&self, spec: &Value) -> Value {
        match self.users.iter().find(|user| user.known && spec["token"] == user.token) {
            Some(user) => {
                json!({"authenticated": true, "user": {"username": user.name, "groups": user.groups}})
            }
            None => json!({"authenticated": false}),
        }
    }

    /// The status of a `SubjectAccessReview`.
    fn access_review(&self, spec: &Value) -> Value {
        let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
        let groups: Vec<String> = spec["groups"].as_array().into_iter().flatten().map(text).collect();
        let what = &spec["resourceAttributes"];
        let part = |name: &str| what[name].as_str().unwrap_or_default();
        let ask = match spec["nonResourceAttributes"]["path"].as_str() {
            Some(path) => Ask::Path(path),
            None => Ask::Resource {
                verb: part("verb"),
                group: part("group"),
                resource: part("resource"),
                namespace: part("namespace"),
                name: part("name"),
            },
        };
        json!({"allowed": self.allows(&text(&spec["user"]), &groups, &ask)})
    }

    /// The RBAC objects that say the same, by kind and key.
    pub(crate) fn objects(&self) -> BTreeMap<(&'static str, Key), Value> {
        let api = "rbac.authorization.k8s.io";
        let object = |kind: &str, (namespace, name): &Key, rest: Value| {
            let mut object =
                json!({"apiVersion": format!("{api}/v1"), "kind": kind, "metadata": {"name": name}});
            if !namespace.is_empty() {
                object["metadata"]["namespace"] = json!(namespace);
            }
            for (member, value) in rest.as_object().into_iter().flatten() {
                object[member] = value.clone();
            }
            object
        };
        let mut objects = BTreeMap::new();
        for (key, rules) in &self.roles {
            let (kind, plural) =
                if key.0.is_empty() { ("ClusterRole", "clusterroles") } else { ("Role", "roles") };
            let rules: Vec<Value> = rules.iter().map(Rule::json).collect();
            objects.insert((plural, key.clone()), object(kind, key, json!({"rules": rules})));
        }
        for (key, Binding { subject, role: (of_cluster, name) }) in &self.bindings {
            let (kind, plural) = if key.0.is_empty() {
                ("ClusterRoleBinding", "clusterrolebindings")
            } else {
                ("RoleBinding", "rolebindings")
            };
            let role = if *of_cluster { "ClusterRole" } else { "Role" };
            let rest = json!({"subjects": [subject.json()], "roleRef": {"apiGroup": api, "kind": role, "name": name}});
            objects.insert((plural, key.clone()), object(kind, key, rest));
        }
        objects
    }
}

/// The policies of the last while, the newest last.
#[derive(Debug, Clone)]
pub(crate) struct History(Vec<(Instant, Arc<Policy>)>);

impl History {
    pub(crate) fn new(policy: Policy) -> Self {
        Self(vec![(Instant::now(), Arc::new(policy))])
    }

    pub(crate) fn push(&mut self, policy: Policy) {
        self.0.push((Instant::now(), Arc::new(policy)));
    }

    pub(crate) fn newest(&self) -> Arc<Policy> {
        Arc::clone(&self.0.last().expect("never empty").1)
    }

    /// Whether nothing has changed for so long that every old answer is forgotten.
    pub(crate) fn is_settled(&self) -> bool {
        self.0.len() == 1 || self.0.last().is_some_and(|(since, _)| since.elapsed() > GRACE)
    }

    /// Whether a user was allowed something at some moment since then. Who the user was and what the rules were are
    /// asked about one after the other, so they may be of two moments.
    pub(crate) fn allowed(&self, since: Instant, user: usize, ask: &Ask<'_>) -> bool {
        let ended_before = self.0.iter().skip(1).take_while(|(replaced, _)| *replaced < since).count();
        let recent = &self.0[ended_before..];
        let users = recent.iter().filter_map(|(_, policy)| policy.users.get(user)).filter(|user| user.known);
        users
            .into_iter()
            .any(|user| recent.iter().any(|(_, policy)| policy.allows(&user.name, &user.groups, ask)))
    }

    /// Forgets what no longer counts.
    pub(crate) fn trim(&mut self) {
        let old = self.0.iter().skip(1).take_while(|(replaced, _)| replaced.elapsed() > 20 * GRACE).count();
        self.0.drain(..old);
    }
}

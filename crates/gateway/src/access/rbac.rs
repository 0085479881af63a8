//! What the RBAC objects of a cluster say: where somebody may do something, as far as they decide it.
//!
//! The gateway never allows anything because of this: the cluster does. It only spares the question where the answer
//! could not be yes.

use std::collections::{BTreeSet, HashMap};

use informer::Object;
use serde::Deserialize;

use super::Attributes;
use crate::cache::Stored;

/// Where somebody may be allowed something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    Everywhere,
    Only(BTreeSet<String>),
}

impl Reach {
    pub(crate) fn includes(&self, namespace: &str) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Only(namespaces) => namespaces.contains(namespace),
        }
    }
}

/// All bindings with their rules, by whom they are for.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    users: HashMap<String, Vec<Grant>>,
    groups: HashMap<String, Vec<Grant>>,
}

/// Some rules, in a namespace or everywhere.
#[derive(Debug, Clone)]
struct Grant {
    namespace: Option<String>,
    rules: std::sync::Arc<[Rule]>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Rule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

#[derive(Deserialize)]
struct Role {
    #[serde(default)]
    rules: Option<Vec<Rule>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Binding {
    #[serde(default)]
    subjects: Option<Vec<Subject>>,
    role_ref: RoleRef,
}

#[derive(Deserialize)]
struct RoleRef {
    kind: String,
    name: String,
}

#[derive(Deserialize)]
struct Subject {
    kind: String,
    name: String,
    #[serde(default)]
    namespace: String,
}

impl Rule {
    fn allows(&self, what: &Attributes<'_>) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
        let names = &self.resource_names;
        has(&self.verbs, what.verb)
            && has(&self.api_groups, what.group)
            && has(&self.resources, what.resource)
            && (names.is_empty() || what.name.is_some_and(|name| names.iter().any(|one| one == name)))
    }
}

impl Rules {
    /// The rules of all roles and bindings, of namespaces and of the cluster. What cannot be read grants nothing.
    pub(crate) fn new<'o>(
        roles: impl Iterator<Item = &'o Object<Stored>>,
        bindings: impl Iterator<Item = &'o Object<Stored>>,
    ) -> Self {
        let role = |object: &Object<Stored>| {
            let role: Role = object.with_json(|json| serde_json::from_str(json)).ok()?;
            Some((object.key().as_str().to_owned(), role.rules.unwrap_or_default().into()))
        };
        let roles: HashMap<String, std::sync::Arc<[Rule]>> = roles.filter_map(role).collect();
        let mut all = Self::default();
        for object in bindings {
            let read = object.with_json(|json| serde_json::from_str::<Binding>(json));
            let Ok(binding) = read else { continue };
            let namespace = object.key().namespace();
            let role = match (binding.role_ref.kind.as_str(), namespace) {
                ("ClusterRole", _) => roles.get(&binding.role_ref.name),
                ("Role", Some(namespace)) => roles.get(&format!("{namespace}/{}", binding.role_ref.name)),
                _ => None,
            };
            let Some(rules) = role else { continue };
            for subject in binding.subjects.unwrap_or_default() {
                let grant = Grant { namespace: namespace.map(str::to_owned), rules: rules.clone() };
                all.add(subject, grant);
            }
        }
        all
    }

    fn add(&mut self, subject: Subject, grant: Grant) {
        let Subject { kind, name, namespace } = subject;
        match kind.as_str() {
            "User" => self.users.entry(name).or_default().push(grant),
            "Group" => self.groups.entry(name).or_default().push(grant),
            "ServiceAccount" => {
                let home = if namespace.is_empty() {
                    grant.namespace.clone().unwrap_or_default()
                } else {
                    namespace
                };
                let user = format!("system:serviceaccount:{home}:{name}");
                self.users.entry(user).or_default().push(grant);
            }
            _ => {}
        }
    }

    /// Where a user may be allowed something.
    pub(crate) fn reach(&self, user: &str, groups: &[String], what: &Attributes<'_>) -> Reach {
        let of_groups = groups.iter().filter_map(|group| self.groups.get(group));
        let grants = self.users.get(user).into_iter().chain(of_groups).flatten();
        let mut namespaces = BTreeSet::new();
        for grant in grants.filter(|grant| grant.rules.iter().any(|rule| rule.allows(what))) {
            match &grant.namespace {
                None => return Reach::Everywhere,
                Some(namespace) => namespaces.insert(namespace.clone()),
            };
        }
        Reach::Only(namespaces)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn mk(object: Value) -> Object<Stored> {
        Object::new(Stored::plain(informer::RawObject::new(object.to_string()).unwrap())).unwrap()
    }

    fn mk_role(key: (&str, &str), rule: Value) -> Object<Stored> {
        mk(json!({"metadata": {"namespace": key.0, "name": key.1}, "rules": [rule]}))
    }

    fn mk_binding(namespace: &str, role: (&str, &str), subject: Value) -> Object<Stored> {
        let name = format!("{}-{}", role.1, subject["name"].as_str().unwrap());
        mk(json!({
            "metadata": {"namespace": namespace, "name": name},
            "roleRef": {"kind": role.0, "name": role.1},
            "subjects": [subject],
        }))
    }

    fn mk_rules() -> Rules {
        let read = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]});
        let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let one = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["web"]});
        let roles = [
            mk_role(("a", "read"), read.clone()),
            mk_role(("", "read"), read),
            mk_role(("", "all"), all),
            mk_role(("b", "one"), one),
        ];
        let user = |name: &str| json!({"kind": "User", "name": name});
        let bindings = [
            mk_binding("a", ("Role", "read"), user("ann")),
            mk_binding("c", ("ClusterRole", "read"), user("ann")),
            mk_binding("b", ("Role", "read"), user("eve")),
            mk_binding("b", ("Role", "one"), user("eve")),
            mk_binding("", ("Role", "read"), user("eve")),
            mk_binding("", ("ClusterRole", "all"), json!({"kind": "Group", "name": "admins"})),
            mk_binding(
                "d",
                ("ClusterRole", "read"),
                json!({"kind": "ServiceAccount", "name": "bot", "namespace": "tools"}),
            ),
            mk_binding("e", ("ClusterRole", "read"), json!({"kind": "ServiceAccount", "name": "bot"})),
            mk(json!({"metadata": {"name": "odd"}, "roleRef": 7})),
        ];
        Rules::new(roles.iter(), bindings.iter())
    }

    fn reach(user: &str, groups: &[&str], verb: &str, resource: &str, name: Option<&str>) -> String {
        let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        let what = Attributes { verb, group: "", resource, namespace: None, name };
        match mk_rules().reach(user, &groups, &what) {
            Reach::Everywhere => "*".to_owned(),
            Reach::Only(namespaces) => namespaces.into_iter().collect::<Vec<_>>().join(","),
        }
    }

    #[test]
    fn rules_reach_where_their_bindings_are() {
        assert_eq!(reach("ann", &[], "list", "pods", None), "a,c");
        assert_eq!(reach("ann", &[], "watch", "pods", None), "", "another verb");
        assert_eq!(reach("ann", &[], "list", "secrets", None), "", "another resource");
        assert_eq!(reach("bob", &["admins"], "watch", "secrets", None), "*");
        assert_eq!(reach("system:serviceaccount:tools:bot", &[], "list", "pods", None), "d");
        assert_eq!(reach("system:serviceaccount:e:bot", &[], "list", "pods", None), "e");
    }

    #[test]
    fn a_rule_for_names_is_for_these_names_and_a_role_must_exist() {
        assert_eq!(reach("eve", &[], "list", "pods", None), "");
        assert_eq!(reach("eve", &[], "list", "pods", Some("web")), "b");
        assert_eq!(reach("eve", &[], "list", "pods", Some("db")), "");
    }
}

//! What users do to widgets, and to what belongs to them.

use http::{Method, StatusCode};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use super::world::{SHOP, World, text};

const WIDGETS: usize = 3;
/// The finalizer of somebody else.
const OTHER: &str = "example.com/other";

fn path(plural: &str, name: &str) -> String {
    let group = if plural == "widgets" { "/apis/example.com/v1" } else { "/api/v1" };
    format!("{group}/namespaces/{SHOP}/{plural}/{name}")
}

fn spec(chance: &mut Pcg64Mcg) -> Value {
    let colour = ["red", "green", "blue"][chance.random_range(0..3)];
    json!({ "color": colour, "size": chance.random_range(0..4) })
}

impl World {
    /// A user does something.
    pub(crate) fn use_it(&self, chance: &mut Pcg64Mcg) {
        let name = format!("w{}", chance.random_range(0..WIDGETS));
        let is_there = self.list("widgets").iter().any(|widget| widget["metadata"]["name"] == *name);
        if !is_there && chance.random_bool(0.9) {
            return self.create(&name, chance);
        }
        match chance.random_range(3..14) {
            3..=6 => {
                self.user(Method::PATCH, &path("widgets", &name), Some(json!({ "spec": spec(chance) })));
            }
            7..=8 => self.delete(&name),
            9 => {
                self.delete(&name);
                self.create(&name, chance);
            }
            10 if self.is_calm() => {}
            10 => self.meddle(&name, chance.random_bool(0.6)),
            11 => {
                let label =
                    json!({ "metadata": { "labels": { "seen": chance.random::<u16>().to_string() } } });
                self.user(Method::PATCH, &path("widgets", &name), Some(label));
            }
            12 => {
                let path = path("configmaps", &name);
                match chance.random_bool(0.5) {
                    true => self.user(Method::DELETE, &path, None),
                    false => self.user(Method::PATCH, &path, Some(json!({ "data": { "color": "mud" } }))),
                };
            }
            _ => {
                let secrets = self.list("secrets");
                if !secrets.is_empty() {
                    let one = &secrets[chance.random_range(0..secrets.len())];
                    let name = text(one, "/metadata/name").unwrap_or_default();
                    self.user(Method::DELETE, &path("secrets", &name), None);
                }
            }
        }
    }

    fn create(&self, name: &str, chance: &mut Pcg64Mcg) {
        let finalizers: &[&str] = if !self.is_calm() && chance.random_bool(0.2) { &[OTHER] } else { &[] };
        let widget = json!({ "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": { "name": name, "namespace": SHOP, "finalizers": finalizers }, "spec": spec(chance) });
        let all = path("widgets", "");
        self.user(Method::POST, all.trim_end_matches('/'), Some(widget));
    }

    fn delete(&self, name: &str) {
        self.user(Method::DELETE, &path("widgets", name), None);
    }

    /// Adds the finalizer of somebody else, or removes it, for the version that is there.
    fn meddle(&self, name: &str, adds: bool) {
        let Some(widget) =
            self.list("widgets").into_iter().find(|widget| widget["metadata"]["name"] == *name)
        else {
            return;
        };
        let finalizers = widget["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let mut finalizers: Vec<Value> = finalizers.into_iter().filter(|name| name != OTHER).collect();
        if adds && widget["metadata"]["deletionTimestamp"].is_null() {
            finalizers.push(OTHER.into());
        }
        let version = &widget["metadata"]["resourceVersion"];
        let patch = json!({ "metadata": { "finalizers": finalizers, "resourceVersion": version } });
        let answer = self.user(Method::PATCH, &path("widgets", name), Some(patch));
        assert_eq!(answer.parts.0, StatusCode::OK, "{:?}", answer.value());
    }

    /// Nobody else holds anything any more.
    pub(crate) fn release(&self) {
        for widget in self.list("widgets") {
            self.meddle(&text(&widget, "/metadata/name").unwrap_or_default(), false);
        }
    }

    pub(crate) fn delete_everything(&self) {
        for widget in self.list("widgets") {
            self.delete(&text(&widget, "/metadata/name").unwrap_or_default());
        }
    }

    /// What is not as users want it.
    pub(crate) fn unsettled(&self) -> Vec<String> {
        let (widgets, maps, secrets) = (self.list("widgets"), self.list("configmaps"), self.list("secrets"));
        let (mut outside, mut wrong) = (self.outside(), Vec::new());
        let owned = |child: &&Value, uid: &str| {
            text(child, "/metadata/ownerReferences/0/uid").as_deref() == Some(uid)
        };
        let mut children = 0;
        for widget in &widgets {
            let meta = &widget["metadata"];
            let (name, uid) = (&meta["name"], text(meta, "/uid").unwrap_or_default());
            let colour = &widget["spec"]["color"];
            if !meta["deletionTimestamp"].is_null() {
                wrong.push(format!("{name} is being deleted: {meta}"));
            }
            let there = outside.remove(&uid);
            if there.as_deref() != colour.as_str() {
                wrong.push(format!("{name} is {colour}, and {there:?} outside"));
            }
            let mine: Vec<_> = maps.iter().filter(|map| owned(map, &uid)).collect();
            if mine.len() != 1 || mine[0]["data"]["color"] != *colour || mine[0]["metadata"]["name"] != *name
            {
                wrong.push(format!("{name} is {colour}, and has {mine:?}"));
            }
            let count = secrets.iter().filter(|secret| owned(secret, &uid)).count();
            if Some(count as u64) != widget["spec"]["size"].as_u64() {
                wrong.push(format!("{name} has {count} secrets, and should have {}", widget["spec"]["size"]));
            }
            children += count + mine.len();
            if widget["status"]["observedGeneration"] != meta["generation"] {
                wrong.push(format!("{name} is of generation {}: {}", meta["generation"], widget["status"]));
            }
        }
        if children != maps.len() + secrets.len() {
            wrong.push(format!("{children} of {maps:?} and {secrets:?} belong to something"));
        }
        if !outside.is_empty() {
            wrong.push(format!("outside is left: {outside:?}"));
        }
        wrong
    }
}

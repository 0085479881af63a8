//! From what a user types to the resource that is meant: `po`, `pod`, `deployments.apps`, `apps/v1/deployments`.

use std::fmt;

use informer_model::{ResourceArg, ResourceArgError};

use super::discovery::{Catalog, Served};

/// So many names are suggested.
const SUGGESTIONS: usize = 3;

/// Reads a resource's name. Kinds are taken too, so `Pod` means `pod`.
pub(super) fn parse(text: &str) -> Result<ResourceArg, ResourceArgError> {
    text.to_lowercase().parse()
}

/// Why a name means no resource that can be watched.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotWatchable {
    /// Nothing has that name.
    Unknown { arg: String, near: Vec<String>, silent: Vec<String> },
    /// It can be asked for, but not listed and watched.
    Verbs { name: String, verbs: Vec<String> },
}

/// The resource that is meant. A name goes before a short name, and the server's order decides the rest.
pub(super) fn choose<'a>(arg: &ResourceArg, catalog: &'a Catalog) -> Result<&'a Served, NotWatchable> {
    let fits = |served: &&Served| {
        arg.group().is_none_or(|group| group == served.api.group)
            && arg.version().is_none_or(|version| version == served.api.version)
    };
    let name = arg.resource();
    let is_named = |served: &&Served| {
        served.api.plural == name || served.singular == name || served.api.kind.to_lowercase() == name
    };
    let is_short = |served: &&Served| served.short_names.iter().any(|short| short == name);
    let candidates = || catalog.resources.iter().filter(fits);
    let found = candidates().find(is_named).or_else(|| candidates().find(is_short));
    let Some(served) = found else {
        let (near, silent) = (nearest(arg, catalog), catalog.silent.clone());
        return Err(NotWatchable::Unknown { arg: arg.to_string(), near, silent });
    };
    let can = |verb: &str| served.verbs.iter().any(|other| other == verb);
    if can("list") && can("watch") {
        Ok(served)
    } else {
        Err(NotWatchable::Verbs { name: served.name(), verbs: served.verbs.clone() })
    }
}

impl Served {
    /// The name that means this resource in a usual cluster: `pods`, `deployments.apps`.
    pub(super) fn name(&self) -> String {
        match self.api.group.as_str() {
            "" => self.api.plural.clone(),
            group => format!("{}.{group}", self.api.plural),
        }
    }

    /// What an object of it is called before its own name: `pod`, `deployment.apps`.
    pub(super) fn singular_name(&self) -> String {
        let singular = self.api.kind.to_lowercase();
        match self.api.group.as_str() {
            "" => singular,
            group => format!("{singular}.{group}"),
        }
    }
}

/// Names that differ little from what was typed, the nearest first.
fn nearest(arg: &ResourceArg, catalog: &Catalog) -> Vec<String> {
    let typed = arg.to_string();
    // A third of the letters may be wrong; of a short name, one.
    let tolerance = (typed.len() / 3).clamp(1, 6);
    let mut near: Vec<(usize, String)> = Vec::new();
    for served in &catalog.resources {
        let name = served.name();
        let full = format!("{}.{}.{}", served.api.plural, served.api.version, served.api.group);
        let spellings = [&served.api.plural, &served.singular, &name, &full].into_iter();
        let distance = spellings.chain(&served.short_names).map(|name| distance(&typed, name)).min();
        if let Some(distance) = distance.filter(|distance| *distance <= tolerance)
            && !near.iter().any(|(_, known)| *known == name)
        {
            near.push((distance, name));
        }
    }
    // The sort is stable: among equals the server's order decides.
    near.sort_by_key(|(distance, _)| *distance);
    near.truncate(SUGGESTIONS);
    near.into_iter().map(|(_, name)| name).collect()
}

/// How many letters are to be changed, added, removed or swapped with a neighbour to get from one to the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: [Vec<usize>; 3] = [Vec::new(), Vec::new(), (0..=other.len()).collect()];
    for (i, a) in one.iter().enumerate() {
        rows.rotate_left(1);
        let [before, above, row] = &mut rows;
        row.clear();
        row.push(i + 1);
        for (j, b) in other.iter().enumerate() {
            let mut best = (above[j] + usize::from(a != b)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && one[i - 1] == *b && *a == other[j - 1] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
    }
    rows[2].last().copied().unwrap_or_default()
}

impl fmt::Display for NotWatchable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { arg, near, silent } => {
                write!(f, "the server has no resource {arg:?}; ")?;
                match near.as_slice() {
                    [] => f.write_str("`kubectl api-resources` lists what it has")?,
                    near => write!(f, "did you mean {}?", near.join(" or "))?,
                }
                if !silent.is_empty() {
                    write!(f, " (these did not answer: {})", silent.join(", "))?;
                }
                Ok(())
            }
            Self::Verbs { name, verbs } => {
                let verbs = if verbs.is_empty() { "nothing".to_owned() } else { verbs.join(", ") };
                write!(f, "{name} cannot be watched: the server offers {verbs} for it, not list and watch")
            }
        }
    }
}

impl std::error::Error for NotWatchable {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::discovery::discover;
    use informer_apiserver::ApiServer;

    async fn catalog() -> Catalog {
        discover(&ApiServer::builder().build().client()).await.unwrap()
    }

    #[tokio::test]
    async fn everything_that_kubectl_understands_is_understood() {
        let catalog = catalog().await;
        for (typed, api_version, kind) in [
            ("pods", "v1", "Pod"),
            ("pod", "v1", "Pod"),
            ("po", "v1", "Pod"),
            ("Pod", "v1", "Pod"),
            ("pods.v1", "v1", "Pod"),
            ("v1/pods", "v1", "Pod"),
            ("deploy", "apps/v1", "Deployment"),
            ("deployments.apps", "apps/v1", "Deployment"),
            ("deploy.apps", "apps/v1", "Deployment"),
            ("deployments.v1.apps", "apps/v1", "Deployment"),
            ("apps/v1/deployments", "apps/v1", "Deployment"),
            ("apps/v1/Deployment", "apps/v1", "Deployment"),
            ("events", "v1", "Event"),
            ("events.events.k8s.io", "events.k8s.io/v1", "Event"),
            ("ingressclass", "networking.k8s.io/v1", "IngressClass"),
        ] {
            let served = choose(&parse(typed).unwrap(), &catalog).unwrap();
            assert_eq!(
                (served.api.api_version.as_str(), served.api.kind.as_str()),
                (api_version, kind),
                "{typed}"
            );
        }
    }

    #[tokio::test]
    async fn a_slip_of_the_keyboard_is_answered_with_what_was_meant() {
        let catalog = catalog().await;
        for (typed, meant) in [
            ("psd", "pods"),
            ("deplyoments", "deployments.apps"),
            ("deployments.app", "deployments.apps"),
            ("deployments.v2.apps", "deployments.apps"),
            ("configmps", "configmaps"),
        ] {
            let error = choose(&parse(typed).unwrap(), &catalog).unwrap_err();
            let NotWatchable::Unknown { near, .. } = &error else { panic!("{error}") };
            assert!(near.iter().any(|name| name == meant), "{typed}: {error}");
        }
        let error = choose(&parse("quarks").unwrap(), &catalog).unwrap_err().to_string();
        assert!(error.contains("\"quarks\"") && error.contains("kubectl api-resources"), "{error}");
    }

    #[tokio::test]
    async fn what_cannot_be_watched_says_what_can_be_done_with_it() {
        let mut catalog = catalog().await;
        catalog.resources.iter_mut().for_each(|served| served.verbs = vec!["create".into()]);
        let error = choose(&parse("pods").unwrap(), &catalog).unwrap_err().to_string();
        assert_eq!(error, "pods cannot be watched: the server offers create for it, not list and watch");
    }

    #[test]
    fn distances_are_those_of_typing() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "ab", 2),
            ("pods", "pods", 0),
            ("psdo", "pods", 2),
            ("opds", "pods", 1),
            ("a", "", 1),
        ] {
            assert_eq!((distance(one, other), distance(other, one)), (expected, expected), "{one} {other}");
        }
    }
}

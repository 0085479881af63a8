//! What the path of a request points at.

use std::borrow::Cow;

use informer_model::{Reason, Status};
use percent_encoding::percent_decode_str;

/// Everything that can be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `/`: the list of paths.
    Root,
    /// `/version`
    Version,
    /// `/healthz` or `/livez`, each also with the name of a single check.
    Health,
    /// `/readyz`, also with the name of a single check.
    Ready,
    /// `/api`
    Core,
    /// `/apis`
    Groups,
    /// `/apis/{group}`
    Group(String),
    /// `/api/{version}` or `/apis/{group}/{version}`
    GroupVersion {
        /// Empty for the core group.
        group: String,
        /// Like `v1`.
        version: String,
    },
    /// `/openapi/v3`
    OpenApi,
    /// `/openapi/v3/api/{version}` or `/openapi/v3/apis/{group}/{version}`
    OpenApiOf {
        /// Empty for the core group.
        group: String,
        /// Like `v1`.
        version: String,
    },
    /// Objects, or one object, or a part of one.
    Objects(Place),
}

/// Where objects are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Empty for the core group.
    pub group: String,
    /// Like `v1`.
    pub version: String,
    /// None for objects without a namespace and for those of all namespaces.
    pub namespace: Option<String>,
    /// Which objects: `pods`.
    pub plural: String,
    /// Which of them, if it is one.
    pub name: Option<String>,
    /// Which part of it, if not the whole: `status`.
    pub subresource: Option<String>,
}

/// Reads a path. What no server has answers 404, what nobody may call an object answers 400.
pub fn target(path: &str) -> Result<Target, Status> {
    let mut segments: Vec<Cow<'_, str>> = Vec::new();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let decoded = percent_decode_str(segment)
            .decode_utf8()
            .map_err(|_| Status::bad_request(format!("the path segment {segment:?} is not UTF-8")))?;
        if decoded == "." || decoded == ".." || decoded.contains(['/', '%', '\0', '\\']) {
            return Err(Status::bad_request(format!(
                "the path segment {decoded:?} is not allowed: it must not be `.` or `..` and must not contain `/`, `\\` or `%`"
            )));
        }
        segments.push(decoded);
    }
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    let own = |text: &str| text.to_owned();
    Ok(match segments.as_slice() {
        [] => Target::Root,
        ["version"] => Target::Version,
        ["healthz" | "livez", ..] => Target::Health,
        ["readyz", ..] => Target::Ready,
        ["api"] => Target::Core,
        ["apis"] => Target::Groups,
        ["apis", group] => Target::Group(own(group)),
        ["api", version] => Target::GroupVersion { group: String::new(), version: own(version) },
        ["apis", group, version] => Target::GroupVersion { group: own(group), version: own(version) },
        ["openapi", "v3"] => Target::OpenApi,
        ["openapi", "v3", "api", version] => {
            Target::OpenApiOf { group: String::new(), version: own(version) }
        }
        ["openapi", "v3", "apis", group, version] => {
            Target::OpenApiOf { group: own(group), version: own(version) }
        }
        ["api", version, rest @ ..] => Target::Objects(place("", version, rest)?),
        ["apis", group, version, rest @ ..] => Target::Objects(place(group, version, rest)?),
        _ => return Err(no_such_path()),
    })
}

/// A 404 for a path that is nothing, in the words of a server.
pub fn no_such_path() -> Status {
    // About nothing, and that is said.
    Status::failure(Reason::NotFound, "the server could not find the requested resource").about("", "", "")
}

fn place(group: &str, version: &str, rest: &[&str]) -> Result<Place, Status> {
    let (namespace, rest) = match rest {
        // `/namespaces/{name}` and its subresources are the namespace itself.
        ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, rest @ ..] => (Some((*namespace).to_owned()), rest),
        rest => (None, rest),
    };
    let part = |at: usize| rest.get(at).map(|part| (*part).to_owned());
    match (part(0), rest.len()) {
        (Some(plural), 1..=3) => Ok(Place {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace,
            plural,
            name: part(1),
            subresource: part(2),
        }),
        _ => Err(no_such_path()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(path: &str) -> Place {
        match target(path) {
            Ok(Target::Objects(place)) => place,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn a_path_of_objects_has_its_parts() {
        let pod = objects("/api/v1/namespaces/shop/pods/web-0/status");
        assert_eq!((pod.group.as_str(), pod.version.as_str(), pod.plural.as_str()), ("", "v1", "pods"));
        assert_eq!(pod.namespace.as_deref(), Some("shop"));
        assert_eq!((pod.name.as_deref(), pod.subresource.as_deref()), (Some("web-0"), Some("status")));
        let all = objects("/apis/apps/v1/deployments");
        assert_eq!((all.group.as_str(), all.namespace, all.name), ("apps", None, None));
    }

    #[test]
    fn a_namespace_is_an_object_and_a_place() {
        let itself = objects("/api/v1/namespaces/shop");
        assert_eq!((itself.namespace, itself.name.as_deref()), (None, Some("shop")));
        let status = objects("/api/v1/namespaces/shop/status");
        assert_eq!((status.plural.as_str(), status.subresource.as_deref()), ("namespaces", Some("status")));
        assert_eq!(objects("/api/v1/namespaces/shop/pods").plural, "pods");
        let custom = objects("/apis/example.com/v1/namespaces/shop/status");
        assert_eq!(custom.plural, "namespaces", "only objects without a name could be meant");
    }

    #[test]
    fn a_path_that_climbs_is_refused() {
        for path in
            ["/api/v1/namespaces/../pods", "/api/v1/pods/%2e%2e", "/api/v1/pods/a%2fb", "/api/v1/pods/%ff"]
        {
            assert_eq!(target(path).expect_err(path).code, 400, "{path}");
        }
    }

    #[test]
    fn what_is_nothing_is_not_found() {
        for path in ["/apiz", "/api/v1/a/b/c/d", "/openapi/v2/x", "/metrics"] {
            assert_eq!(target(path).expect_err(path).code, 404, "{path}");
        }
    }
}

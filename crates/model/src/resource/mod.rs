//! What a kind of object is called: group, version and resource (`deployments`) or kind (`Deployment`).
//!
//! Two spellings are read, `apps/v1/deployments` and `deployments.v1.apps`. For the core group they are
//! `core/v1/pods` or `v1/pods`, and `pods.v1` or `pods.v1.`. A user may leave out the version, or the group
//! as well: that is a [`ResourceArg`]. Between dots, the second part is a version when it looks like one
//! (`v1`, `v2beta3`); any other version is written with slashes.

mod reader;

use std::{fmt, str::FromStr};

pub use reader::ResourceArgError;
use reader::{GROUP, KIND, Parts, RESOURCE, Reader, VERSION, spell};

/// A resource of an API: what is listed and watched.
///
/// It is always valid, and what `Display` writes is read back as the same resource. The core group is the
/// empty text; it is `core` where a user writes it.
///
/// ```
/// use informer_model::GroupVersionResource;
///
/// let deployments: GroupVersionResource = "apps/v1/deployments".parse()?;
/// assert_eq!(deployments.to_string(), "deployments.v1.apps");
/// assert_eq!(deployments.api_version(), "apps/v1");
/// assert_eq!(GroupVersionResource::new("", "v1", "pods")?.to_string(), "pods.v1");
/// # Ok::<(), informer_model::ResourceArgError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource {
    group: String,
    version: String,
    resource: String,
}

/// A kind of an API: what an object says it is in `apiVersion` and `kind`.
///
/// It is always valid, and what `Display` writes is read back as the same kind.
///
/// ```
/// use informer_model::GroupVersionKind;
///
/// let kind = GroupVersionKind::from_api_version("apps/v1", "Deployment")?;
/// assert_eq!((kind.group(), kind.version(), kind.kind()), ("apps", "v1", "Deployment"));
/// assert_eq!(kind.to_string(), "Deployment.v1.apps");
/// assert_eq!("v1/Pod".parse::<GroupVersionKind>()?.api_version(), "v1");
/// # Ok::<(), informer_model::ResourceArgError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    group: String,
    version: String,
    kind: String,
}

/// A resource as a user names it: `deployments`, `deployments.apps`, or all of a [`GroupVersionResource`].
///
/// ```
/// use informer_model::ResourceArg;
///
/// let policies: ResourceArg = "networkpolicies.networking.k8s.io".parse()?;
/// assert_eq!((policies.group(), policies.version()), (Some("networking.k8s.io"), None));
/// assert!(policies.matches(&"networking.k8s.io/v1/networkpolicies".parse()?));
///
/// let pods: ResourceArg = "pods.v1".parse()?;
/// assert_eq!((pods.group(), pods.version()), (Some(""), Some("v1")));
/// # Ok::<(), informer_model::ResourceArgError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceArg {
    resource: String,
    group: Option<String>,
    version: Option<String>,
}

impl GroupVersionResource {
    /// A resource from its parts. The core group is `""` or `"core"`.
    pub fn new(group: &str, version: &str, resource: &str) -> Result<Self, ResourceArgError> {
        let (group, version) = group_and_version(group, version)?;
        let resource = Reader::new(&RESOURCE, resource).whole(&RESOURCE)?;
        Ok(Self { group, version, resource })
    }

    /// The group, empty for the core group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The plural name, as in the path of a request.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Group and version as an object has them: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

impl GroupVersionKind {
    /// A kind from its parts. The core group is `""` or `"core"`.
    pub fn new(group: &str, version: &str, kind: &str) -> Result<Self, ResourceArgError> {
        let (group, version) = group_and_version(group, version)?;
        Ok(Self { group, version, kind: Reader::new(&KIND, kind).whole(&KIND)? })
    }

    /// A kind from the two fields of an object. There, the core group is left out: `core/v1` is refused.
    pub fn from_api_version(api_version: &str, kind: &str) -> Result<Self, ResourceArgError> {
        let reader = Reader { noun: "apiVersion", input: api_version };
        let (group, version) = match api_version.split_once('/') {
            None => ("", reader.part(&VERSION, 0, api_version)?),
            Some((group @ ("" | "core"), _)) => {
                return Err(reader.error(0, group, "a group (the core group has a version only: `v1`)"));
            }
            Some((group, version)) => {
                (reader.group(0, group)?, reader.part(&VERSION, group.len() + 1, version)?)
            }
        };
        let kind = Reader::new(&KIND, kind).whole(&KIND)?;
        Ok(Self { group: group.to_owned(), version: version.to_owned(), kind })
    }

    /// The group, empty for the core group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The name of the kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Group and version as an object has them: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

impl ResourceArg {
    /// The resource's name.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The group if it was said, empty for the core group.
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// The version if it was said; then the group was, too.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Whether this resource is one of those that the user may mean.
    pub fn matches(&self, resource: &GroupVersionResource) -> bool {
        self.resource == resource.resource
            && self.group.as_ref().is_none_or(|group| *group == resource.group)
            && self.version.as_ref().is_none_or(|version| *version == resource.version)
    }

    /// The one resource that the user means, if all of it was said.
    pub fn to_resource(&self) -> Option<GroupVersionResource> {
        let (group, version) = (self.group.clone()?, self.version.clone()?);
        Some(GroupVersionResource { group, version, resource: self.resource.clone() })
    }
}

impl From<GroupVersionResource> for ResourceArg {
    fn from(full: GroupVersionResource) -> Self {
        Self { resource: full.resource, group: Some(full.group), version: Some(full.version) }
    }
}

/// A name with its group, as people write it where the version does not matter: `pods`, `deployments.apps`.
pub fn qualified_name(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// The two parts that resources and kinds share, checked.
fn group_and_version(group: &str, version: &str) -> Result<(String, String), ResourceArgError> {
    let group = match group {
        "" => "",
        group => Reader::new(&GROUP, group).group(0, group)?,
    };
    Ok((group.to_owned(), Reader::new(&VERSION, version).whole(&VERSION)?))
}

fn api_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

impl FromStr for GroupVersionResource {
    type Err = ResourceArgError;

    fn from_str(text: &str) -> Result<Self, ResourceArgError> {
        let (group, version, resource) = Reader::new(&RESOURCE, text).read_full(&RESOURCE)?;
        Ok(Self { group, version, resource })
    }
}

impl FromStr for GroupVersionKind {
    type Err = ResourceArgError;

    fn from_str(text: &str) -> Result<Self, ResourceArgError> {
        let (group, version, kind) = Reader::new(&KIND, text).read_full(&KIND)?;
        Ok(Self { group, version, kind })
    }
}

impl FromStr for ResourceArg {
    type Err = ResourceArgError;

    fn from_str(text: &str) -> Result<Self, ResourceArgError> {
        let Parts { group, version, name } = Reader::new(&RESOURCE, text).read(&RESOURCE)?;
        Ok(Self {
            resource: name.to_owned(),
            group: group.map(str::to_owned),
            version: version.map(str::to_owned),
        })
    }
}

impl TryFrom<&str> for ResourceArg {
    type Error = ResourceArgError;

    fn try_from(text: &str) -> Result<Self, ResourceArgError> {
        text.parse()
    }
}

impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&spell(&self.group, &self.version, &self.resource))
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&spell(&self.group, &self.version, &self.kind))
    }
}

impl fmt::Display for ResourceArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.group(), self.version()) {
            (Some(group), Some(version)) => f.pad(&spell(group, version, &self.resource)),
            (Some(""), None) => f.pad(&format!("{}.core", self.resource)),
            (Some(group), None) => f.pad(&format!("{}.{group}", self.resource)),
            (None, _) => f.pad(&self.resource),
        }
    }
}

impl fmt::Debug for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl fmt::Debug for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl fmt::Debug for ResourceArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_resource_are_read() {
        for (text, group, version, resource, display) in [
            ("apps/v1/deployments", "apps", "v1", "deployments", "deployments.v1.apps"),
            ("deployments.v1.apps", "apps", "v1", "deployments", "deployments.v1.apps"),
            ("core/v1/pods", "", "v1", "pods", "pods.v1"),
            ("v1/pods", "", "v1", "pods", "pods.v1"),
            ("pods.v1", "", "v1", "pods", "pods.v1"),
            ("pods.v1.", "", "v1", "pods", "pods.v1"),
            ("pods.v1.core", "", "v1", "pods", "pods.v1"),
            ("jobs.v1beta1.batch", "batch", "v1beta1", "jobs", "jobs.v1beta1.batch"),
            (
                "networking.k8s.io/v1/ingresses",
                "networking.k8s.io",
                "v1",
                "ingresses",
                "ingresses.v1.networking.k8s.io",
            ),
            ("foos.v1.v2.example.com", "v2.example.com", "v1", "foos", "foos.v1.v2.example.com"),
            ("example.com/stable/foos", "example.com", "stable", "foos", "example.com/stable/foos"),
            ("core/stable/foos", "", "stable", "foos", "core/stable/foos"),
            ("a-b.c/v10alpha20/x-9", "a-b.c", "v10alpha20", "x-9", "x-9.v10alpha20.a-b.c"),
        ] {
            let parsed: GroupVersionResource = text.parse().unwrap();
            assert_eq!(
                (parsed.group(), parsed.version(), parsed.resource()),
                (group, version, resource),
                "{text}"
            );
            assert_eq!(GroupVersionResource::new(group, version, resource), Ok(parsed.clone()));
            assert_eq!((parsed.to_string().as_str(), display.parse()), (display, Ok(parsed.clone())));
            assert_eq!(text.parse::<ResourceArg>().unwrap().to_resource(), Some(parsed.clone()));
            assert_eq!(ResourceArg::from(parsed).to_string(), display);
        }
        assert_eq!(GroupVersionResource::new("core", "v1", "pods"), "pods.v1".parse());
    }

    #[test]
    fn a_user_may_leave_out_version_and_group() {
        for (text, resource, group, version) in [
            ("deployments", "deployments", None, None),
            ("v1", "v1", None, None),
            ("deployments.apps", "deployments", Some("apps"), None),
            ("pods.core", "pods", Some(""), None),
            ("pods.v1", "pods", Some(""), Some("v1")),
            ("networkpolicies.networking.k8s.io", "networkpolicies", Some("networking.k8s.io"), None),
            ("foos.v1.example.com", "foos", Some("example.com"), Some("v1")),
            ("foos.v0.example.com", "foos", Some("v0.example.com"), None),
            ("foos.v1gamma1.example.com", "foos", Some("v1gamma1.example.com"), None),
            ("foos.v1beta.example.com", "foos", Some("v1beta.example.com"), None),
            ("foos.v1beta01.example.com", "foos", Some("v1beta01.example.com"), None),
            ("foos.v.example.com", "foos", Some("v.example.com"), None),
            ("foos.v1x", "foos", Some("v1x"), None),
        ] {
            let arg: ResourceArg = text.parse().unwrap();
            assert_eq!((arg.resource(), arg.group(), arg.version()), (resource, group, version), "{text}");
            assert_eq!((arg.to_string().as_str(), arg.to_resource().is_some()), (text, version.is_some()));
        }
    }

    #[test]
    fn what_was_not_said_matches_anything() {
        let deployments = GroupVersionResource::new("apps", "v1", "deployments").unwrap();
        for (text, matches) in [
            ("deployments", true),
            ("deployments.apps", true),
            ("deployments.v1.apps", true),
            ("deployment", false),
            ("deployments.core", false),
            ("deployments.v1", false),
            ("deployments.v2.apps", false),
            ("deployments.extensions", false),
        ] {
            assert_eq!(text.parse::<ResourceArg>().unwrap().matches(&deployments), matches, "{text}");
        }
    }

    #[test]
    fn all_spellings_of_a_kind_are_read() {
        for (text, api_version, kind, display) in [
            ("apps/v1/Deployment", "apps/v1", "Deployment", "Deployment.v1.apps"),
            ("Deployment.v1.apps", "apps/v1", "Deployment", "Deployment.v1.apps"),
            ("v1/Pod", "v1", "Pod", "Pod.v1"),
            ("core/v1/Pod", "v1", "Pod", "Pod.v1"),
            ("Pod.v1", "v1", "Pod", "Pod.v1"),
            ("Pod.v1.", "v1", "Pod", "Pod.v1"),
            ("a.io/x/fooBar", "a.io/x", "fooBar", "a.io/x/fooBar"),
        ] {
            let parsed: GroupVersionKind = text.parse().unwrap();
            assert_eq!((parsed.api_version().as_str(), parsed.kind()), (api_version, kind), "{text}");
            assert_eq!(GroupVersionKind::from_api_version(api_version, kind), Ok(parsed.clone()));
            assert_eq!(GroupVersionKind::new(parsed.group(), parsed.version(), kind), Ok(parsed.clone()));
            assert_eq!((parsed.to_string().as_str(), display.parse()), (display, Ok(parsed)));
        }
    }

    #[test]
    fn an_api_version_is_refused_with_its_position() {
        for (api_version, kind, at, found) in [
            ("", "Pod", 0, "the end"),
            ("core/v1", "Pod", 0, "`core`"),
            ("/v1", "Pod", 0, "`/`"),
            ("apps/", "Pod", 5, "the end"),
            ("apps/v1/x", "Pod", 7, "`/`"),
            ("Apps/v1", "Pod", 0, "`A`"),
            ("v1", "", 0, "the end"),
            ("v1", "Po d", 2, "` `"),
        ] {
            let error = GroupVersionKind::from_api_version(api_version, kind).unwrap_err().to_string();
            assert!(error.ends_with(&format!(" at byte {at}, found {found}")), "{error}");
        }
        let error = GroupVersionKind::from_api_version("core/v1", "Pod").unwrap_err().to_string();
        let expected = "apiVersion \"core/v1\": expected a group (the core group has a version only: `v1`)";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn order_is_by_group_then_version_then_name() {
        let mut all: Vec<GroupVersionResource> =
            ["pods.v1", "jobs.v1.batch", "a.v1.batch", "z.v1beta1.apps", "events.v1"]
                .map(|t| t.parse().unwrap())
                .to_vec();
        all.sort();
        let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["events.v1", "pods.v1", "z.v1beta1.apps", "a.v1.batch", "jobs.v1.batch"]);
    }
}

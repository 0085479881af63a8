//! Structs of a few fields as kinds of objects.
//!
//! In goes a struct that names what is needed of an object; out comes a [`kube::Resource`], which everything here takes.

/// Makes a struct with a few fields a kind of objects.
///
/// The struct decodes only the fields that it names, and takes only the memory that they take; the rest of each
/// object is passed over. It needs `metadata: ObjectMeta` and [`Deserialize`](serde::Deserialize). Projections of
/// one kind are types of their own, each with its own informer. What of the metadata nobody reads,
/// [`Transform::drop_metadata`](crate::queue::Transform::drop_metadata) or a transform of your own gives back.
///
/// Of a kind that has a Rust type, name the type:
///
/// ```
/// use std::time::Duration;
///
/// use informer::{KubeListWatch, SharedInformer};
/// use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
/// use serde::Deserialize;
///
/// /// Where a pod runs.
/// #[derive(Debug, Clone, Deserialize)]
/// struct PodPlace {
///     metadata: ObjectMeta,
///     spec: Place,
/// }
///
/// #[derive(Debug, Clone, Deserialize)]
/// struct Place {
///     #[serde(rename = "nodeName")]
///     node: Option<String>,
/// }
///
/// informer::projection!(PodPlace of Pod);
///
/// # use tokio_util::sync::CancellationToken;
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = informer_apiserver::ApiServer::builder().build();
/// # server.put(serde_json::json!({
/// #     "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web-0", "namespace": "default" },
/// #     "spec": { "nodeName": "node-1", "containers": [{ "name": "web", "image": "nginx" }] },
/// # }))?;
/// # let client = server.client();
/// let pods = SharedInformer::builder(KubeListWatch::<PodPlace>::all(client)).build()?;
/// # let (running, stop) = (pods.clone(), CancellationToken::new());
/// # let stopped = stop.clone();
/// # let running = tokio::spawn(async move { running.run(stopped).await });
/// pods.wait_until_synced(Duration::from_secs(10)).await?;
/// let web = pods.store().get(&"default/web-0".parse()?).ok_or("no such pod")?;
/// assert_eq!(web.spec.node.as_deref(), Some("node-1"));
/// # stop.cancel();
/// # running.await??;
/// # Ok(()) }
/// ```
///
/// The type may also be [`DynamicObject`](crate::DynamicObject), for a struct that fits several kinds, or
/// [`PartialObjectMeta`](kube::core::PartialObjectMeta), for one that needs the metadata alone and has the server
/// leave out the rest.
///
/// Of a kind without a Rust type, say what its CustomResourceDefinition says. The names are checked when this is
/// compiled:
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// use kube::Resource;
/// use serde::Deserialize;
///
/// #[derive(Debug, Clone, Deserialize)]
/// struct Website {
///     metadata: ObjectMeta,
///     spec: WebsiteSpec,
/// }
///
/// #[derive(Debug, Clone, Deserialize)]
/// struct WebsiteSpec {
///     domain: String,
/// }
///
/// informer::projection!(Website of {
///     group: "example.com",
///     version: "v1",
///     kind: "Website",
///     plural: "websites",
///     scope: Namespaced,
/// });
/// assert_eq!(Website::url_path(&(), Some("shop")), "/apis/example.com/v1/namespaces/shop/websites");
/// ```
///
/// The scope is `Namespaced` or `Cluster`. A name that no server would take does not compile:
///
/// ```compile_fail
/// # struct Website { metadata: kube::core::ObjectMeta }
/// informer::projection!(Website of {
///     group: "example.com", version: "v1", kind: "Website", plural: "Web Sites", scope: Namespaced,
/// });
/// ```
#[macro_export]
macro_rules! projection {
    ($projection:ident of {
        group: $group:expr,
        version: $version:expr,
        kind: $kind:expr,
        plural: $plural:expr,
        scope: $scope:ident $(,)?
    }) => {
        const _: () = $crate::__private::check_names($group, $version, $kind, $plural);

        impl $crate::__private::Resource for $projection {
            type DynamicType = ();
            type Scope = $crate::__private::scope::$scope;

            fn kind(_: &()) -> $crate::__private::Cow<'_, str> {
                $crate::__private::Cow::Borrowed($kind)
            }

            fn group(_: &()) -> $crate::__private::Cow<'_, str> {
                $crate::__private::Cow::Borrowed($group)
            }

            fn version(_: &()) -> $crate::__private::Cow<'_, str> {
                $crate::__private::Cow::Borrowed($version)
            }

            fn plural(_: &()) -> $crate::__private::Cow<'_, str> {
                $crate::__private::Cow::Borrowed($plural)
            }

            $crate::projection!(@metadata);
        }
    };
    ($projection:ident of { $($other:tt)* }) => {
        ::core::compile_error!(
            "expected { group: \"example.com\", version: \"v1\", kind: \"Website\", plural: \"websites\", \
             scope: Namespaced }, in this order; the scope may also be Cluster"
        );
    };
    ($projection:ident of $of:ty) => {
        impl $crate::__private::Resource for $projection {
            type DynamicType = <$of as $crate::__private::Resource>::DynamicType;
            type Scope = <$of as $crate::__private::Resource>::Scope;

            fn kind(kind: &Self::DynamicType) -> $crate::__private::Cow<'_, str> {
                <$of as $crate::__private::Resource>::kind(kind)
            }

            fn group(kind: &Self::DynamicType) -> $crate::__private::Cow<'_, str> {
                <$of as $crate::__private::Resource>::group(kind)
            }

            fn version(kind: &Self::DynamicType) -> $crate::__private::Cow<'_, str> {
                <$of as $crate::__private::Resource>::version(kind)
            }

            fn api_version(kind: &Self::DynamicType) -> $crate::__private::Cow<'_, str> {
                <$of as $crate::__private::Resource>::api_version(kind)
            }

            fn plural(kind: &Self::DynamicType) -> $crate::__private::Cow<'_, str> {
                <$of as $crate::__private::Resource>::plural(kind)
            }

            fn metadata_api() -> bool {
                <$of as $crate::__private::Resource>::metadata_api()
            }

            $crate::projection!(@metadata);
        }
    };
    (@metadata) => {
        fn meta(&self) -> &$crate::__private::ObjectMeta {
            &self.metadata
        }

        fn meta_mut(&mut self) -> &mut $crate::__private::ObjectMeta {
            &mut self.metadata
        }
    };
}

/// What [`projection!`] writes into the user's crate.
#[doc(hidden)]
pub mod __private {
    pub use std::borrow::Cow;

    use informer_model::{is_dns_label, is_dns_subdomain, is_kind_name};
    pub use kube::{Resource, core::ObjectMeta};

    /// The scopes in the words of a CustomResourceDefinition.
    pub mod scope {
        pub use kube::core::{ClusterResourceScope as Cluster, NamespaceResourceScope as Namespaced};
    }

    /// Stops the compiler at names that no server takes.
    pub const fn check_names(group: &str, version: &str, kind: &str, plural: &str) {
        assert!(group.is_empty() || is_dns_subdomain(group), "the group is no name like \"example.com\"");
        assert!(is_dns_label(version) && is_kind_name(version), "the version is no name like \"v1\"");
        assert!(is_kind_name(kind), "the kind is no name like \"Website\"");
        assert!(is_dns_label(plural) && is_kind_name(plural), "the plural is no name like \"websites\"");
    }
}

#[cfg(test)]
mod tests {
    use std::panic;

    use informer_model::BUILTIN_KINDS;

    use super::__private::check_names;

    #[test]
    fn names_are_taken_when_compiling_as_a_server_takes_them() {
        for kind in BUILTIN_KINDS {
            check_names(kind.group, kind.version, kind.kind, kind.plural);
        }
        fn taken(group: &str, version: &str, kind: &str, plural: &str) -> bool {
            panic::catch_unwind(|| check_names(group, version, kind, plural)).is_ok()
        }
        assert!(taken("a.b-c", "v1-beta", "my-Kind", "my-kinds"));
        assert!(!taken("Example.com", "v1", "A", "as"));
        assert!(!taken("", "V1", "A", "as") && !taken("", "1", "A", "as"));
        assert!(!taken("", "v1", "a b", "as") && !taken("", "v1", "", "as"));
        assert!(!taken("", "v1", "A", "As") && !taken("", "v1", "A", "../secrets"));
    }
}

//! The accessors: one for every kind, and all of them at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use informer::{AnyInformer, SharedInformer, SharedInformerFactory};
use informer_apiserver::{ApiServer, DemoCluster};
use informer_model::{BUILTIN_KINDS, decoded_bytes};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// Long enough in paused time, where it costs nothing.
const SOON: Duration = Duration::from_secs(60);

/// An accessor: where it is, and the informer that it gives.
struct Accessor {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// What an empty object takes.
    size: usize,
    informer: fn(&SharedInformerFactory) -> Box<dyn AnyInformer>,
}

fn size_of_kind<K>(_: impl Fn(&SharedInformerFactory) -> SharedInformer<K>) -> usize {
    size_of::<K>()
}

macro_rules! accessors {
    ($(group $group:ident = $name:literal $group_when:tt in $($path:ident)::+ {
        $(version $version:ident $version_when:tt {
            $($kind:ident $accessor:ident $plural:literal $scope:ident $kind_when:tt $facts:tt)*
        })*
    })*) => {
        /// Every accessor that the enabled version of Kubernetes has.
        fn accessors() -> Vec<Accessor> {
            let mut accessors = Vec::new();
            $(informer_model::if_minor! { $group_when {
                $(informer_model::if_minor! { $version_when {
                    $(informer_model::if_minor! { $kind_when {
                        accessors.push(Accessor {
                            group: $name,
                            version: stringify!($version),
                            kind: stringify!($kind),
                            plural: $plural,
                            size: size_of_kind(|factory| factory.$group().$version().$accessor().informer()),
                            informer: |factory| Box::new(factory.$group().$version().$accessor().informer()),
                        });
                    } })*
                } })*
            } })*
            accessors
        }
    };
}
informer_model::for_each_kind!(accessors);

fn output(program: &str, arguments: &[&str]) -> Vec<u8> {
    let output =
        Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Where the source of `k8s-openapi` is that this is built with.
fn source_of_k8s_openapi() -> PathBuf {
    let cargo = env!("CARGO");
    let about = String::from_utf8(output(cargo, &["-vV"])).expect("text");
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    // What other platforms need has not been downloaded.
    let arguments = [
        "metadata",
        "--format-version=1",
        "--locked",
        "--filter-platform",
        host,
        "--manifest-path",
        manifest,
    ];
    let metadata: Value = serde_json::from_slice(&output(cargo, &arguments)).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages.iter().find(|package| package["name"] == "k8s-openapi").expect("k8s-openapi");
    Path::new(package["manifest_path"].as_str().expect("a path")).with_file_name("src")
}

/// Every type of one version of `k8s-openapi` that can be listed: group, version and kind.
fn listable(minor: u32) -> BTreeSet<[String; 3]> {
    let mut found = BTreeSet::new();
    let mut folders = vec![source_of_k8s_openapi().join(format!("v1_{minor}"))];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source file");
            if text.contains("impl crate::ListableResource for ") {
                let constant = |name: &str| {
                    let at = text.find(&format!("const {name}: &'static str = \"")).expect("a constant");
                    text[at..].split('"').nth(1).expect("a text").to_owned()
                };
                found.insert(["GROUP", "VERSION", "KIND"].map(constant));
            }
        }
    }
    found
}

#[test]
fn every_kind_of_k8s_openapi_that_can_be_listed_has_an_accessor() {
    let accessors =
        accessors().into_iter().map(|Accessor { group, version, kind, .. }| [group, version, kind]);
    let accessors: BTreeSet<[String; 3]> = accessors.map(|names| names.map(str::to_owned)).collect();
    assert_eq!(accessors, listable(37), "left: the accessors; right: the types");
    println!("v1_37: {} accessors", accessors.len());
}

/// The accessors are made from the rows of the table, so it is enough to look at these for the other versions.
#[test]
fn every_version_of_kubernetes_has_a_row_for_each_of_its_kinds() {
    for minor in 33..=37 {
        let rows = BUILTIN_KINDS.iter().filter(|row| row.is_in(minor));
        let rows: BTreeSet<[String; 3]> =
            rows.map(|row| [row.group, row.version, row.kind].map(str::to_owned)).collect();
        assert_eq!(rows, listable(minor), "1.{minor}; left: the table; right: the types");
        println!("v1_{minor}: {} kinds", rows.len());
    }
}

#[test]
fn what_an_object_takes_in_memory_is_known_without_decoding_it() {
    let off: Vec<String> = accessors()
        .iter()
        .filter_map(|Accessor { group, version, kind, size, .. }| {
            let api_version =
                if group.is_empty() { (*version).to_owned() } else { format!("{group}/{version}") };
            let told = decoded_bytes(&api_version, kind, &json!({}));
            // Fifty bytes are what alignment makes of a small one.
            let is_near = told.abs_diff(*size) <= 48.max(size / 5);
            (!is_near).then(|| format!("{api_version} {kind}: {size} bytes, told {told}"))
        })
        .collect();
    assert!(off.is_empty(), "{}", off.join("\n"));
}

/// How often the server was asked to watch, by resource.
fn watches(server: &ApiServer) -> BTreeMap<String, u64> {
    let requests = server.requests().into_iter().filter(|((verb, _), _)| *verb == "watch");
    requests.map(|((_, resource), times)| (resource, times)).collect()
}

#[test]
fn c31_all_kinds_at_once_sync_and_one_of_them_is_stopped_and_started_while_the_rest_run() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let server = ApiServer::builder().seed(1).build();
        let loaded = server.load_demo(&DemoCluster::new(1, 8_000)).unwrap();
        assert!(loaded >= 10_000, "{loaded} objects");
        let factory = SharedInformerFactory::new(server.client(), Duration::ZERO);
        let accessors = accessors();
        let informers: Vec<Box<dyn AnyInformer>> =
            accessors.iter().map(|accessor| (accessor.informer)(&factory)).collect();
        assert_eq!(factory.health().len(), accessors.len());
        factory.start().unwrap();
        let report = factory.wait_for_cache_sync(SOON).await.unwrap();
        assert_eq!(report.informers.len(), accessors.len());

        let held: usize = informers.iter().map(|informer| informer.health().objects).sum();
        assert!(held >= loaded, "{held} of {loaded} objects");
        let watched = watches(&server);
        for (accessor, informer) in accessors.iter().zip(&informers) {
            // The server counts all groups and versions of a name together.
            let named = accessors.iter().filter(|other| other.plural == accessor.plural).count();
            let row =
                BUILTIN_KINDS.iter().find(|row| (row.group, row.plural) == (accessor.group, accessor.plural));
            // Of all kinds only the statuses of components cannot be watched, and those are asked for in vain.
            if row.is_some_and(|row| row.verbs.contains(&"watch")) {
                assert_eq!(watched.get(accessor.plural), Some(&(named as u64)), "{}", accessor.plural);
                assert!(informer.health().is_healthy(), "{}", informer.health());
            }
        }

        let (old, before) = (factory.informer_for::<Pod>(), watches(&server));
        assert!(factory.stop_informer::<Pod>().await);
        assert_eq!(informers.iter().filter(|informer| informer.is_stopped()).count(), 1);
        let new = factory.informer_for::<Pod>();
        factory.start().unwrap();
        new.wait_until_synced(SOON).await.unwrap();
        assert_eq!((new.store().len(), old.store().len()), (8_000, 8_000));
        let mut after = watches(&server);
        after.insert("pods".to_owned(), before["pods"]);
        after.insert(
            "componentstatuses".to_owned(),
            before.get("componentstatuses").copied().unwrap_or_default(),
        );
        assert_eq!(after, before, "the others went on as they were");
        factory.shutdown().await;
        assert!(informers.iter().all(|informer| informer.is_stopped()));
    });
}

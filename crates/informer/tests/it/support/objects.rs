//! Builders for the tests' objects: config maps, the smallest kind with a namespace, labels and contents.

#![allow(dead_code, reason = "the model checker's tests use a part")]

use informer::{Object, Tombstone, model::ObjectKey, queue::Delta};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};

pub(crate) type Config = Object<ConfigMap>;

pub(crate) fn key(text: &str) -> ObjectKey {
    text.parse().expect("a key")
}

/// A config map without labels.
pub(crate) fn mk(key_text: &str, version: u64) -> Config {
    mk_labelled(key_text, version, &[])
}

pub(crate) fn mk_labelled(key_text: &str, version: u64, labels: &[(&str, &str)]) -> Config {
    mk_with(key_text, version, labels, &[])
}

/// A config map whose data has these keys: what the tests' user index files it under.
pub(crate) fn mk_with(key_text: &str, version: u64, labels: &[(&str, &str)], data: &[&str]) -> Config {
    let key = key(key_text);
    let owned = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let metadata = ObjectMeta {
        name: Some(key.name().to_owned()),
        namespace: key.namespace().map(str::to_owned),
        resource_version: Some(version.to_string()),
        labels: (!labels.is_empty()).then(|| owned(labels)),
        ..ObjectMeta::default()
    };
    let data = data.iter().map(|key| (key.to_string(), String::new())).collect();
    Object::new(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }).expect("a name")
}

/// The user index of the tests: a config map is filed under every key of its data.
pub(crate) fn data_keys(object: &Config) -> Vec<String> {
    object.data.iter().flatten().map(|(key, _)| key.clone()).collect()
}

/// `key@version`, one after another.
pub(crate) fn show<'a>(objects: impl IntoIterator<Item = &'a Config>) -> String {
    let texts: Vec<String> = objects.into_iter().map(|object| format!("{object:?}")).collect();
    texts.join(" ")
}

/// Deltas in short: `+` added, `~` updated, `-` deleted, `?` deleted with unknown final state, `=` replaced,
/// `.` resync, `#` bookmark.
pub(crate) fn show_deltas(deltas: &[Delta<ConfigMap>]) -> String {
    let texts = deltas.iter().map(|delta| match delta {
        Delta::Added(object) => format!("+{object:?}"),
        Delta::Updated(object) => format!("~{object:?}"),
        Delta::Deleted(Tombstone::Final(object)) => format!("-{object:?}"),
        Delta::Deleted(Tombstone::Unknown { last_seen: Some(object), .. }) => format!("?{object:?}"),
        Delta::Deleted(Tombstone::Unknown { key, last_seen: None }) => format!("?{key}"),
        Delta::Deleted(Tombstone::Left { last_seen, .. }) => format!("!{last_seen:?}"),
        Delta::Replaced(object) => format!("={object:?}"),
        Delta::Sync(object) => format!(".{object:?}"),
        Delta::ReplacedAll(list) => format!("=[{}]#{}", show(&list.objects), list.version),
        Delta::SyncAll => "..".to_owned(),
        Delta::Bookmark(version) => format!("#{version}"),
    });
    texts.collect::<Vec<_>>().join(" ")
}

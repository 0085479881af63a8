//! Requests to the server, and its answers in short.

use futures_util::{FutureExt, StreamExt};
use informer::{
    model::ResourceVersion,
    source::{
        ListItem, ListOptions, ListWatch, MemorySource, PageEnd, SourceError, VersionMatch, WatchChange,
        WatchItem, WatchStream,
    },
};
use k8s_openapi::api::core::v1::ConfigMap;

use super::support::mk_labelled;

pub(crate) type Server = MemorySource<ConfigMap>;

pub(crate) fn put(server: &Server, key: &str) -> ResourceVersion {
    put_labelled(server, key, &[])
}

pub(crate) fn put_labelled(server: &Server, key: &str, labels: &[(&str, &str)]) -> ResourceVersion {
    server.put((*mk_labelled(key, 0, labels)).clone()).expect("a name")
}

/// A server at version 4 with a/1@2, b/1@3 and b/2@4.
pub(crate) fn filled() -> Server {
    let server = Server::new();
    for key in ["a/1", "b/1", "b/2"] {
        put(&server, key);
    }
    server
}

pub(crate) fn at(version: impl Into<ResourceVersion>) -> ListOptions {
    ListOptions { resource_version: version.into(), ..ListOptions::default() }
}

pub(crate) fn matching(options: ListOptions, version_match: VersionMatch) -> ListOptions {
    ListOptions { resource_version_match: Some(version_match), ..options }
}

pub(crate) fn limited(options: ListOptions, limit: u32) -> ListOptions {
    ListOptions { limit: Some(limit), ..options }
}

pub(crate) fn continued(token: impl Into<String>) -> ListOptions {
    ListOptions { continue_token: Some(token.into()), ..ListOptions::default() }
}

pub(crate) fn labelled(options: ListOptions, selector: &str) -> ListOptions {
    ListOptions { label_selector: Some(selector.into()), ..options }
}

pub(crate) fn with_bookmarks(options: ListOptions) -> ListOptions {
    ListOptions { allow_watch_bookmarks: true, ..options }
}

pub(crate) fn streaming(version: impl Into<ResourceVersion>) -> ListOptions {
    let options = matching(with_bookmarks(at(version)), VersionMatch::NotOlderThan);
    ListOptions { send_initial_events: true, ..options }
}

pub(crate) fn code<T>(result: Result<T, SourceError>) -> Option<u16> {
    result.err().and_then(|error| error.status().map(|status| status.code))
}

/// A page: its objects, `?` before one that is unusable, and its end.
pub(crate) async fn page(server: &Server, options: ListOptions) -> Result<(String, PageEnd), SourceError> {
    let mut list = server.list(options).await?;
    let mut texts = Vec::new();
    while let Some(item) = list.next().await {
        match item? {
            ListItem::Object(object) => texts.push(format!("{object:?}")),
            ListItem::Unusable(unusable) => texts.push(format!("?{}@{}", unusable.name, unusable.version)),
            ListItem::End(end) => return Ok((texts.join(" "), end)),
        }
    }
    panic!("a list without an end: {texts:?}")
}

/// A page and the version that it says, or the code of the error.
pub(crate) async fn listed(server: &Server, options: ListOptions) -> Result<String, u16> {
    let page = page(server, options).await;
    page.map(|(objects, end)| format!("{objects} #{}", end.version))
        .map_err(|error| code::<()>(Err(error)).unwrap())
}

pub(crate) async fn watch(server: &Server, options: ListOptions) -> WatchStream<ConfigMap> {
    server.watch(options).await.expect("a watch")
}

/// An item in short: `+` added, `~` modified, `-` deleted, each with `?` if it is unusable; `#` bookmark, `##`
/// the one after the initial events, `!` error.
pub(crate) fn short(item: Result<WatchItem<ConfigMap>, SourceError>) -> String {
    let sign = |change| match change {
        WatchChange::Added => '+',
        WatchChange::Modified => '~',
        WatchChange::Deleted => '-',
    };
    match item {
        Ok(WatchItem::Object(change, object)) => format!("{}{object:?}", sign(change)),
        Ok(WatchItem::Unusable(change, object)) => {
            format!("{}?{}@{}", sign(change), object.name, object.version)
        }
        Ok(WatchItem::Bookmark { version, initial_events_end: false }) => format!("#{version}"),
        Ok(WatchItem::Bookmark { version, initial_events_end: true }) => format!("##{version}"),
        Ok(WatchItem::Error(status)) => format!("!{}", status.code),
        Ok(WatchItem::Foreign(what)) => format!("foreign {what}"),
        Err(error) => error.to_string(),
    }
}

/// All that a watch has to say at this moment, and `end` if it is over.
pub(crate) fn told(watch: &mut WatchStream<ConfigMap>) -> String {
    let mut texts = Vec::new();
    while let Some(next) = watch.next().now_or_never() {
        match next {
            Some(item) => texts.push(short(item)),
            None => {
                texts.push("end".to_owned());
                break;
            }
        }
    }
    texts.join(" ")
}

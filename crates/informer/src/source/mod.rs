//! Where objects come from: [`ListWatch`], and what passes through it.
//!
//! A source answers two requests. A list is a stream of objects that ends with [`ListItem::End`], one object
//! at a time while the answer arrives. A watch is a stream of [`WatchItem`]s without an end of its own. What
//! to ask for, when, and what to do about failures is decided by the [`reflector`](crate::reflector).
//!
//! [`KubeListWatch`] asks an API server, [`MemorySource`] is a server without a network, for tests.

mod kube;
mod memory;

use std::time::Duration;

use futures_util::{future::BoxFuture, stream::BoxStream};
use informer_model::{GroupVersionResource, ObjectKey, ResourceVersion, Status};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::Object;
pub use crate::request::SourceError;

pub(crate) use kube::is_namespaced;
pub use kube::{KubeListWatch, WireOptions};
pub use memory::{MemorySource, Request};

/// A way to list objects of one kind and to watch them.
///
/// What a reflector expects of a source:
///
/// - **One order of versions.** A list has a version, and each event of a watch a later one than the event before. They
///   need not be numbers, but only those that are can be compared: with others, promises 7, 11 and 21 of the
///   contract do not hold.
/// - **Nothing in between.** A watch from the version of a list tells every change after it. If the source cannot do that any
///   more, the watch ends with [`WatchItem::Error`] of code 410, and the reflector lists again.
/// - **The end of a page.** A list ends with [`ListItem::End`]. What ends without is taken for broken off. A source may ignore
///   [`limit`](ListOptions::limit), and then has one page; it must not have more objects for a page than it says, as
///   [`remaining`](PageEnd::remaining) counts those that come after it.
/// - **Initial events or a refusal.** Asked for [`send_initial_events`](ListOptions::send_initial_events), a watch begins with an
///   addition for each object, and then a bookmark with `initial_events_end`. A source that does not do so answers with an
///   error (400, 405, 406, 415, 422 and 501 mean "never"), and is listed instead.
/// - **Probes.** While a watch is open, lists with a `limit` of 1 and no version ask how far the source has come; see
///   [`ReflectorSettings::probe_period`](crate::reflector::ReflectorSettings::probe_period). A source whose lists cost much should say so by
///   having it unset.
///
/// A future or stream of a source may be dropped at any moment. Everything else, when to ask again and what to do about
/// failures, is up to the reflector.
pub trait ListWatch<K>: Send + Sync + 'static {
    /// The one namespace in which all objects of this source lie; `None` for all, or for a kind without.
    fn namespace(&self) -> Option<&str> {
        None
    }

    /// Which resource of an API is listed; `None` if it is none. Measurements carry it.
    fn resource(&self) -> Option<GroupVersionResource> {
        None
    }

    /// Whether a watch of this source tells of an object with this metadata; `object` gives all of it, for who selects by fields. Writes that
    /// no source covers are [not waited for](crate::client::Writes). Yes, where that is not known.
    fn covers(&self, metadata: &ObjectMeta, object: &dyn Fn() -> Value) -> bool {
        let _ = object;
        self.namespace().is_none_or(|namespace| metadata.namespace.as_deref() == Some(namespace))
    }

    /// What is listed, in words for a person: `pods in namespace "shop"`.
    fn description(&self) -> String;

    /// Opens a list, or one page of it.
    fn list(&self, options: ListOptions) -> BoxFuture<'static, Result<ListStream<K>, SourceError>>;

    /// Opens a watch.
    fn watch(&self, options: ListOptions) -> BoxFuture<'static, Result<WatchStream<K>, SourceError>>;
}

/// A page of a list as it arrives. The last item is [`ListItem::End`]; without it the page is not complete.
pub type ListStream<K> = BoxStream<'static, Result<ListItem<K>, SourceError>>;

/// A watch as it arrives. It ends when the server closes it, and after an `Err`.
pub type WatchStream<K> = BoxStream<'static, Result<WatchItem<K>, SourceError>>;

/// What to ask for. The names are those of Kubernetes' `ListOptions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Only objects with these labels.
    pub label_selector: Option<String>,
    /// Only objects with these fields.
    pub field_selector: Option<String>,
    /// The version to read at or to watch from. Unset means the newest.
    pub resource_version: ResourceVersion,
    /// How [`resource_version`](Self::resource_version) is meant.
    pub resource_version_match: Option<VersionMatch>,
    /// The most objects in one page.
    pub limit: Option<u32>,
    /// Where the page before this one ended.
    pub continue_token: Option<String>,
    /// How long the server should keep a watch open.
    pub timeout: Option<Duration>,
    /// Whether a watch may contain bookmarks.
    pub allow_watch_bookmarks: bool,
    /// Whether a watch begins with everything that exists.
    pub send_initial_events: bool,
}

/// How the version of a list is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionMatch {
    /// At this version or a later one.
    NotOlderThan,
    /// At this very version.
    Exact,
}

impl VersionMatch {
    /// The name that the API has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotOlderThan => "NotOlderThan",
            Self::Exact => "Exact",
        }
    }
}

/// A part of a list.
#[derive(Debug)]
pub enum ListItem<K> {
    /// An object.
    Object(Object<K>),
    /// An object that exists but cannot be used.
    Unusable(Unusable),
    /// The page is complete.
    End(PageEnd),
}

/// What a server says about a page as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageEnd {
    /// The version of the list.
    pub version: ResourceVersion,
    /// Where the next page begins, if there is one.
    pub continue_token: Option<String>,
    /// How many objects come after this page, if the server says so.
    pub remaining: Option<u64>,
}

/// An item of a watch.
#[derive(Debug)]
pub enum WatchItem<K> {
    /// Something became of an object.
    Object(WatchChange, Object<K>),
    /// Something became of an object that cannot be used.
    Unusable(WatchChange, Unusable),
    /// Everything up to this version has been told.
    Bookmark {
        /// The version.
        version: ResourceVersion,
        /// Whether everything that existed when the watch began has been told now.
        initial_events_end: bool,
    },
    /// The server ends the watch with an error.
    Error(Box<Status>),
    /// Something that has no business here: another kind, a table, an unknown type of event. It says what.
    Foreign(String),
}

/// What became of an object, in the words of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchChange {
    /// It is there, and was not before.
    Added,
    /// It is different.
    Modified,
    /// It is gone.
    Deleted,
}

/// An object that came but cannot be used, because it does not decode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// Its key, if that much could be read.
    pub key: Option<ObjectKey>,
    /// What it is called for a person: the key, or whatever there was.
    pub name: String,
    /// Its version, if that could be read.
    pub version: ResourceVersion,
    /// Why it cannot be used.
    pub error: String,
}

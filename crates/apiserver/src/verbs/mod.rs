//! What a client can do with objects: one function for each verb.

mod apply;
mod body;
mod create;
mod delete;
mod list;
mod managing;
mod read;
mod scale;
mod update;
mod watch;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use informer_model::{ObjectKey, Reason, Status, has_protobuf};
use informer_serving::{
    media::{self, Encoding, Form, InProtobuf, Shape},
    options::Parameters,
    path::{Place, no_such_path},
};

use crate::{
    builtin,
    catalog::{Resource, Version},
    faults::Requested,
    present::Presentation,
    replica::Replica,
    respond::{self, Body},
    server::Server,
    store::{CollectionId, State, Stored},
};

/// What is done with objects, by the names that Kubernetes has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// What a method means for a place.
    pub(crate) fn of(method: &Method, place: &Place, query: &Parameters<'_>) -> Option<Self> {
        let named = place.name.is_some();
        Some(match *method {
            Method::GET if named => Self::Get,
            Method::GET if query.switch("watch") == Some(true) => Self::Watch,
            Method::GET => Self::List,
            Method::POST => Self::Create,
            Method::PUT => Self::Update,
            Method::PATCH => Self::Patch,
            Method::DELETE if named => Self::Delete,
            Method::DELETE => Self::DeleteCollection,
            _ => return None,
        })
    }

    /// As permissions and discovery spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// A part of an object that is served on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Status,
    Scale,
}

/// A request for objects, with what the path and the headers say already looked up.
pub(crate) struct Call<'a> {
    pub server: &'a Arc<Server>,
    pub place: &'a Place,
    pub query: Parameters<'a>,
    pub headers: &'a HeaderMap,
    pub body: Bytes,
    pub replica: Option<Arc<Replica>>,
    pub requested: &'a Arc<Requested>,
    pub id: CollectionId,
    pub resource: Arc<Resource>,
    pub version: Version,
    pub part: Part,
}

pub(crate) type Answer = Result<Response<Body>, Status>;

/// A 405 for a method that a path does not have, in the words of a server.
pub(crate) fn not_allowed() -> Status {
    let message = "the server does not allow this method on the requested resource";
    Status::failure(Reason::MethodNotAllowed, message).about("", "", "")
}

/// Subresources of a real server that need a kubelet or a controller behind them.
const NOT_SERVED: [&str; 14] = [
    "approval",
    "attach",
    "binding",
    "ephemeralcontainers",
    "eviction",
    "exec",
    "finalize",
    "log",
    "portforward",
    "proxy",
    "resize",
    "token",
    "mounts",
    "capacity",
];

impl<'a> Call<'a> {
    /// Looks up what a place is.
    pub(crate) fn new(
        server: &'a Arc<Server>,
        place: &'a Place,
        query: Parameters<'a>,
        headers: &'a HeaderMap,
        body: Bytes,
        replica: Option<Arc<Replica>>,
        requested: &'a Arc<Requested>,
    ) -> Result<Self, Status> {
        let (id, resource) = server.store.find(&place.group, &place.plural).ok_or_else(no_such_path)?;
        let version = resource.version(&place.version).ok_or_else(no_such_path)?.clone();
        let part = match place.subresource.as_deref() {
            None => Part::Whole,
            Some("status") if version.status => Part::Status,
            Some("scale") if version.scale.is_some() => Part::Scale,
            Some(other) if NOT_SERVED.contains(&other) => {
                return Err(Status::not_implemented(format!(
                    "{}/{other} is not served: there are no nodes or controllers behind this server",
                    place.plural
                )));
            }
            // These paths are there for every custom resource.
            Some("status" | "scale") if resource.custom => {
                let name = place.name.as_deref().unwrap_or_default();
                return Err(Status::not_found(&resource.plural, &resource.group, name));
            }
            Some(_) => return Err(no_such_path()),
        };
        // An object with a namespace is reached through it, one without is not.
        let misplaced = if resource.namespaced {
            place.namespace.is_none() && place.name.is_some()
        } else {
            place.namespace.is_some()
        };
        if misplaced {
            return Err(no_such_path());
        }
        Ok(Self { server, place, query, headers, body, replica, requested, id, resource, version, part })
    }

    pub(crate) async fn answer(self, verb: Verb) -> Answer {
        if self.part == Part::Whole && !builtin::verbs(&self.resource).contains(&verb.name()) {
            return Err(not_allowed());
        }
        match (verb, self.part) {
            (Verb::Get, Part::Scale) => self.get_scale().await,
            (Verb::Get, _) => self.get().await,
            (Verb::List, _) => self.list().await,
            (Verb::Watch, _) => self.watch().await,
            (Verb::Create, Part::Whole) if self.place.name.is_none() => self.create(),
            (Verb::Update, Part::Scale) => self.update_scale(),
            (Verb::Patch, Part::Scale) => self.patch_scale(),
            (Verb::Update, _) if self.place.name.is_some() => self.update(),
            (Verb::Patch, _) if self.place.name.is_some() => self.patch(),
            (Verb::Delete, Part::Whole) => self.delete(),
            (Verb::DeleteCollection, Part::Whole) => self.delete_collection().await,
            _ => Err(not_allowed()),
        }
    }

    /// The key of the object that the path names.
    fn key(&self) -> Result<ObjectKey, Status> {
        let name = self.place.name.as_deref().unwrap_or_default();
        ObjectKey::new(self.place.namespace.as_deref(), name).map_err(|e| Status::bad_request(e.to_string()))
    }

    fn not_found(&self) -> Status {
        let name = self.place.name.as_deref().unwrap_or_default();
        Status::not_found(&self.resource.plural, &self.resource.group, name)
    }

    fn conflict(&self, name: &str, why: &str) -> Status {
        Status::conflict(&self.resource.plural, &self.resource.group, name, why)
    }

    /// The object that the path names, in a write.
    fn current(&self, state: &State) -> Result<Arc<Stored>, Status> {
        self.still_served(state)?;
        state.get(self.id, &self.key()?).ok_or_else(|| self.not_found())
    }

    /// A custom resource may have been withdrawn since the path was looked up.
    fn still_served(&self, state: &State) -> Result<(), Status> {
        match state.find(&self.resource.group, &self.resource.plural) {
            Some((id, _)) if id == self.id => Ok(()),
            _ => Err(no_such_path()),
        }
    }

    fn presentation(&self, shape: Shape) -> Result<Presentation, Status> {
        Ok(Presentation::new(Arc::clone(&self.resource), &self.version, self.negotiate(shape)?))
    }

    /// In which form, and how written, the client wants objects.
    fn negotiate(&self, shape: Shape) -> Result<(Form, Encoding), Status> {
        let api_version = self.resource.api_version(&self.version.name);
        let in_protobuf = if !self.resource.custom && has_protobuf(&api_version, &self.resource.kind) {
            InProtobuf::Objects
        } else {
            InProtobuf::Metadata
        };
        media::negotiate(self.headers, self.query.get("includeObject"), shape, in_protobuf)
    }

    /// One object as the answer.
    fn show(&self, code: http::StatusCode, object: &Stored) -> Answer {
        let presentation = self.presentation(Shape::One)?;
        Ok(respond::object(code, presentation.encoding(), presentation.object(object)?))
    }

    /// How the answer to a write is written. Asking for a form that is not served must not find out after the write.
    fn check_form(&self) -> Result<Encoding, Status> {
        self.negotiate(Shape::One).map(|(_, encoding)| encoding)
    }
}

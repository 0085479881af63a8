//! Create.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Response, StatusCode};
use informer_model::{ObjectKey, Status, StatusCause};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Answer, Call,
    managing::{self, Managing},
    not_allowed,
};
use crate::{
    admission, defaults,
    respond::Body,
    rules,
    store::{State, Stored},
};

/// An object that has passed the checks and is not in the store yet.
pub(super) struct New {
    object: Value,
    /// What its name begins with, if it is to get one.
    prefix: Option<String>,
    now: Timestamp,
}

impl Call<'_> {
    pub(super) fn create(self) -> Answer {
        self.check_form()?;
        let dry_run = self.dry_run()?;
        if self.resource.namespaced && self.place.namespace.is_none() {
            return Err(not_allowed());
        }
        let manager = self.manager("CreateOptions")?;
        let mut object = self.decode()?;
        self.check_type(&mut object)?;
        let warnings = self.check_fields(&mut object)?;
        let sent = managing::take(&mut object);
        let new = self.prepare(object, Managing::Update { sent, name: manager })?;
        let stored = self.server.store.write(|state| {
            self.still_served(state)?;
            self.insert(state, new, dry_run)
        })?;
        Ok(with_warnings(self.show(StatusCode::CREATED, &stored)?, &warnings))
    }

    /// Makes of an object that somebody wants, with the managers that it is to have, one that can be created.
    pub(super) fn prepare(&self, mut object: Value, managing: Managing) -> Result<New, Status> {
        self.check_place(&mut object)?;
        self.check_metadata(&mut object)?;
        if object["metadata"].get("resourceVersion").is_some() {
            return Err(Status::bad_request("resourceVersion should not be set on objects to be created"));
        }
        let generated = object["metadata"].get("name").is_none();
        let prefix = object["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
        if generated && prefix.is_empty() {
            let message = "Required value: name or generateName is required";
            let cause = StatusCause::new(StatusCause::FIELD_VALUE_REQUIRED, "metadata.name", message);
            return Err(self.invalid(&object, [cause]));
        }
        defaults::fill_kind(&mut object, &self.resource);
        self.complete(&mut object);
        let now = Timestamp::now();
        let managers = match managing {
            Managing::Update { sent, name } => self.managers_of_new(&object, sent, name, now),
            Managing::Known(managers) => managers,
        };
        defaults::admit(&mut object, &self.resource);
        let uid = self.server.new_uid();
        rules::prepare_create(&mut object, &self.resource, &self.version, &uid, now);
        defaults::fill_new(&mut object, &self.resource);
        defaults::fill_status(&mut object, &self.resource, now);
        managing::put(&mut object, managers);
        Ok(New { object, prefix: generated.then_some(prefix), now })
    }

    /// Puts a new object into the store, under a name of its own.
    pub(super) fn insert(&self, state: &mut State, new: New, dry_run: bool) -> Result<Arc<Stored>, Status> {
        let New { mut object, prefix, now } = new;
        if let Some(prefix) = prefix {
            object["metadata"]["name"] = self.free_name(state, &prefix).into();
            // What was generated may not be a name: the prefix is the client's.
            self.check_metadata(&mut object)?;
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let key = ObjectKey::new(self.place.namespace.as_deref(), name);
        let key = key.map_err(|e| Status::bad_request(e.to_string()))?;
        if let Some(known) = state.get(self.id, &key) {
            let mut status = Status::already_exists(&self.resource.plural, &self.resource.group, name);
            let known = known.value(&self.resource, &self.version.name);
            if known["metadata"].get("deletionTimestamp").is_some() {
                status.message = format!("object is being deleted: {}", status.message);
            }
            return Err(status);
        }
        admission::check_namespace(state, self.place.namespace.as_deref())?;
        self.assign_address(state, &mut object);
        self.complete(&mut object);
        self.put(state, object, dry_run, now)
    }

    /// A name that no other object has. Of ten million for one prefix it looks at eight.
    fn free_name(&self, state: &State, prefix: &str) -> String {
        // As on a real server the prefix is cut so that the name fits.
        let prefix: String = prefix.chars().take(58).collect();
        let mut name = String::new();
        for _ in 0..8 {
            name = format!("{prefix}{}", self.server.new_suffix());
            let key = ObjectKey::new(self.place.namespace.as_deref(), &name);
            if key.is_ok_and(|key| state.get(self.id, &key).is_none()) {
                break;
            }
        }
        name
    }

    /// A service that has no address gets one that no other has; of 65,000 it looks at eight.
    fn assign_address(&self, state: &State, object: &mut Value) {
        let is_service = self.resource.group.is_empty() && self.resource.kind == "Service";
        if !is_service || object["spec"]["type"] == "ExternalName" || !object["spec"]["clusterIP"].is_null() {
            return;
        }
        let services = state.objects(self.id);
        let mut address = String::new();
        for _ in 0..8 {
            address = self.server.new_address();
            let place = self.resource.selectable_fields().position(|field| field == "spec.clusterIP");
            let taken = place.is_some_and(|at| services.values().any(|known| known.field(at) == address));
            if !taken {
                break;
            }
        }
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("clusterIPs".into(), json!([address]));
            spec.insert("clusterIP".into(), address.into());
        }
    }

    /// Writes an object that has passed the checks, or shows what would have been written.
    pub(super) fn put(
        &self,
        state: &mut State,
        object: Value,
        dry_run: bool,
        now: Timestamp,
    ) -> Result<Arc<Stored>, Status> {
        let target = (self.id, self.resource.as_ref());
        admission::put(state, target, &self.version.name, object, dry_run, now)
    }
}

/// Puts into the headers what the client should be told although its request was carried out.
pub(super) fn with_warnings(mut response: Response<Body>, warnings: &[String]) -> Response<Body> {
    for warning in warnings {
        let text = format!("299 - {warning:?}");
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(HeaderName::from_static("warning"), value);
        }
    }
    response
}

//! Delete, one object or all that are meant.

use std::sync::Arc;

use http::StatusCode;
use informer_model::{ObjectKey, Status, StatusDetails};
use informer_serving::{
    envelope::ListMeta,
    media::Shape,
    options::{invalid_options, unsupported},
};
use jiff::Timestamp;
use serde_json::Value;

use super::{Answer, Call, not_allowed};
use crate::{
    custom, fields, respond, rules,
    selection::Filter,
    store::{State, Stored, from_key},
};

/// Namespaces that are always there.
const LASTING: [&str; 3] = ["default", "kube-public", "kube-system"];

/// What a client says about a deletion, in the body or in the query.
#[derive(Debug, Default)]
struct DeleteOptions {
    dry_run: bool,
    uid: Option<String>,
    version: Option<String>,
}

/// What became of an object that was to be deleted.
enum Deleted {
    /// It is gone; this was its last state.
    Now(Arc<Stored>),
    /// Finalizers hold it still.
    Later(Arc<Stored>),
}

impl Call<'_> {
    pub(super) fn delete(self) -> Answer {
        let encoding = self.check_form()?;
        let options = self.delete_options()?;
        let deleted = self.server.store.write(|state| {
            let current = self.current(state)?;
            self.check_preconditions(&current, &options)?;
            self.delete_one(state, &current, options.dry_run)
        })?;
        match deleted {
            Deleted::Later(stored) => self.show(StatusCode::OK, &stored),
            Deleted::Now(last) if self.shows_deleted() => self.show(StatusCode::OK, &last),
            Deleted::Now(last) => {
                let last = last.value(&self.resource, &self.version.name);
                let uid = last["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                let details = StatusDetails {
                    name: self.place.name.clone().unwrap_or_default(),
                    group: self.resource.group.clone(),
                    kind: self.resource.plural.clone(),
                    uid,
                    ..StatusDetails::default()
                };
                let mut status = Status::success();
                status.details = Some(Box::new(details));
                Ok(respond::status(&status, encoding))
            }
        }
    }

    pub(super) async fn delete_collection(self) -> Answer {
        let presentation = self.presentation(Shape::List)?;
        if self.resource.namespaced && self.place.namespace.is_none() {
            return Err(not_allowed());
        }
        let options = self.delete_options()?;
        let list = self.query.list()?;
        let filter = Filter::new(&self.resource, self.place, &self.query)?;
        let mut meant: Vec<Arc<Stored>> = Vec::new();
        let version = self.server.store.write(|state| {
            self.still_served(state)?;
            let objects = state.objects(self.id);
            meant = filter.range(&objects, None).filter(|object| filter.matches(object)).cloned().collect();
            meant.truncate(list.limit.unwrap_or(usize::MAX));
            for object in &meant {
                self.check_preconditions(object, &options)?;
            }
            for object in &meant {
                self.delete_one(state, object, options.dry_run)?;
            }
            Ok::<_, Status>(state.version())
        })?;
        let meta = ListMeta { version: version.to_string(), ..ListMeta::default() };
        super::list::answer(presentation, meta, meant).await
    }

    /// Deletes an object, or marks it as deleted as long as finalizers hold it.
    fn delete_one(&self, state: &mut State, current: &Arc<Stored>, dry_run: bool) -> Result<Deleted, Status> {
        let name = current.key.name();
        let is_namespace = self.resource.group.is_empty() && self.resource.plural == "namespaces";
        if is_namespace && LASTING.contains(&name) {
            return Err(Status::forbidden("namespaces", "", name, "this namespace may not be deleted"));
        }
        let mut object = current.value(&self.resource, &self.version.name);
        if rules::finalizers(&object).is_empty() {
            self.check_empty(state, name)?;
            return self.remove(state, object, dry_run).map(Deleted::Now);
        }
        let metadata = rules::metadata(&mut object);
        if metadata.contains_key("deletionTimestamp") {
            return Ok(Deleted::Later(Arc::clone(current)));
        }
        let now = Timestamp::now();
        metadata.insert("deletionTimestamp".into(), rules::time(now));
        metadata.insert("deletionGracePeriodSeconds".into(), 0.into());
        if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
            metadata.insert("generation".into(), (generation + 1).into());
        }
        self.put(state, object, dry_run, now).map(Deleted::Later)
    }

    /// Whether a deletion is answered with what was deleted, and not with a mere `Status`.
    fn shows_deleted(&self) -> bool {
        const SHOWN: [&str; 8] = [
            "namespaces",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "resourcequotas",
            "serviceaccounts",
            "services",
        ];
        self.resource.group.is_empty() && SHOWN.contains(&self.resource.plural.as_str())
    }

    /// A namespace is deleted only when it is empty: what is in it would have nowhere to be.
    pub(super) fn check_empty(&self, state: &State, name: &str) -> Result<(), Status> {
        if !self.resource.group.is_empty() || self.resource.plural != "namespaces" {
            return Ok(());
        }
        for resource in state.catalog().iter().filter(|resource| resource.namespaced) {
            let Some((id, _)) = state.find(&resource.group, &resource.plural) else { continue };
            let objects = state.objects(id);
            let first = from_key(&objects, &format!("{name}/")).next().map(|object| &object.key);
            if let Some(key) = first.filter(|key| key.namespace() == Some(name)) {
                let why = format!(
                    "it still has {} {:?}, and this server does not delete what is in a namespace with it: delete the \
                     contents first",
                    resource.plural,
                    key.name()
                );
                return Err(self.conflict(name, &why));
            }
        }
        Ok(())
    }

    fn check_preconditions(&self, current: &Stored, options: &DeleteOptions) -> Result<(), Status> {
        // These name the kind and not the resource.
        let conflict = |what: &str, wanted: &str, there: &str| {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {there}"
            );
            Status::conflict(&self.resource.kind, &self.resource.group, current.key.name(), why)
        };
        if let Some(wanted) = options.uid.as_deref() {
            let object = current.value(&self.resource, &self.version.name);
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            if wanted != uid {
                return Err(conflict("UID", wanted, uid));
            }
        }
        let version = current.version.to_string();
        match options.version.as_deref().filter(|wanted| *wanted != version) {
            Some(wanted) => Err(conflict("ResourceVersion", wanted, &version)),
            None => Ok(()),
        }
    }

    /// The options of a deletion: in the body if there is one, else in the query.
    fn delete_options(&self) -> Result<DeleteOptions, Status> {
        let policy = |policy: Option<&str>| match policy {
            None | Some("Background" | "Foreground" | "Orphan") => Ok(()),
            Some(other) => {
                let known = &["Foreground", "Background", "Orphan", "nil"];
                Err(invalid_options("DeleteOptions", [unsupported("propagationPolicy", other, known)]))
            }
        };
        policy(self.query.get("propagationPolicy"))?;
        let mut options = DeleteOptions { dry_run: self.dry_run()?, ..DeleteOptions::default() };
        if self.body.is_empty() {
            return Ok(options);
        }
        let body = self.decode()?;
        if let Some(other) = body.get("kind").and_then(Value::as_str).filter(|kind| *kind != "DeleteOptions")
        {
            return Err(Status::bad_request(format!(
                "the options of a deletion are DeleteOptions, not {other:?}"
            )));
        }
        fields::check("", "v1", "DeleteOptions", &body).map_err(|why| {
            Status::bad_request(format!("the options of the deletion cannot be read: {why}"))
        })?;
        policy(body.get("propagationPolicy").and_then(Value::as_str))?;
        match body.get("dryRun") {
            None | Some(Value::Null) => {}
            Some(Value::Array(runs)) if runs.iter().all(|run| run == "All") => {
                options.dry_run |= !runs.is_empty();
            }
            Some(other) => {
                return Err(invalid_options(
                    "DeleteOptions",
                    [unsupported("dryRun", other.clone(), &["All"])],
                ));
            }
        }
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        options.uid = text("/preconditions/uid");
        options.version = text("/preconditions/resourceVersion");
        Ok(options)
    }
}

impl crate::server::Server {
    /// Deletes an object at once, whatever holds it. Whether it was there.
    pub(crate) fn discard(&self, group: &str, plural: &str, key: &ObjectKey) -> bool {
        self.store.write(|state| {
            let Some((id, resource)) = state.find(group, plural) else { return false };
            let Some(stored) = state.get(id, key) else { return false };
            let Some(version) = resource.versions.first() else { return false };
            let mut last = stored.value(&resource, &version.name);
            let removed = state.remove(id, &version.name, &mut last).is_ok();
            if custom::defines_resources(&resource) {
                custom::withdraw(&last, state);
            }
            removed
        })
    }
}

//! The subresource `scale`: how many replicas an object wants and has, in one form for all kinds.

use std::sync::Arc;

use http::StatusCode;
use informer_model::{Status, StatusCause, encode_protobuf};
use informer_serving::{
    envelope::{Envelope, KindNames, partial_metadata},
    media::{Encoding, Form, InProtobuf, Shape, negotiate},
    path::no_such_path,
    table::Columns,
};
use serde_json::{Map, Value, json};

use super::{
    Answer, Call,
    managing::{self, Managing},
    update::Patch,
};
use crate::{catalog::Scale, fields, media, respond, store::Stored};

impl Call<'_> {
    pub(super) async fn get_scale(self) -> Answer {
        let key = self.key()?;
        let object = self.server.store.get(self.id, &key).ok_or_else(|| self.not_found())?;
        self.show_scale(&object, self.scale_form()?)
    }

    pub(super) fn update_scale(self) -> Answer {
        let name = self.manager("UpdateOptions")?;
        let sent = media::decode(self.headers, &self.body)?;
        let text = |pointer: &str| sent.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (kind, api_version) = (text("/kind"), text("/apiVersion"));
        if !matches!((kind, api_version), ("Scale" | "", "autoscaling/v1" | "")) {
            return Err(Status::bad_request(format!(
                "{kind} in version {api_version:?} cannot be handled as a Scale: expected apiVersion \"autoscaling/v1\" and kind \"Scale\""
            )));
        }
        let place = (self.place.name.as_deref(), self.place.namespace.as_deref());
        for (pointer, own) in [("/metadata/name", place.0), ("/metadata/namespace", place.1)] {
            let sent = text(pointer);
            if !sent.is_empty() && Some(sent) != own {
                return Err(Status::bad_request(format!(
                    "{pointer} of the Scale is {sent:?} and does not match the path of the request"
                )));
            }
        }
        self.write_scale(name, |_| Ok(sent))
    }

    pub(super) fn patch_scale(self) -> Answer {
        if self.is_apply() {
            return self.apply_scale();
        }
        let name = self.patcher()?;
        let patch = Patch::read(&self)?;
        self.write_scale(name, |mut scale| {
            patch.apply(&mut scale)?;
            Ok(scale)
        })
    }

    /// Applies the replicas that a Scale asks for to the object.
    fn apply_scale(&self) -> Answer {
        let (form, dry_run) = (self.scale_form()?, self.dry_run()?);
        let (name, force) = self.applier()?;
        let sent = self.configuration("autoscaling/v1", "Scale")?;
        let replicas = sent.get("spec").and_then(|spec| spec.get("replicas"));
        let stored = self.server.store.write(|state| {
            let current = self.current(state)?;
            let mut config = json!({
                "apiVersion": self.resource.api_version(&self.version.name),
                "kind": self.resource.kind,
            });
            if let Some(replicas) = replicas {
                check_replicas(replicas.as_i64().unwrap_or(-1), current.key.name())?;
                set(&mut config, &self.paths()?.spec_replicas, replicas.clone());
            }
            let (object, managers) = self.applied(&current, &config, (name, force))?;
            self.replace(state, &current, object, Managing::Known(managers), dry_run)
        })?;
        self.show_scale(&stored, form)
    }

    fn write_scale(&self, name: String, change: impl FnOnce(Value) -> Result<Value, Status>) -> Answer {
        let form = self.scale_form()?;
        let dry_run = self.dry_run()?;
        let stored = self.server.store.write(|state| {
            let current = self.current(state)?;
            let sent = change(self.scale_of(&current)?)?;
            fields::check("autoscaling", "v1", "Scale", &sent).map_err(|why| {
                Status::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}"))
            })?;
            let replicas = match sent.pointer("/spec/replicas") {
                None | Some(Value::Null) => 0,
                Some(value) => value.as_i64().unwrap_or(-1),
            };
            check_replicas(replicas, current.key.name())?;
            let mut object = current.value(&self.resource, &self.version.name);
            managing::take(&mut object);
            set(&mut object, &self.paths()?.spec_replicas, replicas.into());
            // Whoever sends a version or a uid means the object of that version and uid.
            for field in ["resourceVersion", "uid"] {
                if let Some(value) = sent["metadata"].get(field).filter(|value| value.is_string()) {
                    object["metadata"][field] = value.clone();
                }
            }
            self.replace(state, &current, object, Managing::Update { sent: None, name }, dry_run)
        })?;
        self.show_scale(&stored, form)
    }

    /// In which form, and how written, the client wants a Scale, which every object has in protobuf.
    fn scale_form(&self) -> Result<(Form, Encoding), Status> {
        negotiate(self.headers, self.query.get("includeObject"), Shape::One, InProtobuf::Objects)
    }

    fn show_scale(&self, stored: &Arc<Stored>, (form, encoding): (Form, Encoding)) -> Answer {
        let scale = self.scale_of(stored)?;
        let names = KindNames {
            api_version: "autoscaling/v1".into(),
            kind: "Scale".into(),
            list_kind: "ScaleList".into(),
        };
        let json = match form {
            Form::Object => scale.to_string(),
            Form::Metadata => partial_metadata(&scale["metadata"].to_string()),
            Form::Table(_) => {
                Envelope::new(names, form, || Columns::of("autoscaling", "scales")).table(&scale.to_string())
            }
        };
        let body = match encoding {
            Encoding::Json => json.into_bytes(),
            Encoding::Protobuf => {
                let value = serde_json::from_str(&json).unwrap_or_default();
                encode_protobuf(&value).map_err(|error| Status::internal_error(error.to_string()))?
            }
        };
        Ok(respond::object(StatusCode::OK, encoding, body))
    }

    fn paths(&self) -> Result<&Scale, Status> {
        self.version.scale.as_ref().ok_or_else(no_such_path)
    }

    fn scale_of(&self, stored: &Arc<Stored>) -> Result<Value, Status> {
        let paths = self.paths()?;
        let object = stored.value(&self.resource, &self.version.name);
        let mut metadata = Map::new();
        for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = object["metadata"].get(field) {
                metadata.insert(field.into(), value.clone());
            }
        }
        let number = |path: &str| get(&object, path).and_then(Value::as_i64).unwrap_or(0);
        let selector = paths.selector.as_deref().and_then(|path| get(&object, path)).map(selector_text);
        let mut status = json!({ "replicas": number(&paths.status_replicas) });
        if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
            status["selector"] = selector.into();
        }
        Ok(json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": metadata,
            "spec": { "replicas": number(&paths.spec_replicas) },
            "status": status,
        }))
    }
}

fn check_replicas(replicas: i64, name: &str) -> Result<(), Status> {
    if (0..=i64::from(i32::MAX)).contains(&replicas) {
        return Ok(());
    }
    let message = "Invalid value: must be a number greater than or equal to 0";
    let cause = StatusCause::new(StatusCause::FIELD_VALUE_INVALID, "spec.replicas", message);
    Err(Status::invalid("Scale", "autoscaling", name, [cause]))
}

/// A label selector as text, from whichever of its forms a kind has.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let labels = selector.get("matchLabels").unwrap_or(selector).as_object();
    let mut parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let values = values.join(",");
        parts.push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

fn get<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(object, |value, part| value.get(part))
}

/// Sets a field at a dotted path; what is not an object on the way becomes one.
fn set(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for part in path.split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part];
    }
    *place = value;
}

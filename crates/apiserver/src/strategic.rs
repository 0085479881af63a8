//! Strategic merge patch: a merge patch that knows which lists are sets of things with names.
//!
//! In: an object of a built-in kind and a patch. Out: the object as the patch wants it. A list that has a key is
//! merged item by item, another is replaced. The patch may give orders beside values: `$patch`, `$retainKeys`,
//! `$setElementOrder/…` and `$deleteFromPrimitiveList/…`.

use serde_json::{Map, Value};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// What tells the items of a list apart, by the field that the list is in and its own name; an empty one is any.
const KEYS: [(&str, &str, &str); 33] = [
    ("", "allocatedResourcesStatus", "name"),
    ("", "conditions", "type"),
    ("", "containers", "name"),
    ("", "drivers", "name"),
    ("", "env", "name"),
    ("", "ephemeralContainers", "name"),
    ("", "evictionResponders", "name"),
    ("", "healthConditions", "status"),
    ("", "hostAliases", "ip"),
    ("", "hostIPs", "ip"),
    ("", "initContainers", "name"),
    ("", "matchConditions", "name"),
    ("", "ownerReferences", "uid"),
    ("", "podIPs", "ip"),
    ("", "reservedFor", "uid"),
    ("", "resourceClaimStatuses", "name"),
    ("", "schedulingGates", "name"),
    ("", "secrets", "name"),
    ("", "storageHealth", "name"),
    ("", "topologySpreadConstraints", "topologyKey"),
    ("", "variables", "name"),
    ("", "volumeDevices", "devicePath"),
    ("", "volumeMounts", "mountPath"),
    ("", "volumes", "name"),
    ("", "webhooks", "name"),
    ("containers", "ports", "containerPort"),
    ("ephemeralContainers", "ports", "containerPort"),
    ("initContainers", "ports", "containerPort"),
    ("spec", "imagePullSecrets", "name"),
    ("spec", "ports", "port"),
    ("spec", "resourceClaims", "name"),
    ("status", "addresses", "type"),
    ("status", "nodeAllocatableResourceClaimStatuses", "resourceClaimName"),
];

/// Lists of plain values that are merged.
const SETS: [&str; 2] = ["finalizers", "podCIDRs"];

/// Merges a patch into an object. What cannot be merged is said in the words of an API server.
pub(crate) fn merge(object: &mut Value, patch: &Value) -> Result<(), String> {
    let Value::Object(patch) = patch else { return Err("the patch must be one object".to_owned()) };
    merge_value(object, patch, "")
}

/// `field` is the name of what is merged.
fn merge_value(value: &mut Value, patch: &Map<String, Value>, field: &str) -> Result<(), String> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => merge_fields(fields, patch, field),
        _ => Ok(()),
    }
}

fn merge_fields(
    fields: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    field: &str,
) -> Result<(), String> {
    match patch.get(PATCH).map(|order| order.as_str().unwrap_or_default()) {
        None | Some("merge") => {}
        Some("replace") => {
            *fields = patch.iter().filter(|(name, _)| *name != PATCH).map(own).collect();
            return Ok(());
        }
        Some("delete") => {
            fields.clear();
            return Ok(());
        }
        Some(other) => return Err(format!("Unknown patch type found: {other}")),
    }
    if let Some(kept) = patch.get(RETAIN) {
        let kept = kept.as_array().ok_or("invalid patch format of retainKeys")?;
        fields.retain(|name, _| kept.iter().any(|kept| kept == name));
    }
    for (name, gone) in patch.iter().filter_map(|(name, gone)| Some((name.strip_prefix(DELETE)?, gone))) {
        let gone = gone.as_array().ok_or("invalid patch format of delete list")?;
        if let Some(items) = fields.get_mut(name).and_then(Value::as_array_mut) {
            items.retain(|item| !gone.contains(item));
        }
    }
    // A list that is only put in order is not among the fields of the patch.
    let ordered = patch.keys().filter_map(|name| name.strip_prefix(ORDER));
    for name in ordered.filter(|name| !patch.contains_key(*name)) {
        merge_list(fields, patch, field, name, &[])?;
    }
    for (name, new) in patch.iter().filter(|(name, _)| !name.starts_with('$')) {
        match new {
            Value::Null => drop(fields.remove(name)),
            Value::Object(new) => merge_value(fields.entry(name).or_insert(Value::Null), new, name)?,
            Value::Array(new) => merge_list(fields, patch, field, name, new)?,
            other => drop(fields.insert(name.clone(), other.clone())),
        }
    }
    Ok(())
}

/// Merges one list of an object, and puts it into the order that the patch asks for.
fn merge_list(
    fields: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    field: &str,
    name: &str,
    new: &[Value],
) -> Result<(), String> {
    let key = KEYS.iter().find(|(place, list, _)| *list == name && (place.is_empty() || *place == field));
    let identity = match key {
        Some((_, _, key)) => Identity::Field(key),
        None if SETS.contains(&name) => Identity::Whole,
        None => {
            fields.insert(name.to_owned(), new.into());
            return Ok(());
        }
    };
    let old = match fields.get_mut(name) {
        Some(Value::Array(items)) => std::mem::take(items),
        _ => Vec::new(),
    };
    let order = match patch.get(&format!("{ORDER}{name}")) {
        Some(Value::Array(order)) => Some(order.as_slice()),
        Some(_) => return Err("invalid setElementOrder list: it must be a list".to_owned()),
        None => None,
    };
    let merged = merge_items(old, new, order, identity, name)?;
    fields.insert(name.to_owned(), Value::Array(merged));
    Ok(())
}

/// What makes two items of a list the same one.
#[derive(Clone, Copy)]
enum Identity {
    /// This field of theirs.
    Field(&'static str),
    /// All of them.
    Whole,
}

impl Identity {
    fn of(self, item: &Value) -> Result<&Value, String> {
        match self {
            Self::Whole => Ok(item),
            Self::Field(key) => item
                .get(key)
                .filter(|value| !value.is_null())
                .ok_or_else(|| format!("map: {item} does not contain declared merge key: {key}")),
        }
    }

    fn find(self, items: &[Value], item: &Value) -> Result<Option<usize>, String> {
        let wanted = self.of(item)?;
        Ok(items.iter().position(|item| self.of(item).is_ok_and(|known| known == wanted)))
    }
}

fn merge_items(
    old: Vec<Value>,
    new: &[Value],
    order: Option<&[Value]>,
    identity: Identity,
    name: &str,
) -> Result<Vec<Value>, String> {
    let order_of = |item: &Value| item.get(PATCH).and_then(Value::as_str).map(str::to_owned);
    if new.iter().any(|item| order_of(item).as_deref() == Some("replace")) {
        return Ok(new.iter().filter(|item| item.get(PATCH).is_none()).cloned().collect());
    }
    let before = old.clone();
    let mut items = old;
    let mut named = Vec::new();
    for item in new {
        let found = identity.find(&items, item)?;
        match (order_of(item).as_deref(), found, item) {
            (Some("delete"), Some(i), _) => drop(items.remove(i)),
            (Some("delete"), None, _) => {}
            (_, found, Value::Object(fields)) => {
                named.push(item.clone());
                let i = found.unwrap_or_else(|| {
                    items.push(Value::Null);
                    items.len() - 1
                });
                if let Some(place) = items.get_mut(i) {
                    merge_value(place, fields, name)?;
                }
            }
            (_, found, plain) => {
                named.push(plain.clone());
                if found.is_none() {
                    items.push(plain.clone());
                }
            }
        }
    }
    arrange(items, order.unwrap_or(&named), &before, identity)
}

/// The items that the patch names in its order, the others in the order they had. Where the two meet, an item that
/// stood before another still does, and what is new comes first.
fn arrange(
    items: Vec<Value>,
    order: &[Value],
    before: &[Value],
    identity: Identity,
) -> Result<Vec<Value>, String> {
    let mut named = Vec::new();
    let mut others = Vec::new();
    for item in items {
        match identity.find(order, &item)? {
            Some(place) => named.push((place, identity.find(before, &item)?, item)),
            None => others.push((identity.find(before, &item)?, item)),
        }
    }
    named.sort_by_key(|(place, ..)| *place);
    let mut arranged = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, was, item) in named {
        while let Some((_, other)) = others.next_if(|(other_was, _)| was.is_some() && *other_was < was) {
            arranged.push(other);
        }
        arranged.push(item);
    }
    arranged.extend(others.map(|(_, item)| item));
    Ok(arranged)
}

fn own((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(mut object: Value, patch: Value) -> Value {
        merge(&mut object, &patch).unwrap();
        object
    }

    #[test]
    fn fields_are_merged_and_null_removes() {
        let object = json!({"data": {"a": "1", "b": "2"}, "immutable": true});
        let patch = json!({"data": {"a": null, "c": "3"}, "immutable": null, "new": {"x": {}}});
        assert_eq!(merged(object, patch), json!({"data": {"b": "2", "c": "3"}, "new": {"x": {}}}));
    }

    #[test]
    fn a_list_with_a_key_is_merged_by_it_and_what_is_new_comes_first() {
        let object = json!({"spec": {"containers": [{"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]}]}});
        let patch = json!({"spec": {"containers": [
            {"name": "b", "image": "b:1"}, {"name": "a", "image": "a:2", "env": [{"name": "Y", "value": "2"}]}]}});
        let containers = json!([{"name": "b", "image": "b:1"}, {"name": "a", "image": "a:2",
            "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]}]);
        assert_eq!(merged(object, patch), json!({"spec": {"containers": containers}}));
    }

    #[test]
    fn a_list_without_a_key_is_replaced() {
        let object = json!({"spec": {"taints": [{"key": "a"}], "tolerations": [{"key": "a"}]}});
        let patch = json!({"spec": {"taints": [{"key": "b"}], "tolerations": []}});
        assert_eq!(merged(object, patch), json!({"spec": {"taints": [{"key": "b"}], "tolerations": []}}));
    }

    #[test]
    fn ports_have_the_key_of_what_they_are_in() {
        let object = json!({"spec": {"ports": [{"port": 80, "name": "a"}], "containers": [
            {"name": "a", "ports": [{"containerPort": 80}]}]}});
        let patch = json!({"spec": {"ports": [{"port": 80, "name": "b"}], "containers": [
            {"name": "a", "ports": [{"containerPort": 80, "name": "http"}]}]}});
        let result = merged(object, patch);
        assert_eq!(result["spec"]["ports"], json!([{"port": 80, "name": "b"}]));
        assert_eq!(result["spec"]["containers"][0]["ports"], json!([{"containerPort": 80, "name": "http"}]));
    }

    #[test]
    fn orders_delete_replace_and_arrange() {
        let mk = || json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}});
        let names = |patch: Value| {
            let result = merged(mk(), json!({ "spec": patch }));
            let items = result["spec"]["containers"].as_array().unwrap().clone();
            items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(json!({"containers": [{"name": "b", "$patch": "delete"}]})), ["a", "c"]);
        assert_eq!(names(json!({"containers": [{"$patch": "replace"}, {"name": "x"}]})), ["x"]);
        let order = json!([{"name": "c"}, {"name": "a"}]);
        assert_eq!(names(json!({"$setElementOrder/containers": order})), ["b", "c", "a"]);
        assert_eq!(names(json!({"$patch": "replace", "containers": [{"name": "y"}]})), ["y"]);
        let volume = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}});
        let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
        assert_eq!(merged(volume, patch), json!({"spec": {"strategy": {"type": "Recreate"}}}));
    }

    #[test]
    fn finalizers_are_a_set() {
        let object = json!({"metadata": {"finalizers": ["a", "b"]}});
        let patch = json!({"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}});
        assert_eq!(merged(object, patch), json!({"metadata": {"finalizers": ["c", "b"]}}));
    }

    #[test]
    fn what_cannot_be_merged_is_said() {
        for (patch, why) in [
            (json!({"spec": {"containers": [{"image": "x"}]}}), "declared merge key: name"),
            (json!({"$patch": "burn"}), "Unknown patch type found: burn"),
            (json!({"$retainKeys": 1}), "retainKeys"),
            (json!({"$deleteFromPrimitiveList/a": 1}), "delete list"),
            (json!({"$setElementOrder/containers": 1}), "setElementOrder"),
            (json!([]), "one object"),
        ] {
            let error = merge(&mut json!({"spec": {"containers": [{"name": "a"}]}}), &patch).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}

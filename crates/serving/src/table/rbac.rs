//! Who may do what. Roles themselves are shown in the default columns.

use serde_json::Value;

use crate::json::Json;

use super::{
    AGE, Column, NAME,
    fields::{items, text},
};

pub(super) fn columns(group: &str, plural: &str) -> Option<&'static [Column]> {
    let is_binding = matches!(plural, "rolebindings" | "clusterrolebindings");
    (group == "rbac.authorization.k8s.io" && is_binding).then_some(BINDING)
}

static BINDING: &[Column] = &[
    NAME,
    Column::new("Role", "The role that is granted.", |binding, _| {
        format!("{}/{}", text(binding, "/roleRef/kind"), text(binding, "/roleRef/name")).into()
    }),
    AGE,
    Column::new("Users", "The users that have the role.", |binding, _| subjects(binding, "User")).wide(),
    Column::new("Groups", "The groups that have the role.", |binding, _| subjects(binding, "Group")).wide(),
    Column::new("ServiceAccounts", "The service accounts that have the role.", |binding, _| {
        subjects(binding, "ServiceAccount")
    })
    .wide(),
];

fn subjects(binding: &Json<'_>, kind: &str) -> Value {
    let of_kind = items(binding, "/subjects").iter().filter(|subject| text(subject, "/kind") == kind);
    let shown = of_kind.map(|subject| match text(subject, "/namespace") {
        namespace if kind == "ServiceAccount" && !namespace.is_empty() => {
            format!("{namespace}/{}", text(subject, "/name"))
        }
        _ => text(subject, "/name").to_owned(),
    });
    shown.collect::<Vec<_>>().join(", ").into()
}

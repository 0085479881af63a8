//! What looks at requests before they are served: webhooks, admission policies, priority levels.

use serde_json::Value;

use crate::json::Json;

use super::{
    AGE, Column, NAME,
    fields::{count, integer, is_set, items, selector_or_none, text},
};

pub(super) fn columns(group: &str, plural: &str) -> Option<&'static [Column]> {
    Some(match (group, plural) {
        (
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations" | "validatingwebhookconfigurations",
        ) => WEBHOOKS,
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => VALIDATING_POLICY,
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies") => MUTATING_POLICY,
        (
            "admissionregistration.k8s.io",
            "mutatingadmissionpolicybindings" | "validatingadmissionpolicybindings",
        ) => POLICY_BINDING,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => FLOW_SCHEMA,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => PRIORITY_LEVEL,
        _ => return None,
    })
}

static WEBHOOKS: &[Column] = &[
    NAME,
    Column::new("Webhooks", "How many webhooks there are.", |object, _| count(object, "/webhooks").into())
        .integer(),
    AGE,
];

const PARAM_KIND: Column =
    Column::new("ParamKind", "The kind of the parameters.", |object, _| {
        match is_set(object, "/spec/paramKind") {
            true => {
                let (version, kind) =
                    (text(object, "/spec/paramKind/apiVersion"), text(object, "/spec/paramKind/kind"));
                format!("{version}/{kind}").into()
            }
            false => "<unset>".into(),
        }
    });

static VALIDATING_POLICY: &[Column] = &[
    NAME,
    Column::new("Validations", "How many rules there are.", |object, _| {
        count(object, "/spec/validations").into()
    })
    .integer(),
    PARAM_KIND,
    AGE,
];

static MUTATING_POLICY: &[Column] = &[
    NAME,
    Column::new("Mutations", "How many changes there are.", |object, _| {
        count(object, "/spec/mutations").into()
    })
    .integer(),
    PARAM_KIND,
    AGE,
];

static POLICY_BINDING: &[Column] = &[
    NAME,
    Column::new("PolicyName", "The policy that is put to work.", |binding, _| {
        text(binding, "/spec/policyName").into()
    }),
    Column::new("ParamRef", "The parameters of the policy.", |binding, _| {
        match (text(binding, "/spec/paramRef/name"), text(binding, "/spec/paramRef/namespace")) {
            ("", _) if is_set(binding, "/spec/paramRef/selector") => {
                selector_or_none(binding, "/spec/paramRef/selector").into()
            }
            ("", _) => "<unset>".into(),
            (name, "") => format!("*/{name}").into(),
            (name, namespace) => format!("{namespace}/{name}").into(),
        }
    }),
    AGE,
];

static FLOW_SCHEMA: &[Column] = &[
    NAME,
    Column::new("PriorityLevel", "The priority level of matching requests.", |object, _| {
        text(object, "/spec/priorityLevelConfiguration/name").into()
    }),
    Column::new(
        "MatchingPrecedence",
        "Which schema matches first: that of the lowest number.",
        |object, _| integer(object, "/spec/matchingPrecedence").into(),
    ),
    Column::new("DistinguisherMethod", "How requests are told apart.", |object, _| {
        match is_set(object, "/spec/distinguisherMethod") {
            true => text(object, "/spec/distinguisherMethod/type").into(),
            false => "<none>".into(),
        }
    }),
    AGE,
    Column::new("MissingPL", "Whether the priority level does not exist.", |object, _| {
        let mut conditions = items(object, "/status/conditions").iter();
        let dangling = conditions.find(|condition| text(condition, "/type") == "Dangling");
        dangling.map_or("?", |condition| text(condition, "/status")).into()
    }),
];

static PRIORITY_LEVEL: &[Column] = &[
    NAME,
    Column::new("Type", "Whether requests are limited.", |object, _| text(object, "/spec/type").into()),
    Column::new("NominalConcurrencyShares", "The share of all requests.", |object, _| {
        number_or_none(object, "/spec/limited/nominalConcurrencyShares")
    }),
    Column::new("Queues", "How many queues there are.", |object, _| {
        number_or_none(object, "/spec/limited/limitResponse/queuing/queues")
    }),
    Column::new("HandSize", "How many queues one user may fill.", |object, _| {
        number_or_none(object, "/spec/limited/limitResponse/queuing/handSize")
    }),
    Column::new("QueueLengthLimit", "How many requests fit into a queue.", |object, _| {
        number_or_none(object, "/spec/limited/limitResponse/queuing/queueLengthLimit")
    }),
    AGE,
];

fn number_or_none(object: &Json<'_>, pointer: &str) -> Value {
    match is_set(object, pointer) {
        true => integer(object, pointer).into(),
        false => "<none>".into(),
    }
}

//! Devices that pods claim: dynamic resource allocation.

use super::{
    AGE, Column, NAME, duration,
    fields::{count, is_set, is_terminating, text},
};

pub(super) fn columns(group: &str, plural: &str) -> Option<&'static [Column]> {
    if group != "resource.k8s.io" {
        return None;
    }
    Some(match plural {
        "deviceclasses" | "resourceclaimtemplates" => &[NAME, AGE],
        "resourceclaims" => CLAIM,
        "resourceslices" => SLICE,
        "devicetaintrules" => TAINT_RULE,
        _ => return None,
    })
}

static CLAIM: &[Column] = &[
    NAME,
    Column::new("State", "How far the claim is.", |claim, _| {
        let deleted = is_terminating(claim);
        let allocated = is_set(claim, "/status/allocation");
        let states = [
            ("deleted", deleted),
            ("pending", !allocated && !deleted),
            ("allocated", allocated),
            ("reserved", allocated && count(claim, "/status/reservedFor") > 0),
        ];
        let states = states.iter().filter(|(_, holds)| *holds).map(|(state, _)| *state);
        states.collect::<Vec<_>>().join(",").into()
    }),
    AGE,
];

static SLICE: &[Column] = &[
    NAME,
    Column::new("Node", "The node that has the devices.", |slice, _| text(slice, "/spec/nodeName").into()),
    Column::new("Driver", "The driver of the devices.", |slice, _| text(slice, "/spec/driver").into()),
    Column::new("Pool", "The pool that the devices are in.", |slice, _| {
        text(slice, "/spec/pool/name").into()
    }),
    AGE,
];

static TAINT_RULE: &[Column] = &[
    NAME,
    Column::new("Key", "The key of the taint.", |rule, _| text(rule, "/spec/taint/key").into()),
    Column::new("Value", "The value of the taint.", |rule, _| text(rule, "/spec/taint/value").into()),
    Column::new("Effect", "What the taint does to claims and pods.", |rule, _| {
        text(rule, "/spec/taint/effect").into()
    }),
    Column::new("TimeAdded", "How long ago the taint was added.", |rule, row| {
        match is_set(rule, "/spec/taint/timeAdded") {
            true => duration::since(rule, "/spec/taint/timeAdded", row.now).into(),
            false => "".into(),
        }
    })
    .aging(),
    AGE,
];

//! Requests for certificates, and bundles of them.

use jiff::SignedDuration;

use super::{
    AGE, Column, NAME, duration,
    fields::{condition, filled_or, integer, is_set, items, labels, text},
};

pub(super) fn columns(group: &str, plural: &str) -> Option<&'static [Column]> {
    match (group, plural) {
        ("certificates.k8s.io", "certificatesigningrequests") => Some(SIGNING_REQUEST),
        ("certificates.k8s.io", "podcertificaterequests") => Some(POD_REQUEST),
        ("certificates.k8s.io", "clustertrustbundles") => Some(TRUST_BUNDLE),
        _ => None,
    }
}

static SIGNING_REQUEST: &[Column] = &[
    NAME,
    AGE,
    Column::new("SignerName", "Who shall sign.", |request, _| {
        filled_or(request, "/spec/signerName", "<none>").into()
    }),
    Column::new("Requestor", "Who asked.", |request, _| text(request, "/spec/username").into()),
    Column::new("RequestedDuration", "How long the certificate shall be valid.", |request, _| {
        match is_set(request, "/spec/expirationSeconds") {
            true => {
                let seconds = integer(request, "/spec/expirationSeconds");
                duration::human(SignedDuration::from_secs(seconds)).into()
            }
            false => "<none>".into(),
        }
    }),
    Column::new("Condition", "How far the request is.", |request, _| {
        let has = |r#type| condition(request, r#type).is_some();
        let decision = match (has("Denied"), has("Approved")) {
            (true, _) => "Denied",
            (false, true) => "Approved",
            (false, false) => "Pending",
        };
        let failed = if has("Failed") { ",Failed" } else { "" };
        let issued = if text(request, "/status/certificate").is_empty() { "" } else { ",Issued" };
        format!("{decision}{failed}{issued}").into()
    }),
];

static POD_REQUEST: &[Column] = &[
    NAME,
    Column::new("PodName", "The pod that asks.", |request, _| text(request, "/spec/podName").into()),
    Column::new("ServiceAccountName", "The service account of the pod.", |request, _| {
        text(request, "/spec/serviceAccountName").into()
    }),
    Column::new("NodeName", "The node of the pod.", |request, _| text(request, "/spec/nodeName").into()),
    Column::new("SignerName", "Who shall sign.", |request, _| text(request, "/spec/signerName").into()),
    Column::new("State", "How far the request is.", |request, _| {
        let mut types = items(request, "/status/conditions").iter().map(|condition| text(condition, "/type"));
        types.rfind(|state| matches!(*state, "Issued" | "Denied" | "Failed")).unwrap_or("Pending").into()
    }),
    Column::new("UnverifiedUserAnnotations", "What the pod tells the signer.", |request, _| {
        labels(request, "/spec/unverifiedUserAnnotations").into()
    }),
];

static TRUST_BUNDLE: &[Column] = &[
    NAME,
    Column::new("SignerName", "Whose certificates can be trusted.", |bundle, _| {
        filled_or(bundle, "/spec/signerName", "<none>").into()
    }),
];

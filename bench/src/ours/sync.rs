//! Taking all pods of a cluster into memory.

use anyhow::Result;
use informer::{KubeListWatch, Packed, SharedInformer, queue::Transform};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Client, core::PartialObjectMeta};
use serde::Deserialize;

use super::{Form, Running, raw_pods};

/// A few fields of a pod, as a program might need them.
#[derive(Clone, Deserialize)]
struct Placed {
    metadata: ObjectMeta,
    #[expect(dead_code, reason = "it is decoded and kept, that is all")]
    spec: Place,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is decoded and kept, that is all")]
struct Place {
    node_name: Option<String>,
    priority: Option<i32>,
    scheduler_name: Option<String>,
}

informer::projection!(Placed of Pod);

pub(super) async fn run(client: Client, form: Form, streaming: bool) -> Result<()> {
    match form {
        Form::Typed => Running::<Pod>::start(KubeListWatch::all(client), streaming).await?.end().await,
        Form::Raw => Running::start(raw_pods(client), streaming).await?.end().await,
        Form::Packed => {
            Running::<Packed<Pod>>::start(KubeListWatch::all(client), streaming).await?.end().await
        }
        Form::Projection => {
            Running::<Placed>::start(KubeListWatch::all(client), streaming).await?.end().await
        }
        Form::Fields => {
            let builder = SharedInformer::<Placed>::builder(KubeListWatch::all(client));
            let builder = builder.streaming(streaming).transform(Transform::drop_metadata());
            Running::run(builder).await?.end().await
        }
        Form::Metadata => {
            let pods = KubeListWatch::<PartialObjectMeta<Pod>>::all(client);
            Running::start(pods, streaming).await?.end().await
        }
    }
}

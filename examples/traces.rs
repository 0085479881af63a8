//! Follows each change of a config map: one trace, from the event of the watch to the end of its reconcile.
//! An exporter of OTLP in the place of `Print` sends it to Jaeger, Tempo or another collector.

use std::time::Duration;

use anyhow::Result;
use informer::{
    SharedInformerFactory,
    controller::{Action, Controller},
    manager::Manager,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

/// Prints each span when it has ended.
#[derive(Debug)]
struct Print;

impl SpanExporter for Print {
    async fn export(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        for span in spans {
            let took = span.end_time.duration_since(span.start_time).unwrap_or_default();
            println!("{} {} {took:?}", span.span_context.trace_id(), span.name);
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let provider = SdkTracerProvider::builder().with_simple_exporter(Print).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("maps"));
    let wanted = EnvFilter::new("informer::trace=trace,informer::controller=info");
    tracing_subscriber::registry().with(layer.with_filter(wanted)).init();

    let factory = SharedInformerFactory::new(Client::try_default().await?, Duration::ZERO);
    let controller = Controller::new("maps").of(&factory.informer_for::<ConfigMap>());
    Manager::new()
        .caches(&factory)
        .controller(controller, async |_key| Ok::<_, kube::Error>(Action::AwaitChange))
        .run_until_signal()
        .await?;
    Ok(provider.shutdown()?)
}

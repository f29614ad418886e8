//! Spans of turns, model calls, tools and sends for a collector, by OTLP over HTTP. Only in
//! programs built with the feature `otlp`, and only where the environment names a collector.
//!
//! A span has the fields of the log's lines: agent, place, parent, never words of people. The
//! exporter has a thread of its own, and drops spans that a collector does not take.

use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::is_ours;
use crate::http::install_crypto;

/// The variables of OpenTelemetry that name a collector. The exporter itself reads them, and the
/// variables for headers and time limits.
const COLLECTORS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];
const SERVICE: &str = "OTEL_SERVICE_NAME";

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// None where no collector is named.
pub(super) fn layer<S>() -> Option<impl Layer<S>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let is_named = |variable| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    if !COLLECTORS.into_iter().any(is_named) {
        return None;
    }
    install_crypto();
    let exporter = match SpanExporter::builder().with_http().build() {
        Ok(exporter) => exporter,
        Err(error) => {
            super::say(&format!("note: no spans are exported: {error}"));
            return None;
        }
    };
    let service = std::env::var(SERVICE).unwrap_or_else(|_| "parlor".to_owned());
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name(service).build())
        .build();
    let tracer = provider.tracer("parlor");
    // A second start in the same process, as in tests, keeps the first.
    let _ = PROVIDER.set(provider);
    let spans = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_target(false);
    Some(spans.with_filter(filter_fn(is_exported)))
}

/// Lines of the log stay in the log.
fn is_exported(meta: &Metadata<'_>) -> bool {
    meta.is_span() && is_ours(meta.target())
}

/// Hands over the ended spans, within the time limit.
pub(super) fn flush_within(limit: Duration) {
    let Some(provider) = PROVIDER.get() else {
        return;
    };
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = done.send(provider.force_flush());
    });
    // A silent collector is no reason to keep the program.
    let _ = is_done.recv_timeout(limit);
}

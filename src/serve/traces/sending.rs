//! Sends spans by OTLP (HTTP, protobuf), configured by OpenTelemetry's environment variables. Without an endpoint, no spans are created.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::cluster_name::ClusterName;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::serve::pki::tls::provider;

/// The target of every span. The log excludes this target, and only this target is sent.
pub(super) const TARGET: &str = "interlock::traces";

/// The time limit for one batch of spans. A batch that takes longer is lost.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest answer of a receiver, in bytes.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Sends the spans of this process, if a receiver is configured.
#[derive(Debug)]
pub(crate) struct Sending(Option<SdkTracerProvider>);

impl Sending {
    /// Starts to send if the environment names a receiver. Requests run on `runtime`.
    ///
    /// # Errors
    /// When a variable is invalid.
    pub(crate) fn start(runtime: &Handle, cluster: Option<&ClusterName>) -> anyhow::Result<Self> {
        if !is_wanted(|name| std::env::var(name).ok()) {
            return Ok(Self(None));
        }
        let exporter = SpanExporter::builder().with_http().with_http_client(Sender::new(runtime)?).build();
        let exporter = exporter.context("failed to start sending traces; see the variables OTEL_EXPORTER_OTLP_*")?;
        let resource = Resource::builder_empty()
            .with_service_name("interlock")
            .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attributes(cluster.map(|name| opentelemetry::KeyValue::new("k8s.cluster.name", name.to_string())))
            .with_detectors(&[
                Box::new(opentelemetry_sdk::resource::TelemetryResourceDetector),
                Box::new(opentelemetry_sdk::resource::EnvResourceDetector::new()),
            ]);
        let resource = match std::env::var("OTEL_SERVICE_NAME") {
            Ok(name) if !name.is_empty() => resource.with_service_name(name),
            _ => resource,
        };
        Ok(Self(Some(
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build(),
        )))
    }

    /// The layer that receives only our spans.
    #[must_use]
    pub(crate) fn layer<S: Subscriber + for<'s> LookupSpan<'s>>(&self) -> Option<impl Layer<S>> {
        let tracer = self.0.as_ref()?.tracer("interlock");
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        // Source location, thread and busy time are of no use to operators.
        let layer = layer.with_location(false).with_threads(false).with_tracked_inactivity(false);
        Some(
            layer
                .with_target(false)
                .with_level(false)
                .with_filter(Targets::new().with_target(TARGET, tracing::Level::INFO)),
        )
    }

    /// Sends the remaining spans. Blocks for a few seconds at most. The runtime must still run.
    pub(crate) fn finish(self) {
        if let Some(Err(error)) = self.0.map(|provider| provider.shutdown()) {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// Excludes spans from the filter of the log.
///
/// # Errors
/// Never, because [`TARGET`] is a valid target.
pub(crate) fn without_spans(filter: EnvFilter) -> anyhow::Result<EnvFilter> {
    Ok(filter.add_directive(format!("{TARGET}=off").parse()?))
}

/// Makes a span the child of the span in the headers, if there is one.
pub(super) fn continue_from(span: &Span, headers: &HeaderMap) {
    if span.is_disabled() {
        return;
    }
    let parent = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    if parent.span().span_context().is_valid() {
        // Fails only for spans that are not sent.
        _ = span.set_parent(parent);
    }
}

/// Whether the variables name a receiver and do not disable tracing.
fn is_wanted(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set_to = |name, value: &str| variable(name).is_some_and(|set| set.eq_ignore_ascii_case(value));
    let names = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
    let is_named = names.into_iter().any(|name| variable(name).is_some_and(|set| !set.trim().is_empty()));
    is_named && !is_set_to("OTEL_SDK_DISABLED", "true") && !is_set_to("OTEL_TRACES_EXPORTER", "none")
}

/// Sends requests from a thread without a runtime, with the HTTP and TLS libraries that the program already uses.
struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
}

impl Sender {
    fn new(runtime: &Handle) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        // An empty store is no error: receivers with plain HTTP can still be reached.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let tls = ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()
            .context("failed to set up TLS")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector), runtime: runtime.clone() })
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Sender")
    }
}

impl HttpClient for Sender {
    fn send_bytes<'s, 'f>(
        &'s self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        let client = self.client.clone();
        let exchange = async move {
            let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        // The timer needs the runtime too.
        let task = self.runtime.spawn(async { timeout(SEND_TIMEOUT, exchange).await });
        Box::pin(async move { task.await?? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(variables: &[(&str, &str)]) -> bool {
        is_wanted(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, set)| (*set).to_owned()))
    }

    #[test]
    fn nothing_is_sent_unless_a_receiver_is_named() {
        let named = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        assert!(
            wanted(&[named]) && wanted(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector:4318/v1/traces")])
        );
        assert!(!wanted(&[]) && !wanted(&[("OTEL_TRACES_EXPORTER", "otlp")]));
        assert!(!wanted(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]));
        assert!(
            !wanted(&[named, ("OTEL_SDK_DISABLED", "true")]) && !wanted(&[named, ("OTEL_TRACES_EXPORTER", "none")])
        );
    }
}

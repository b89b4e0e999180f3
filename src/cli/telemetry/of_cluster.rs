//! Lines of JSON with the name of the cluster.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::cluster_name::ClusterName;

/// The key of OpenTelemetry.
const KEY: &str = "k8s.cluster.name";

/// Adds the name as the first key to the lines of another format, which writes one object a line.
pub(super) struct OfCluster<F> {
    inner: F,
    /// Empty without a name.
    first: String,
}

impl<F> OfCluster<F> {
    pub(super) fn new(inner: F, cluster: Option<&ClusterName>) -> Self {
        // The characters of a name need no escaping.
        Self { inner, first: cluster.map(|name| format!("\"{KEY}\":\"{name}\",")).unwrap_or_default() }
    }
}

impl<S, N, F> FormatEvent<S, N> for OfCluster<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        if self.first.is_empty() {
            return self.inner.format_event(context, writer, event);
        }
        let mut line = String::new();
        self.inner.format_event(context, Writer::new(&mut line), event)?;
        match line.strip_prefix('{') {
            Some(rest) => write!(writer, "{{{}{rest}", self.first),
            None => writer.write_str(&line),
        }
    }
}

//! Log lines on standard error and, with the feature `otel`, spans of reviews.

mod of_cluster;

use std::io::{IsTerminal, stderr};

use anyhow::Context;
use clap::ValueEnum;
use tokio::runtime::Handle;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt, registry};

use crate::cluster_name::ClusterName;
use crate::serve::traces;
use of_cluster::OfCluster;

/// The variable with the log filter, for example `debug` or `release_interlock=debug,kube=info`.
const FILTER_VARIABLE: &str = "INTERLOCK_LOG";

/// The default filter. The excluded module logs every failed call of the API server, but the callers log failures themselves.
const DEFAULT_FILTER: &str = "info,kube_client::client::builder=off";

/// Always off, regardless of the filter: if these modules cannot parse an answer of the API server, they log it including its values.
const NEVER_LOGGED: [&str; 2] = ["kube_client::client=off", "kube_runtime::watcher=off"];

/// The arguments for logging.
#[derive(Debug, clap::Args)]
pub(super) struct TelemetryArguments {
    /// Format of log lines [default: text on a terminal, otherwise json]
    #[arg(long, value_enum, env = "INTERLOCK_LOG_FORMAT")]
    log_format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For programs: one object per line.
    Json,
}

/// Starts logging, with the name of the cluster in each line of JSON. Also starts to send spans on `runtime` if a receiver is configured.
/// The caller must finish the result before the process ends.
pub(super) fn init(
    arguments: &TelemetryArguments,
    cluster: Option<&ClusterName>,
    runtime: &Handle,
) -> anyhow::Result<traces::Sending> {
    let level = std::env::var(FILTER_VARIABLE).unwrap_or_else(|_| DEFAULT_FILTER.to_owned());
    let filter = filter(&level)?;
    let is_terminal = stderr().is_terminal();
    let format = arguments.log_format.unwrap_or(if is_terminal { Format::Text } else { Format::Json });
    let log = fmt::layer().with_writer(stderr).with_ansi(is_terminal);
    let log = match format {
        Format::Text => log.boxed(),
        Format::Json => log.json().flatten_event(true).map_event_format(|inner| OfCluster::new(inner, cluster)).boxed(),
    };
    let sending = traces::Sending::start(runtime, cluster)?;
    #[cfg(not(feature = "otel"))]
    registry().with(filter).with(log).init();
    #[cfg(feature = "otel")]
    registry().with(log.with_filter(traces::without_spans(filter)?)).with(sending.layer()).init();
    Ok(sending)
}

fn filter(level: &str) -> anyhow::Result<EnvFilter> {
    let wanted = EnvFilter::try_new(level);
    let wanted = wanted.with_context(|| format!("{FILTER_VARIABLE}={level} is not a log filter"))?;
    NEVER_LOGGED.iter().try_fold(wanted, |filter, never| Ok(filter.add_directive(never.parse()?)))
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use tracing::subscriber::with_default;

    use super::*;

    /// The logged text.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_log_filter_logs_answers_of_the_api_server() {
        for level in [DEFAULT_FILTER, "trace", "debug,kube_client::client=trace,kube_runtime::watcher=trace"] {
            let log = Log::default();
            let writer = log.clone();
            let layer = fmt::layer().with_writer(move || writer.clone());
            with_default(registry().with(filter(level).unwrap()).with(layer), || {
                tracing::warn!(target: "kube_client::client", "hunter2");
                tracing::error!(target: "kube_runtime::watcher", "hunter2");
                tracing::warn!(target: "kube_client::discovery", "told");
            });
            let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
            assert!(log.contains("told") && !log.contains("hunter2"), "{level}: {log}");
        }
        assert!(filter("no=such=filter").unwrap_err().to_string().contains("is not a log filter"));
    }
}

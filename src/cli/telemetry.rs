//! Log lines on standard error, and with the feature `otel` spans of reviews.

use std::io::{IsTerminal, stderr};

use anyhow::Context;
use clap::ValueEnum;
use tokio::runtime::Handle;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt, registry};

use crate::serve::traces;

/// The variable with the log filter, for example `debug` or `release_interlock=debug,kube=info`.
const FILTER_VARIABLE: &str = "INTERLOCK_LOG";

/// The default filter. The two modules log every failed call of the API server; the callers log failures themselves.
const DEFAULT_FILTER: &str = "info,kube_client::client::builder=off,kube_runtime::watcher=off";

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

/// Starts logging, and sending spans on `runtime` if a receiver is configured. The result must be finished before the
/// process ends.
pub(super) fn init(arguments: &TelemetryArguments, runtime: &Handle) -> anyhow::Result<traces::Sending> {
    let level = std::env::var(FILTER_VARIABLE).unwrap_or_else(|_| DEFAULT_FILTER.to_owned());
    let filter =
        EnvFilter::try_new(&level).with_context(|| format!("{FILTER_VARIABLE}={level} is not a log filter"))?;
    let is_terminal = stderr().is_terminal();
    let format = arguments.log_format.unwrap_or(if is_terminal { Format::Text } else { Format::Json });
    let log = fmt::layer().with_writer(stderr).with_ansi(is_terminal);
    let log = match format {
        Format::Text => log.boxed(),
        Format::Json => log.json().flatten_event(true).boxed(),
    };
    let sending = traces::Sending::start(runtime)?;
    #[cfg(not(feature = "otel"))]
    registry().with(filter).with(log).init();
    #[cfg(feature = "otel")]
    registry().with(log.with_filter(traces::without_spans(filter)?)).with(sending.layer()).init();
    Ok(sending)
}

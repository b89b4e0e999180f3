//! Where log lines go: to standard error, as text on a terminal, as JSON otherwise.

use std::io::{IsTerminal, stderr};

use anyhow::Context;
use tracing_subscriber::EnvFilter;

/// Names the level, for example `debug` or `interlock=debug,kube=info`.
const LEVEL: &str = "INTERLOCK_LOG";

/// Unless told otherwise. These two log every failed call of the API server, again and again; whoever made the call says
/// what came of it.
const DEFAULT: &str = "info,kube_client::client::builder=off,kube_runtime::watcher=off";

/// Starts logging for this process.
pub(super) fn init() -> anyhow::Result<()> {
    let level = std::env::var(LEVEL).unwrap_or_else(|_| DEFAULT.to_owned());
    let filter = EnvFilter::try_new(&level).with_context(|| format!("{LEVEL}={level} is not a log filter"))?;
    let log = tracing_subscriber::fmt().with_writer(stderr).with_env_filter(filter);
    if stderr().is_terminal() {
        log.init()
    } else {
        log.json().flatten_event(true).init()
    }
    Ok(())
}

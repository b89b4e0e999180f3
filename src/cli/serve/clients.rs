//! Clients of the API server, one for each kind of work, so that none waits for the connection of another.

use std::time::Duration;

use kube::{Client, Config};

use crate::cli::cluster;

/// Longer than any review, so that the review's own deadline ends a read.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// On a quiet watch the API server sends a bookmark every minute. If a watch is silent for longer, its connection is lost and its cache
/// is out of date.
const WATCH_TIMEOUT: Duration = Duration::from_secs(150);

pub(super) struct ApiClients {
    pub(super) reviews: Client,
    pub(super) watches: Client,
    pub(super) certificates: Client,
    /// For Events, reports and scans, so that reviews do not wait for these.
    pub(super) reports: Client,
    /// For probes that prove that reviews arrive.
    pub(super) closing: Client,
}

impl ApiClients {
    pub(super) fn new(config: &Config) -> anyhow::Result<Self> {
        let client = |read_timeout| cluster::client(without_retries(config.clone(), read_timeout));
        Ok(Self {
            reviews: client(CALL_TIMEOUT)?,
            watches: client(WATCH_TIMEOUT)?,
            certificates: client(CALL_TIMEOUT)?,
            reports: client(CALL_TIMEOUT)?,
            closing: client(CALL_TIMEOUT)?,
        })
    }
}

/// No retries, because a retry could outlive its review: an undecided answer in time is better than a late decision. Watches and background
/// work have their own retries.
fn without_retries(mut config: Config, read_timeout: Duration) -> Config {
    config.default_retry = false;
    config.read_timeout = Some(read_timeout);
    config.reset_reader_on_write = true;
    config
}

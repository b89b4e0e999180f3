//! ApiClients of the API server, one for each kind of work, so that none waits for another's connection.

use std::time::Duration;

use kube::{Client, Config};

use crate::cli::cluster;

/// Longer than a review may take, so that the review's own deadline ends a read.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The API server sends a bookmark on a quiet watch every minute. A watch that is silent for longer has lost its
/// connection, and its cache is out of date.
const WATCH_TIMEOUT: Duration = Duration::from_secs(150);

pub(super) struct ApiClients {
    pub(super) reviews: Client,
    pub(super) watches: Client,
    pub(super) certificates: Client,
    /// For events, reports and scans: a review waits for none of them.
    pub(super) reports: Client,
    /// For the proof that reviews arrive.
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

/// A retry could outlive its review: an undecided answer in time is better than a decision too late. Watches and
/// background work start again by themselves.
fn without_retries(mut config: Config, read_timeout: Duration) -> Config {
    config.default_retry = false;
    config.read_timeout = Some(read_timeout);
    config.reset_reader_on_write = true;
    config
}

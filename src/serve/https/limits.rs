//! Sizes and times of the server, each with its reason.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The longest body that is read, in bytes: 8 MiB. The API server takes objects of at most 3 MiB, and a review holds two.
pub const BODY_BYTES: usize = 8 << 20;

/// The bytes of bodies held at a time: six of the longest, or thousands of ordinary ones.
pub const BODY_BYTES_IN_FLIGHT: usize = 48 << 20;

/// Sizes and times of the server. Tests shorten them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections on the HTTPS port. An API server pools 25 idle ones a replica, so this leaves room for a large
    /// control plane. Each takes up to 100 KiB for the buffers of TLS and of a head. Above it, connections without a whole
    /// request are closed for new ones, those that were never answered first.
    pub connections: usize,
    /// Connections on the admin port: a kubelet and a few scrapers.
    pub admin_connections: usize,
    /// From accept to the end of the TLS handshake. A fresh one takes a millisecond of work and a round trip or two.
    pub handshake: Duration,
    /// From the first byte of a request's head to its last.
    pub header: Duration,
    /// Between requests. Go's transport drops idle connections after 90 s. If the server closed them earlier, Go could write
    /// a review into a closing connection, which fails the call.
    pub idle: Duration,
    /// From the head of a request to the last byte of its body, or the request's own deadline if that is sooner.
    pub body: Duration,
    /// How long a client may take to read its answer.
    pub write: Duration,
    /// Bytes of bodies held at a time, over all connections. Above it requests wait.
    pub bytes_in_flight: usize,
    /// The pause after a failure to accept, which would otherwise repeat at once: the usual cause is a lack of file
    /// descriptors, and only time frees some.
    pub accept_pause: Duration,
    /// After the first signal: how long to go on accepting while the cluster removes the endpoint. While connections still
    /// arrive, the port stays open for longer, up to half of `drain`.
    pub drain_delay: Duration,
    /// Once the port is closed: how long clients have to close their idle connections, before the server does. It is the time
    /// that the API server waits for an answer. With zero, the server closes them at once.
    pub farewell: Duration,
    /// After `drain_delay`: how long requests in flight may take. Together with `drain_delay` it is less than the 30 s that a pod has
    /// by default.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            admin_connections: 64,
            handshake: Duration::from_secs(5),
            header: Duration::from_secs(5),
            idle: Duration::from_secs(120),
            body: Duration::from_secs(10),
            write: Duration::from_secs(10),
            bytes_in_flight: BODY_BYTES_IN_FLIGHT,
            accept_pause: Duration::from_millis(100),
            drain_delay: Duration::from_secs(5),
            farewell: Duration::from_secs(3),
            drain: Duration::from_secs(20),
        }
    }
}

/// Open files kept for everything that is not a review: the admin port, the client of the API server, the log.
const RESERVED_FILES: usize = 192;

/// How many connections the limit of open files allows, after raising it to what the system allows: the soft limit is
/// often 1,024, kept low for programs that use `select`. Without a reserve, a port full of idle connections would fail to
/// accept before a connection could be evicted.
pub(super) fn affordable_connections() -> usize {
    let Rlimit { mut current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            Ok(()) => current = maximum,
            Err(error) => tracing::warn!(%error, ?current, "the limit of open files cannot be raised"),
        }
    }
    let files = current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    // However low the limit is, serving a few connections is better than none.
    files.saturating_sub(RESERVED_FILES).max(RESERVED_FILES)
}

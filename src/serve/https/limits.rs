//! Limits of the server on sizes and times, each with its reason.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The longest body that is read, in bytes: 8 MiB. The API server accepts objects of at most 3 MiB, and a review contains two.
pub const BODY_BYTES: usize = 8 << 20;

/// The memory for all bodies, in bytes: enough for six of the longest, or thousands of ordinary ones.
pub const BODY_BYTES_IN_FLIGHT: usize = 48 << 20;

/// Limits of the server on sizes and times. Tests use shorter ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections on the HTTPS port. An API server keeps up to 25 idle connections to each replica, so there is room for a large
    /// control plane. A connection takes up to 100 KiB for the buffers of TLS and a head. If all are in use, a new connection replaces
    /// one without a complete request, first one that was never answered.
    pub connections: usize,
    /// Connections on the admin port: a kubelet and a few scrapers.
    pub admin_connections: usize,
    /// From accept to the end of the TLS handshake. A handshake takes about a millisecond of work and one or two round trips.
    pub handshake: Duration,
    /// From the first byte of a request's head to its last.
    pub header: Duration,
    /// Between two requests. Go's transport drops idle connections after 90 s. If the server closed them earlier, Go could send a
    /// review on a closing connection, and the call would fail.
    pub idle: Duration,
    /// From the head of a request to the last byte of its body. The request's own deadline applies if it is sooner.
    pub body: Duration,
    /// How long a client may take to read its answer.
    pub write: Duration,
    /// Memory for the bodies of all connections, in bytes. Further requests wait.
    pub bytes_in_flight: usize,
    /// The pause after a failed accept. The usual cause is a lack of file descriptors, so an immediate retry fails again.
    pub accept_pause: Duration,
    /// How long the port stays open after the first signal, while the cluster removes the endpoint. If connections still arrive, the
    /// port stays open for longer, up to half of `drain`.
    pub drain_delay: Duration,
    /// How long clients have to close their idle connections once the port is closed, before the server closes them. Equals the
    /// timeout of the API server's calls. With zero, the server closes them at once.
    pub farewell: Duration,
    /// How long requests in flight may take after `drain_delay`. Both together are less than a pod's default grace period of 30 s.
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

/// Open files reserved for everything except reviews: the admin port, the client of the API server, the log.
const RESERVED_FILES: usize = 192;

/// How many connections the limit of open files allows. Raises the soft limit to the hard limit first: the soft limit is often 1,024,
/// for programs that use `select`. Without a reserve, a port full of idle connections would fail to accept before it could evict one.
pub(super) fn affordable_connections() -> usize {
    let Rlimit { mut current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            Ok(()) => current = maximum,
            Err(error) => tracing::warn!(%error, ?current, "the limit of open files cannot be raised"),
        }
    }
    let files = current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    // Even with a very low limit, a few connections are better than none.
    files.saturating_sub(RESERVED_FILES).max(RESERVED_FILES)
}

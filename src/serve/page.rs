//! The page of `serve --page` on the admin port: operations in flight, freezes, overrides in force, and the last refusals.
//!
//! The replica computes the page from its copies, at most once in [`FRESH`] for all clients. It reads the API server only for what has no
//! copies: the metadata of superseded records, if the next step of a stuck release depends on them, and the objects that carry their
//! operation themselves. The work runs on the runtime of the reviews, outside the network threads. The admin thread only waits.

mod carried;
mod html;
mod snapshot;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, StatusCode};
use interlock_engine::policy::Policies;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::JoinError;
use tokio::time::{Instant, timeout};

use super::report::refusals::LastRefusals;
use carried::CarriedOperations;
pub(crate) use carried::CarriedOperationsList;
use snapshot::Snapshot;

use crate::budget::block_in_place_if_possible;
use crate::world::Known;
use crate::world::kubernetes::clock::ServerClock;

/// How long a computed page is served.
const FRESH: Duration = Duration::from_secs(3);

/// How long a client waits for a page that is being computed.
const PATIENCE: Duration = Duration::from_secs(10);

/// The sources of the page, and the last page.
#[derive(Clone)]
pub struct OverviewPage(Arc<Source>);

struct Source {
    world: Arc<dyn Known>,
    policies: Arc<ArcSwap<Policies>>,
    clock: Arc<ServerClock>,
    refusals: Arc<LastRefusals>,
    /// `None` without a cluster.
    carried: Option<CarriedOperationsList>,
    /// The runtime of the reviews, not of the admin port.
    runtime: Handle,
    /// The last page. Locked while a page is computed.
    last: Arc<Mutex<Option<(Instant, Bytes)>>>,
}

impl OverviewPage {
    /// A page that is computed on the current runtime.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub(crate) fn new(
        world: Arc<dyn Known>,
        policies: Arc<ArcSwap<Policies>>,
        clock: Arc<ServerClock>,
        refusals: Arc<LastRefusals>,
        carried: Option<CarriedOperationsList>,
    ) -> Self {
        let (runtime, last) = (Handle::current(), Arc::default());
        Self(Arc::new(Source { world, policies, clock, refusals, carried, runtime, last }))
    }

    /// Routes `/`. Other methods than GET and HEAD are refused.
    pub(crate) fn router(self) -> Router {
        Router::new().route("/", get(answer).with_state(self))
    }

    /// Serves only the page, until the process ends.
    ///
    /// # Errors
    /// Not while the socket lives.
    pub(crate) async fn serve(self, socket: TcpListener) -> io::Result<()> {
        axum::serve(socket, self.router().into_make_service_with_connect_info::<SocketAddr>()).await
    }

    /// The page, at most [`FRESH`] old.
    async fn html(&self) -> Result<Bytes, JoinError> {
        let mut last = Arc::clone(&self.0.last).lock_owned().await;
        if let Some((_, page)) = last.as_ref().filter(|(computed, _)| computed.elapsed() < FRESH) {
            return Ok(page.clone());
        }
        let source = Arc::clone(&self.0);
        // The task owns the lock: if a client disconnects, the task continues and no second task starts.
        let computed = self.0.runtime.spawn(async move {
            let page = source.compute().await;
            *last = Some((Instant::now(), page.clone()));
            page
        });
        computed.await
    }
}

impl Source {
    async fn compute(&self) -> Bytes {
        let Self { world, policies, clock, refusals, carried, .. } = self;
        let (policies, now) = (policies.load_full(), clock.now());
        let listed = async {
            match carried {
                Some(list) => list.current(&policies, now).await,
                None => CarriedOperations::default(),
            }
        };
        let taken = snapshot::take(world.as_ref(), &policies, refusals.newest(), now);
        let (taken, carried) = tokio::join!(taken, listed);
        let shown = Snapshot { carried, ..taken };
        Bytes::from(block_in_place_if_possible(|| html::page(&shown)))
    }
}

impl fmt::Debug for OverviewPage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OverviewPage").finish_non_exhaustive()
    }
}

async fn answer(
    State(page): State<OverviewPage>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    if !is_local(peer.ip()) {
        let text = "this page is served only over the loopback interface: open it by `kubectl port-forward`\n";
        return plain(StatusCode::FORBIDDEN, text);
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !is_direct(host) {
        let text = "open this page by `kubectl port-forward` as http://localhost, or by an IP address\n";
        return plain(StatusCode::MISDIRECTED_REQUEST, text);
    }
    match timeout(PATIENCE, page.html()).await {
        Ok(Ok(html)) => {
            let kind = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, html::policy())];
            (kind, SAFE, html).into_response()
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "failed to compute the page");
            plain(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be computed\n")
        }
        Err(_) => plain(StatusCode::SERVICE_UNAVAILABLE, "the replica is busy; try again in a few seconds\n"),
    }
}

const SAFE: [(http::HeaderName, &str); 3] =
    [(CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff"), (REFERRER_POLICY, "no-referrer")];

fn plain(status: StatusCode, text: &'static str) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], SAFE, text).into_response()
}

/// Whether a client connects over the loopback interface of the pod, as the container runtime does for `kubectl port-forward`. Every pod
/// can reach the admin port for metrics, but the page is only for users who may forward ports of this pod.
fn is_local(peer: IpAddr) -> bool {
    // A socket that listens on [::] shows IPv4 addresses as mapped ones.
    peer.to_canonical().is_loopback()
}

/// Whether a Host header is `localhost` or an IP address. A website that rebinds its name to this address (DNS rebinding) sends its own
/// name.
fn is_direct(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.ends_with(']') => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests;

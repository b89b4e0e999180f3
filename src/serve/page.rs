//! The page of `serve --page` on the admin port: operations in flight, freezes, overrides in force, the last refusals of all replicas, and
//! the replicas. And for each release its history.
//!
//! The replica computes the page from its copies, at most once in [`FRESH`] for all clients. It reads the API server only for what has no
//! copies: the metadata of superseded records, if the next step of a stuck release depends on them, the objects that carry their
//! operation themselves, the reports, the replicas, and a history when somebody opens it. The work runs on the runtime of the reviews,
//! outside the network threads. The admin thread only waits.

mod cached;
mod carried;
mod history;
mod html;
mod replicas;
mod reported;
mod snapshot;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use interlock_engine::policy::Policies;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::JoinError;
use tokio::time::{Instant, timeout};

use super::report::refusals::LastRefusals;
pub(crate) use carried::CarriedOperationsList;
use history::FoundHistory;
pub(crate) use history::HistoryReader;
pub(crate) use replicas::ReplicaList;
pub(crate) use reported::Reported;
use snapshot::Snapshot;

use crate::budget::block_in_place_if_possible;
use crate::cluster_name::ClusterName;
use crate::world::Known;
use crate::world::kubernetes::clock::ServerClock;

/// How long a computed page is served.
const FRESH: Duration = Duration::from_secs(3);

/// How long a client waits for a page that is being computed.
const PATIENCE: Duration = Duration::from_secs(10);

/// The sources of the page, and the last page.
#[derive(Clone)]
pub struct OverviewPage(Arc<Shared>);

/// What the page is made of.
pub(crate) struct PageSource {
    pub(crate) world: Arc<dyn Known>,
    pub(crate) policies: Arc<ArcSwap<Policies>>,
    pub(crate) clock: Arc<ServerClock>,
    /// Of this replica.
    pub(crate) refusals: Arc<LastRefusals>,
    pub(crate) cluster_name: Option<ClusterName>,
    /// `None` without a cluster.
    pub(crate) cluster: Option<ClusterSources>,
}

/// What the page reads from the API server.
pub(crate) struct ClusterSources {
    pub(crate) carried: CarriedOperationsList,
    pub(crate) reported: Reported,
    pub(crate) replicas: ReplicaList,
    pub(crate) history: HistoryReader,
}

struct Shared {
    source: PageSource,
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
    pub(crate) fn new(source: PageSource) -> Self {
        Self(Arc::new(Shared { source, runtime: Handle::current(), last: Arc::default() }))
    }

    /// Routes `/` and the histories. Other methods than GET and HEAD are refused.
    pub(crate) fn router(self) -> Router {
        let histories = self.0.source.cluster.is_some();
        let mut router = Router::new().route("/", get(overview));
        if histories {
            router = router
                .route("/changes/{namespace}/{name}", get(history_of_release))
                .route("/changes/{namespace}/{plural}/{name}", get(history_of_object));
        }
        router.layer(from_fn(local_only)).with_state(self)
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
        let shared = Arc::clone(&self.0);
        // The task owns the lock: if a client disconnects, the task continues and no second task starts.
        let computed = self.0.runtime.spawn(async move {
            let page = shared.source.compute().await;
            *last = Some((Instant::now(), page.clone()));
            page
        });
        computed.await
    }

    /// The page of a history.
    async fn history(self, namespace: String, plural: Option<String>, name: String) -> Result<Bytes, JoinError> {
        let shared = Arc::clone(&self.0);
        let read = async move {
            let source = &shared.source;
            let told = match &source.cluster {
                Some(cluster) => cluster.history.read(&namespace, plural.as_deref(), &name).await,
                None => FoundHistory::default(),
            };
            let kind = plural.map(|plural| format!("{plural} ")).unwrap_or_default();
            let what = format!("{kind}{namespace}/{name}");
            Bytes::from(html::history(source.cluster_name.as_ref(), &what, &told))
        };
        self.0.runtime.spawn(read).await
    }
}

impl PageSource {
    async fn compute(&self) -> Bytes {
        let (policies, now) = (self.policies.load_full(), self.clock.now());
        let own = self.refusals.newest();
        let taken = snapshot::take(self.world.as_ref(), &policies, now);
        let mut shown = match &self.cluster {
            None => Snapshot { refusals: own, ..taken.await },
            Some(ClusterSources { carried, reported, replicas, .. }) => {
                let read = (carried.current(&policies, now), reported.with(own), replicas.current());
                let (taken, carried, (refusals, unreported), replicas) = tokio::join!(taken, read.0, read.1, read.2);
                Snapshot { carried, refusals, unreported, replicas: Some(replicas), ..taken }
            }
        };
        shown.cluster.clone_from(&self.cluster_name);
        Bytes::from(block_in_place_if_possible(|| html::page(&shown)))
    }
}

impl fmt::Debug for OverviewPage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OverviewPage").finish_non_exhaustive()
    }
}

async fn overview(State(page): State<OverviewPage>) -> Response {
    answer(page.html()).await
}

async fn history_of_release(
    State(page): State<OverviewPage>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    answer(page.history(namespace, None, name)).await
}

async fn history_of_object(
    State(page): State<OverviewPage>,
    Path((namespace, plural, name)): Path<(String, String, String)>,
) -> Response {
    answer(page.history(namespace, Some(plural), name)).await
}

/// Refuses everybody outside the pod, and names that lead here.
async fn local_only(ConnectInfo(peer): ConnectInfo<SocketAddr>, request: Request, next: Next) -> Response {
    if !is_local(peer.ip()) {
        let text = "this page is served only over the loopback interface: open it by `kubectl port-forward`\n";
        return plain(StatusCode::FORBIDDEN, text);
    }
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !is_direct(host) {
        let text = "open this page by `kubectl port-forward` as http://localhost, or by an IP address\n";
        return plain(StatusCode::MISDIRECTED_REQUEST, text);
    }
    next.run(request).await
}

async fn answer(html: impl Future<Output = Result<Bytes, JoinError>>) -> Response {
    match timeout(PATIENCE, html).await {
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

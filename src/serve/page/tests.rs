use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use interlock_engine::evidence::Query;
use interlock_engine::owners::Driver;
use interlock_engine::policy::{Freeze, Policy};
use interlock_engine::release_override::Override;
use tokio::task::JoinSet;
use tokio::time::advance;
use tower_service::Service;

use super::*;
use crate::world::{AnswerFuture, InFlight, QueryBudget, World};

/// An empty world that counts its queries.
#[derive(Default)]
struct Counted(AtomicUsize);

impl World for Counted {
    fn answer_for<'w>(&'w self, _: &'w Query, _: QueryBudget<'w>) -> AnswerFuture<'w> {
        unreachable!("nothing is in flight")
    }
}

impl Known for Counted {
    fn in_flight(&self, _: usize) -> (Vec<InFlight>, usize, bool) {
        self.0.fetch_add(1, Ordering::Relaxed);
        (vec![], 0, true)
    }

    fn drivers(&self) -> Option<Vec<Driver>> {
        unreachable!("nothing is in flight")
    }

    fn overrides_that(&self, _: &dyn Fn(&Override) -> bool, _: usize) -> Option<(Vec<Override>, usize)> {
        None
    }

    fn freezes(&self) -> Arc<[Freeze]> {
        Arc::default()
    }
}

fn page_of(world: Arc<Counted>) -> OverviewPage {
    let policies = Arc::new(ArcSwap::from_pointee(Policies::from(Policy::shipped().unwrap())));
    OverviewPage::new(PageSource {
        world,
        policies,
        clock: Arc::default(),
        refusals: Arc::default(),
        cluster_name: None,
        cluster: None,
    })
}

/// The status and the text for a client at this address, and how often the page was computed.
async fn answer_to(peer: Option<&str>) -> (StatusCode, String, usize) {
    let world = Arc::new(Counted::default());
    let mut request = Request::get("/").header(HOST, "localhost:8081").body(Body::empty()).unwrap();
    if let Some(peer) = peer {
        request.extensions_mut().insert(ConnectInfo(peer.parse::<SocketAddr>().unwrap()));
    }
    let answer = page_of(world.clone()).router().call(request).await.unwrap();
    let status = answer.status();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(text.to_vec()).unwrap(), world.0.load(Ordering::Relaxed))
}

#[tokio::test]
async fn only_clients_in_the_pod_get_the_page() {
    for peer in ["127.0.0.1:40000", "127.0.0.6:40000", "[::1]:40000", "[::ffff:127.0.0.1]:40000"] {
        let (status, text, computed) = answer_to(Some(peer)).await;
        assert_eq!((status, text.starts_with("<!doctype html>"), computed), (StatusCode::OK, true, 1), "{peer}");
    }
    for peer in ["10.0.0.7:40000", "[fd00::7]:40000", "[::ffff:10.0.0.7]:40000", "0.0.0.0:40000"] {
        let (status, text, computed) = answer_to(Some(peer)).await;
        assert_eq!((status, computed), (StatusCode::FORBIDDEN, 0), "{peer}");
        assert!(text.contains("`kubectl port-forward`") && text.lines().count() == 1, "{text}");
    }
    let (status, _, computed) = answer_to(None).await;
    assert_eq!((status.is_success(), computed), (false, 0), "the address of the client is not known");
}

#[tokio::test(start_paused = true)]
async fn all_clients_share_one_computed_page() {
    let world = Arc::new(Counted::default());
    let page = page_of(world.clone());
    for times in 1..=2 {
        // A client that disconnects while the page is computed.
        timeout(Duration::ZERO, page.html()).await.unwrap_err();
        let mut clients = JoinSet::new();
        for _ in 0..20 {
            let page = page.clone();
            clients.spawn(async move { page.html().await.unwrap() });
        }
        assert!(clients.join_all().await.iter().all(|html| html.starts_with(b"<!doctype html>")));
        assert_eq!(world.0.load(Ordering::Relaxed), times);
        advance(FRESH).await;
    }
}

#[test]
fn only_localhost_and_addresses_are_hosts() {
    for host in ["localhost", "LocalHost:8081", "127.0.0.1", "127.0.0.1:8081", "[::1]", "[::1]:8081", "10.0.0.7:80"] {
        assert!(is_direct(host), "{host}");
    }
    for host in ["", "evil.example", "evil.example:8081", "localhost.evil.example", "127.0.0.1.evil.example:80", ":80"]
    {
        assert!(!is_direct(host), "{host}");
    }
}

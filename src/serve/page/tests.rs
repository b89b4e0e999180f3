use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;
use tokio::time::advance;

use super::*;
use crate::engine::evidence::Query;
use crate::engine::flux::Driver;
use crate::engine::policy::Policy;
use crate::engine::release_override::Override;
use crate::world::{AnswerFuture, InFlight, Payer, World};

/// Nothing but a count of how often somebody looked.
#[derive(Default)]
struct Counted(AtomicUsize);

impl World for Counted {
    fn answer_for<'w>(&'w self, _: &'w Query, _: Payer<'w>) -> AnswerFuture<'w> {
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
}

#[tokio::test(start_paused = true)]
async fn however_many_clients_ask_the_page_is_computed_once_in_its_time() {
    let world = Arc::new(Counted::default());
    let policies = Arc::new(ArcSwap::from_pointee(Policies::from(Policy::shipped().unwrap())));
    let page = OverviewPage::new(world.clone(), policies, Arc::default(), Arc::default());
    for times in 1..=2 {
        // One that leaves while the page is computed.
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

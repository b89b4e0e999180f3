//! The addresses from which the API server calls. Reviews from these addresses share turns and memory by user. Reviews from all other
//! addresses share one additional class.
//!
//! By default an API server does not identify itself to webhooks. Interlock recognises it by an address that the cluster publishes. An
//! agent of the control plane or a tunnel that carries its calls is recognised by a nonce that only the API server was given.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use memchr::memmem;
use tokio::time::Instant;

use crate::budget::Peer;

/// How long an address stays known after it delivered a nonce. The address may belong to a pod, and later to another pod.
const PROVEN_FOR: Duration = Duration::from_secs(30 * 60);

/// How many addresses that delivered a nonce are remembered. A control plane has a handful.
const MAX_PROVEN: usize = 256;

/// The longest body that is searched for a nonce, in bytes. A probe has one or two KiB.
const MAX_PROBE_BYTES: usize = 16 << 10;

/// The sender of a request, as its connection shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) address: SocketAddr,
    /// Whether it has a verified client certificate.
    pub(super) is_certified: bool,
}

/// The known addresses, and the nonce of the current probe.
#[derive(Debug, Default)]
pub struct KnownPeers {
    endpoints: ArcSwap<HashSet<IpAddr>>,
    proven: Mutex<HashMap<IpAddr, Instant>>,
    nonce: ArcSwapOption<String>,
    strangers_call: AtomicBool,
}

impl KnownPeers {
    /// Replaces the addresses that the API servers publish.
    pub fn set_endpoints(&self, addresses: impl IntoIterator<Item = IpAddr>) {
        self.endpoints.store(Arc::new(addresses.into_iter().collect()));
    }

    /// Looks for a nonce, which the API server gets next. `None` stops looking.
    pub fn look_for(&self, nonce: Option<&str>) {
        self.nonce.store(nonce.map(|nonce| Arc::new(nonce.to_owned())));
    }

    /// Whether a stranger has sent a review since the last call.
    pub fn take_strangers_call(&self) -> bool {
        self.strangers_call.swap(false, Ordering::Relaxed)
    }

    /// Whether the sender of a request is known.
    pub(super) fn peer_of(&self, caller: Caller) -> Peer {
        let address = caller.address.ip().to_canonical();
        if caller.is_certified || self.endpoints.load().contains(&address) || self.is_proven(address) {
            Peer::Known
        } else {
            self.strangers_call.store(true, Ordering::Relaxed);
            Peer::Stranger
        }
    }

    fn is_proven(&self, address: IpAddr) -> bool {
        self.proven().get(&address).is_some_and(|since| since.elapsed() < PROVEN_FOR)
    }

    /// Searches a body for the nonce.
    pub(super) fn search_nonce(&self, caller: Caller, body: &[u8]) {
        if body.len() > MAX_PROBE_BYTES {
            return;
        }
        let nonce = self.nonce.load();
        if nonce.as_ref().is_some_and(|nonce| memmem::find(body, nonce.as_bytes()).is_some()) {
            let mut proven = self.proven();
            proven.retain(|_, since| since.elapsed() < PROVEN_FOR);
            if proven.len() < MAX_PROVEN {
                proven.insert(caller.address.ip().to_canonical(), Instant::now());
            }
        }
    }

    fn proven(&self) -> MutexGuard<'_, HashMap<IpAddr, Instant>> {
        self.proven.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(address: &str) -> Caller {
        Caller { address: SocketAddr::new(address.parse().unwrap(), 40_000), is_certified: false }
    }

    #[tokio::test(start_paused = true)]
    async fn certificate_endpoint_or_nonce_make_a_peer_known() {
        let peers = KnownPeers::default();
        assert_eq!(peers.peer_of(caller("10.0.0.1")), Peer::Stranger);
        assert!(peers.take_strangers_call() && !peers.take_strangers_call());
        assert_eq!(peers.peer_of(Caller { is_certified: true, ..caller("10.0.0.1") }), Peer::Known);

        peers.set_endpoints(["10.0.0.1".parse().unwrap()]);
        assert_eq!(peers.peer_of(caller("10.0.0.1")), Peer::Known);
        assert_eq!(peers.peer_of(caller("::ffff:10.0.0.1")), Peer::Known);
        assert!(!peers.take_strangers_call());

        let body = br#"{"annotations":{"interlock.dev/probe-nonce":"abc123"}}"#;
        peers.search_nonce(caller("10.9.9.9"), body);
        peers.look_for(Some("abc123"));
        peers.search_nonce(caller("10.9.9.8"), br#"{"annotations":{"interlock.dev/probe-nonce":"abc124"}}"#);
        peers.search_nonce(caller("10.9.9.7"), body);
        peers.look_for(None);
        peers.search_nonce(caller("10.9.9.6"), body);
        let known = ["10.9.9.6", "10.9.9.7", "10.9.9.8", "10.9.9.9"].map(|it| peers.peer_of(caller(it)));
        assert_eq!(known, [Peer::Stranger, Peer::Known, Peer::Stranger, Peer::Stranger]);
        tokio::time::advance(PROVEN_FOR).await;
        assert_eq!(peers.peer_of(caller("10.9.9.7")), Peer::Stranger);
    }
}

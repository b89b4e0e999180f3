//! Memory for work whose size is known before it starts, fair between flows.
//!
//! The flow that holds and requests the least is served first, so a flood of large requests delays only large requests. A reserve
//! is kept for small requests, so that they never wait for large ones.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::flow::Flow;
use super::strangers::StrangersShare;

/// The largest request that may use the reserve, in bytes. A record body of 64 KiB seldom takes more.
const SMALL_BYTES: usize = 1 << 20;

/// The reserve for small requests, as a fraction of the memory: one part in 12.
const RESERVED: usize = 12;

/// Memory that flows take and give back.
#[derive(Debug)]
pub(super) struct Memory {
    total: usize,
    ledger: Mutex<Ledger>,
    flows: RandomState,
}

#[derive(Debug)]
struct Ledger {
    free: usize,
    /// The bytes that each flow holds. Flows without any are absent.
    held: HashMap<u64, usize>,
    held_by_strangers: usize,
    strangers_share: StrangersShare,
    /// In the order of their arrival.
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    claim: Claim,
    /// Closed when the caller is cancelled.
    go: oneshot::Sender<Grant>,
}

/// A request for memory.
#[derive(Clone, Copy, Debug)]
struct Claim {
    flow: u64,
    is_of_strangers: bool,
    bytes: usize,
}

/// Memory taken from a budget. Dropping the grant gives it back.
#[derive(Debug)]
pub struct Grant {
    memory: Arc<Memory>,
    claim: Claim,
}

impl Memory {
    pub(super) fn new(total: usize) -> Arc<Self> {
        let ledger = Ledger {
            free: total,
            held: HashMap::new(),
            held_by_strangers: 0,
            strangers_share: StrangersShare::default(),
            waiting: Vec::new(),
        };
        Arc::new(Self { total, ledger: Mutex::new(ledger), flows: RandomState::new() })
    }

    /// Waits until so many bytes are free for a flow, and takes them. One flow gets at most two thirds of the total. A larger
    /// request gets this share, so that no request waits forever.
    pub(super) async fn grant(self: &Arc<Self>, flow: Flow<'_>, bytes: usize) -> Grant {
        let granted = self.ask(flow, bytes);
        let nothing = Claim { flow: 0, is_of_strangers: false, bytes: 0 };
        // A claim leaves the ledger only by its grant.
        granted.await.unwrap_or_else(|_| Grant { memory: Arc::clone(self), claim: nothing })
    }

    fn ask(self: &Arc<Self>, flow: Flow<'_>, bytes: usize) -> oneshot::Receiver<Grant> {
        let (go, granted) = oneshot::channel();
        let is_of_strangers = flow.is_of_strangers();
        let mut ledger = self.lock();
        if flow.is_called() {
            ledger.strangers_share.api_server_calls();
        }
        let of_strangers = if is_of_strangers { ledger.strangers_share.of(self.total) } else { self.total };
        let most = self.share().min(of_strangers);
        let claim = Claim { flow: self.flows.hash_one(flow), is_of_strangers, bytes: bytes.min(most) };
        ledger.waiting.push(Waiting { claim, go });
        self.serve(ledger);
        granted
    }

    /// The maximum number of bytes for one flow.
    fn share(&self) -> usize {
        self.total / 3 * 2
    }

    /// Grants the claims that fit, the smallest first.
    fn serve(self: &Arc<Self>, mut ledger: MutexGuard<'_, Ledger>) {
        let mut granted = Vec::new();
        ledger.waiting.retain(|waiting| !waiting.go.is_closed());
        while let Some(at) = self.next(&ledger) {
            let Waiting { claim, go } = ledger.waiting.remove(at);
            ledger.take(claim);
            granted.push((go, Grant { memory: Arc::clone(self), claim }));
        }
        drop(ledger);
        for (go, grant) in granted {
            // If the caller was cancelled, the grant comes back here and is dropped.
            drop(go.send(grant));
        }
    }

    /// The index of the claim to serve next: known peers first, then the flow that holds and requests the least.
    fn next(&self, ledger: &Ledger) -> Option<usize> {
        let fitting = ledger.waiting.iter().enumerate().filter(|(_, waiting)| self.fits(ledger, waiting.claim));
        fitting.min_by_key(|(at, waiting)| (ledger.rank(waiting.claim), *at)).map(|(at, _)| at)
    }

    fn fits(&self, ledger: &Ledger, claim: Claim) -> bool {
        let reserve = if claim.bytes <= SMALL_BYTES { 0 } else { self.total / RESERVED };
        claim.bytes <= ledger.free.saturating_sub(reserve)
            && claim.is_within(ledger.held_by(claim.flow), self.share())
            && (!claim.is_of_strangers
                || claim.is_within(ledger.held_by_strangers, ledger.strangers_share.of(self.total)))
    }

    /// Whether a flow holds memory, or waits for some.
    pub(super) fn has_claims_of(&self, flow: Flow<'_>) -> bool {
        let (flow, ledger) = (self.flows.hash_one(flow), self.lock());
        ledger.held.contains_key(&flow) || ledger.waiting.iter().any(|waiting| waiting.claim.flow == flow)
    }

    fn give_back(self: &Arc<Self>, claim: Claim) {
        let mut ledger = self.lock();
        ledger.give_back(claim);
        self.serve(ledger);
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.lock().free
    }
}

impl Ledger {
    fn held_by(&self, flow: u64) -> usize {
        self.held.get(&flow).copied().unwrap_or_default()
    }

    /// The claim with the lowest rank is served first.
    fn rank(&self, claim: Claim) -> (bool, usize) {
        (claim.is_of_strangers, self.held_by(claim.flow) + claim.bytes)
    }

    fn take(&mut self, claim: Claim) {
        if claim.bytes == 0 {
            return;
        }
        self.free = self.free.saturating_sub(claim.bytes);
        *self.held.entry(claim.flow).or_default() += claim.bytes;
        if claim.is_of_strangers {
            self.held_by_strangers += claim.bytes;
        }
    }

    fn give_back(&mut self, claim: Claim) {
        self.free += claim.bytes;
        if claim.is_of_strangers {
            self.held_by_strangers -= claim.bytes;
        }
        if let Some(held) = self.held.get_mut(&claim.flow) {
            *held -= claim.bytes;
            if *held == 0 {
                self.held.remove(&claim.flow);
            }
        }
    }
}

impl Claim {
    /// Whether the claim fits into a limit, in addition to the bytes held. A flow that holds nothing always fits, so that it
    /// progresses.
    fn is_within(self, held: usize, most: usize) -> bool {
        held == 0 || held + self.bytes <= most
    }
}

impl Grant {
    /// The number of bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.claim.bytes
    }

    /// Gives back all but so many bytes.
    pub fn shrink(&mut self, bytes: usize) {
        let surplus = self.claim.bytes.saturating_sub(bytes);
        if surplus > 0 {
            self.claim.bytes -= surplus;
            self.memory.give_back(Claim { bytes: surplus, ..self.claim });
        }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.claim.bytes > 0 {
            self.memory.give_back(self.claim);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;
    use crate::budget::Peer;

    const MIB: usize = 1 << 20;

    fn flow(user: &str) -> Flow<'_> {
        Flow::of(Peer::Known, user)
    }

    /// The grant, if it was made.
    fn comes(granted: &mut oneshot::Receiver<Grant>) -> Option<Grant> {
        granted.try_recv().ok()
    }

    #[tokio::test]
    async fn one_flow_leaves_memory_for_others() {
        let memory = Memory::new(900);
        let first = memory.grant(flow("mallory"), 400).await;
        let mut second = memory.ask(flow("mallory"), 400);
        assert!(comes(&mut second).is_none());
        let honest = memory.grant(flow("alice"), 300).now_or_never().unwrap();
        drop((first, honest));
        let second = comes(&mut second).unwrap();
        assert_eq!((second.bytes(), memory.free()), (400, 500));
        drop(second);
        // A request over the share gets the share.
        let mut most = memory.grant(flow("mallory"), 5_000).await;
        assert_eq!(most.bytes(), 600);
        most.shrink(100);
        assert_eq!(memory.free(), 800);
        drop(most);
        assert_eq!((memory.free(), memory.lock().held.len()), (900, 0));
    }

    #[tokio::test]
    async fn the_smallest_request_is_served_first() {
        let memory = Memory::new(96 * MIB);
        let bomb = memory.grant(flow("first"), 64 * MIB).await;
        let names: Vec<_> = (0..40).map(|number| format!("mallory-{number}")).collect();
        let mut bombs: Vec<_> = names.iter().map(|name| memory.ask(flow(name), 64 * MIB)).collect();
        // The reserve is for small requests only.
        let large = memory.grant(flow("carol"), 24 * MIB).now_or_never().unwrap();
        let mut larger = memory.ask(flow("dave"), 2 * MIB);
        assert!(comes(&mut larger).is_none());
        let small = memory.grant(flow("alice"), MIB).now_or_never().unwrap();
        drop((large, small));
        assert!(comes(&mut larger).is_some());
        drop(bomb);
        let granted: Vec<_> = bombs.iter_mut().filter_map(comes).collect();
        assert_eq!(granted.len(), 1);
    }

    #[tokio::test]
    async fn a_cancelled_request_leaves_its_memory_to_the_next() {
        let memory = Memory::new(12 * MIB);
        let held = memory.grant(flow("alice"), 8 * MIB).await;
        let (gone, mut next) = (memory.ask(flow("bob"), 4 * MIB), memory.ask(flow("carol"), 8 * MIB));
        drop(gone);
        drop(held);
        assert!(comes(&mut next).is_some());
        assert_eq!(memory.free(), 12 * MIB);
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_get_a_quarter_while_the_api_server_calls() {
        let memory = Memory::new(96 * MIB);
        let stranger = |name| Flow::of(Peer::Stranger, name);
        let all = memory.grant(stranger("a"), 64 * MIB).await;
        assert_eq!(all.bytes(), 64 * MIB);
        drop(all);
        let _called = memory.grant(flow("alice"), MIB).await;
        let quarter = memory.grant(stranger("a"), 64 * MIB).await;
        let mut other = memory.ask(stranger("b"), MIB);
        assert_eq!(quarter.bytes(), 24 * MIB);
        assert!(comes(&mut other).is_none());
        drop(quarter);
        assert!(comes(&mut other).is_some());
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(memory.grant(stranger("a"), 64 * MIB).await.bytes(), 64 * MIB);
    }
}

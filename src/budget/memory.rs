//! Memory for work whose size is known before it starts, fair between flows.
//!
//! Who holds and asks for the least is served first, so that a flood of large requests delays the large ones. A reserve is kept
//! for small ones, which so wait for nobody.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::flow::Flow;
use super::strangers::StrangersShare;

/// The largest request that the reserve serves, in bytes: a body of a record of 64 KiB seldom takes more.
const SMALL_BYTES: usize = 1 << 20;

/// One part in so many of the memory is kept for small requests.
const RESERVED: usize = 12;

/// Bytes that flows take and give back.
#[derive(Debug)]
pub(super) struct Memory {
    total: usize,
    ledger: Mutex<Ledger>,
    flows: RandomState,
}

#[derive(Debug)]
struct Ledger {
    free: usize,
    /// What each flow holds; none that holds nothing.
    held: HashMap<u64, usize>,
    of_strangers: usize,
    strangers_share: StrangersShare,
    /// In the order of their arrival.
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    claim: Claim,
    /// Closed once nobody waits any more.
    go: oneshot::Sender<Grant>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
struct Claim {
    flow: u64,
    is_of_strangers: bool,
    bytes: usize,
}

/// Bytes taken from a budget, given back on drop.
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
            of_strangers: 0,
            strangers_share: StrangersShare::default(),
            waiting: Vec::new(),
        };
        Arc::new(Self { total, ledger: Mutex::new(ledger), flows: RandomState::new() })
    }

    /// Waits until so many bytes are free for a flow, and takes them. One flow gets at most two thirds of all; a request for more
    /// than it can ever get takes that, so that nothing waits forever.
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

    /// The most bytes that one flow can hold.
    fn share(&self) -> usize {
        self.total / 3 * 2
    }

    /// Grants what fits, the least first.
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
            // If nobody waits any more, the grant comes back here and is dropped.
            drop(go.send(grant));
        }
    }

    /// The place of the claim to serve next: of a known peer first, then of who holds and asks for the least.
    fn next(&self, ledger: &Ledger) -> Option<usize> {
        let fitting = ledger.waiting.iter().enumerate().filter(|(_, waiting)| self.fits(ledger, waiting.claim));
        let rank = |claim: Claim| (claim.is_of_strangers, ledger.held_by(claim.flow) + claim.bytes);
        fitting.min_by_key(|(at, waiting)| (rank(waiting.claim), *at)).map(|(at, _)| at)
    }

    fn fits(&self, ledger: &Ledger, claim: Claim) -> bool {
        let reserve = if claim.bytes <= SMALL_BYTES { 0 } else { self.total / RESERVED };
        claim.bytes <= ledger.free.saturating_sub(reserve)
            && claim.is_within(ledger.held_by(claim.flow), self.share())
            && (!claim.is_of_strangers || claim.is_within(ledger.of_strangers, ledger.strangers_share.of(self.total)))
    }

    /// Whether a flow holds bytes, or waits for some.
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

    fn take(&mut self, claim: Claim) {
        if claim.bytes == 0 {
            return;
        }
        self.free = self.free.saturating_sub(claim.bytes);
        *self.held.entry(claim.flow).or_default() += claim.bytes;
        if claim.is_of_strangers {
            self.of_strangers += claim.bytes;
        }
    }

    fn give_back(&mut self, claim: Claim) {
        self.free += claim.bytes;
        if claim.is_of_strangers {
            self.of_strangers -= claim.bytes;
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
    /// Whether somebody who holds so much may have it too. Who holds nothing must be able to go on.
    fn is_within(self, held: usize, most: usize) -> bool {
        held == 0 || held + self.bytes <= most
    }
}

impl Grant {
    /// The bytes that are held.
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

    /// The grant, if it is there.
    fn comes(granted: &mut oneshot::Receiver<Grant>) -> Option<Grant> {
        granted.try_recv().ok()
    }

    #[tokio::test]
    async fn one_flow_never_takes_what_others_need() {
        let memory = Memory::new(900);
        let first = memory.grant(flow("mallory"), 400).await;
        let mut second = memory.ask(flow("mallory"), 400);
        assert!(comes(&mut second).is_none());
        let honest = memory.grant(flow("alice"), 300).now_or_never().unwrap();
        drop((first, honest));
        let second = comes(&mut second).unwrap();
        assert_eq!((second.bytes(), memory.free()), (400, 500));
        drop(second);
        // More than a flow can ever get is what it can get.
        let mut most = memory.grant(flow("mallory"), 5_000).await;
        assert_eq!(most.bytes(), 600);
        most.shrink(100);
        assert_eq!(memory.free(), 800);
        drop(most);
        assert_eq!((memory.free(), memory.lock().held.len()), (900, 0));
    }

    #[tokio::test]
    async fn who_asks_for_the_least_is_served_first_however_many_wait() {
        let memory = Memory::new(96 * MIB);
        let bomb = memory.grant(flow("first"), 64 * MIB).await;
        let names: Vec<_> = (0..40).map(|number| format!("mallory-{number}")).collect();
        let mut bombs: Vec<_> = names.iter().map(|name| memory.ask(flow(name), 64 * MIB)).collect();
        // A part of what is left is for small ones only.
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
    async fn what_nobody_waits_for_is_free_for_the_next() {
        let memory = Memory::new(12 * MIB);
        let held = memory.grant(flow("alice"), 8 * MIB).await;
        let (gone, mut next) = (memory.ask(flow("bob"), 4 * MIB), memory.ask(flow("carol"), 8 * MIB));
        drop(gone);
        drop(held);
        assert!(comes(&mut next).is_some());
        assert_eq!(memory.free(), 12 * MIB);
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_share_a_quarter_while_the_api_server_calls_and_all_of_it_otherwise() {
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

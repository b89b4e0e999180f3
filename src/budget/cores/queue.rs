//! Chooses the next step: fair by time, with weighted fair queueing.
//!
//! Each flow has a clock, which its steps advance by the time that they take. The next step is the step that would end first by
//! these clocks. So a short step of a quiet flow precedes the long steps of any number of busy flows. An idle flow saves no time
//! for later, and a flow that returns at once still owes the time that it used.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Price;

/// The weight of a step of strangers. With it, strangers get a quarter of the time while known peers want time too.
const WEIGHT_OF_STRANGERS: u32 = 3;

/// The maximum number of remembered flows without steps. These flows have used more time than other flows.
const MAX_REMEMBERED: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The maximum number of concurrent steps.
    pub(super) running: usize,
    /// The maximum number of further small steps.
    pub(super) small: usize,
    pub(super) waiting: usize,
}

#[derive(Debug)]
pub(super) struct Queue {
    limits: Limits,
    flows: HashMap<u64, FlowState>,
    /// The class of known peers, and that of strangers.
    classes: [Class; 2],
    running: usize,
    waiting: usize,
    /// The number of the next step.
    next: u64,
}

/// The flows of known peers together, or those of strangers.
#[derive(Debug, Default)]
struct Class {
    /// The clock of the flow with the last turn.
    now: Duration,
    /// The weighted time that its steps have taken.
    used: Duration,
    /// The number of steps that run or wait.
    steps: usize,
}

#[derive(Debug)]
struct FlowState {
    class: usize,
    running: usize,
    /// The time on this flow's clock at which its next step starts.
    clock: Duration,
    /// The oldest step comes first.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    price: Price,
    /// Dropped if the step will get no turn.
    go: oneshot::Sender<()>,
}

/// The flow of a step, and the index of the step in the flow.
type Place = (u64, usize);

impl Queue {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, flows: HashMap::new(), classes: Default::default(), running: 0, waiting: 0, next: 0 }
    }

    /// Adds a step of a flow, and grants free turns.
    pub(super) fn enter(&mut self, flow: u64, gives_way: bool, price: Price) -> (u64, oneshot::Receiver<()>) {
        let (go, granted) = oneshot::channel();
        let (number, class) = (self.next, usize::from(gives_way));
        self.next += 1;
        self.wake(class);
        let now = self.classes[class].now;
        let new = FlowState { class, running: 0, clock: now, waiting: VecDeque::new() };
        let state = self.flows.entry(flow).or_insert(new);
        if state.is_idle() {
            state.clock = state.clock.max(now);
        }
        state.waiting.push_back(Waiting { number, price, go });
        self.classes[class].steps += 1;
        self.waiting += 1;
        self.grant_turns();
        if self.waiting > self.limits.waiting {
            self.drop_one();
        }
        (number, granted)
    }

    /// An idle class saves no time for later.
    fn wake(&mut self, class: usize) {
        let [known, strangers] = &self.classes;
        if self.classes[class].steps == 0 {
            self.classes[class].used = known.used.max(strangers.used);
        }
    }

    pub(super) fn has_steps_of(&self, flow: u64) -> bool {
        self.flows.get(&flow).is_some_and(|state| !state.is_idle())
    }

    /// Removes a step that has run, or a waiting step that was cancelled.
    pub(super) fn leave(&mut self, flow: u64, number: u64, price: Price, took: Option<Duration>) {
        let Some(state) = self.flows.get_mut(&flow) else {
            return;
        };
        let class = &mut self.classes[state.class];
        if let Some(took) = took {
            let weight = weight_of(state.class);
            // The real time replaces the price, which was an estimate.
            state.clock = (state.clock + took).saturating_sub(price.0);
            class.used = (class.used + took * weight).saturating_sub(price.0 * weight);
            class.steps -= 1;
            state.running -= 1;
            self.running -= 1;
        } else if let Some(at) = state.waiting.iter().position(|waiting| waiting.number == number) {
            state.waiting.remove(at);
            class.steps -= 1;
            self.waiting -= 1;
        }
        self.forget();
        self.grant_turns();
    }

    /// Removes flows that have no steps and owe no time.
    fn forget(&mut self) {
        if self.running + self.waiting == 0 {
            self.flows.clear();
            return;
        }
        let (classes, is_full) = (&self.classes, self.flows.len() > MAX_REMEMBERED);
        self.flows.retain(|_, state| !state.is_idle() || !is_full && state.clock > classes[state.class].now);
    }

    fn grant_turns(&mut self) {
        while let Some((flow, at)) = self.next() {
            let Some(state) = self.flows.get_mut(&flow) else { return };
            let Some(Waiting { price, go, .. }) = state.waiting.remove(at) else { return };
            self.waiting -= 1;
            let class = &mut self.classes[state.class];
            // A step leaves the queue before it stops listening.
            if go.send(()).is_ok() {
                class.now = class.now.max(state.clock);
                class.used += price.0 * weight_of(state.class);
                state.clock += price.0;
                state.running += 1;
                self.running += 1;
            } else {
                class.steps -= 1;
            }
        }
    }

    /// The step for the next free turn.
    fn next(&self) -> Option<Place> {
        let Limits { running, small, .. } = self.limits;
        let is_for_small = self.running >= running;
        if self.running >= running + small {
            return None;
        }
        let candidates = self.flows.iter().filter_map(|(flow, state)| {
            let at = state.waiting.iter().position(|step| !is_for_small || step.price.is_small())?;
            let step = &state.waiting[at];
            Some(((self.classes[state.class].used, state.clock + step.price.0, step.number), (*flow, at)))
        });
        candidates.min().map(|(_, place)| place)
    }

    /// Drops the newest step of the flow with the most steps: strangers first, and among equals the step that would end last.
    fn drop_one(&mut self) {
        if let Some(state) = self.flows.values_mut().max_by_key(|state| state.drop_rank())
            && state.waiting.pop_back().is_some()
        {
            self.classes[state.class].steps -= 1;
            self.waiting -= 1;
        }
    }

    #[cfg(test)]
    pub(super) fn steps(&self) -> (usize, usize, usize) {
        (self.running, self.waiting, self.flows.len())
    }
}

impl FlowState {
    fn is_idle(&self) -> bool {
        self.running == 0 && self.waiting.is_empty()
    }

    /// The flow with the highest rank loses a step first.
    fn drop_rank(&self) -> (bool, usize, usize, Option<(Duration, u64)>) {
        let end = self.waiting.back().map(|newest| (self.clock + newest.price.0, newest.number));
        (!self.waiting.is_empty(), self.class, self.waiting.len(), end)
    }
}

fn weight_of(class: usize) -> u32 {
    if class == 0 { 1 } else { WEIGHT_OF_STRANGERS }
}

//! Who is next: fair by time, as weighted fair queueing does it.
//!
//! Each flow has a clock that its steps advance by the time that they take. The next step is the one that would end first by these
//! clocks, so a short step of a quiet flow comes before the long ones of busy flows, however many of these there are. A flow that
//! was away does not come back with saved time, and one that comes back at once does not lose what it owes.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Price;

/// A step of strangers counts as so many: so they get a quarter of the time while others want it too.
const WEIGHT_OF_STRANGERS: u32 = 3;

/// How many flows are remembered that have no steps, but have used time that others did not get yet.
const MAX_REMEMBERED: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How many steps run at a time.
    pub(super) running: usize,
    /// How many small ones may run beside these.
    pub(super) small: usize,
    pub(super) waiting: usize,
}

#[derive(Debug)]
pub(super) struct Queue {
    limits: Limits,
    flows: HashMap<u64, FlowState>,
    /// Of known peers and of strangers.
    classes: [Class; 2],
    running: usize,
    waiting: usize,
    /// The number of the next step.
    next: u64,
}

/// What the flows of known peers share, or those of strangers.
#[derive(Debug, Default)]
struct Class {
    /// The clock of the flow that had the last turn.
    now: Duration,
    /// The time that its steps have taken, by their weight.
    used: Duration,
    /// How many steps run or wait.
    steps: usize,
}

#[derive(Debug)]
struct FlowState {
    class: usize,
    running: usize,
    /// The clock: when its next step begins.
    clock: Duration,
    /// The oldest step is the first.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    price: Price,
    /// Dropped if the step will get no turn.
    go: oneshot::Sender<()>,
}

/// The place of a step in the queue.
type Place = (u64, usize);

impl Queue {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, flows: HashMap::new(), classes: Default::default(), running: 0, waiting: 0, next: 0 }
    }

    /// Adds a step of a flow, and gives out free turns.
    pub(super) fn enter(&mut self, flow: u64, gives_way: bool, price: Price) -> (u64, oneshot::Receiver<()>) {
        let (go, granted) = oneshot::channel();
        let (number, class) = (self.next, usize::from(gives_way));
        self.next += 1;
        self.wake(class);
        let now = self.classes[class].now;
        let new = || FlowState { class, running: 0, clock: now, waiting: VecDeque::new() };
        let state = self.flows.entry(flow).or_insert_with(new);
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

    /// A class that was idle does not come back with saved time.
    fn wake(&mut self, class: usize) {
        let [known, strangers] = &self.classes;
        if self.classes[class].steps == 0 {
            self.classes[class].used = known.used.max(strangers.used);
        }
    }

    pub(super) fn has_steps_of(&self, flow: u64) -> bool {
        self.flows.get(&flow).is_some_and(|state| !state.is_idle())
    }

    /// Takes out a step that ran for some time, or that nobody waits for any more.
    pub(super) fn leave(&mut self, flow: u64, number: u64, price: Price, took: Option<Duration>) {
        let Some(state) = self.flows.get_mut(&flow) else {
            return;
        };
        let class = &mut self.classes[state.class];
        if let Some(took) = took {
            let weight = weight_of(state.class);
            // The price was only a guess.
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

    /// Forgets flows without steps that owe nothing.
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

    /// The step that gets the next free turn.
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

    /// The flow with the most steps loses the newest of them, strangers first, and among equals who would come last.
    fn drop_one(&mut self) {
        let rank = |state: &&mut FlowState| {
            let newest = state.waiting.back();
            let end = newest.map(|step| (state.clock + step.price.0, step.number));
            (!state.waiting.is_empty(), state.class, state.waiting.len(), end)
        };
        if let Some(state) = self.flows.values_mut().max_by_key(rank)
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
}

fn weight_of(class: usize) -> u32 {
    if class == 0 { 1 } else { WEIGHT_OF_STRANGERS }
}

//! Breadth-first search over everything that two clients, kills and time can do to a release.
//!
//! Clusters and processes are numbered, so a state is three numbers, and what a client can do next is computed once for each cluster
//! and process, whatever the other client is doing.

mod way_back;
mod wedges;

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::rc::Rc;
use std::time::{Duration, Instant};

use interlock_engine::policy::Policies;
use release_interlock::inspect::diagnosis::Diagnosis;

use crate::client::{Act, Client, Process, Reaction, View, Write};
use crate::cluster::{Cluster, Driver, Other, Passing};
use crate::court::{Court, Ruling};
use crate::properties;
use crate::users::User;

/// What is explored.
pub(crate) struct Scope<'m> {
    pub(crate) clients: Vec<&'m dyn Client>,
    /// How many operations each client may begin.
    pub(crate) operations: Vec<u8>,
    pub(crate) starts: Vec<Cluster>,
    /// Whether a client may be killed.
    pub(crate) kills: bool,
    /// Whether no operation lives longer than `staleAfter`. Then records say what runs, among programs under different accounts.
    pub(crate) in_time: bool,
}

/// What was explored.
pub(crate) struct Explored {
    pub(crate) states: usize,
    pub(crate) edges: usize,
    pub(crate) clusters: usize,
    pub(crate) judged: usize,
    pub(crate) took: Duration,
    pub(crate) counterexample: Option<Counterexample>,
}

/// The shortest way to a broken property.
pub(crate) struct Counterexample {
    pub(crate) property: &'static str,
    pub(crate) start: Cluster,
    pub(crate) steps: Vec<Taken>,
}

/// A step of a counterexample.
#[derive(Debug, Clone)]
pub(crate) enum Taken {
    Passed(Passing),
    Began(User, &'static str),
    Wrote { user: User, write: Write, ruling: Ruling, before: Cluster },
    Looked(User),
    Killed(User),
}

impl Counterexample {
    /// How many writes it takes.
    pub(crate) fn writes(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Taken::Wrote { .. })).count()
    }
}

/// Values with numbers.
struct Numbered<T> {
    numbers: HashMap<Rc<T>, u32>,
    values: Vec<Rc<T>>,
}

impl<T: Hash + Eq> Numbered<T> {
    fn new() -> Self {
        Self { numbers: HashMap::new(), values: Vec::new() }
    }

    fn number(&mut self, value: T) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let (number, value) = (u32::try_from(self.values.len()).unwrap(), Rc::new(value));
        self.values.push(Rc::clone(&value));
        self.numbers.insert(value, number);
        number
    }

    fn value(&self, number: u32) -> Rc<T> {
        Rc::clone(&self.values[number as usize])
    }
}

/// A cluster, and the processes of up to two clients.
type State = [u32; 3];

/// What one client does in one step.
#[derive(Clone, Copy)]
struct Move {
    cluster: u32,
    process: u32,
    kind: MoveKind,
    /// Of a write.
    admitted: bool,
    broken: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum MoveKind {
    Begin(&'static str),
    Write,
    Look,
    Kill,
}

/// A client, its cluster and process, and the lives in the other's copies.
type MovesKey = (usize, u32, u32, u32);

/// The search over one policy. Judgements are shared between scopes.
pub(crate) struct Explorer {
    court: Court,
    clusters: Numbered<Cluster>,
    processes: Numbered<Process>,
    rulings: HashMap<(u32, User, Write), Rc<Ruling>>,
    /// The clusters of every scope so far, after the death of its clients.
    left: HashSet<u32>,
}

/// The states of one scope.
struct Search<'s> {
    scope: &'s Scope<'s>,
    moves: HashMap<MovesKey, Rc<[Move]>>,
    lives: HashMap<u32, u32>,
    later: HashMap<(u32, bool), [Option<u32>; 2]>,
    seen: HashSet<State>,
    /// The states in the order of their discovery, each with the index of the one before it.
    states: Vec<(State, u32)>,
}

const PASSING: [Passing; 2] = [Passing::Moments, Passing::UntilStale];

impl Explorer {
    pub(crate) fn new(policies: impl Into<Policies>) -> Self {
        let (clusters, processes) = (Numbered::new(), Numbered::new());
        Self { court: Court::new(policies.into()), clusters, processes, rulings: HashMap::new(), left: HashSet::new() }
    }

    /// Explores every state of a scope, up to the first counterexample.
    pub(crate) fn explore(&mut self, scope: &Scope<'_>) -> Explored {
        let (began, judged) = (Instant::now(), self.court.judged);
        let mut search = Search {
            scope,
            moves: HashMap::new(),
            lives: HashMap::new(),
            later: HashMap::new(),
            seen: HashSet::new(),
            states: Vec::new(),
        };
        let idle = self.processes.number(Process::default());
        for start in &scope.starts {
            let mut state = [self.clusters.number(start.clone()), idle, idle];
            for (client, operations) in scope.operations.iter().enumerate() {
                state[client + 1] = self.processes.number(Process::idle(*operations));
            }
            search.add(state, u32::MAX);
        }
        let (mut edges, mut next, mut counterexample) = (0, 0, None);
        while next < search.states.len() && counterexample.is_none() {
            counterexample = self.expand(&mut search, next, &mut edges);
            next += 1;
        }
        let mut clusters: Vec<u32> = search.states.iter().map(|(state, _)| state[0]).collect();
        clusters.sort_unstable();
        clusters.dedup();
        if counterexample.is_none() {
            counterexample = self.wedge(&mut search);
        }
        for cluster in &clusters {
            let left = self.without_the_dying(&search, *cluster);
            self.left.insert(left);
        }
        Explored {
            states: search.states.len(),
            edges,
            clusters: clusters.len(),
            judged: self.court.judged - judged,
            took: began.elapsed(),
            counterexample,
        }
    }

    /// Adds the states after one; a counterexample if a property is broken on the way.
    fn expand(&mut self, search: &mut Search<'_>, at: usize, edges: &mut usize) -> Option<Counterexample> {
        let (state, _) = search.states[at];
        let is_at_rest = (1..3).all(|client| self.processes.value(state[client]).acts.is_empty());
        if is_at_rest
            && let Some(property) = properties::broken_at_rest(&self.clusters.value(state[0]), search.scope.in_time)
        {
            return Some(self.counterexample(search, at, None, property));
        }
        let [soon, stale] = self.later(search, state);
        let stale = stale.filter(|_| is_at_rest || !search.scope.in_time);
        for cluster in [soon, stale].into_iter().flatten() {
            *edges += 1;
            search.add([cluster, state[1], state[2]], at as u32);
        }
        for client in 0..search.scope.clients.len() {
            let moves = self.moves(search, client, state);
            for (index, step) in moves.iter().enumerate() {
                *edges += 1;
                if let Some(property) = step.broken {
                    return Some(self.counterexample(search, at, Some((client, index)), property));
                }
                let mut after = state;
                (after[0], after[client + 1]) = (step.cluster, step.process);
                search.add(after, at as u32);
            }
        }
        None
    }

    /// The cluster after each step of time. A lease is renewed by a run that is alive, and otherwise expires.
    fn later(&mut self, search: &mut Search<'_>, state: State) -> [Option<u32>; 2] {
        let cluster = state[0];
        let now = self.clusters.value(cluster);
        let has_lease = now.others.contains(&Other::Lease);
        let is_renewed = has_lease && (1..3).any(|client| self.processes.value(state[client]).holds_lease());
        if let Some(known) = search.later.get(&(cluster, is_renewed)) {
            return *known;
        }
        let later = PASSING.map(|step| {
            let mut later = now.later(step);
            later.others.retain(|other| *other != Other::Lease || is_renewed);
            Some(self.clusters.number(later)).filter(|later| *later != cluster)
        });
        search.later.insert((cluster, is_renewed), later);
        later
    }

    fn moves(&mut self, search: &mut Search<'_>, client: usize, state: State) -> Rc<[Move]> {
        let own = self.processes.value(state[client + 1]);
        let reads = matches!(own.acts.first(), None | Some(Act::Look(..)));
        let other = state[2 - client];
        let lives =
            if reads { *search.lives.entry(other).or_insert_with(|| self.processes.value(other).lives()) } else { 0 };
        let key = (client, state[0], state[client + 1], lives);
        if let Some(known) = search.moves.get(&key) {
            return Rc::clone(known);
        }
        let moves = self.moves_of(search.scope, client, state[0], &own, lives);
        let moves: Rc<[Move]> = moves.into();
        search.moves.insert(key, Rc::clone(&moves));
        moves
    }

    fn moves_of(&mut self, scope: &Scope<'_>, client: usize, cluster: u32, process: &Process, lives: u32) -> Vec<Move> {
        let (client, alone, kills) = (scope.clients[client], scope.clients.len() == 1, scope.kills);
        let seen = self.clusters.value(cluster);
        let view = View { cluster: &seen, memory: process.memory, lives };
        let mut to = |kind, cluster, process| {
            let process = self.processes.number(process);
            Move { cluster, process, kind, admitted: false, broken: None }
        };
        let Some((act, rest)) = process.acts.split_first() else {
            if process.left == 0 {
                return Vec::new();
            }
            let begun = client.begin(&view).into_iter().filter(|operation| !operation.acts.is_empty());
            let begun = begun.map(|operation| {
                let after = settled(Process { left: process.left - 1, memory: process.memory, acts: operation.acts });
                to(MoveKind::Begin(operation.name), cluster, after)
            });
            return begun.collect();
        };
        let on = |acts: Vec<Act>| settled(Process { acts, ..process.clone() });
        let mut moves = Vec::new();
        if kills {
            let killed = Process { left: process.left, memory: client.after_kill(process.memory), acts: Vec::new() };
            let mut left = Cluster::clone(&seen);
            left.others.retain(|other| !client.dies_with().contains(other));
            let left = self.clusters.number(left);
            moves.push(to(MoveKind::Kill, left, killed));
        }
        match act {
            Act::Look(what, copies) => {
                let ways = client.look(*what, copies, &view);
                moves.extend(ways.into_iter().map(|acts| to(MoveKind::Look, cluster, on([&acts, rest].concat()))));
            }
            Act::Write(write, reaction) => {
                let user = client.user_of(write);
                let ruling = self.rule(cluster, user, write);
                let is_gone = *ruling == Ruling::Conflict && *write == Write::DeleteObject;
                let after = match (&*ruling, reaction) {
                    (Ruling::Admitted(_), _) | (_, Reaction::GoOn) => on(rest.to_vec()),
                    // An object that does not exist counts as deleted.
                    _ if is_gone => on(rest.to_vec()),
                    (_, Reaction::Stop) => on(Vec::new()),
                    (_, Reaction::Instead(acts)) => on(acts.clone()),
                };
                let next = match &*ruling {
                    Ruling::Admitted(next) => self.clusters.number(next.clone()),
                    _ => cluster,
                };
                let broken = self.broken_by(&seen, user, write, &ruling, alone);
                let process = self.processes.number(after);
                let admitted = is_gone || matches!(&*ruling, Ruling::Admitted(_));
                moves.push(Move { cluster: next, process, kind: MoveKind::Write, admitted, broken });
            }
            Act::Remember(_) => unreachable!("settled"),
        }
        moves
    }

    /// The property that a write breaks by what became of it.
    fn broken_by(
        &mut self,
        seen: &Cluster,
        user: User,
        write: &Write,
        ruling: &Ruling,
        alone: bool,
    ) -> Option<&'static str> {
        if let Some(property) = properties::broken_by_write(seen, user, write, ruling) {
            return Some(property);
        }
        if alone && properties::is_unfair(seen, user, write, ruling) {
            return Some(properties::UNFAIR);
        }
        let bare = seen.without_strangers();
        if user == User::Mallory {
            let changes = matches!(ruling, Ruling::Admitted(after) if after.without_strangers() != bare);
            return changes.then_some(properties::STRANGER);
        }
        if bare == *seen {
            return None;
        }
        let bare = self.clusters.number(bare);
        let alone = self.rule(bare, user, write);
        let same = match (&*alone, ruling) {
            (Ruling::Admitted(alone), Ruling::Admitted(after)) => *alone == after.without_strangers(),
            (alone, ruling) => alone == ruling,
        };
        (!same).then_some(properties::STRANGER)
    }

    /// What becomes of a write; judged once.
    pub(crate) fn rule(&mut self, cluster: u32, user: User, write: &Write) -> Rc<Ruling> {
        let key = (cluster, user, *write);
        if let Some(known) = self.rulings.get(&key) {
            return Rc::clone(known);
        }
        let ruling = Rc::new(self.court.rule(&self.clusters.value(cluster), user, write));
        self.rulings.insert(key, Rc::clone(&ruling));
        ruling
    }

    /// What becomes of a write over any cluster.
    pub(crate) fn rule_on(&mut self, cluster: &Cluster, user: User, write: &Write) -> Rc<Ruling> {
        let cluster = self.clusters.number(cluster.clone());
        self.rule(cluster, user, write)
    }

    /// Every cluster so far, with its clients dead.
    pub(crate) fn left(&self) -> Vec<Rc<Cluster>> {
        self.left.iter().map(|cluster| self.clusters.value(*cluster)).collect()
    }

    /// What is wrong with a release, and the next step.
    pub(crate) fn diagnose(&mut self, cluster: &Cluster, driver: Driver, user: User) -> Option<Diagnosis> {
        self.court.diagnose(cluster, driver, user)
    }

    /// Every judgement so far.
    pub(crate) fn rulings(&self) -> Vec<(Rc<Cluster>, User, Write, Rc<Ruling>)> {
        let text = |(key, ruling): (&(u32, User, Write), &Rc<Ruling>)| {
            (self.clusters.value(key.0), key.1, key.2, Rc::clone(ruling))
        };
        self.rulings.iter().map(text).collect()
    }
}

/// The process with what it remembers set.
fn settled(mut process: Process) -> Process {
    while let Some(Act::Remember(memory)) = process.acts.first() {
        process.memory = *memory;
        process.acts.remove(0);
    }
    process
}

impl Search<'_> {
    fn add(&mut self, state: State, before: u32) {
        if self.seen.insert(state) {
            self.states.push((state, before));
        }
    }
}

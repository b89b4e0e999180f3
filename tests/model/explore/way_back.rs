//! From a state back to where the search began.

use super::{Counterexample, Explorer, Move, MoveKind, PASSING, Search, State, Taken};
use crate::client::Act;
use crate::cluster::Cluster;
use crate::court::Ruling;

impl Explorer {
    pub(super) fn counterexample(
        &mut self,
        search: &mut Search<'_>,
        at: usize,
        last: Option<(usize, usize)>,
        property: &'static str,
    ) -> Counterexample {
        let mut way = vec![at];
        while let Some(before) = Some(search.states[way[way.len() - 1]].1).filter(|before| *before != u32::MAX) {
            way.push(before as usize);
        }
        way.reverse();
        let start = Cluster::clone(&self.clusters.value(search.states[way[0]].0[0]));
        let states: Vec<State> = way.iter().map(|index| search.states[*index].0).collect();
        let mut steps: Vec<Taken> = states.windows(2).map(|pair| self.taken(search, pair[0], pair[1])).collect();
        if let Some((client, index)) = last {
            let state = search.states[at].0;
            let step = self.moves(search, client, state)[index];
            steps.push(self.step(search, state, client, step));
        }
        Counterexample { property, start, steps }
    }

    /// The step from one state to the next.
    fn taken(&mut self, search: &mut Search<'_>, from: State, to: State) -> Taken {
        for client in 0..search.scope.clients.len() {
            let found = self.moves(search, client, from).iter().copied().find(|step| {
                let mut after = from;
                (after[0], after[client + 1]) = (step.cluster, step.process);
                after == to
            });
            if let Some(step) = found {
                return self.step(search, from, client, step);
            }
        }
        let later = self.later(search, from);
        Taken::Passed(if later[0] == Some(to[0]) { PASSING[0] } else { PASSING[1] })
    }

    fn step(&mut self, search: &Search<'_>, from: State, client: usize, step: Move) -> Taken {
        let user = search.scope.clients[client].user();
        match step.kind {
            MoveKind::Begin(name) => Taken::Began(user, name),
            MoveKind::Look => Taken::Looked(user),
            MoveKind::Kill => Taken::Killed(user),
            MoveKind::Write => {
                let process = self.processes.value(from[client + 1]);
                let Some(Act::Write(write, _)) = process.acts.first() else { unreachable!("it writes") };
                let user = search.scope.clients[client].user_of(write);
                let ruling = Ruling::clone(&self.rule(from[0], user, write));
                Taken::Wrote { user, write: *write, ruling, before: Cluster::clone(&self.clusters.value(from[0])) }
            }
        }
    }
}

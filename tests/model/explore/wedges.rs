//! Liveness: from every state some permitted way leads out.

use std::collections::HashSet;

use super::{Counterexample, Explorer, MoveKind, Search};
use crate::client::{Goal, Process};
use crate::cluster::Cluster;
use crate::properties;

/// How many operations an owner may need to free a release.
const FREEING: u8 = 3;

impl Explorer {
    /// A state from which, with both clients dead, an owner has no permitted sequence of its own steps to a deployed release or to none.
    pub(super) fn wedge(&mut self, search: &mut Search<'_>) -> Option<Counterexample> {
        for client in 0..search.scope.clients.len() {
            let owner = search.scope.clients[client];
            let Some(goal) = owner.goal() else { continue };
            let mut freed: HashSet<(u32, u16)> = HashSet::new();
            for at in 0..search.states.len() {
                let state = search.states[at].0;
                let process = self.processes.value(state[client + 1]);
                let memory = if process.acts.is_empty() { process.memory } else { owner.after_kill(process.memory) };
                let cluster = self.without_the_dying(search, state[0]);
                if !freed.contains(&(cluster, memory))
                    && !self.frees(search, client, goal, (cluster, memory), &mut freed)
                {
                    return Some(self.counterexample(search, at, None, properties::WEDGED));
                }
            }
        }
        None
    }

    /// The cluster without what goes with the clients when they die.
    pub(super) fn without_the_dying(&mut self, search: &Search<'_>, cluster: u32) -> u32 {
        let mut left = Cluster::clone(&self.clusters.value(cluster));
        for other in search.scope.clients.iter().flat_map(|client| client.dies_with()) {
            left.others.remove(other);
        }
        self.clusters.number(left)
    }

    /// Whether an owner alone gets from a cluster to its goal, with no write refused on the way. The clusters on the way are added to
    /// those from which it does.
    fn frees(
        &mut self,
        search: &mut Search<'_>,
        client: usize,
        goal: Goal,
        start: (u32, u16),
        freed: &mut HashSet<(u32, u16)>,
    ) -> bool {
        let begin = self.processes.number(Process { left: FREEING, memory: start.1, acts: Vec::new() });
        let (mut seen, mut way) = (HashSet::from([(start.0, begin)]), vec![(start.0, begin, usize::MAX)]);
        let mut next = 0;
        while let Some((cluster, process, _)) = way.get(next).copied() {
            let at = self.processes.value(process);
            if at.acts.is_empty() && (goal(&self.clusters.value(cluster)) || freed.contains(&(cluster, at.memory))) {
                let mut back = next;
                while back != usize::MAX {
                    let (cluster, process, before) = way[back];
                    let at = self.processes.value(process);
                    if at.acts.is_empty() {
                        freed.insert((cluster, at.memory));
                    }
                    back = before;
                }
                return true;
            }
            let idle = self.processes.number(Process::default());
            let mut state = [cluster, idle, idle];
            state[client + 1] = process;
            let later = if at.acts.is_empty() { self.later(search, state) } else { [None; 2] };
            let mut after: Vec<(u32, u32)> = later.into_iter().flatten().map(|cluster| (cluster, process)).collect();
            let moves = self.moves(search, client, state);
            let permitted = moves.iter().filter(|step| match step.kind {
                MoveKind::Begin(_) | MoveKind::Look => true,
                MoveKind::Write => step.admitted,
                MoveKind::Kill => false,
            });
            after.extend(permitted.map(|step| (step.cluster, step.process)));
            way.extend(
                after
                    .into_iter()
                    .filter(|after| seen.insert(*after))
                    .map(|(cluster, process)| (cluster, process, next)),
            );
            next += 1;
        }
        false
    }
}

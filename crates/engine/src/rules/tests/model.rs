//! A small model of Helm: each action is the sequence of its record writes, and can be killed between any two.
//!
//! If one person runs actions one after another, in any order, no write may be refused. There are two exceptions, which are the
//! purpose of the webhook: a rollback over the record of a killed action, and an unlock by somebody else, must wait until that
//! record is stale.

use proptest::prelude::*;

use super::scenario::{Cluster, Rec, rec, start};
use crate::release::Status;

const STALE: i64 = 15 * 60;

#[derive(Debug, Clone, Copy)]
enum Action {
    Install {
        replace: bool,
    },
    Upgrade {
        fails: bool,
        atomic: bool,
        history_max: usize,
    },
    Rollback {
        fails: Option<Failure>,
        history_max: usize,
    },
    Uninstall {
        keep_history: bool,
    },
    Test,
    /// Flux, or a person, marks the record of a dead action as failed.
    Unlock,
}

/// Where a rollback fails. During the apply, it supersedes the record it rolled over. During the wait, it writes that record
/// again unchanged.
#[derive(Debug, Clone, Copy)]
enum Failure {
    Apply,
    Wait,
}

/// The records as Helm sees them, and the cluster that judges each write.
struct Helm {
    records: Vec<Rec>,
    cluster: Cluster,
    /// The number of writes before the process is killed.
    fuel: usize,
    hooks: usize,
    lives: u64,
}

/// The process was killed.
struct Killed;

type Run = Result<(), Killed>;

impl Helm {
    fn write(&mut self) -> Run {
        self.fuel = self.fuel.checked_sub(1).ok_or(Killed)?;
        self.cluster.later(1);
        Ok(())
    }

    fn last(&self) -> Option<&Rec> {
        self.records.last()
    }

    fn last_status(&self) -> Option<Status> {
        self.last().map(|record| record.status.parse().unwrap())
    }

    fn deployed(&self) -> Option<usize> {
        self.records.iter().rposition(|record| record.label == "deployed")
    }

    /// The revision of the next record, which Helm computes before it prunes.
    fn next_revision(&self) -> u64 {
        self.last().map_or(1, |last| last.revision + 1)
    }

    fn create(&mut self, revision: u64, status: &'static str) -> Run {
        self.write()?;
        self.lives += 1;
        let lived = format!("2026-11-21T{:02}:{:02}:00Z", self.lives / 60 % 24, self.lives % 60);
        let record = Rec { lived: lived.leak(), created: self.cluster.now, ..rec(revision, status) };
        assert_eq!(self.cluster.create("alice", &record), Ok(()), "CREATE {status} over {:?}", self.last_status());
        self.records.push(record);
        Ok(())
    }

    fn update(&mut self, index: usize, status: &'static str) -> Run {
        self.write()?;
        let old = self.records[index].clone();
        let new = Rec { hooks_run: old.hooks_run + 1, ..old.to(status) };
        assert_eq!(self.cluster.update("alice", &old, &new), Ok(()), "UPDATE {} -> {status}", old.status);
        self.records[index] = new;
        Ok(())
    }

    fn delete(&mut self, index: usize) -> Run {
        self.write()?;
        let record = self.records[index].clone();
        assert_eq!(self.cluster.delete("alice", &record), Ok(()), "DELETE {}", record.status);
        self.records.remove(index);
        Ok(())
    }

    /// Helm writes the record once before each hook.
    fn hooks(&mut self, index: usize) -> Run {
        for _ in 0..self.hooks {
            self.update(index, self.records[index].status)?;
        }
        Ok(())
    }

    /// Prunes the oldest records first, but not the newest deployed one, down to one less than the limit.
    fn prune(&mut self, history_max: usize) -> Run {
        let kept = self.deployed().map(|index| self.records[index].revision);
        while history_max > 0 && self.records.len() >= history_max {
            let Some(index) = self.records.iter().position(|record| Some(record.revision) != kept) else {
                break;
            };
            // With such a small limit, pruning deletes the record of the dead operation itself, which the runbook protects, or the only
            // one that is left to upgrade from.
            let is_newest = index + 1 == self.records.len();
            if is_newest && self.last_status().is_some_and(|it| it.is_pending() || it == Status::Superseded) {
                break;
            }
            self.delete(index)?;
        }
        Ok(())
    }

    fn index(&self, revision: u64) -> usize {
        self.records.iter().position(|record| record.revision == revision).unwrap()
    }

    fn run(&mut self, action: Action) -> Run {
        match action {
            Action::Install { replace } => self.install(replace),
            Action::Upgrade { fails, atomic, history_max } => self.upgrade(fails, atomic, history_max),
            Action::Rollback { fails, history_max } => self.rollback(fails, history_max),
            Action::Uninstall { keep_history } => self.uninstall(keep_history),
            Action::Test => match self.records.len().checked_sub(1) {
                Some(last) => self.hooks(last),
                None => Ok(()),
            },
            Action::Unlock => match self.last_status() {
                Some(status) if status.is_pending() => self.update(self.records.len() - 1, "failed"),
                _ => Ok(()),
            },
        }
    }

    fn install(&mut self, replace: bool) -> Run {
        match self.last_status() {
            None => {}
            Some(Status::Uninstalled) if replace => self.update(self.records.len() - 1, "superseded")?,
            Some(Status::Failed) if replace => {}
            Some(_) => return Ok(()),
        }
        self.create(self.next_revision(), "pending-install")?;
        let new = self.records.len() - 1;
        self.hooks(new)?;
        self.update(new, "deployed")
    }

    fn upgrade(&mut self, fails: bool, atomic: bool, history_max: usize) -> Run {
        let Some(last) = self.last_status() else {
            return Ok(());
        };
        let usable = matches!(last, Status::Failed | Status::Superseded);
        if last.is_pending() || (self.deployed().is_none() && !usable) {
            return Ok(());
        }
        // Helm itself would continue over a dead uninstall, from an older deployed record. Interlock refuses that.
        if last == Status::Uninstalling {
            return Ok(());
        }
        let original = self.deployed().unwrap_or(self.records.len() - 1);
        let original = self.records[original].revision;
        // Only the newest deployed record is exempt from pruning. Without one, pruning may delete the original itself.
        let (next, spared) = (self.next_revision(), self.deployed().is_some());
        self.prune(if spared { history_max } else { 0 })?;
        self.create(next, "pending-upgrade")?;
        let new = self.records.len() - 1;
        self.hooks(new)?;
        let old = self.index(original);
        if fails {
            self.update(old, self.records[old].status)?;
            self.update(new, "failed")?;
            return if atomic && self.deployed().is_some() { self.rollback(None, 0) } else { Ok(()) };
        }
        self.update(old, "superseded")?;
        self.update(new, "deployed")
    }

    fn rollback(&mut self, fails: Option<Failure>, history_max: usize) -> Run {
        let Some(last) = self.last().cloned() else {
            return Ok(());
        };
        if self.last_status().is_some_and(Status::is_in_flight) {
            self.cluster.later(STALE);
        }
        let next = self.next_revision();
        self.prune(history_max)?;
        self.create(next, "pending-rollback")?;
        let new = self.records.len() - 1;
        self.hooks(new)?;
        let over = self.records.iter().position(|record| record.revision == last.revision);
        match (fails, over) {
            (Some(Failure::Apply), Some(over)) => self.update(over, "superseded")?,
            (Some(Failure::Wait), Some(over)) => self.update(over, self.records[over].status)?,
            _ => {}
        }
        if fails.is_some() {
            return self.update(new, "failed");
        }
        while let Some(deployed) = self.deployed() {
            self.update(deployed, "superseded")?;
        }
        self.update(new, "deployed")
    }

    fn uninstall(&mut self, keep_history: bool) -> Run {
        let Some(last) = self.records.len().checked_sub(1) else {
            return Ok(());
        };
        if self.last_status() != Some(Status::Uninstalled) {
            self.update(last, "uninstalling")?;
            self.hooks(last)?;
            if keep_history {
                self.update(last, "uninstalled")?;
                while let Some(deployed) = self.deployed() {
                    self.update(deployed, "superseded")?;
                }
                return Ok(());
            }
        } else if keep_history {
            return Ok(());
        }
        while !self.records.is_empty() {
            self.delete(0)?;
        }
        Ok(())
    }
}

fn action() -> impl Strategy<Value = Action> {
    let failure = prop_oneof![Just(None), Just(Some(Failure::Apply)), Just(Some(Failure::Wait))];
    prop_oneof![
        3 => any::<bool>().prop_map(|replace| Action::Install { replace }),
        5 => (any::<bool>(), any::<bool>(), 0..6_usize)
            .prop_map(|(fails, atomic, history_max)| Action::Upgrade { fails, atomic, history_max }),
        3 => (failure, 0..6_usize).prop_map(|(fails, history_max)| Action::Rollback { fails, history_max }),
        2 => any::<bool>().prop_map(|keep_history| Action::Uninstall { keep_history }),
        1 => Just(Action::Test),
        1 => Just(Action::Unlock),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_legal_sequence_of_actions_is_refused(
        actions in proptest::collection::vec((action(), prop_oneof![2 => Just(usize::MAX), 1 => 0..9_usize], 0..3_usize), 1..14)
    ) {
        let mut helm = Helm { records: Vec::new(), cluster: Cluster::new(), fuel: 0, hooks: 0, lives: 0 };
        for (action, fuel, hooks) in actions {
            (helm.fuel, helm.hooks) = (fuel, hooks);
            let _killed_or_done = helm.run(action);
        }
        prop_assert!(helm.cluster.now >= start());
    }
}

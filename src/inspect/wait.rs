//! Waits for a release to reach a goal, before the next step of a pipeline.
//!
//! [`Wait::judge`] is pure: it judges one look at a release at a moment. `freeze` reads the user and the freeze that stops this
//! user.

mod freeze;
mod goal;

use jiff::{SignedDuration, Timestamp};

pub(crate) use freeze::{FreezeInForce, Records, Starter};
pub(crate) use goal::Goal;

use interlock_engine::release::Status;

use super::diagnosis::Stuck;
use super::status::ReleaseSummary;

/// How long after a failure its rollback may follow: `helm upgrade --rollback-on-failure` writes `failed` before it starts the
/// rollback.
const SETTLES_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// A release at a moment.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    /// One for each storage that has records of the release; usually one.
    pub rows: Vec<ReleaseSummary>,
    /// Only for [`Goal::Open`].
    pub freeze: Option<FreezeInForce>,
    /// By the API server's clock.
    pub now: Timestamp,
}

/// Whether to go on waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Reached,
    /// An operation in flight is stuck, or OLM cannot read a record.
    Stuck,
    /// No operation is in flight, the newest revision is not deployed, and nothing tries again by itself.
    Failed,
    /// A freeze lasts longer than the wait may.
    Frozen,
    /// Not yet. Without a change of a record, the verdict may change at this time.
    GoOn(Option<Timestamp>),
}

/// A wait, and the state that it has seen.
#[derive(Debug)]
pub(crate) struct Wait<'g> {
    goal: &'g Goal,
    /// By the API server's clock; only freezes are compared with it.
    deadline: Timestamp,
    /// The newest revision of the last look, and its status; `None` before the first look.
    seen: Option<Option<(u64, &'static str)>>,
    /// The time from which a failure during the wait counts.
    settles: Option<Timestamp>,
}

impl<'g> Wait<'g> {
    pub(crate) fn new(goal: &'g Goal, deadline: Timestamp) -> Self {
        Self { goal, deadline, seen: None, settles: None }
    }

    /// Judges the release, and remembers its state for the next look.
    pub(crate) fn judge(&mut self, look: &Look) -> Verdict {
        let newest = look.newest();
        self.note(newest, look.now);
        if look.rows.iter().any(|row| row.stuck == Stuck::Yes) {
            Verdict::Stuck
        } else if look.freeze.as_ref().is_some_and(|freeze| freeze.until.is_none_or(|until| until > self.deadline)) {
            Verdict::Frozen
        } else if look.rows.iter().any(|row| row.is_in_flight() || row.is_being_written()) {
            Verdict::GoOn(look.rows.iter().filter_map(|row| row.stuck_from).filter(|from| *from > look.now).min())
        } else if let Some(settles) = self.settles.filter(|settles| look.now < *settles) {
            Verdict::GoOn(Some(settles))
        } else if let Some(freeze) = &look.freeze {
            Verdict::GoOn(freeze.until)
        } else {
            self.judge_free(newest)
        }
    }

    /// Judges a release without an operation in flight, and without a freeze.
    fn judge_free(&self, newest: Option<&ReleaseSummary>) -> Verdict {
        if matches!(self.goal, Goal::Free | Goal::Open) {
            return Verdict::Reached;
        }
        // Somebody may install it.
        let Some(newest) = newest.filter(|row| row.status != Status::Uninstalled.as_str()) else {
            return Verdict::GoOn(None);
        };
        if newest.status == Status::Deployed.as_str() {
            return if self.goal.is_at(newest) { Verdict::Reached } else { Verdict::GoOn(None) };
        }
        if newest.owner.waits_for_people() { Verdict::Failed } else { Verdict::GoOn(None) }
    }

    fn note(&mut self, newest: Option<&ReleaseSummary>, now: Timestamp) {
        let seen = newest.map(|row| (row.revision, row.status));
        if self.seen.is_some_and(|before| before != seen) {
            let has_failed = seen.is_some_and(|(_, status)| status == Status::Failed.as_str());
            self.settles = now.checked_add(SETTLES_AFTER).ok().filter(|_| has_failed);
        }
        self.seen = Some(seen);
    }
}

impl Look {
    /// The newest written record. A release may have old records in another storage.
    pub(crate) fn newest(&self) -> Option<&ReleaseSummary> {
        self.rows.iter().rev().max_by_key(|row| (row.is_in_flight(), row.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_engine::owners::ReleaseOwner;

    const NOW: &str = "2026-11-21T10:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    fn after(seconds: i64) -> Timestamp {
        now() + SignedDuration::from_secs(seconds)
    }

    fn row(revision: u64, status: &'static str) -> ReleaseSummary {
        ReleaseSummary {
            record: format!("sh.helm.release.v1.web.v{revision}"),
            revision,
            since: Some(after(-60)),
            holder: Some("alice".to_owned()),
            chart: Some(format!("demo-1.{revision}.0")),
            ..ReleaseSummary::of_web(status)
        }
    }

    fn pending(stuck: Stuck, stuck_from: i64) -> ReleaseSummary {
        ReleaseSummary { stuck, stuck_from: Some(after(stuck_from)), ..row(2, "pending-upgrade") }
    }

    fn owned(owner: ReleaseOwner) -> ReleaseSummary {
        ReleaseSummary { owner, ..row(2, "failed") }
    }

    fn look(rows: Vec<ReleaseSummary>, seconds: i64) -> Look {
        Look { rows, freeze: None, now: after(seconds) }
    }

    /// The verdict of the first look, of a wait for five minutes.
    fn first(goal: &str, rows: Vec<ReleaseSummary>) -> Verdict {
        Wait::new(&goal.parse().unwrap(), after(300)).judge(&look(rows, 0))
    }

    #[test]
    fn each_goal_is_judged_by_the_newest_revision() {
        use ReleaseOwner::{Flux, Olm, Sveltos, Unknown};
        use Verdict::{Failed, GoOn, Reached, Stuck as IsStuck};
        let wait = GoOn(None);
        for (rows, [free, deployed, at_the_version, at_another]) in [
            (vec![], [Reached, wait, wait, wait]),
            (vec![row(2, "deployed")], [Reached, Reached, Reached, wait]),
            (vec![row(2, "uninstalled")], [Reached, wait, wait, wait]),
            (vec![row(2, "failed")], [Reached, Failed, Failed, Failed]),
            (vec![row(2, "superseded")], [Reached, Failed, Failed, Failed]),
            (vec![owned(Flux("shop/web".to_owned()))], [Reached, wait, wait, wait]),
            (vec![owned(Olm("web".to_owned()))], [Reached, wait, wait, wait]),
            (vec![owned(Sveltos)], [Reached, wait, wait, wait]),
            (vec![owned(Unknown)], [Reached, wait, wait, wait]),
            (vec![row(2, "uninstalling")], [wait; 4]),
            (vec![pending(Stuck::No, 30)], [GoOn(Some(after(30))); 4]),
            (vec![pending(Stuck::Unknown, -30)], [wait; 4]),
            (vec![pending(Stuck::Yes, -30)], [IsStuck; 4]),
            // OLM is writing the parts of the record, and never did.
            (vec![ReleaseSummary { stuck_from: Some(after(30)), ..row(2, "deployed") }], [GoOn(Some(after(30))); 4]),
            (vec![ReleaseSummary { stuck: Stuck::Yes, ..row(2, "deployed") }], [IsStuck; 4]),
            // In another storage.
            (vec![row(2, "deployed"), pending(Stuck::No, 30)], [GoOn(Some(after(30))); 4]),
            (vec![row(2, "deployed"), pending(Stuck::Yes, -30)], [IsStuck; 4]),
        ] {
            for (goal, wanted) in [
                ("free", free),
                ("open", free),
                ("deployed", deployed),
                ("1.2.0", at_the_version),
                ("v1.3.0", at_another),
            ] {
                assert_eq!(first(goal, rows.clone()), wanted, "{goal} {rows:?}");
            }
        }
    }

    #[test]
    fn old_records_in_another_storage_decide_nothing() {
        let old = |status| ReleaseSummary { since: Some(after(-9_000)), ..row(7, status) };
        for rows in [vec![old("deployed"), row(2, "failed")], vec![row(2, "failed"), old("deployed")]] {
            assert_eq!(first("deployed", rows), Verdict::Failed);
        }
        for rows in [vec![old("failed"), row(2, "deployed")], vec![row(2, "deployed"), old("failed")]] {
            assert_eq!(first("1.2.0", rows), Verdict::Reached);
        }
    }

    #[test]
    fn a_failure_during_the_wait_may_be_followed_by_its_rollback() {
        let goal: Goal = "deployed".parse().unwrap();
        let mut wait = Wait::new(&goal, after(300));
        let mut judge = |row: ReleaseSummary, seconds: i64| wait.judge(&look(vec![row], seconds));
        assert_eq!(judge(row(2, "pending-upgrade"), 0), Verdict::GoOn(None));
        assert_eq!(judge(row(2, "failed"), 10), Verdict::GoOn(Some(after(15))));
        assert_eq!(judge(row(2, "failed"), 14), Verdict::GoOn(Some(after(15))));
        assert_eq!(judge(row(3, "pending-rollback"), 15), Verdict::GoOn(None));
        assert_eq!(judge(row(3, "failed"), 20), Verdict::GoOn(Some(after(25))));
        assert_eq!(judge(row(3, "failed"), 25), Verdict::Failed);
        assert_eq!(judge(row(4, "deployed"), 26), Verdict::Reached);
    }

    #[test]
    fn a_release_is_not_free_between_a_failure_and_its_rollback() {
        let mut wait = Wait::new(&Goal::Free, after(300));
        assert_eq!(wait.judge(&look(vec![row(2, "pending-upgrade")], 0)), Verdict::GoOn(None));
        assert_eq!(wait.judge(&look(vec![row(2, "failed")], 1)), Verdict::GoOn(Some(after(6))));
        assert_eq!(wait.judge(&look(vec![row(2, "failed")], 6)), Verdict::Reached);
    }

    #[test]
    fn a_freeze_is_waited_out_if_it_ends_in_time() {
        let frozen = |until: Option<i64>, rows: Vec<ReleaseSummary>| {
            let freeze = FreezeInForce {
                name: "sale".to_owned(),
                reason: "the sale".to_owned(),
                until: until.map(after),
                sentence: String::new(),
            };
            Wait::new(&Goal::Open, after(300)).judge(&Look { rows, freeze: Some(freeze), now: now() })
        };
        let deployed = || vec![row(2, "deployed")];
        assert_eq!(frozen(Some(300), deployed()), Verdict::GoOn(Some(after(300))));
        assert_eq!(frozen(Some(301), deployed()), Verdict::Frozen);
        assert_eq!(frozen(None, deployed()), Verdict::Frozen);
        assert_eq!(frozen(Some(60), Vec::new()), Verdict::GoOn(Some(after(60))));
        // A running operation continues, but no operation starts in time.
        assert_eq!(frozen(Some(60), vec![pending(Stuck::No, 30)]), Verdict::GoOn(Some(after(30))));
        assert_eq!(frozen(Some(301), vec![pending(Stuck::No, 30)]), Verdict::Frozen);
        assert_eq!(frozen(Some(301), vec![pending(Stuck::Yes, -30)]), Verdict::Stuck);
    }
}

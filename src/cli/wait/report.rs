//! The result of a wait, for people and for programs.

use std::time::Duration;

use interlock_engine::release::ReleaseRef;
use interlock_engine::rules::wording::span;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::cli::exit_status::ExitStatus;
use crate::cli::table::printable;
use crate::inspect::diagnosis::{Stuck, out_of_freeze};
use crate::inspect::status::ReleaseSummary;
use crate::inspect::wait::{FreezeInForce, Goal, Look, Verdict};

/// The result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    Reached,
    Stuck,
    Failed,
    TimedOut,
    Frozen,
}

/// The report of a wait.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WaitReport {
    time: Timestamp,
    namespace: String,
    release: String,
    until: String,
    pub(super) outcome: Outcome,
    /// One sentence.
    why: String,
    /// The next step. `None` if there is nothing to do.
    next: Option<String>,
    waited_seconds: u64,
    /// The freeze that stops the user.
    freeze: Option<FreezeInForce>,
    /// As in the output of `interlock status`.
    releases: Vec<ReleaseSummary>,
}

impl Outcome {
    /// The result of a wait, or the time of the next observation.
    pub(super) fn of(verdict: Verdict) -> Result<Self, Option<Timestamp>> {
        match verdict {
            Verdict::Reached => Ok(Self::Reached),
            Verdict::Stuck => Ok(Self::Stuck),
            Verdict::Failed => Ok(Self::Failed),
            Verdict::Frozen => Ok(Self::Frozen),
            Verdict::GoOn(again) => Err(again),
        }
    }

    pub(super) fn exit_status(self) -> ExitStatus {
        match self {
            Self::Reached => ExitStatus::Success,
            Self::Stuck | Self::Failed => ExitStatus::Findings,
            Self::TimedOut => ExitStatus::TimedOut,
            Self::Frozen => ExitStatus::Frozen,
        }
    }
}

impl WaitReport {
    pub(super) fn new(outcome: Outcome, goal: &Goal, release: &ReleaseRef, look: Look, waited: Duration) -> Self {
        let row = look.rows.iter().find(|row| row.stuck == Stuck::Yes).or(look.newest());
        let next = match (outcome, &look.freeze) {
            (Outcome::Frozen, Some(freeze)) => Some(out_of_freeze(release, freeze, look.now).to_string()),
            _ => row.and_then(|row| row.next.clone()),
        };
        let state = state(row, look.now);
        let not_reached = || not_yet(goal, release, &look);
        let why = match outcome {
            Outcome::Reached => format!("{release} is {}: {state}", goal.reached()),
            Outcome::Stuck => format!("{release} is stuck: {state}"),
            Outcome::Failed => format!("no operation is in flight, and {}", not_reached()),
            Outcome::TimedOut => {
                let waited = SignedDuration::try_from(waited).unwrap_or(SignedDuration::MAX);
                format!("timed out after {}: {}", span(waited), not_reached())
            }
            Outcome::Frozen => not_reached(),
        };
        let ReleaseRef { namespace, name } = release.clone();
        Self {
            time: look.now,
            namespace,
            release: name,
            until: goal.to_string(),
            outcome,
            why,
            next,
            waited_seconds: waited.as_secs(),
            freeze: look.freeze,
            releases: look.rows,
        }
    }

    /// One line, and one line with the next step.
    pub(super) fn text(&self) -> String {
        let next = self.next.as_deref().map(|next| format!("Next: {}\n", printable(next))).unwrap_or_default();
        format!("{}\n{next}", printable(&self.why))
    }
}

/// The line of progress.
pub(super) fn progress(goal: &Goal, release: &ReleaseRef, look: &Look) -> String {
    printable(&not_yet(goal, release, look))
}

/// `shop/web is not free: pending-upgrade, revision 2, held by alice for 20 s`
fn not_yet(goal: &Goal, release: &ReleaseRef, look: &Look) -> String {
    let is_free = !look.rows.iter().any(ReleaseSummary::is_in_flight);
    let freeze = look.freeze.as_ref().map(|freeze| freeze.sentence.clone());
    let state = freeze.filter(|_| is_free).unwrap_or_else(|| state(look.newest(), look.now));
    format!("{release} is not {}: {state}", goal.reached())
}

fn state(row: Option<&ReleaseSummary>, now: Timestamp) -> String {
    let Some(row) = row else { return "there is no record of it".to_owned() };
    let chart = row.chart.as_deref().map(|chart| format!(", {chart}")).unwrap_or_default();
    let held = row.holder.as_deref().filter(|_| row.is_in_flight()).map(|holder| format!(", held by {holder}"));
    let since =
        row.since.filter(|_| row.is_in_flight()).map(|since| format!(" for {}", span(now.duration_since(since))));
    let wrong = row.problems.first().filter(|_| row.stuck == Stuck::Yes && !row.is_in_flight());
    let wrong = wrong.map(|problem| format!(". {}", problem.message.trim_end_matches('.')));
    let [held, since, wrong] = [held, since, wrong].map(Option::unwrap_or_default);
    format!("{}, revision {}{chart}{held}{since}{wrong}", row.status, row.revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(status: &'static str, stuck: Stuck, next: Option<&str>) -> ReleaseSummary {
        ReleaseSummary {
            since: "2026-11-21T09:50:00Z".parse().ok(),
            holder: Some("ali\u{1b}[2Jce".to_owned()),
            chart: Some("demo-1.2.0".to_owned()),
            stuck,
            next: next.map(str::to_owned),
            ..ReleaseSummary::of_web(status)
        }
    }

    fn report(outcome: Outcome, goal: &str, rows: Vec<ReleaseSummary>, freeze: Option<FreezeInForce>) -> WaitReport {
        let look = Look { rows, freeze, now: "2026-11-21T10:00:00Z".parse().unwrap() };
        let goal = goal.parse().unwrap();
        WaitReport::new(outcome, &goal, &ReleaseRef::new("shop", "web"), look, Duration::from_secs(300))
    }

    fn freeze() -> Option<FreezeInForce> {
        Some(FreezeInForce {
            name: "sale".to_owned(),
            reason: "the sale".to_owned(),
            until: "2026-11-22T10:00:00Z".parse().ok(),
            sentence: "the freeze sale is in force until 2026-11-22 10:00 UTC (the sale)".to_owned(),
        })
    }

    #[test]
    fn each_outcome_has_one_sentence_and_the_next_step() {
        use Outcome::{Failed, Frozen, Reached, Stuck as IsStuck, TimedOut};
        let deployed = || vec![row("deployed", Stuck::No, None)];
        let pending = |stuck, next| vec![row("pending-upgrade", stuck, Some(next))];
        let held = "pending-upgrade, revision 2, demo-1.2.0, held by ali\u{fffd}[2Jce for 10 min";
        for (report, wanted) in [
            (report(Reached, "free", Vec::new(), None), "shop/web is free: there is no record of it\n".to_owned()),
            (report(Reached, "1.2.0", deployed(), None), "shop/web is deployed at 1.2.0: deployed, revision 2, demo-1.2.0\n".to_owned()),
            (
                report(IsStuck, "free", pending(Stuck::Yes, "interlock unstick shop/web"), None),
                format!("shop/web is stuck: {held}\nNext: interlock unstick shop/web\n"),
            ),
            (
                report(Failed, "deployed", vec![row("failed", Stuck::No, Some("helm rollback web 1 -n shop"))], None),
                "no operation is in flight, and shop/web is not deployed: failed, revision 2, demo-1.2.0\nNext: helm rollback web 1 -n shop\n"
                    .to_owned(),
            ),
            (
                report(TimedOut, "v1.3.0", deployed(), None),
                "timed out after 5 min: shop/web is not deployed at v1.3.0: deployed, revision 2, demo-1.2.0\n".to_owned(),
            ),
            (
                report(TimedOut, "open", pending(Stuck::No, "wait until 10:14 UTC"), freeze()),
                format!("timed out after 5 min: shop/web is not open: {held}\nNext: wait until 10:14 UTC\n"),
            ),
            (
                report(Frozen, "open", deployed(), freeze()),
                "shop/web is not open: the freeze sale is in force until 2026-11-22 10:00 UTC (the sale)\nNext: wait until \
                 2026-11-22 10:00 UTC\n"
                    .to_owned(),
            ),
        ] {
            assert_eq!(report.text(), wanted);
        }
    }

    #[test]
    fn the_output_for_programs_has_the_release_as_in_status() {
        let json =
            serde_json::to_value(report(Outcome::TimedOut, "open", vec![row("failed", Stuck::No, None)], freeze()));
        let json = json.unwrap();
        assert_eq!((&json["outcome"], &json["until"]), (&"timed-out".into(), &"open".into()));
        assert_eq!((&json["namespace"], &json["release"]), (&"shop".into(), &"web".into()));
        assert_eq!(json["freeze"]["until"], "2026-11-22T10:00:00Z");
        assert_eq!((&json["releases"][0]["status"], &json["waitedSeconds"]), (&"failed".into(), &300.into()));
    }
}

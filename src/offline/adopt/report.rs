//! The answer to *whom would Interlock refuse?*, for programs, text and the page.

use interlock_engine::rule::RuleId;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::class::Class;
use super::rollout::NextStep;
use super::seen::{Names, Times};

/// How long a rule must have refused no honest work. A week has every weekday.
const PROBATION: SignedDuration = SignedDuration::from_hours(7 * 24);

/// What a log says about the introduction of a policy.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdoptReport {
    /// The times of the first and the last judged request.
    pub(crate) first: Option<Timestamp>,
    pub(crate) last: Option<Timestamp>,
    pub(crate) reviews: usize,
    pub(crate) accounts: Vec<AccountReport>,
    /// The objects that apply others without a release.
    pub(crate) owners: Vec<OwnerReport>,
    pub(crate) rules: Vec<RuleReport>,
    /// What Interlock would have stopped.
    pub(crate) incidents: Vec<Finding>,
    /// Honest work that a line of the policy opens.
    pub(crate) disturbed: Vec<Finding>,
    /// What people must decide.
    pub(crate) decisions: Vec<Finding>,
    /// The policy that follows; `None` without a line that differs, or if cluster.yaml has a notation that is not changed.
    pub(crate) policy: Option<String>,
    /// With a policy of one's own: what to change next.
    pub(crate) next: Option<NextStep>,
    /// Writes and acts that are not listed, because there were too many.
    pub(crate) not_listed: usize,
}

/// An account, or all sessions of a pipeline.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AccountReport {
    pub(crate) account: String,
    pub(crate) class: Class,
    /// What shows that it is that.
    pub(crate) why: String,
    /// The number of user names.
    pub(crate) names: usize,
    #[serde(flatten)]
    pub(crate) times: Times,
    /// `UPDATE deployments.apps`, with the number, the most frequent first.
    pub(crate) writes: Vec<(String, usize)>,
    /// Operations on releases that it started.
    pub(crate) operations: usize,
    pub(crate) releases: Names,
    pub(crate) namespaces: Names,
}

/// An object that applies others without a release, and has no records that show its operations.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OwnerReport {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The most objects that its status listed.
    pub(crate) objects: usize,
    /// The operations that started.
    pub(crate) operations: usize,
}

impl OwnerReport {
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.kind, &self.namespace, &self.name) == (&other.kind, &other.namespace, &other.name)
    }
}

/// What a rule would have refused.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuleReport {
    pub(crate) rule: &'static str,
    #[serde(skip)]
    pub(crate) id: RuleId,
    pub(crate) what: &'static str,
    pub(crate) why: &'static str,
    /// Refused, and an incident.
    pub(crate) caught: usize,
    /// Refused, and honest.
    pub(crate) disturbed: usize,
    /// Refused, and to be decided.
    pub(crate) to_decide: usize,
    /// Refused, because the input lacks what the rule needs.
    pub(crate) unknown: usize,
    /// Warned of or recorded, and not refused.
    pub(crate) recorded: usize,
    /// When it last refused honest work, or what is to be decided.
    pub(crate) wrongly_refused_last: Option<Timestamp>,
    /// Whether the policy in force, without its cap, has the shipped mode or a stricter one.
    pub(crate) enforced: bool,
    /// The end of the log.
    #[serde(skip)]
    pub(crate) until: Timestamp,
}

impl RuleReport {
    /// Whether the rule has refused no honest work for long enough, or in the whole log.
    pub(crate) fn is_ready(&self) -> bool {
        self.wrongly_refused_last.is_none_or(|last| self.until.duration_since(last) >= PROBATION)
    }

    /// Whether there is anything to say about it.
    pub(crate) fn is_silent(&self) -> bool {
        self.caught + self.disturbed + self.to_decide + self.unknown + self.recorded == 0
    }
}

/// Similar acts of one account.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub(crate) account: String,
    pub(crate) class: Class,
    pub(crate) rules: Vec<&'static str>,
    /// Whether the policy would refuse it, or only record it.
    pub(crate) refused: bool,
    #[serde(flatten)]
    pub(crate) times: Times,
    pub(crate) operation: String,
    pub(crate) resource: String,
    pub(crate) objects: Names,
    /// The release, as NAMESPACE/NAME; empty for acts on objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) release: String,
    /// What was done, and to what, as a sentence.
    pub(crate) story: String,
    /// How the user gets on: the way out of the refusal, the line that opens the work, or the question.
    pub(crate) then: String,
}

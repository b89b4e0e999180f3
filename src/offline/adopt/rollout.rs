//! The way from `cap: audit` to every rule enforced: one rule at a time, once it has refused no honest work for long enough.

use interlock_engine::facts::Actor;
use interlock_engine::policy::Policy;
use interlock_engine::rule::{Mode, RuleId};
use interlock_engine::rules;
use jiff::Timestamp;
use serde::Serialize;

use super::modes::mode_of;
use super::policy_text::PolicyText;
use super::proposal::{Proposal, Written, parsed};
use super::report::RuleReport;
use super::seen::counted;

/// The next change of the policy.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NextStep {
    /// The rule that can be enforced next.
    pub(crate) rule: Option<&'static str>,
    /// Since when the rule has refused no honest work.
    pub(crate) since: Option<Timestamp>,
    /// What to do, as a sentence.
    pub(crate) what: String,
    /// The change of cluster.yaml; empty if there is none, or if it must be made by hand.
    pub(crate) diff: String,
    /// The whole text with the change.
    #[serde(skip)]
    pub(crate) text: Option<String>,
}

impl NextStep {
    fn without_change(what: String) -> Self {
        Self { rule: None, since: None, what, diff: String::new(), text: None }
    }

    fn with(self, changed: Written, is_meant: impl Fn(&Policy) -> bool) -> Self {
        match changed {
            Ok(text) if parsed(&text).is_some_and(|policy| is_meant(&policy)) => {
                Self { diff: text.diff(), text: Some(text.text()), ..self }
            }
            Ok(_) => {
                Self { what: format!("{} Change cluster.yaml by hand: its notation is unusual.", self.what), ..self }
            }
            Err(why) => Self { what: format!("{} Change cluster.yaml by hand: {why}.", self.what), ..self },
        }
    }
}

/// The next step from a policy in force.
pub(super) fn next_step(
    policy: &Policy,
    text: &str,
    proposal: &Proposal,
    rules: &[RuleReport],
    start: Timestamp,
) -> NextStep {
    if !proposal.is_empty() {
        let what =
            format!("Add {} for honest work that the policy in force refuses or records.", lines(proposal.len()));
        return NextStep::without_change(what).with(proposal.onto(PolicyText::of(text)), |_| true);
    }
    let open: Vec<_> = rules.iter().filter(|rule| is_loosened(policy, rule.id)).collect();
    if open.is_empty() {
        return NextStep::without_change(
            "Every rule has its shipped mode or a stricter one. There is nothing left to enforce.".to_owned(),
        );
    }
    let mut ready: Vec<_> = open.iter().copied().filter(|rule| rule.is_ready()).collect();
    ready.sort_by_key(|rule| std::cmp::Reverse((rule.id.specification().mode, rule.caught)));
    let Some(next) = ready.first() else {
        let what = "No rule can be enforced yet: each of them still refuses acts to decide about.".to_owned();
        return NextStep::without_change(what);
    };
    let since = next.wrongly_refused_last.unwrap_or(start);
    let step = NextStep {
        rule: Some(next.rule),
        since: Some(since),
        what: format!(
            "Enforce {}: since {} it would have refused no honest work, and stopped {}.",
            next.rule,
            since.strftime("%Y-%m-%d %H:%M"),
            counted(next.caught, "act")
        ),
        diff: String::new(),
        text: None,
    };
    step.with(enforcing(policy, text, next.id), |changed| {
        let is_enforced = !is_loosened(changed, next.id);
        changed.cap == Mode::Enforce
            && is_enforced
            && open.iter().all(|rule| rule.id == next.id || is_loosened(changed, rule.id))
    })
}

fn lines(count: usize) -> String {
    if count == 1 { "a line".to_owned() } else { format!("{count} lines") }
}

/// The text in which one more rule has its shipped mode. Without the cap, the others are stated to be audited.
fn enforcing(policy: &Policy, text: &str, rule: RuleId) -> Written {
    let mut text = PolicyText::of(text);
    let mut uncapped = policy.clone();
    uncapped.cap = Mode::Enforce;
    if policy.is_capped() {
        text.remove("cap");
        for other in rules::all().filter(|other| *other != rule && ordinary_mode(&uncapped, *other) > Mode::Audit) {
            text.set_mode(other.as_str(), Some("audit"))?;
        }
    }
    if ordinary_mode(&uncapped, rule) < rule.specification().mode {
        text.set_mode(rule.as_str(), None)?;
    }
    Ok(text)
}

/// Whether a rule has a mode below the shipped one for an ordinary person.
pub(super) fn is_loosened(policy: &Policy, rule: RuleId) -> bool {
    ordinary_mode(policy, rule) < rule.specification().mode
}

/// The mode of a rule for an ordinary person.
fn ordinary_mode(policy: &Policy, rule: RuleId) -> Mode {
    mode_of(policy, rule, Actor::named("somebody", &[]))
}

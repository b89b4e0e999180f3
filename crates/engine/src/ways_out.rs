//! What a refused user can do, as data: programs follow the steps, and one renderer prints them.

mod sentences;

use std::mem::take;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::text::{into_printable, is_printable};

/// The longest text or command, in bytes. The longest ones are 300 bytes and three names.
const MAX_TEXT_BYTES: usize = 1024;

/// The ways out of a refusal, and the notes between them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WaysOut(pub Vec<Way>);

/// Steps that lead out of a refusal, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Way {
    /// When or for what the way is, for example `to remove the release`. Consecutive ways with equal conditions are alternatives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// At least one.
    pub steps: Vec<Step>,
}

/// One step of a way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    pub kind: StepKind,
    /// What to do, as the middle of a sentence. `{}` stands for the command.
    pub text: String,
    /// A command in shell syntax. Words in capitals stand for values that the reader must fill in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The end of a wait, or the earliest time of a retry, by the clock of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<Timestamp>,
}

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// A command changes something.
    Run,
    /// A command only shows something.
    Look,
    /// Until the operation in flight ends, or until a time.
    Wait,
    /// The refused request is made again.
    Retry,
    /// The owner of the release starts its next operation.
    NextOperation,
    /// A `ReleaseOverride` is created, and then the refused request is made again.
    Override,
    /// An act that only people can do.
    Act,
    /// Nothing is to be done: sentences before, between or after the ways.
    Note,
}

impl Step {
    pub(crate) fn of(kind: StepKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), command: None, when: None }
    }

    /// Runs a command: `run {}`, `roll back with {}`.
    pub(crate) fn run(text: impl Into<String>, command: String) -> Self {
        Self { command: Some(command), ..Self::of(StepKind::Run, text) }
    }

    pub(crate) fn wait(text: impl Into<String>) -> Self {
        Self::of(StepKind::Wait, text)
    }

    pub(crate) fn retry(text: impl Into<String>) -> Self {
        Self::of(StepKind::Retry, text)
    }

    pub(crate) fn release_override() -> Self {
        Self::of(StepKind::Override, "ask for a ReleaseOverride")
    }
}

/// An act that only people can do, as a sentence or a part of one.
impl From<&str> for Step {
    fn from(act: &str) -> Self {
        Self::of(StepKind::Act, act.trim_end_matches('.'))
    }
}

impl<S: Into<Step>> From<S> for Way {
    fn from(step: S) -> Self {
        Self { condition: None, steps: vec![step.into()] }
    }
}

impl<W: Into<Way>> From<W> for WaysOut {
    fn from(way: W) -> Self {
        Self(vec![way.into()])
    }
}

impl Way {
    pub(crate) fn then(mut self, step: impl Into<Step>) -> Self {
        self.steps.push(step.into());
        self
    }
}

impl WaysOut {
    /// The commands that change something, in the order in which they are printed.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        let steps = self.0.iter().flat_map(|way| &way.steps).filter(|step| step.kind == StepKind::Run);
        steps.filter_map(|step| step.command.as_deref())
    }

    /// Adds an alternative to the last way, under the same condition.
    pub(crate) fn or(mut self, way: impl Into<Way>) -> Self {
        let condition = self.0.last().and_then(|last| last.condition.clone());
        self.0.push(Way { condition, ..way.into() });
        self
    }

    /// Adds a way under a condition: `once it counts as stuck`, `to remove the release`.
    pub(crate) fn when(mut self, condition: impl Into<String>, way: impl Into<Way>) -> Self {
        self.0.push(Way { condition: Some(condition.into()), ..way.into() });
        self
    }

    /// Adds the ways of another list.
    pub(crate) fn and(mut self, other: impl Into<Self>) -> Self {
        self.0.extend(other.into().0);
        self
    }

    /// Adds sentences that ask for nothing.
    pub(crate) fn note(self, sentences: impl Into<String>) -> Self {
        self.and(Step::of(StepKind::Note, sentences))
    }

    /// Makes every text printable and bounds its length. A command that this would change is for people: nobody can run it as it is.
    pub(crate) fn make_printable(&mut self) {
        for Way { condition, steps } in &mut self.0 {
            condition.iter_mut().for_each(limit);
            for step in steps {
                if let Some(command) = step.command.take_if(|it| it.len() > MAX_TEXT_BYTES || !is_printable(it)) {
                    *step = Step::of(StepKind::Act, step.text.replace("{}", &format!("`{command}`")));
                }
                limit(&mut step.text);
            }
        }
    }
}

fn limit(text: &mut String) {
    *text = into_printable(take(text), MAX_TEXT_BYTES);
}

/// The ways out of several findings as JSON, `[{"rule": "revision-order", "ways": [...]}]`: as many as fit, in their order. `None` if
/// there are none.
#[must_use]
pub fn to_json<'w>(found: impl Iterator<Item = (&'w str, &'w WaysOut)>, max_bytes: usize) -> Option<String> {
    let found = found.filter(|(_, ways)| !ways.0.is_empty());
    let mut items: Vec<_> = found.map(|(rule, ways)| json!({"rule": rule, "ways": ways}).to_string()).collect();
    while items.iter().map(|item| item.len() + ",".len()).sum::<usize>() >= max_bytes {
        items.pop()?;
    }
    (!items.is_empty()).then(|| format!("[{}]", items.join(",")))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn unstick() -> WaysOut {
        let stuck = Way::from(Step::run("run {}, which checks the workloads", "interlock unstick shop/web".into()));
        let wait = Step { when: Some(Timestamp::UNIX_EPOCH), ..Step::wait("wait until the operation ends") };
        WaysOut::from(wait).when("once it counts as stuck", stuck.then("install it again"))
    }

    #[test]
    fn programs_read_kinds_commands_conditions_and_times() {
        let ways = unstick();
        let wanted = json!([
            {"steps": [{"kind": "wait", "text": "wait until the operation ends", "when": "1970-01-01T00:00:00Z"}]},
            {"condition": "once it counts as stuck", "steps": [
                {"kind": "run", "text": "run {}, which checks the workloads", "command": "interlock unstick shop/web"},
                {"kind": "act", "text": "install it again"},
            ]},
        ]);
        assert_eq!(serde_json::to_value(&ways).unwrap(), wanted);
        assert_eq!(ways.commands().collect::<Vec<_>>(), ["interlock unstick shop/web"]);
        let listed = to_json([("freeze", &WaysOut::default()), ("revision-order", &ways)].into_iter(), 1024);
        let listed: Value = serde_json::from_str(&listed.unwrap()).unwrap();
        assert_eq!(listed, json!([{"rule": "revision-order", "ways": wanted}]));
    }

    #[test]
    fn a_list_is_never_cut_within_a_finding() {
        let ways = unstick();
        let list = |many, max| to_json(["a", "b", "c"].into_iter().take(many).map(|rule| (rule, &ways)), max);
        let sizes = [1, 2, 3].map(|many| list(many, 10_000).unwrap().len());
        for max in 0..=sizes[2] {
            let items = list(3, max).map_or(0, |text| {
                assert!(text.len() <= max, "{text}");
                serde_json::from_str::<Vec<Value>>(&text).unwrap().len()
            });
            assert_eq!(items, sizes.iter().filter(|size| **size <= max).count(), "{max}");
        }
    }

    #[test]
    fn a_command_that_cannot_be_shown_as_it_is_is_for_people() {
        let long = format!("kubectl annotate {}", "x".repeat(MAX_TEXT_BYTES));
        for command in [long, "helm uninstall 'a\u{202e}b'".to_owned()] {
            let mut ways = WaysOut::from(Step::run("run {}", command));
            ways.make_printable();
            let step = &ways.0[0].steps[0];
            assert_eq!((step.kind, &step.command), (StepKind::Act, &None));
            assert!(ways.to_string().starts_with("Run `") && is_printable(&ways.to_string()), "{ways}");
        }
    }
}

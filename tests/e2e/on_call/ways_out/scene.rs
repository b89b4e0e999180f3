//! A refused request, and everything that its way out can ask for.

use std::time::Duration;

use interlock_engine::ways_out::StepKind;
use serde_json::Value;

use super::plane;
use super::steps::Step;
use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, Identity};
use crate::harness::eventually::within;
use crate::harness::namespace::Namespace;
use crate::harness::process::Output;
use crate::harness::records;
use crate::harness::shell::shell;

/// Longer than an operation takes until it counts as stuck, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

pub(super) type Act = Box<dyn Fn(&Scene) -> Output>;
pub(super) type End = Box<dyn Fn(&Scene) -> Result<(), String>>;

/// A value for the rest of the test run: everything that a scene can be asked for refers to its place.
pub(super) fn kept<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// A namespace of a scene's own.
#[track_caller]
pub(super) fn place(test: &str) -> &'static Namespace<'static> {
    kept(Namespace::new(plane(), test))
}

/// The place of a refusal.
pub(super) struct Scene {
    /// What was printed.
    pub(super) message: String,
    /// Who was refused, and runs the printed commands.
    pub(super) who: Identity,
    pub(super) namespace: &'static Namespace<'static>,
    /// Stands for `CHART` in a command.
    pub(super) chart: Chart,
    /// Ends the operation in flight.
    pub(super) wait: Box<dyn Fn()>,
    /// Makes the workloads healthy.
    pub(super) heal: Box<dyn Fn(&Scene)>,
    /// Makes the refused request again.
    pub(super) retry: Act,
    /// What the owner of the release does next.
    pub(super) next: Act,
    /// Parts of the texts and commands that only this case has, and what is done about each.
    pub(super) acts: Vec<(&'static str, Act)>,
    /// Whether it ended in a deployed release or in none, and if not, what there is.
    pub(super) end: End,
}

impl Scene {
    /// A refusal of a request about the release `demo` of this namespace. Its owner upgrades it with helm.
    pub(super) fn new(
        namespace: &'static Namespace<'static>,
        chart: Chart,
        person: &'static str,
        refused: Output,
    ) -> Self {
        Self::message(namespace, chart, person, denied(refused))
    }

    fn message(namespace: &'static Namespace<'static>, chart: Chart, person: &'static str, message: String) -> Self {
        let who = namespace.plane().person(person);
        Self {
            message,
            who,
            namespace,
            chart,
            wait: Box::new(|| panic!("there is no operation to wait for")),
            heal: Box::new(|scene| {
                scene.namespace.ready_pods();
                scene.namespace.await_available("demo");
            }),
            retry: Box::new(|_| panic!("nothing is to be tried again")),
            next: Box::new(|scene| scene.shell("helm upgrade demo CHART -n NAMESPACE --set=note=next")),
            acts: Vec::new(),
            end: Box::new(|scene| scene.release_ended(Driver::Secret)),
        }
    }

    /// The same for a request that was admitted with a warning.
    pub(super) fn advised(namespace: &'static Namespace<'static>, chart: Chart, advised: &Output) -> Self {
        Self::message(namespace, chart, "bob", advised.stderr.clone())
    }

    pub(super) fn retry(mut self, act: impl Fn(&Scene) -> Output + 'static) -> Self {
        self.retry = Box::new(act);
        self
    }

    pub(super) fn next(mut self, act: impl Fn(&Scene) -> Output + 'static) -> Self {
        self.next = Box::new(act);
        self
    }

    pub(super) fn heal(mut self, heal: impl Fn(&Scene) + 'static) -> Self {
        self.heal = Box::new(heal);
        self
    }

    pub(super) fn wait(mut self, end: impl Fn() + 'static) -> Self {
        self.wait = Box::new(end);
        self
    }

    pub(super) fn act(mut self, part: &'static str, act: impl Fn(&Scene) -> Output + 'static) -> Self {
        self.acts.push((part, Box::new(act)));
        self
    }

    pub(super) fn end(mut self, end: impl Fn(&Scene) -> Result<(), String> + 'static) -> Self {
        self.end = Box::new(end);
        self
    }

    /// Does what a step asks for.
    pub(super) fn take(&self, step: &Step) -> Result<(), String> {
        let text = step.command.as_ref().unwrap_or(&step.text);
        if let Some((_, act)) = self.acts.iter().find(|(part, _)| text.contains(part)) {
            return act(self).into_result().map(|_| ());
        }
        let done = match (step.kind, &step.command) {
            (StepKind::Run | StepKind::Look, Some(command)) => return self.run(command),
            (StepKind::Run | StepKind::Look | StepKind::Act | StepKind::Note, _) => {
                return Err(format!("nothing does {text:?}"));
            }
            (StepKind::Retry, _) => return self.try_again(),
            (StepKind::Override, _) => {
                let (_, command) =
                    self.message.split_once("In an emergency: ").ok_or("it names no break-glass command")?;
                self.run(command.lines().next().unwrap_or_default())?;
                return self.try_again();
            }
            (StepKind::Wait, _) => {
                // What follows a wait until a time is tried until it passes.
                if step.when.is_none() {
                    (self.wait)();
                }
                return Ok(());
            }
            (StepKind::NextOperation, _) => (self.next)(self),
        };
        done.into_result().map(|_| ())
    }

    /// Runs a printed command until it passes: what it waits for may take its time.
    fn run(&self, command: &str) -> Result<(), String> {
        if command.starts_with("interlock unstick ") {
            return within(PATIENCE, "the record goes, or the next step is taken", || self.unstick(command));
        }
        within(PATIENCE, "the printed command passes", || self.shell(command).into_result()).map(|_| ())
    }

    /// Runs the command, or what it names if the record may not go. There is no terminal on which it could ask.
    fn unstick(&self, command: &str) -> Result<(), String> {
        let tried = self.shell(&format!("{command} --yes"));
        let next = tried.stdout.lines().find_map(|line| line.strip_prefix("Next: ")).unwrap_or_default();
        match next.split(' ').next() {
            _ if tried.success() => return Ok(()),
            Some("helm") => return self.shell(next).into_result().map(|_| ()),
            // A hook is waited for.
            Some("kubectl") => (self.heal)(self),
            _ => {}
        }
        Err(tried.to_string())
    }

    fn try_again(&self) -> Result<(), String> {
        within(PATIENCE, "what was refused passes", || (self.retry)(self).into_result()).map(|_| ())
    }

    /// Runs a command line as a person would who has pasted it into a shell, with the words in capitals filled in.
    #[track_caller]
    pub(super) fn shell(&self, line: &str) -> Output {
        let line = line.replace("CHART", self.chart.path()).replace("NAMESPACE", self.namespace.name());
        let line = line.replace("\"...\"", "\"as the refusal says\"");
        shell(self.namespace.plane(), &self.who, &line, PATIENCE)
    }

    /// One record of `demo` is deployed and no operation is in flight, or nothing of it is left.
    pub(super) fn release_ended(&self, driver: Driver) -> Result<(), String> {
        within(PATIENCE, "one deployed release, or none", || {
            let records = self.namespace.records(driver, "demo");
            let gone = records.is_empty() && self.namespace.objects_of_demo().is_empty();
            let in_flight = records.last().is_some_and(|newest| is_in_flight(&newest.body_status));
            if gone || (records::deployed(&records) == 1 && !in_flight) {
                return Ok(());
            }
            Err(format!("{}; {:?}", records::summary(&records), self.namespace.objects_of_demo()))
        })
    }
}

pub(super) fn is_in_flight(status: &str) -> bool {
    status.starts_with("pending-") || status == "uninstalling"
}

/// The text of a refusal.
#[track_caller]
pub(super) fn denied(refused: Output) -> String {
    let refused = refused.expect_failure(&[]);
    // A controller reports as JSON.
    let reported = serde_json::from_str::<Value>(&refused.stdout).unwrap_or_default();
    let reported = reported["actions"].as_array().into_iter().flatten().filter_map(|action| action["error"].as_str());
    reported.chain([refused.stderr.as_str()]).collect::<Vec<_>>().join("\n")
}

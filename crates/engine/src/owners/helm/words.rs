//! Helm's terms and commands.

use crate::owners::vocabulary::{OwnerWords, Vocabulary};
use crate::release::{Revision, Status, Storage};
use crate::text::command::command;
use crate::ways_out::{Step, StepKind, WaysOut};

pub(in crate::owners) static VOCABULARY: Vocabulary = Vocabulary {
    name: super::NAME,
    client: "helm",
    has_commands: true,
    newer_operation: "rollback",
    roll_back: "roll back",
    change: |words| Step::run("change the release with {}", upgrade_command(words, None)).into(),
    start_anew,
    upgrade_instead,
    go_forward: |_| "upgrade to a version that fixes the release instead".into(),
    look: |words| command_of(words, "history", &[]),
    remove_command: |words| command_of(words, "uninstall", &[]),
    run_again: |status| format!("run the {} again", operation(status)),
    finish: |_, chart: &str| Step::of(StepKind::Act, format!("upgrade to {chart} again")),
};

/// The command that upgrades a release, to a specific version of its chart if one is required.
pub(in crate::owners) fn upgrade_command(words: &OwnerWords<'_>, version: Option<&str>) -> String {
    command_of(words, "upgrade", &chart_arguments(version))
}

/// The same, with exactly the values that a command prints. Without values, helm takes those of the deployed revision.
pub(in crate::owners) fn upgrade_command_with(words: &OwnerWords<'_>, version: Option<&str>, values: &str) -> String {
    let arguments = [&chart_arguments(version)[..], &["--reset-values", "-f", "-"]].concat();
    format!("{values} | {}", command_of(words, "upgrade", &arguments))
}

fn chart_arguments(version: Option<&str>) -> Vec<&str> {
    let version = version.map(|version| ["--version", version]);
    ["CHART"].into_iter().chain(version.into_iter().flatten()).collect()
}

/// The command that prints the values of a revision.
pub(in crate::owners) fn values_command(words: &OwnerWords<'_>, revision: Revision) -> String {
    command_of(words, "get values", &["--revision", &revision.to_string(), "-o", "yaml"])
}

/// The command that rolls a release back to a revision.
pub(in crate::owners) fn rollback_command(words: &OwnerWords<'_>, to: Revision) -> String {
    command_of(words, "rollback", &[&to.to_string()])
}

fn start_anew(words: &OwnerWords<'_>) -> WaysOut {
    let upgrade = Step::run("run {}", upgrade_command(words, None));
    WaysOut::default()
        .when("to change the release", upgrade)
        .or(Step::run("run {}", command_of(words, "rollback", &[])))
}

fn upgrade_instead(words: &OwnerWords<'_>) -> WaysOut {
    let driver = words.storage.kind().to_lowercase();
    let command = command(&["helm", "upgrade", words.release, "CHART", "-n", words.namespace]);
    Step::run("upgrade it with the driver that has its records: {}", format!("HELM_DRIVER={driver} {command}")).into()
}

/// The operation that a record with this status belongs to, in Helm's terms.
pub(crate) fn operation(status: Status) -> &'static str {
    match status {
        Status::PendingInstall => "install",
        Status::PendingUpgrade => "upgrade",
        Status::PendingRollback => "rollback",
        Status::Uninstalling => "uninstall",
        _ => "operation",
    }
}

/// `helm uninstall web -n shop`, for the driver of the records.
fn command_of(words: &OwnerWords<'_>, subcommand: &str, arguments: &[&str]) -> String {
    let start = ["helm"].into_iter().chain(subcommand.split(' ')).chain([words.release]);
    let all = start.chain(arguments.iter().copied());
    let command = command(&all.chain(["-n", words.namespace]).collect::<Vec<_>>());
    let driver = if words.storage == Storage::ConfigMap { "HELM_DRIVER=configmap " } else { "" };
    format!("{driver}{command}")
}

//! OLM's terms. It has no commands to uninstall, to show a history, or to roll back. The ClusterExtension, which has the name of
//! the release, declares the next step, and OLM retries by itself.

use semver::Version;
use serde_json::json;

use super::version_range::version_of;
use crate::owners::vocabulary::{OwnerWords, Vocabulary};
use crate::text::command::command;
use crate::ways_out::{Step, StepKind, WaysOut};

pub(in crate::owners) static VOCABULARY: Vocabulary = Vocabulary {
    name: super::NAME,
    client: super::NAME,
    has_commands: false,
    newer_operation: "newer operation",
    roll_back: "start another operation of",
    change,
    start_anew: change,
    upgrade_instead: change,
    go_forward: change,
    look: |words| command(&["kubectl", "get", "clusterextension", words.release, "-o", "yaml"]),
    remove_command: |words| command(&["kubectl", "delete", "clusterextension", words.release]),
    run_again: |_| "let OLM try again".to_owned(),
    finish: |words, chart: &str| pin(words.release, version_of(chart, words.release).as_ref()),
};

/// Why nobody has to act after a failure.
pub(in crate::owners) const TRIES_AGAIN: &str = "OLM tries again by itself";

fn change(words: &OwnerWords<'_>) -> WaysOut {
    let change = format!("change the source of ClusterExtension {}", words.release);
    WaysOut::default().when("to change the release", Step::of(StepKind::NextOperation, change))
}

/// Pins a ClusterExtension to a version; with a command if the version is known.
pub(in crate::owners) fn pin(extension: &str, version: Option<&Version>) -> Step {
    version.map_or_else(
        || "pin it: set spec.source.catalog.version of the ClusterExtension to the version that is pending".into(),
        |version| Step::run("pin it: {}", pin_command(extension, version)),
    )
}

/// The command that pins a ClusterExtension to a version.
pub fn pin_command(extension: &str, version: &Version) -> String {
    let patch = json!({"spec": {"source": {"catalog": {"version": version.to_string()}}}});
    command(&["kubectl", "patch", "clusterextension", extension, "--type", "merge", "-p", &patch.to_string()])
}

//! OLM's words. It has no command that uninstalls, shows a history or goes back to an earlier revision: what it does next is said in the
//! ClusterExtension, which has the name of the release, and it tries again by itself.

use semver::Version;
use serde_json::json;

use super::version_range::version_of;
use crate::owners::vocabulary::{OwnerWords, Vocabulary};
use crate::text::command::{command, quoted};

pub(in crate::owners) static VOCABULARY: Vocabulary = Vocabulary {
    name: super::NAME,
    client: super::NAME,
    has_commands: false,
    newer_operation: "newer operation",
    roll_back: "start another operation of",
    or_roll_back: "",
    change,
    start_anew: change,
    upgrade_instead: change,
    go_forward: change,
    look: |words| {
        let get = quoted(&["kubectl", "get", "clusterextension", words.release, "-o", "yaml"]);
        format!("See {get}.")
    },
    remove_command: |words| command(&["kubectl", "delete", "clusterextension", words.release]),
    run_again: |_| "let OLM try again".to_owned(),
    finish: |words, chart: &str| format!("Pin it: {}", pin(words.release, version_of(chart, words.release).as_ref())),
};

/// Why nobody has to do anything after a failure.
pub(in crate::owners) const TRIES_AGAIN: &str = "OLM tries again by itself";

fn change(words: &OwnerWords<'_>) -> String {
    format!("To change the release, change the source of ClusterExtension {}.", words.release)
}

/// The command that pins a ClusterExtension to a version, in a sentence; what to pin, if the version is not known.
pub(in crate::owners) fn pin(extension: &str, version: Option<&Version>) -> String {
    version.map_or_else(
        || "set spec.source.catalog.version of the ClusterExtension to the version that is pending".to_owned(),
        |version| format!("`{}`", pin_command(extension, version)),
    )
}

/// The command that pins a ClusterExtension to a version.
pub fn pin_command(extension: &str, version: &Version) -> String {
    let patch = json!({"spec": {"source": {"catalog": {"version": version.to_string()}}}});
    command(&["kubectl", "patch", "clusterextension", extension, "--type", "merge", "-p", &patch.to_string()])
}

//! The deletion of a protected Kustomization together with its objects, edits that make it delete objects, and the removal of its
//! annotation.

use crate::facts::DeclarationWrite;
use crate::owners::flux;
use crate::owners::kustomize::Kustomization;
use crate::rules::check::{CheckedAll, Step, Way, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::protected_release::declarations::{Applying, of_applying};
use crate::rules::wording::command;

pub(in crate::owners) fn check(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, Kustomization<'_>>,
) -> CheckedAll {
    let Some(before) = written.before.as_ref().filter(|before| !before.status.inventory.entries.is_empty()) else {
        return Ok(Vec::new());
    };
    let (namespace, name, patch) = (written.namespace, &*written.name, r#"{"spec":{"suspend":true}}"#);
    let suspend =
        command(&["kubectl", "patch", "kustomization", name, "-n", namespace, "--type", "merge", "-p", patch]);
    let keep = Way::from(Step::run("suspend it first ({})", suspend)).then(Step::retry("try again"));
    let suspended = WaysOut::default().when("to delete the Kustomization and keep its objects", keep);
    let leaves = written.after.as_ref().and_then(|after| after.leaves_objects_of(before));
    let applied: Vec<_> = before.applied().collect();
    let applying = Applying {
        manager: flux::NAME,
        homes: before.homes(namespace, &applied).collect(),
        is_annotated: before.metadata.is_protected(),
        takes_objects: before.is_deleted_with_its_objects(),
        keep: if leaves.is_some() { WaysOut::default() } else { suspended },
        leaves,
    };
    of_applying(case, written, applying)
}

/// What is known of an object that the deletion of a namespace concerns: the namespace that it deploys to, if it names one, and whether it
/// is annotated.
pub(in crate::owners) fn declared(text: &str) -> Option<(String, bool)> {
    let read = serde_json::from_str::<Kustomization<'_>>(text).ok()?;
    Some((read.spec.target_namespace.to_string(), read.metadata.is_protected()))
}

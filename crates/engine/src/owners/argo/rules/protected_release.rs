//! The deletion of a protected Application together with its objects, edits that make it delete objects, and the removal of its
//! annotation.

use crate::facts::DeclarationWrite;
use crate::owners::argo::{Application, NAME};
use crate::rules::check::{CheckedAll, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::protected_release::declarations::{Applying, of_applying};

pub(in crate::owners) fn check(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, Application<'_>>,
) -> CheckedAll {
    let Some(before) = written.before.as_ref().filter(|before| !before.status.resources.is_empty()) else {
        return Ok(Vec::new());
    };
    let applying = Applying {
        manager: NAME,
        homes: before.homes(written.namespace).collect(),
        is_annotated: before.metadata.is_protected(),
        takes_objects: before.is_deleted_with_its_objects(),
        keep: WaysOut::default(),
        leaves: written.after.as_ref().and_then(|after| after.leaves_objects_of(before)),
    };
    of_applying(case, written, applying)
}

/// What is known of an object that the deletion of a namespace concerns: the namespace that it deploys to, if it names one, and whether it
/// is annotated.
pub(in crate::owners) fn declared(text: &str) -> Option<(String, bool)> {
    let read = serde_json::from_str::<Application<'_>>(text).ok()?;
    Some((read.spec.destination.namespace.to_string(), read.metadata.is_protected()))
}

//! The deletion of a protected Application together with its objects, and the removal of its annotation.

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
        home: before.home(written.namespace),
        is_annotated: before.metadata.is_protected(),
        takes_objects: before.is_deleted_with_its_objects(),
        keep: WaysOut::default(),
    };
    of_applying(case, written, applying)
}

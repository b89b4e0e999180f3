//! The deletion of a protected Application together with its objects, and the removal of its annotation.

use crate::facts::DeclarationWrite;
use crate::owners::argo::{Application, NAME};
use crate::release::{ReleaseRef, Storage};
use crate::rules::check::{CheckedAll, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::protected_release::declarations::{
    Removal, annotation_removed, deletes_objects, protection, removal,
};
use crate::rules::protected_release::protection::{ReleaseAtHome, refusal};

pub(in crate::owners) fn check(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, Application<'_>>,
) -> CheckedAll {
    let (Some(before), Some(removal)) = (&written.before, removal(case, written)) else {
        return Ok(Vec::new());
    };
    if removal == Removal::OfObject && !before.is_deleted_with_its_objects() || before.status.resources.is_empty() {
        return Ok(Vec::new());
    }
    let release = ReleaseRef::new(written.namespace, &*written.name);
    let at_home = ReleaseAtHome::new(Storage::Index, release, Some(before.home(written.namespace)));
    let Some(protection) = protection(case, &at_home, before.metadata.is_protected())? else {
        return Ok(Vec::new());
    };
    Ok(vec![match removal {
        Removal::OfAnnotation => annotation_removed(case, at_home.release),
        Removal::OfObject => {
            let sentence = deletes_objects(case, NAME, &protection);
            refusal(case.policy, at_home.release, &protection, sentence, WaysOut::default())
        }
    }])
}

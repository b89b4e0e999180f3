//! The deletion of a protected Kustomization together with its objects, and the removal of its annotation.

use crate::facts::DeclarationWrite;
use crate::owners::flux;
use crate::owners::kustomize::Kustomization;
use crate::release::{ReleaseRef, Storage};
use crate::rules::check::{CheckedAll, Step, Way, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::protected_release::declarations::{
    Removal, annotation_removed, deletes_objects, protection, removal,
};
use crate::rules::protected_release::protection::{ReleaseAtHome, refusal};
use crate::rules::wording::command;

pub(in crate::owners) fn check(
    case: &DeclarationCase<'_>,
    written: &DeclarationWrite<'_, Kustomization<'_>>,
) -> CheckedAll {
    let (Some(before), Some(removal)) = (&written.before, removal(case, written)) else {
        return Ok(Vec::new());
    };
    if removal == Removal::OfObject && !before.is_deleted_with_its_objects()
        || before.status.inventory.entries.is_empty()
    {
        return Ok(Vec::new());
    }
    let (namespace, name) = (written.namespace, &*written.name);
    let at_home = ReleaseAtHome::new(Storage::Index, ReleaseRef::new(namespace, name), Some(before.home(namespace)));
    let Some(protection) = protection(case, &at_home, before.metadata.is_protected())? else {
        return Ok(Vec::new());
    };
    Ok(vec![match removal {
        Removal::OfAnnotation => annotation_removed(case, at_home.release),
        Removal::OfObject => {
            let patch = r#"{"spec":{"suspend":true}}"#;
            let suspend =
                command(&["kubectl", "patch", "kustomization", name, "-n", namespace, "--type", "merge", "-p", patch]);
            let keep = Way::from(Step::run("suspend it first ({})", suspend)).then(Step::retry("try again"));
            let keep = WaysOut::default().when("to delete the Kustomization and keep its objects", keep);
            let sentence = deletes_objects(case, flux::NAME, &protection);
            refusal(case.policy, at_home.release, &protection, sentence, keep)
        }
    }])
}

//! Findings about a release: the problems of its diagnosis, and records in flight below a newer revision.

use interlock_engine::owners::OwnerWords;
use interlock_engine::release::{History, ReleaseRef, Storage};
use interlock_engine::rules::wording::{MAX_ENUMERATED, enumerated};

use super::finding::Finding;
use super::finding_kind::FindingKind;
use crate::inspect::diagnosis::{Diagnosis, NextStep};

/// The findings for a release. Each names the one next step.
pub(super) fn findings(
    release: &ReleaseRef,
    storage: Storage,
    history: &History,
    diagnosis: Diagnosis,
) -> Vec<Finding> {
    let way_out = diagnosis.next.as_ref().map_or_else(String::new, NextStep::sentence);
    let found = diagnosis.problems.into_iter().map(|problem| {
        Finding::of_record(problem.kind, (release, storage), &problem.record, problem.message, format!("{way_out}."))
    });
    found.chain(buried(release, storage, history)).collect()
}

fn buried(release: &ReleaseRef, storage: Storage, history: &History) -> Option<Finding> {
    let newest = history.newest()?;
    let mut buried: Vec<_> = history.below(newest.revision).filter(|entry| entry.status.is_in_flight()).collect();
    buried.reverse();
    let entry = buried.first()?;
    let named = buried.iter().map(|entry| format!("{} ({})", entry.revision, entry.status));
    let verb = if buried.len() == 1 { "Revision" } else { "Revisions" };
    let named = enumerated(named, MAX_ENUMERATED);
    let message = format!("{verb} {named} never finished, and revision {} is newer.", newest.revision);
    let words = OwnerWords { storage, namespace: &release.namespace, release: &release.name };
    let way_out = format!("Nothing to do: {} prunes old revisions.", words.client());
    Some(Finding::of_record(FindingKind::BuriedOperation, (release, storage), &entry.name, message, way_out))
}

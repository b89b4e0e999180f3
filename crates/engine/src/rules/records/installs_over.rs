//! An install over something that is installed already, which the rule `unusual-create` refuses.

use std::collections::HashSet;

use super::case::RecordCase;
use crate::effort::Effort;
use crate::evidence::{CandidateRecords, Freshness, StoredBody, question};
use crate::facts::RecordVersion;
use crate::owners::OwnerWords;
use crate::release::manifest::{object_keys, workloads};
use crate::release::{Entry, Record, ReleaseRef, Stamps, Status, Storage};
use crate::rules::check::{Checked, Refusal, WaysOut};
use crate::rules::home::proven_elsewhere;
use crate::rules::undecided::{Undecided, ask};
use crate::rules::wording;

/// The refusal of an install over a deployed release, with its records in either of Helm's storages. An operation on a release
/// without records is an install too, whatever its status: helm upgrades the objects that it finds.
pub(super) fn installs_over(case: &RecordCase<'_>, side: &RecordVersion<'_>) -> Checked {
    let Some(status) = side.status().filter(|status| status.is_pending()) else {
        return Ok(None);
    };
    let over = |entry: &Entry, storage: Storage| {
        let operation = wording::operation(status);
        let sentence = format!(
            "Cannot start the {operation} of {}: revision {} in a {} is deployed.",
            case.subject(),
            entry.revision,
            storage.kind()
        );
        Refusal::new(sentence, OwnerWords { storage, ..case.words() }.upgrade_instead())
    };
    let (storage, newest) = (case.id.storage, case.history()?.newest());
    let is_install = status == Status::PendingInstall || newest.is_none();
    // After a failed revision, `helm install --replace` leaves an older deployed one unchanged.
    if let Some(newest) = newest.filter(|newest| is_install && newest.status == Status::Deployed) {
        return Ok(Some(over(newest, storage)));
    }
    if !is_install {
        return Ok(None);
    }
    let mut left_over = None;
    if let Some((sibling, history)) = case.in_the_other_storage()? {
        let is_gone = history.newest().is_some_and(|newest| newest.status == Status::Uninstalled);
        if let Some(deployed) = history.newest_deployed().filter(|_| !is_gone) {
            if !is_left_over(case, deployed, sibling)? {
                return Ok(Some(over(deployed, sibling)));
            }
            let sentence = format!(
                "Revision {} of {} in a {} is deployed, though none of its workloads exists.",
                deployed.revision,
                case.words().release,
                sibling.kind()
            );
            left_over = Some(Refusal::new(sentence, WaysOut::default().note("It is left over.")).into_advice());
        }
    }
    Ok(over_objects_of_another(case, side)?.or(left_over))
}

/// Whether a record under the other driver is only left over: none of the workloads that it declares exists, and it declares some.
fn is_left_over(case: &RecordCase<'_>, deployed: &Entry, storage: Storage) -> Result<bool, Undecided> {
    let named = declared(case, (storage, &case.id.namespace), deployed, |record, namespace, effort| {
        workloads(&record.manifest(), namespace, effort).unwrap_or_default()
    })?;
    Ok(!named.is_empty() && case.workloads(&named)?.iter().all(Option::is_none))
}

/// The refusal of an install that declares an object of a release with the same name and namespace, whose records are proven and
/// elsewhere. Helm adopts such an object without a question, because its marks name the release that is installed.
///
/// Managers and the account of a HelmRelease may move the records of a release.
fn over_objects_of_another(case: &RecordCase<'_>, side: &RecordVersion<'_>) -> Checked {
    let actor = case.facts.actor;
    let Some(record) = side.record().filter(|record| record.namespace == case.id.namespace) else {
        return Ok(None);
    };
    if case.policy.managers.contains(actor.name) {
        return Ok(None);
    }
    match proven(case, Freshness::Cached) {
        Err(need @ Undecided::Ask(_)) => return Err(need),
        // Where other namespaces are out of reach, nothing in them is proven.
        Err(_) => return Ok(None),
        Ok(found) if found.is_empty() => return Ok(None),
        Ok(_) => {}
    }
    let namespace = &case.id.namespace;
    let Ok(installed) = object_keys(&record.manifest(), namespace, case.facts.effort) else { return Ok(None) };
    let installed: HashSet<_> = installed.into_iter().collect();
    for candidate in proven(case, Freshness::Live)? {
        let Some(deployed) = candidate.history.newest_deployed() else { continue };
        let declared =
            declared(case, (candidate.storage, &candidate.namespace), deployed, |record, namespace, effort| {
                object_keys(&record.manifest(), namespace, effort).unwrap_or_default()
            })?;
        if let Some(object) = declared.into_iter().find(|object| installed.contains(object))
            && !case.driven(&Stamps::held_by(actor.name)).is_driver_account(case.evidence, case.policy, actor)?
        {
            let release = ReleaseRef::new(&candidate.namespace, &case.id.release);
            let sentence = format!(
                "Cannot install {}: {} {namespace}/{} belongs to release {release} (revision {}, deployed), which has the same name and \
                 namespace.",
                case.subject(),
                object.kind,
                object.name,
                deployed.revision
            );
            return Ok(Some(Refusal::new(sentence, WaysOut::from("install under another release name"))));
        }
    }
    Ok(None)
}

/// The proven records elsewhere of a release with this name and namespace.
fn proven<'a>(case: &RecordCase<'a>, freshness: Freshness) -> Result<Vec<&'a CandidateRecords>, Undecided> {
    let (name, target_namespace) = (case.id.release.clone(), case.id.namespace.clone());
    let question = question::Release { name, target_namespace, origin: None, freshness };
    let found = ask(case.evidence, question)?.map_or(&[][..], Vec::as_slice);
    Ok(proven_elsewhere(found, &case.id.namespace, case.policy))
}

/// What a deployed revision declares; nothing if nobody can read it.
fn declared<T>(
    case: &RecordCase<'_>,
    (storage, namespace): (Storage, &str),
    deployed: &Entry,
    read: impl Fn(&Record<'_>, &str, &Effort) -> Vec<T>,
) -> Result<Vec<T>, Undecided> {
    let body = question::Body { storage, namespace: namespace.to_owned(), object: deployed.name.clone() };
    let Some(StoredBody::Json(json)) = ask(case.evidence, body)? else { return Ok(Vec::new()) };
    let Ok(record) = Record::read(json, case.facts.effort) else { return Ok(Vec::new()) };
    Ok(read(&record, &case.id.namespace, case.facts.effort))
}

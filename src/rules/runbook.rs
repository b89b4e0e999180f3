//! The checks of the on-call runbook before the record of a stuck operation may be deleted.
//!
//! Deleting it changes only what Helm believes, not the workload: it makes the revision before look live. So nobody may be
//! at work, there must be such a revision, and what the dead operation has applied must be healthy, or the cause is not
//! Helm's to mend.

use crate::facts::{Body, Side};
use crate::release::manifest::{WorkloadRef, workloads};
use crate::release::record::shortened;
use crate::release::{DecodeError, History, Record, Status};
use crate::world::Workload;

use super::case::Case;
use super::need::Need;
use super::{lease, wording};

/// How far updated and available replicas may lie apart, in percent of the wanted ones: an autoscaler moves meanwhile.
const TOLERANCE_PERCENT: i64 = 10;

/// The checks that do not hold, each with its numbers.
pub(super) fn failed_checks(case: &Case<'_>, side: &Side<'_>, history: &History) -> Result<Vec<String>, Need> {
    let mut failed = told_by_metadata(case, history);
    let told = told_by_age(case, side).and_then(|young| {
        failed.extend(young);
        told_by_the_cluster(case, side)
    });
    match told {
        Ok(more) => failed.extend(more),
        // What failed already is reason enough, and what cannot be read must not undo it.
        Err(Need::Unavailable(why)) if !failed.is_empty() => {
            failed.push(format!("the other checks could not be made ({why})"));
        }
        Err(need) => return Err(need),
    }
    Ok(failed)
}

/// Alone, and over a deployed revision.
fn told_by_metadata(case: &Case<'_>, history: &History) -> Vec<String> {
    let mut failed = Vec::new();
    if case.facts.collection {
        failed.push("it is deleted together with others, name it alone".to_owned());
    }
    let deployed = |revision| history.below(revision).any(|entry| entry.status == Status::Deployed);
    if !case.target.revision.is_some_and(deployed) {
        let why = "no earlier revision is deployed, so nothing would be left to upgrade from: uninstall, or roll back";
        failed.push(why.to_owned());
    }
    failed
}

/// Stale.
fn told_by_age(case: &Case<'_>, side: &Side<'_>) -> Result<Option<String>, Need> {
    let (created, stamps) = (side.stored.metadata.creation_timestamp, side.stamps());
    if case.is_stale(created, stamps.holder())? {
        return Ok(None);
    }
    let age = created.map_or("of unknown age".to_owned(), |created| {
        format!("{} old", wording::span(case.now.duration_since(created)))
    });
    let stale = wording::span(case.stale_after(created, stamps.holder())?);
    let holder = stamps.holder().unwrap_or("an unknown user");
    Ok(Some(format!("the operation of {holder} may be alive, it is {age} and counts as stuck after {stale}")))
}

/// Not leased, pending in its body too, and over healthy workloads.
fn told_by_the_cluster(case: &Case<'_>, side: &Side<'_>) -> Result<Vec<String>, Need> {
    let mut failed = Vec::new();
    if lease::is_held(case)? {
        failed.push("nelm or werf holds a live lease of the release".to_owned());
    }
    let named = with_record(case, side, |record| match record {
        Err(error) => Err(format!("its body does not decode ({error}), so its workloads are unknown")),
        Ok(record) if !record.info.status.parse::<Status>().is_ok_and(Status::is_pending) => {
            Err(format!("its body says {:?}, which is not pending", shortened(&record.info.status)))
        }
        Ok(record) => workloads(&record.manifest(), &record.namespace)
            .map_err(|error| format!("its manifest does not read ({error}), so its workloads are unknown")),
    })?;
    match named {
        Err(why) => failed.push(why),
        Ok(named) if !named.is_empty() => {
            let found = case.workloads(&named)?.iter().map(Option::as_ref);
            failed.extend(named.iter().zip(found).filter_map(|(reference, found)| unhealthy(reference, found)));
        }
        Ok(_) => {}
    }
    Ok(failed)
}

/// Hands on the record that is deleted: from the request, or, where OLM cut it up, from the cluster.
fn with_record<T>(
    case: &Case<'_>,
    side: &Side<'_>,
    read: impl FnOnce(Result<&Record<'_>, DecodeError>) -> T,
) -> Result<T, Need> {
    match &side.body {
        Body::Read(record) => Ok(read(Ok(record))),
        Body::Broken(DecodeError::Chunked) | Body::Unread => {
            let json = case.body(&case.target.object)?;
            match json.map(Record::read) {
                Some(Ok(record)) => Ok(read(Ok(&record))),
                Some(Err(error)) => Ok(read(Err(error))),
                None => Ok(read(Err(DecodeError::Missing))),
            }
        }
        Body::Broken(error) => Ok(read(Err(error.clone()))),
    }
}

fn unhealthy(reference: &WorkloadRef, found: Option<&Workload>) -> Option<String> {
    let WorkloadRef { kind, namespace, name } = reference;
    let ailment = found.map_or_else(|| Some("does not exist".to_owned()), ailment)?;
    Some(format!("{} {namespace}/{name} {ailment}", kind.as_str()))
}

fn ailment(workload: &Workload) -> Option<String> {
    if !workload.observed {
        return Some("has a change that its controller has not seen yet".to_owned());
    }
    let missing = ["Available", "Progressing"].into_iter().find(|condition| {
        // StatefulSets and DaemonSets have no conditions, and their numbers are all there is.
        !workload.conditions.is_empty() && workload.conditions.get(*condition) != Some(&true)
    });
    let Workload { desired, updated, available, .. } = workload;
    if let Some(condition) = missing {
        return Some(format!("is not {condition} ({available} of {desired} available, {updated} updated)"));
    }
    let apart = (updated - available).abs() * 100 > TOLERANCE_PERCENT * desired;
    apart.then(|| format!("has {updated} updated and {available} available of {desired} replicas"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn deployment(desired: i64, updated: i64, available: i64) -> Workload {
        let conditions = BTreeMap::from([("Available".to_owned(), true), ("Progressing".to_owned(), true)]);
        Workload { desired, updated, available, observed: true, conditions }
    }

    #[test]
    fn updated_and_available_may_differ_by_a_tenth() {
        assert_eq!(ailment(&deployment(10, 10, 9)), None);
        assert_eq!(ailment(&deployment(10, 9, 10)), None);
        assert!(ailment(&deployment(10, 10, 8)).is_some_and(|text| text.contains("10 updated and 8 available of 10")));
        assert!(ailment(&deployment(9, 9, 8)).is_some());
        assert_eq!(ailment(&deployment(0, 0, 0)), None);
    }

    #[test]
    fn conditions_count_where_there_are_any() {
        let mut workload = deployment(1, 1, 1);
        workload.conditions.insert("Progressing".to_owned(), false);
        assert!(ailment(&workload).is_some_and(|text| text.contains("not Progressing")));
        workload.conditions.clear();
        assert_eq!(ailment(&workload), None);
    }

    #[test]
    fn an_unseen_change_is_an_ailment() {
        let workload = Workload { observed: false, ..deployment(1, 1, 1) };
        assert!(ailment(&workload).is_some());
    }
}

//! Whether a workload is healthy, in words.

use crate::evidence::Workload;
use crate::release::manifest::WorkloadRef;

/// The largest allowed difference between updated and available replicas, in percent of the desired replicas. An autoscaler may
/// be changing them.
const TOLERANCE_PERCENT: i64 = 10;

/// Why a workload is not healthy, with its name; `None` if it is.
pub(super) fn failure_of(reference: &WorkloadRef, found: Option<&Workload>) -> Option<String> {
    let WorkloadRef { kind, namespace, name } = reference;
    let health_problem = found.map_or_else(|| Some("does not exist".to_owned()), health_problem)?;
    Some(format!("{} {namespace}/{name} {health_problem}", kind.as_str()))
}

/// `Deployment shop/web: 4 of 4 available, 4 updated, Available, Progressing`.
pub(super) fn describe_workload(reference: &WorkloadRef, found: Option<&Workload>) -> String {
    let WorkloadRef { kind, namespace, name } = reference;
    let name = format!("{} {namespace}/{name}", kind.as_str());
    let Some(Workload { desired, updated, available, observed, conditions }) = found else {
        return format!("{name} does not exist");
    };
    let mut text = format!("{name}: {available} of {desired} available, {updated} updated");
    for (condition, holds) in conditions {
        text.push_str(if *holds { ", " } else { ", not " });
        text.push_str(condition);
    }
    if !observed {
        text.push_str(", with a change that its controller has not seen yet");
    }
    text
}

fn health_problem(workload: &Workload) -> Option<String> {
    if !workload.observed {
        return Some("has a change that its controller has not seen yet".to_owned());
    }
    let missing = ["Available", "Progressing"].into_iter().find(|condition| {
        // StatefulSets and DaemonSets have no conditions. Only their numbers count.
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
    fn updated_and_available_may_differ_by_ten_percent() {
        assert_eq!(health_problem(&deployment(10, 10, 9)), None);
        assert_eq!(health_problem(&deployment(10, 9, 10)), None);
        assert!(
            health_problem(&deployment(10, 10, 8))
                .is_some_and(|text| text.contains("10 updated and 8 available of 10"))
        );
        assert!(health_problem(&deployment(9, 9, 8)).is_some());
        assert_eq!(health_problem(&deployment(0, 0, 0)), None);
    }

    #[test]
    fn conditions_count_where_there_are_any() {
        let mut workload = deployment(1, 1, 1);
        workload.conditions.insert("Progressing".to_owned(), false);
        assert!(health_problem(&workload).is_some_and(|text| text.contains("not Progressing")));
        workload.conditions.clear();
        assert_eq!(health_problem(&workload), None);
    }

    #[test]
    fn a_workload_with_an_unobserved_change_is_unhealthy() {
        let workload = Workload { observed: false, ..deployment(1, 1, 1) };
        assert!(health_problem(&workload).is_some());
    }
}

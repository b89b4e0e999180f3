//! The summary of a release from its records and its diagnosis.

use interlock_engine::release::{Entry, History, ReleaseRef, Status, Storage};
use interlock_engine::ways_out::StepKind;
use jiff::Timestamp;

use super::summary::ReleaseSummary;
use crate::inspect::diagnosis::{Diagnosis, NextStep};

/// The summary of a release; `None` without records.
pub(crate) fn assess(
    release: &ReleaseRef,
    storage: Storage,
    history: &History,
    diagnosis: Diagnosis,
) -> Option<ReleaseSummary> {
    let newest = history.newest()?;
    let Diagnosis { owner, stuck, stuck_from, problems, next } = diagnosis;
    let at_rest = !newest.status.is_in_flight();
    Some(ReleaseSummary {
        cluster: None,
        namespace: release.namespace.clone(),
        release: release.name.clone(),
        storage,
        record: newest.name.clone(),
        revision: newest.revision.0,
        status: newest.status.as_str(),
        since: since(newest),
        holder: newest.stamps.holder().map(str::to_owned),
        manager: None,
        chart: newest.stamps.chart().map(str::to_owned),
        owner,
        stuck,
        stuck_from,
        interrupted: history.interrupted().filter(|_| at_rest).map(|(_, note)| note.to_string()),
        problems,
        why: next.as_ref().map(|next| next.why().to_owned()),
        wait_until: next.as_ref().and_then(NextStep::wait_until),
        next_kind: next.as_ref().map(|next| match next {
            NextStep::Run { .. } => StepKind::Run,
            NextStep::Wait { .. } => StepKind::Wait,
        }),
        next: next.map(|next| next.to_string()),
    })
}

/// When a record reached its status: a pending record when it was created, others when their operation ended.
pub(super) fn since(entry: &Entry) -> Option<Timestamp> {
    match entry.status {
        status if status.is_in_flight() => entry.started(),
        Status::Superseded => entry.created,
        _ => entry.stamps.ended().or(entry.created),
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::owners::ReleaseOwner;
    use interlock_engine::release::stamps::{CHART, HOLDER};

    use super::*;
    use crate::inspect::diagnosis::Stuck;
    use crate::world::kubernetes::RecordSummary;
    use Status::Deployed;

    fn entry(revision: u64, status: Status, holder: &str) -> Entry {
        let mut entry = Entry::of_web(revision, status);
        if !holder.is_empty() {
            entry.stamps.set(HOLDER, holder.to_owned());
            entry.stamps.set(CHART, format!("demo-{revision}.0.0"));
        }
        entry
    }

    fn row(storage: Storage, entry: Entry, owner: ReleaseOwner) -> ReleaseSummary {
        let diagnosis = Diagnosis { owner, stuck: Stuck::No, stuck_from: None, problems: Vec::new(), next: None };
        assess(&ReleaseRef::new("shop", "web"), storage, &History::new(vec![entry]), diagnosis).unwrap()
    }

    #[test]
    fn a_field_manager_is_a_hint_only_where_no_holder_is_stamped() {
        let head = || RecordSummary { chart: Some("demo-1.0.0".to_owned()), manager: Some("helm".to_owned()) };
        let lost = row(Storage::Secret, entry(1, Deployed, ""), ReleaseOwner::Helm);
        assert!(lost.lacks_head());
        let lost = lost.with_head(head());
        assert_eq!(
            (lost.holder, lost.manager.as_deref(), lost.chart.as_deref()),
            (None, Some("helm"), Some("demo-1.0.0"))
        );
        let stamped = row(Storage::Secret, entry(2, Deployed, "alice"), ReleaseOwner::Helm);
        assert!(!stamped.lacks_head());
        let stamped = stamped.with_head(head());
        assert_eq!((stamped.manager, stamped.chart.as_deref()), (None, Some("demo-2.0.0")));
    }

    #[test]
    fn the_json_is_flat_and_its_words_are_lower_case() {
        let row = row(Storage::Index, entry(1, Deployed, "alice"), ReleaseOwner::Olm("web".to_owned()));
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!(json["owner"], serde_json::json!({"kind": "olm", "name": "web"}));
        assert_eq!((&json["storage"], &json["stuck"], &json["revision"]), (&"olm".into(), &"no".into(), &1.into()));
        assert_eq!(json["stuckFrom"], serde_json::Value::Null);
    }
}

//! Findings from the metadata of a release's records.

use jiff::{SignedDuration, Timestamp};

use super::finding::Finding;
use super::finding_kind::FindingKind;
use crate::engine::object::ObjectKey;
use crate::engine::olm::version_range::version_of;
use crate::engine::release::{Entry, History, ReleaseRef, Status, Storage};
use crate::engine::rules::wording::{MAX_ENUMERATED, OwnerWords, enumerated, pin, span};

/// The records of a release, and the settings for judging them.
pub(super) struct ReleaseRecords<'a> {
    pub(super) release: &'a ReleaseRef,
    pub(super) storage: Storage,
    pub(super) history: &'a History,
    /// The age at which an operation counts as stuck.
    pub(super) stale_after: SignedDuration,
    /// Whether the policy refuses a rollback over a stuck operation.
    pub(super) closes_rollback: bool,
    pub(super) now: Timestamp,
}

impl ReleaseRecords<'_> {
    /// All findings.
    pub(super) fn judge(&self) -> Vec<Finding> {
        let found = [self.several_deployed(), self.stuck(), self.interrupted(), self.failed()];
        found.into_iter().flatten().chain(self.buried()).collect()
    }

    fn several_deployed(&self) -> Option<Finding> {
        let deployed: Vec<_> = self.history.iter().filter(|entry| entry.status == Status::Deployed).collect();
        let [newest, _, ..] = deployed.as_slice() else {
            return None;
        };
        let mut revisions: Vec<_> = deployed.iter().map(|entry| entry.revision.to_string()).collect();
        revisions.reverse();
        let revisions = enumerated(revisions.into_iter(), MAX_ENUMERATED);
        let words = self.words();
        let message = format!(
            "Several revisions are deployed: {revisions}. {} upgrades from {} and ignores the others.",
            words.client(),
            newest.revision
        );
        let way_out = if words.is_olm() {
            let older = deployed.iter().skip(1).map(|entry| words.delete_record(&entry.name));
            let commands = enumerated(older, MAX_ENUMERATED);
            format!(
                "OLM keeps the objects of revision {} up to date. Delete the other records: {commands}.",
                newest.revision
            )
        } else {
            format!(
                "Find out which revision the objects belong to, and make it the only deployed one: `helm rollback {} \
                 REVISION -n {}` supersedes all others.",
                self.release.name, self.release.namespace
            )
        };
        Some(self.finding(FindingKind::SeveralDeployed, newest, message, way_out))
    }

    fn stuck(&self) -> Option<Finding> {
        let newest = self.history.newest().filter(|newest| newest.status.is_in_flight())?;
        let started = newest.started()?;
        if self.now.duration_since(started) < self.stale_after {
            return None;
        }
        let Entry { status, revision, stamps, .. } = newest;
        let holder = stamps.holder().unwrap_or("an unknown user");
        // The time, not the age, so that a repeated finding has the same text.
        let message = format!(
            "Revision {revision} has been {status} since {started:.0}, held by {holder}. It counts as stuck after {}.",
            span(self.stale_after)
        );
        let ReleaseRef { namespace, name } = self.release;
        let words = self.words();
        let delete = format!("check that its workloads are healthy, then run {}", words.delete_record(&newest.name));
        let way_out = match newest.status {
            status if words.is_olm() && status.is_pending() => {
                let version = newest.stamps.chart().and_then(|chart| version_of(chart, name));
                let pin = pin(name, version.as_ref());
                format!(
                    "Pin the version that is pending: {pin}. Then {delete}: OLM tries again and finishes the operation."
                )
            }
            _ if words.is_olm() => format!("Run {}: OLM goes on from there.", words.delete_record(&newest.name)),
            Status::Uninstalling => {
                format!("Run `helm uninstall {name} -n {namespace}` again: it continues where it stopped.")
            }
            _ if self.history.newest_deployed().is_none() => {
                format!(
                    "No revision is deployed: run `helm rollback {name} REVISION -n {namespace}`, or uninstall and \
                     install."
                )
            }
            _ if self.closes_rollback => format!("Roll forward: {delete}, and upgrade again."),
            _ => format!("Run `helm rollback {name} -n {namespace}`; or {delete}, and upgrade again."),
        };
        Some(self.finding(FindingKind::StuckOperation, newest, message, way_out))
    }

    fn interrupted(&self) -> Option<Finding> {
        // A retry is in progress, or is reported as stuck.
        let at_rest = self.history.newest().is_some_and(|newest| !newest.status.is_in_flight());
        let (entry, note) = self.history.interrupted().filter(|_| at_rest)?;
        let message = format!(
            "The operation to {}, revision {}, was interrupted and has not been finished.",
            note.chart, note.revision
        );
        let version = version_of(&note.chart, &self.release.name);
        let way_out = format!("{}, before any other version.", self.words().finish(&note.chart, version.as_ref()));
        Some(self.finding(FindingKind::InterruptedOperation, entry, message, way_out))
    }

    fn failed(&self) -> Option<Finding> {
        let newest = self.history.newest().filter(|newest| newest.status == Status::Failed)?;
        let below = match self.history.newest_deployed() {
            Some(deployed) => format!("revision {} is still deployed", deployed.revision),
            None => "no revision is deployed".to_owned(),
        };
        let message = format!("Revision {} failed; {below}.", newest.revision);
        let ReleaseRef { namespace, name } = self.release;
        let words = self.words();
        let way_out = if words.is_olm() {
            format!("OLM tries again by itself. {} {}", words.look(), words.change())
        } else {
            format!("Find the cause with `helm status {name} -n {namespace}`, then upgrade to a version that fixes it.")
        };
        Some(self.finding(FindingKind::FailedRelease, newest, message, way_out))
    }

    fn buried(&self) -> Option<Finding> {
        let newest = self.history.newest()?;
        let mut buried: Vec<_> =
            self.history.below(newest.revision).filter(|entry| entry.status.is_in_flight()).collect();
        buried.reverse();
        let entry = buried.first()?;
        let named = buried.iter().map(|entry| format!("{} ({})", entry.revision, entry.status));
        let verb = if buried.len() == 1 { "Revision" } else { "Revisions" };
        let message = format!(
            "{verb} {} never finished, and revision {} is newer.",
            enumerated(named, MAX_ENUMERATED),
            newest.revision
        );
        Some(self.finding(
            FindingKind::BuriedOperation,
            entry,
            message,
            format!("Nothing to do: {} prunes old revisions.", self.words().client()),
        ))
    }

    fn words(&self) -> OwnerWords<'_> {
        OwnerWords { storage: self.storage, namespace: &self.release.namespace, release: &self.release.name }
    }

    fn finding(&self, kind: FindingKind, entry: &Entry, message: String, way_out: String) -> Finding {
        let object = ObjectKey::new("", self.storage.kind(), &self.release.namespace, &entry.name);
        Finding { kind, release: Some(self.release.clone()), object: Some(object), message, way_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::release::Stamps;
    use crate::engine::release::stamps::{CHART, HOLDER, INTERRUPTED, STARTED};
    use Status::{
        Deployed, Failed, PendingInstall, PendingRollback, PendingUpgrade, Superseded, Uninstalled, Uninstalling,
    };

    const NOW: &str = "2026-11-21T10:00:00Z";
    const STALE_AFTER: i64 = 900;

    fn ago(seconds: i64) -> Timestamp {
        NOW.parse::<Timestamp>().unwrap().checked_sub(SignedDuration::from_secs(seconds)).unwrap()
    }

    fn entry(revision: u64, status: Status) -> Entry {
        aged(revision, status, 100_000)
    }

    fn aged(revision: u64, status: Status, seconds: i64) -> Entry {
        let mut stamps = Stamps::default();
        stamps.set(HOLDER, "alice".to_owned());
        Entry { created: Some(ago(seconds)), stamps, ..Entry::of_web(revision, status) }
    }

    fn stamped(mut entry: Entry, key: &'static str, value: &str) -> Entry {
        entry.stamps.set(key, value.to_owned());
        entry
    }

    fn judge(entries: Vec<Entry>, closes_rollback: bool) -> Vec<Finding> {
        judge_in(Storage::Secret, entries, closes_rollback)
    }

    fn judge_in(storage: Storage, entries: Vec<Entry>, closes_rollback: bool) -> Vec<Finding> {
        let (release, history) = (ReleaseRef::new("shop", "web"), History::new(entries));
        ReleaseRecords {
            release: &release,
            storage,
            history: &history,
            stale_after: SignedDuration::from_secs(STALE_AFTER),
            closes_rollback,
            now: NOW.parse().unwrap(),
        }
        .judge()
    }

    fn checks(entries: Vec<Entry>) -> Vec<&'static str> {
        judge(entries, false).iter().map(|finding| finding.kind.as_str()).collect()
    }

    #[test]
    fn every_history_has_its_findings() {
        let young = |revision, status| aged(revision, status, STALE_AFTER - 1);
        let noted = |entry| stamped(entry, INTERRUPTED, "shop-2.0.0@2");
        let nothing: [&str; 0] = [];
        for (entries, wanted) in [
            (vec![], &nothing[..]),
            (vec![entry(1, Deployed)], &nothing),
            (vec![entry(1, Superseded), entry(2, Superseded), entry(3, Deployed)], &nothing),
            (vec![entry(1, Uninstalled)], &nothing),
            (vec![entry(1, Superseded), entry(2, Uninstalled)], &nothing),
            // A failure that a newer revision has fixed.
            (vec![entry(1, Failed), entry(2, Deployed)], &nothing),
            (vec![entry(1, Deployed), entry(2, Deployed)], &["several-deployed"]),
            (vec![entry(1, Deployed), entry(2, Failed), entry(3, Deployed)], &["several-deployed"]),
            (vec![entry(1, Deployed), entry(2, Deployed), entry(3, Failed)], &["several-deployed", "failed-release"]),
            (vec![young(1, PendingInstall)], &nothing),
            (vec![entry(1, PendingInstall)], &["stuck-operation"]),
            (vec![aged(1, PendingInstall, STALE_AFTER)], &["stuck-operation"]),
            (vec![entry(1, Deployed), entry(2, PendingUpgrade)], &["stuck-operation"]),
            (vec![entry(1, Deployed), entry(2, PendingRollback)], &["stuck-operation"]),
            // The record of an uninstall is older than its operation.
            (vec![stamped(entry(1, Uninstalling), STARTED, &ago(5).to_string())], &nothing),
            (vec![stamped(entry(1, Uninstalling), STARTED, &ago(5_000).to_string())], &["stuck-operation"]),
            // The start is unknown.
            (vec![Entry { created: None, ..entry(1, PendingInstall) }], &nothing),
            (vec![entry(1, Failed)], &["failed-release"]),
            (vec![entry(1, Deployed), entry(2, Failed)], &["failed-release"]),
            (vec![entry(1, PendingUpgrade), entry(2, Deployed)], &["buried-operation"]),
            (vec![entry(1, PendingUpgrade), entry(2, PendingRollback)], &["stuck-operation", "buried-operation"]),
            (vec![entry(1, PendingUpgrade), entry(2, PendingUpgrade), entry(3, Deployed)], &["buried-operation"]),
            (vec![noted(entry(1, Deployed))], &["interrupted-operation"]),
            (vec![entry(1, Deployed), noted(entry(2, Failed))], &["interrupted-operation", "failed-release"]),
            (vec![noted(entry(1, Superseded)), entry(2, Deployed)], &nothing),
            (vec![noted(entry(1, Deployed)), young(2, PendingUpgrade)], &nothing),
        ] {
            assert_eq!(checks(entries.clone()), wanted, "{entries:?}");
        }
    }

    #[test]
    fn findings_about_an_extension_are_in_the_words_of_olm() {
        let chart = |entry| stamped(entry, CHART, "web-2.0.0");
        let told = |entries: Vec<Entry>| -> String {
            let found = judge_in(Storage::OlmIndex, entries, false);
            found.iter().map(|finding| format!("{} {}\n", finding.message, finding.way_out)).collect()
        };
        let pin = r#"`kubectl patch clusterextension web --type merge -p '{"spec":{"source":{"catalog":{"version":"2.0.0"}}}}'`"#;
        let delete = |revision: u64| format!("`kubectl delete secret -n shop sh.helm.release.v1.web.v{revision}`");
        for (entries, parts) in [
            (vec![entry(1, Deployed), entry(2, Deployed)], vec![delete(1)]),
            (vec![entry(1, Deployed), chart(entry(2, PendingUpgrade))], vec![pin.to_owned(), delete(2)]),
            (vec![chart(entry(1, PendingInstall))], vec![pin.to_owned(), delete(1)]),
            (vec![entry(1, Uninstalling)], vec![delete(1)]),
            (vec![stamped(entry(1, Superseded), INTERRUPTED, "web-2.0.0@2")], vec![pin.to_owned()]),
            (vec![entry(1, Failed)], vec!["`kubectl get clusterextension web -o yaml`".to_owned()]),
            (vec![entry(1, PendingUpgrade), entry(2, Deployed)], vec!["OLM prunes".to_owned()]),
        ] {
            let told = told(entries);
            parts.iter().for_each(|part| assert!(told.contains(part), "{part}: {told}"));
            for foreign in ["`helm", "helm ", "uninstall ", "history", "rollback", "oll back"] {
                assert!(!told.contains(foreign), "{foreign}: {told}");
            }
        }
    }

    #[test]
    fn messages_name_revisions_and_fixes_name_commands() {
        let told = |entries: Vec<Entry>, closed| {
            let finding = judge(entries, closed).remove(0);
            (finding.message, finding.way_out, finding.object.unwrap().name)
        };
        let (message, way_out, object) = told(vec![entry(5, Deployed), entry(6, Failed), entry(7, Deployed)], false);
        assert_eq!(message, "Several revisions are deployed: 5 and 7. helm upgrades from 7 and ignores the others.");
        assert!(way_out.contains("`helm rollback web REVISION -n shop`"), "{way_out}");
        assert_eq!(object, "sh.helm.release.v1.web.v7");
        let stuck = || vec![entry(1, Deployed), aged(2, PendingUpgrade, 3_600)];
        let (message, way_out, object) = told(stuck(), false);
        assert_eq!(
            message,
            "Revision 2 has been pending-upgrade since 2026-11-21T09:00:00Z, held by alice. It counts as stuck after \
             15 min."
        );
        assert!(way_out.starts_with("Run `helm rollback web -n shop`; or check"), "{way_out}");
        assert!(way_out.contains("`kubectl delete secret -n shop sh.helm.release.v1.web.v2`"), "{way_out}");
        assert_eq!(object, "sh.helm.release.v1.web.v2");
        let (_, way_out, _) = told(stuck(), true);
        assert!(way_out.starts_with("Roll forward:") && !way_out.contains("rollback"), "{way_out}");
        let (message, _, _) = told(vec![entry(1, PendingUpgrade), entry(2, PendingUpgrade), entry(3, Deployed)], false);
        assert_eq!(
            message,
            "Revisions 1 (pending-upgrade) and 2 (pending-upgrade) never finished, and revision 3 is \
            newer."
        );
    }
}

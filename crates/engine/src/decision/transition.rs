//! The transition that a write of a record makes, or would make if it were allowed: who moves which release from which
//! status to which, and when. An object that carries its operation itself makes one where the operation starts and ends.
//!
//! Everything in it is known at the time of the decision. It needs no decoding and no query.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use super::{Decision, Groups};
use crate::evidence::Evidence;
use crate::facts::{Declaration, Facts, RecordChange, RecordVersion, RecordWrite, Subject};
use crate::outcome::Verdict;
use crate::owners::{OperationEnd, OperationTrace, traces};
use crate::policy::{Policy, frozen_by};
use crate::release::{ReleaseRef, Revision, Status};
use crate::rule::Mode;
use crate::text::{into_printable, printable_name};

/// The longest list of groups in JSON, in bytes.
const MAX_GROUPS_BYTES: usize = 1024;

/// The longest name of a chart with its version, in bytes. Those of stamps have at most 120 characters.
const MAX_CHART_BYTES: usize = 512;

/// The transition of a record, or of the operation in another object. Every text is printable and bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    pub kind: TransitionKind,
    /// The API server's clock at the review.
    pub time: Timestamp,
    /// The groups of the user, as far as they fit into 1 KiB.
    pub groups: Groups,
    /// `Secret` or `ConfigMap`: a release of one name can have records in both. Or the kind of the object that carries the operation.
    pub storage: &'static str,
    pub revision: Option<Revision>,
    /// `None` if the record is created, or if there is none.
    pub from: Option<Status>,
    /// `None` if the record is deleted, or if there is none.
    pub to: Option<Status>,
    /// `name-version` of the chart, if a rule read the body or the record is stamped with it.
    pub chart: Option<String>,
    /// From the start of the operation to its end, in seconds. Only the end of an operation has it.
    pub seconds: Option<u64>,
    /// The user who started the operation of the record, from its stamp.
    pub holder: Option<String>,
    /// The freeze in force over the release when an operation starts, even if an override or an exemption allows the
    /// start.
    pub freeze: Option<String>,
}

/// What happens to a release. Metrics, the log and `interlock changes` use the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransitionKind {
    /// An operation starts.
    Install,
    /// An operation starts.
    Upgrade,
    /// An operation starts.
    Rollback,
    /// An operation starts.
    Uninstall,
    /// An operation of an object without records starts.
    Sync,
    /// A later revision has replaced this one.
    Superseded,
    /// The revision is live.
    Deployed,
    /// The operation of an object without records is done.
    Succeeded,
    /// The operation failed, or somebody unlocked its record.
    Failed,
    /// The release is gone.
    Uninstalled,
    /// The record of a live revision, or of a pending operation, was deleted. Or somebody removed an operation that had not ended.
    Deleted,
}

/// A text that does not name a transition.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected install, upgrade, rollback, uninstall, sync, superseded, deployed, succeeded, failed, uninstalled or deleted"
)]
pub struct BadTransition;

impl TransitionKind {
    /// Every kind, in the order in which an operation goes through them.
    pub const ALL: [Self; 11] = [
        Self::Install,
        Self::Upgrade,
        Self::Rollback,
        Self::Uninstall,
        Self::Sync,
        Self::Superseded,
        Self::Deployed,
        Self::Succeeded,
        Self::Failed,
        Self::Uninstalled,
        Self::Deleted,
    ];

    /// The kind of a change of status; `None` if the release does not change. Pruning deletes records at rest.
    #[must_use]
    pub fn of(from: Option<Status>, to: Option<Status>) -> Option<Self> {
        match (from, to) {
            _ if from == to => None,
            (_, Some(to)) => Self::towards(to),
            (Some(Status::Uninstalling), None) => Some(Self::Uninstalled),
            (Some(from), None) => (from.is_pending() || from == Status::Deployed).then_some(Self::Deleted),
            (None, None) => None,
        }
    }

    /// The kind of the end of an operation that an object carries.
    #[must_use]
    pub fn of_end(end: OperationEnd) -> Self {
        if end.has_succeeded { Self::Succeeded } else { Self::Failed }
    }

    /// The kind of a change to a status; `None` for the status that no client stores.
    fn towards(status: Status) -> Option<Self> {
        match status {
            Status::PendingInstall => Some(Self::Install),
            Status::PendingUpgrade => Some(Self::Upgrade),
            Status::PendingRollback => Some(Self::Rollback),
            Status::Uninstalling => Some(Self::Uninstall),
            Status::Superseded => Some(Self::Superseded),
            Status::Deployed => Some(Self::Deployed),
            Status::Failed => Some(Self::Failed),
            Status::Uninstalled => Some(Self::Uninstalled),
            Status::Unknown => None,
        }
    }

    /// Whether an operation starts.
    #[must_use]
    pub fn is_start(self) -> bool {
        matches!(self, Self::Install | Self::Upgrade | Self::Rollback | Self::Uninstall | Self::Sync)
    }

    /// The name in the log, in metrics and in `interlock changes`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::Rollback => "rollback",
            Self::Uninstall => "uninstall",
            Self::Sync => "sync",
            Self::Superseded => "superseded",
            Self::Deployed => "deployed",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Uninstalled => "uninstalled",
            Self::Deleted => "deleted",
        }
    }
}

impl fmt::Display for TransitionKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for TransitionKind {
    type Err = BadTransition;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(BadTransition)
    }
}

impl Transition {
    /// The transition of a request that is not a dry run; `None` if it writes no record or does not change its status, and no
    /// operation of another object starts or ends.
    #[must_use]
    pub fn of(facts: &Facts<'_>, policy: &Policy, evidence: &Evidence, now: Timestamp) -> Option<Self> {
        if let Subject::Declaration(declaration) = facts.subject {
            return Self::of_carried(declaration, facts, policy, evidence, now);
        }
        let (id, change) = facts.record()?;
        let (before, after) = match change {
            RecordChange::Created(after) => (None, Some(after)),
            RecordChange::Updated { before, after, .. } => (Some(before), Some(after)),
            RecordChange::Deleted(before) => (Some(before), None),
        };
        let (from, to) = (before.and_then(RecordVersion::status), after.and_then(RecordVersion::status));
        // A user who continues the uninstall of another user starts one.
        let starts = change.write().is_some_and(|write: RecordWrite<'_>| write.starts(facts.actor));
        let kind = match (starts, after, to) {
            (true, _, Some(to)) => TransitionKind::towards(to),
            // Without a known status, the next state of the record is unknown.
            (_, Some(_), None) => None,
            _ => TransitionKind::of(from, to),
        }?;
        let side = if starts { after } else { before.or(after) }?;
        let of_objects = side.target_namespace();
        let release = ReleaseRef::new(id.storage.home(&id.namespace, of_objects.as_deref()), &id.release);
        let ends = !starts && from.is_some_and(Status::is_in_flight);
        Some(Self {
            kind,
            time: now,
            groups: groups(facts),
            storage: id.storage.kind(),
            revision: id.revision,
            from,
            to,
            chart: chart(after.or(before)).map(|chart| into_printable(chart, MAX_CHART_BYTES)),
            seconds: ends.then(|| seconds_since_start(side, from, now)).flatten(),
            holder: side.stamps().holder().map(printable_name),
            freeze: starts.then(|| frozen_by(policy.all_freezes(evidence.freezes()), &release, now)).flatten(),
        })
    }

    fn of_carried(
        declaration: &Declaration<'_>,
        facts: &Facts<'_>,
        policy: &Policy,
        evidence: &Evidence,
        now: Timestamp,
    ) -> Option<Self> {
        let ([before, after], storage, frozen_as) = traces(declaration)?;
        let change = OperationChange::between(&before, &after)?;
        let starts = change.kind.is_start();
        Some(Self {
            kind: change.kind,
            time: now,
            groups: groups(facts),
            storage,
            revision: None,
            from: None,
            to: None,
            chart: None,
            seconds: change.seconds(now),
            holder: change.holder.map(str::to_owned),
            freeze: frozen_as
                .iter()
                .filter(|_| starts)
                .find_map(|release| frozen_by(policy.all_freezes(evidence.freezes()), release, now)),
        })
    }
}

/// The start or the end of an operation that an object carries.
#[derive(Debug)]
pub struct OperationChange<'t> {
    pub kind: TransitionKind,
    /// The user who requested it, by the stamp.
    pub holder: Option<&'t str>,
    /// When its controller began it, if it has ended.
    started: Option<Timestamp>,
}

impl<'t> OperationChange<'t> {
    /// The change between two versions of an object; `None` if no operation starts or ends.
    #[must_use]
    pub fn between(before: &'t OperationTrace, after: &'t OperationTrace) -> Option<Self> {
        match (before.is_requested, after.is_requested) {
            (false, true) => Some(Self { kind: TransitionKind::Sync, holder: after.holder.as_deref(), started: None }),
            (true, false) => {
                // The end that was there before is that of an earlier operation.
                let run = after.run.as_ref().filter(|_| before.run != after.run);
                let end = run.and_then(|run| Some((run.started, run.end?)));
                let kind = end.map_or(TransitionKind::Deleted, |(_, end)| TransitionKind::of_end(end));
                Some(Self { kind, holder: before.holder.as_deref(), started: end.and_then(|(started, _)| started) })
            }
            (false, false) | (true, true) => None,
        }
    }

    /// How long an operation took that ends now.
    #[must_use]
    pub fn seconds(&self, now: Timestamp) -> Option<u64> {
        seconds_between(self.started?, now)
    }
}

fn groups(facts: &Facts<'_>) -> Groups {
    Groups::of(facts.actor.groups.iter().map(AsRef::as_ref), MAX_GROUPS_BYTES)
}

fn seconds_between(started: Timestamp, ended: Timestamp) -> Option<u64> {
    u64::try_from(ended.duration_since(started).as_secs()).ok()
}

/// The seconds since the operation of a record started.
fn seconds_since_start(side: &RecordVersion<'_>, status: Option<Status>, now: Timestamp) -> Option<u64> {
    let stamps = side.stamps();
    let created = side.stored.metadata.creation_timestamp;
    seconds_between(stamps.operation_started(status, created).or(stamps.started())?, now)
}

/// The chart, if it is known without decoding a body.
fn chart(side: Option<&RecordVersion<'_>>) -> Option<String> {
    let side = side?;
    side.record().and_then(|record| record.chart()).or_else(|| side.stamps().chart().map(str::to_owned))
}

/// The outcome of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransitionOutcome {
    Allowed,
    /// Allowed, and a rule warned the user.
    Warned,
    Refused,
}

impl TransitionOutcome {
    /// Every outcome.
    pub const ALL: [Self; 3] = [Self::Allowed, Self::Warned, Self::Refused];

    /// The outcome of a decision.
    #[must_use]
    pub fn of(decision: &Decision) -> Self {
        let mut shown = decision.findings.iter().filter(|finding| finding.mode != Mode::Audit);
        match decision.allowed {
            false => Self::Refused,
            true if shown.any(|finding| matches!(finding.verdict(), Verdict::Warned | Verdict::Undecided)) => {
                Self::Warned
            }
            true => Self::Allowed,
        }
    }

    /// The name in the log and in `interlock changes`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Warned => "warned",
            Self::Refused => "refused",
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use super::*;
    use crate::effort::Effort;
    use crate::facts::RequestObjects;
    use crate::policy::Policies;
    use crate::policy_files::PolicyFiles;
    use crate::release::stamps::{CHART, HOLDER};
    use crate::review::Review;

    /// The shipped policy with a freeze that alice is exempt from.
    fn policies() -> Policies {
        let freeze = "freezes: [{name: sale, reason: r, timeZone: UTC, from: 2026-11-21T10:00, to: 2026-11-21T12:00, \
                      exempt: {users: [alice]}}]";
        let text = format!("{}{freeze}\n", include_str!("../../../../policies/cluster.yaml"));
        let mut files = PolicyFiles::default();
        files.set_cluster("cluster.yaml".into(), text);
        Policies::of_files(&files).unwrap()
    }

    /// A record that was created at 9:00 on the day of the freeze.
    fn record(status: &str, annotations: Value) -> Value {
        let body = json!({"name": "web", "version": 4, "namespace": "shop", "info": {"status": status},
            "chart": {"metadata": {"name": "demo", "version": "1.2.0"}}});
        json!({
            "type": "helm.sh/release.v1", "data": {"release": STANDARD.encode(STANDARD.encode(body.to_string()))},
            "metadata": {
                "name": "sh.helm.release.v1.web.v4", "namespace": "shop", "creationTimestamp": "2026-11-21T09:00:00Z",
                "labels": {"owner": "helm", "name": "web", "version": "4", "status": status}, "annotations": annotations,
            },
        })
    }

    /// The transition at 10:30 on that day, if a record is written.
    fn transition(user: &str, old: Option<Value>, new: Option<Value>) -> Option<Transition> {
        transition_of(("", "Secret", "secrets"), ("shop", "sh.helm.release.v1.web.v4"), user, old, new)
    }

    /// The transition at 10:30 on that day, if an object of this kind is written.
    fn transition_of(
        (group, kind, resource): (&str, &str, &str),
        (namespace, name): (&str, &str),
        user: &str,
        old: Option<Value>,
        new: Option<Value>,
    ) -> Option<Transition> {
        let operation = match (&old, &new) {
            (None, _) => "CREATE",
            (_, None) => "DELETE",
            _ => "UPDATE",
        };
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "operation": operation, "object": new, "oldObject": old, "name": name, "namespace": namespace,
            "kind": {"group": group, "version": "v1", "kind": kind},
            "resource": {"group": group, "version": "v1", "resource": resource},
            "userInfo": {"username": user, "groups": ["devs", "a\u{1b}b"]},
        }});
        let body = review.to_string();
        let request = Review::parse(body.as_bytes()).unwrap().request;
        let (objects, effort) = (RequestObjects::read(&request).unwrap(), Effort::of_review());
        let bodies = objects.payloads(request.operation).inflate(&effort);
        let facts = Facts::of(&request, &objects, &bodies, &effort);
        Transition::of(&facts, policies().of("shop"), &Evidence::default(), "2026-11-21T10:30:00Z".parse().unwrap())
    }

    #[test]
    fn a_start_has_its_freeze_and_an_end_its_holder_and_duration() {
        let stamped = |user: &str| json!({HOLDER: user, CHART: "demo-1.2.0"});
        for user in ["alice", "bob"] {
            let start = transition(user, None, Some(record("pending-upgrade", stamped(user)))).unwrap();
            assert_eq!((start.kind, start.revision), (TransitionKind::Upgrade, Some(Revision(4))));
            assert_eq!((start.from, start.to), (None, Some(Status::PendingUpgrade)));
            assert_eq!((start.holder.as_deref(), start.chart.as_deref()), (Some(user), Some("demo-1.2.0")));
            assert_eq!((start.freeze.as_deref(), start.seconds), (Some("sale"), None), "exempt or not");
            assert_eq!(start.storage, "Secret");
            assert_eq!(start.groups.names(), ["devs", "a\u{fffd}b"]);
        }
        let (pending, deployed) = (record("pending-upgrade", stamped("alice")), record("deployed", stamped("alice")));
        let end = transition("flux", Some(pending.clone()), Some(deployed.clone())).unwrap();
        assert_eq!((end.kind, end.from), (TransitionKind::Deployed, Some(Status::PendingUpgrade)));
        assert_eq!((end.holder.as_deref(), end.seconds, end.freeze), (Some("alice"), Some(5_400), None));
        // A deployed revision ends no operation.
        let replaced = transition("bob", Some(deployed.clone()), Some(record("superseded", stamped("alice")))).unwrap();
        assert_eq!((replaced.kind, replaced.seconds), (TransitionKind::Superseded, None));
        let uninstall =
            transition("bob", Some(deployed.clone()), Some(record("uninstalling", stamped("bob")))).unwrap();
        let wanted = (TransitionKind::Uninstall, Some("bob".to_owned()), Some("sale".to_owned()));
        assert_eq!((uninstall.kind, uninstall.holder, uninstall.freeze), wanted);
        assert_eq!(transition("bob", Some(deployed.clone()), Some(deployed)), None, "a hook writes it again");
        let deleted = transition("bob", Some(pending), None).unwrap();
        assert_eq!((deleted.kind, deleted.to), (TransitionKind::Deleted, None));
    }

    #[test]
    fn a_sync_starts_and_ends_with_its_operation() {
        use TransitionKind::{Deleted, Failed, Succeeded, Sync};
        let transition = |user: &str, old: Option<&Value>, new: Option<&Value>| {
            let kind = ("argoproj.io", "Application", "applications");
            transition_of(kind, ("argocd", "web"), user, old.cloned(), new.cloned())
        };
        let operation = json!({"sync": {}, "info": [{"name": HOLDER, "value": "bob"}]});
        let application = |operation: &Value, phase: &str, started: &str| {
            let state = json!({"phase": phase, "startedAt": format!("2026-11-21T{started}Z"), "operation": {}});
            let status = if phase.is_empty() { json!({}) } else { json!({"operationState": state}) };
            json!({"metadata": {"name": "web", "namespace": "argocd"}, "operation": operation,
                "spec": {"destination": {"namespace": "shop"}}, "status": status})
        };
        let none = Value::Null;
        let idle = application(&none, "", "");
        let requested = application(&operation, "", "");
        let mut running = application(&operation, "Running", "10:29:00");
        running["status"]["operationState"]["operation"] = operation.clone();
        let ended = |phase: &str| application(&none, phase, "10:29:00");
        for (before, after, wanted) in [
            (Some(&idle), Some(&requested), Some(Sync)),
            (None, Some(&requested), Some(Sync)),
            (Some(&ended("Failed")), Some(&application(&operation, "Failed", "10:29:00")), Some(Sync)),
            (Some(&requested), Some(&running), None),
            (Some(&running), Some(&application(&operation, "Terminating", "10:29:00")), None),
            (Some(&running), Some(&ended("Succeeded")), Some(Succeeded)),
            (Some(&running), Some(&ended("Error")), Some(Failed)),
            (Some(&requested), Some(&ended("Failed")), Some(Failed)),
            (Some(&requested), Some(&idle), Some(Deleted)),
            // The end of the sync before it is not its own.
            (
                Some(&application(&operation, "Succeeded", "09:00:00")),
                Some(&application(&none, "Succeeded", "09:00:00")),
                Some(Deleted),
            ),
            (Some(&running), Some(&ended("Running")), Some(Deleted)),
            (Some(&running), None, Some(Deleted)),
            (Some(&ended("Running")), Some(&ended("Failed")), None),
            (Some(&ended("Running")), Some(&requested), Some(Sync)),
        ] {
            let found = transition("alice", before, after);
            assert_eq!(found.map(|it| it.kind), wanted, "{before:?} {after:?}");
        }
        let start = transition("bob", Some(&idle), Some(&requested)).unwrap();
        assert_eq!((start.storage, start.revision, start.from, start.to), ("Application", None, None, None));
        assert_eq!((start.holder.as_deref(), start.freeze.as_deref()), (Some("bob"), Some("sale")));
        let end = transition("alice", Some(&running), Some(&ended("Succeeded"))).unwrap();
        assert_eq!((end.holder.as_deref(), end.seconds, end.freeze), (Some("bob"), Some(60), None));
    }

    #[test]
    fn every_change_of_status_has_a_kind_and_pruning_has_none() {
        use Status::{Deployed, Failed, PendingInstall, Superseded, Uninstalled, Uninstalling};
        for (from, to, wanted) in [
            (None, Some(PendingInstall), Some(TransitionKind::Install)),
            (Some(PendingInstall), Some(Failed), Some(TransitionKind::Failed)),
            (Some(Deployed), Some(Uninstalling), Some(TransitionKind::Uninstall)),
            (Some(Uninstalling), None, Some(TransitionKind::Uninstalled)),
            (Some(Uninstalling), Some(Uninstalled), Some(TransitionKind::Uninstalled)),
            (Some(Deployed), None, Some(TransitionKind::Deleted)),
            (Some(Superseded), None, None),
            (Some(Failed), None, None),
            (Some(Deployed), Some(Deployed), None),
            (None, None, None),
        ] {
            assert_eq!(TransitionKind::of(from, to), wanted, "{from:?} {to:?}");
        }
        for kind in TransitionKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert_eq!("deploy".parse::<TransitionKind>(), Err(BadTransition));
    }
}

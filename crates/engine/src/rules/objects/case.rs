//! One request that writes, deletes or scales an object, and its conflict with the object's owner.

use std::cell::OnceCell;

use jiff::Timestamp;

use super::conflict::{DeclaringRelease, OwnershipConflict, declared_by, finish_uninstall};
use super::declared_fields::{Declaration, LostFields};
use super::operation_holder::{OperationHolder, declaring, declaring_records, operation_holder, record_ref};
use crate::evidence::{CandidateRecords, Evidence, Freshness, RecordRef, ScaledObject, ScaledRef, question};
use crate::facts::{ActorKind, Facts, ManagedWrite, ObjectChange};
use crate::managed::Owner;
use crate::owners::{self, DrivenRelease, Marks};
use crate::policy::{Policy, ScalableResource};
use crate::release::{Entry, History, ReleaseRef, Status};
use crate::rules::check::{Step, Way, WaysOut};
use crate::rules::undecided::{Undecided, ask};
use crate::rules::wording;

/// One request about an object.
pub(crate) struct ObjectCase<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) write: &'a ManagedWrite<'a>,
    pub(crate) policy: &'a Policy,
    pub(crate) evidence: &'a Evidence,
    pub(crate) now: Timestamp,
    /// Computed once, because it is expensive and several rules need it.
    conflict: OnceCell<Result<Option<OwnershipConflict>, Undecided>>,
}

/// How a request is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// An ordinary write. Holders of operations and managers may do their work.
    Write,
    /// A part of an uninstall that may not start. The deletion has only the rights of an uninstall that has already begun.
    Uninstall,
}

impl<'a> ObjectCase<'a> {
    pub(crate) fn new(
        facts: &'a Facts<'a>,
        write: &'a ManagedWrite<'a>,
        policy: &'a Policy,
        evidence: &'a Evidence,
        now: Timestamp,
    ) -> Self {
        Self { facts, write, policy, evidence, now, conflict: OnceCell::new() }
    }

    /// The conflict of the request; `None` if there is none.
    pub(crate) fn conflict(&self) -> Result<Option<&OwnershipConflict>, Undecided> {
        self.conflict
            .get_or_init(|| self.find_conflict(Purpose::Write))
            .as_ref()
            .map(Option::as_ref)
            .map_err(Undecided::clone)
    }

    /// The conflict of a deletion that may be part of an uninstall which may not start. Managers and the holder of an upgrade
    /// have conflicts here too.
    pub(crate) fn conflict_of_uninstall(&self) -> Result<Option<OwnershipConflict>, Undecided> {
        if self.deletes() { self.find_conflict(Purpose::Uninstall) } else { Ok(None) }
    }

    /// Runs a check on caches first, and then on the API server. A cache is enough to find nothing; only the API server can
    /// confirm a conflict.
    pub(crate) fn confirmed<T>(
        &self,
        check: impl Fn(Freshness) -> Result<Option<T>, Undecided>,
    ) -> Result<Option<T>, Undecided> {
        // If the API server was queried, the caches have already shown something.
        if !self.evidence.is_live() {
            match check(Freshness::Cached) {
                Ok(None) => return Ok(None),
                Err(Undecided::Ask(query)) => return Err(Undecided::Ask(query)),
                Ok(Some(_)) | Err(_) => {}
            }
        }
        check(Freshness::Live)
    }

    fn find_conflict(&self, purpose: Purpose) -> Result<Option<OwnershipConflict>, Undecided> {
        if self.is_exempt() || self.write.being_deleted || self.changes_nothing() {
            return Ok(None);
        }
        self.confirmed(|freshness| self.conflict_by(freshness, purpose))
    }

    /// `Deployment shop/web`.
    pub(crate) fn subject(&self) -> String {
        let ManagedWrite { namespace, name, .. } = self.write;
        let kind = self.kind();
        let scope = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        format!("{kind} {scope}{name}")
    }

    /// The kind of the object; for a Scale the kind of the scaled object.
    pub(crate) fn kind(&self) -> &'a str {
        self.scalable_resource().map_or(self.write.kind, |scalable| &scalable.kind)
    }

    /// A way out, an override, and for a service account the lists that exempt it: nobody can ask it to take another way.
    pub(crate) fn or_exempt(&self, way: impl Into<Way>) -> WaysOut {
        let ways_out = WaysOut::from(way.into()).or(Step::release_override());
        match self.facts.actor.service_account() {
            Some(account) if self.facts.actor.is_service_account() => ways_out.note(format!(
                "If {account} completes objects of releases, list it under `controllers` in the cluster policy, or add a case for it \
                 (serviceAccounts) to the rule."
            )),
            _ => ways_out,
        }
    }

    /// Whether the user writes objects of releases as part of its work.
    fn is_exempt(&self) -> bool {
        let actor = self.facts.actor;
        matches!(actor.kind, ActorKind::ControlPlane | ActorKind::Platform | ActorKind::Node)
            || (self.by_manager() && !self.deletes())
            || self.policy.controllers.contains(actor.name)
    }

    fn by_manager(&self) -> bool {
        self.policy.managers.contains(self.facts.actor.name)
    }

    fn deletes(&self) -> bool {
        matches!(self.write.change, ObjectChange::Deleted { .. })
    }

    fn changes_nothing(&self) -> bool {
        match &self.write.change {
            ObjectChange::Edited { sides, .. } => sides.delta.is_none() && !sides.changes_managed_fields(),
            ObjectChange::Deleted { .. } => false,
            ObjectChange::Scaled { old, new, .. } => old == new,
        }
    }

    fn conflict_by(&self, freshness: Freshness, purpose: Purpose) -> Result<Option<OwnershipConflict>, Undecided> {
        let Some(marks) = self.marks(freshness)? else {
            return Ok(None);
        };
        let marks = self.owning(marks, freshness)?;
        match &marks.owner {
            Owner::Release { name, target_namespace, .. } => {
                self.conflict_with_release(marks, (name, target_namespace), freshness, purpose)
            }
            Owner::Profile { .. } | Owner::Applied { .. } if self.by_manager() => Ok(None),
            Owner::Applied { program, name, .. } => self.conflict_with_applied(marks, (program, name), freshness),
            Owner::Profile { program, kind, name } => {
                require_consistent(marks)?;
                self.conflict_with_profile(marks, (&format!("the {program} {kind} {name}"), name), freshness)
            }
        }
    }

    /// Whether the actor is Flux working on the release. During another user's operation, the account must be one that may
    /// continue that operation.
    fn is_driver_at_work(&self, release: DrivenRelease<'_>, over_operation: bool) -> Result<bool, Undecided> {
        let (evidence, policy, actor) = (self.evidence, self.policy, self.facts.actor);
        if over_operation {
            return release.is_handover(evidence, policy, actor);
        }
        release.is_driver_account(evidence, policy, actor)
    }

    /// The conflict with a release.
    fn conflict_with_release(
        &self,
        marks: &Marks,
        (name, target_namespace): (&str, &str),
        freshness: Freshness,
        purpose: Purpose,
    ) -> Result<Option<OwnershipConflict>, Undecided> {
        let Some(candidate) = self.records_of(&marks.owner, freshness)? else {
            return Ok(None);
        };
        let CandidateRecords { storage, namespace, history, .. } = candidate;
        let stamps = history.stamps();
        let driven = DrivenRelease { storage: *storage, namespace, release: name, stamps };
        let is_stale = |entry: &Entry| driven.is_stale(self.evidence, self.policy, entry.started(), self.now);
        let held_by = operation_holder(history, self.facts.actor, self.policy, self.now, is_stale)?;
        let entry = match held_by {
            OperationHolder::Gone => return Ok(None),
            OperationHolder::Actor => match history.newest() {
                Some(newest) if purpose == Purpose::Uninstall && !may_uninstall(history, freshness) => newest,
                _ => return Ok(None),
            },
            OperationHolder::Other(entry) | OperationHolder::Nobody(entry) | OperationHolder::Unknown(entry) => entry,
        };
        // Controllers may delete objects of a release at any time. But helm continues with the deletions of an uninstall after
        // the write of its record was refused.
        let uninstalls_over = self.deletes() && matches!(held_by, OperationHolder::Other(_));
        let of_manager = stamps.holder().is_some_and(|holder| self.policy.managers.contains(holder));
        let may_pass = purpose == Purpose::Write && self.by_manager() && (of_manager || !uninstalls_over);
        if may_pass || self.is_taken_over(freshness)? {
            return Ok(None);
        }
        let lost = require_consistent(marks).and_then(|()| self.lost_by(marks, candidate, target_namespace));
        // Flux works for a tenant outside of operations too: it corrects drift, runs tests, applies definitions. This check is last,
        // so that requests without a conflict need no query.
        let may_go_on = matches!(lost, Ok(None) | Err(Undecided::Ask(_)));
        if purpose == Purpose::Write
            && !may_go_on
            && (self.is_driver_at_work(driven, uninstalls_over)? || self.is_hook_of(candidate, entry)?)
        {
            return Ok(None);
        }
        let Some((record, LostFields { fields, unreadable })) = lost? else {
            return Ok(None);
        };
        if owners::rules::are_outdated(self.evidence, self.policy, *storage, name)? {
            return Ok(None);
        }
        if matches!(held_by, OperationHolder::Unknown(_)) {
            return Err(of_unknown_holder(entry));
        }
        let release = ReleaseRef::new(namespace, name);
        Ok(Some(OwnershipConflict {
            owner: format!("release {release} ({})", self.state(entry)),
            declarer: "the chart",
            through: declared_by(&marks.owner, *storage, &release),
            uninstall: (entry.status == Status::Uninstalling)
                .then(|| finish_uninstall(&marks.owner, *storage, &release)),
            release,
            fields,
            in_flight: matches!(held_by, OperationHolder::Other(_)),
            declaring: Some(DeclaringRelease {
                record,
                target_namespace: target_namespace.to_owned(),
                stamps: stamps.clone(),
                marks: marks.clone(),
            }),
            is_suspended: false,
            unusable_exception: None,
            unreadable,
        }))
    }

    /// What the request takes from a release, and which record declares it. During an operation that is what is in flight, and what
    /// is deployed: until the operation ends, nobody may take what only the new revision drops.
    fn lost_by(
        &self,
        marks: &Marks,
        candidate: &CandidateRecords,
        target_namespace: &str,
    ) -> Result<Option<(RecordRef, LostFields)>, Undecided> {
        let mut unknown = None;
        for record in declaring_records(&candidate.history) {
            let record = record_ref(candidate, record);
            match self.changed_declared_fields(marks, record.clone(), target_namespace.to_owned()) {
                Err(need @ Undecided::Ask(_)) => return Err(need),
                Err(why) => unknown = unknown.or(Some(why)),
                Ok(Some(lost)) => return Ok(Some((record, lost))),
                Ok(None) => {}
            }
        }
        unknown.map_or(Ok(None), Err)
    }

    /// Whether the request transfers the object to another release that declares it, during an operation of that release:
    /// `helm --take-ownership`.
    fn is_taken_over(&self, freshness: Freshness) -> Result<bool, Undecided> {
        let ObjectChange::Edited { marks, marks_after: Some(after), .. } = &self.write.change else {
            return Ok(false);
        };
        if after.owner == marks.owner || after.contradiction.is_some() {
            return Ok(false);
        }
        let Owner::Release { target_namespace, .. } = &after.owner else {
            return Ok(false);
        };
        let Some(candidate) = self.records_of(&after.owner, freshness)? else {
            return Ok(false);
        };
        // The holder may act at any age of the operation.
        let is_stale = |_: &Entry| Ok(false);
        let held_by = operation_holder(&candidate.history, self.facts.actor, self.policy, self.now, is_stale)?;
        if held_by != OperationHolder::Actor {
            return Ok(false);
        }
        // If that release does not declare the object, it would neither upgrade nor delete it.
        let Some(record) = declaring(candidate) else {
            return Ok(false);
        };
        Ok(matches!(self.declaration(record, target_namespace.clone())?, Declaration::Document(_)))
    }

    fn marks(&self, freshness: Freshness) -> Result<Option<&Marks>, Undecided> {
        match &self.write.change {
            ObjectChange::Edited { marks, .. } | ObjectChange::Deleted { marks, .. } => Ok(Some(marks)),
            ObjectChange::Scaled { .. } => Ok(self.scaled(freshness)?.map(|scaled| &scaled.marks)),
        }
    }

    /// The object that the request scales; `None` if it has no marks, or the policy does not know its resource.
    pub(super) fn scaled(&self, freshness: Freshness) -> Result<Option<&ScaledObject>, Undecided> {
        let (ObjectChange::Scaled { resource, .. }, Some(scalable)) = (&self.write.change, self.scalable_resource())
        else {
            return Ok(None);
        };
        let version = self.write.api_version.rsplit('/').next().unwrap_or_default();
        let object = ScaledRef {
            group: self.write.group().to_owned(),
            version: version.to_owned(),
            resource: (*resource).to_owned(),
            kind: scalable.kind.clone(),
            namespace: self.write.namespace.clone(),
            name: self.write.name.clone(),
        };
        ask(self.evidence, question::Parent { object, freshness })
    }

    pub(crate) fn scalable_resource(&self) -> Option<&'a ScalableResource> {
        let ObjectChange::Scaled { resource, .. } = &self.write.change else {
            return None;
        };
        self.policy.scalable_resource(self.write.group(), resource)
    }

    /// `revision 7, deployed`, or the operation in flight with its holder.
    fn state(&self, entry: &Entry) -> String {
        if entry.status.is_in_flight() {
            return wording::state(entry.status, entry.revision, entry.stamps.holder(), entry.started(), self.now);
        }
        format!("revision {}, {}", entry.revision, entry.status)
    }
}

/// Whether the holder of the newest operation may delete what the release declares. That is so for an uninstall, and for the
/// clean-up of a release that was never deployed. Upgrades and their clean-ups delete only what the release no longer declares.
fn may_uninstall(history: &History, freshness: Freshness) -> bool {
    let has_begun = history.newest().is_some_and(|newest| newest.status == Status::Uninstalling);
    // Caches leave superseded records out.
    has_begun || (freshness == Freshness::Live && !history.was_deployed())
}

/// Undecided if the marks contradict each other, because the owner is then uncertain.
fn require_consistent(marks: &Marks) -> Result<(), Undecided> {
    match marks.contradiction {
        None => Ok(()),
        Some(mark) => Err(Undecided::Unclear {
            why: format!("its {mark} is missing or contradicts its other ownership marks"),
            way_out: "Correct it, or remove the other marks too.",
        }),
    }
}

/// The release is in an operation whose holder is unknown.
fn of_unknown_holder(entry: &Entry) -> Undecided {
    let status = entry.status;
    Undecided::Unclear {
        why: format!("its release is {status}, and the user who holds it is not known"),
        way_out: "Wait until the operation ends.",
    }
}

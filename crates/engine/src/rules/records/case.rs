//! One request that writes or deletes a record, with lookups for the rules.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::evidence::{Evidence, Freshness, StoredBody, Workload, question};
use crate::facts::{Facts, RecordChange, RecordId};
use crate::owners;
use crate::owners::DrivenRelease;
use crate::owners::OwnerWords;
use crate::policy::Policy;
use crate::release::manifest::WorkloadRef;
use crate::release::{DecodeError, Entry, History, Record, RecordName, Stamps, Status, Storage};
use crate::rules::undecided::{Undecided, ask, ask_for, if_answered};
use crate::rules::wording;

/// One request that writes or deletes a record.
pub(crate) struct RecordCase<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) id: &'a RecordId,
    pub(crate) change: &'a RecordChange<'a>,
    pub(crate) policy: &'a Policy,
    pub(crate) evidence: &'a Evidence,
    pub(crate) now: Timestamp,
}

impl<'a> RecordCase<'a> {
    /// The records of the release. On an update or a deletion they include the record itself.
    pub(crate) fn history(&self) -> Result<&'a History, Undecided> {
        self.history_in(self.id.storage, Freshness::Live)
    }

    /// The records of the release's name in Helm's other storage, and which that is; `None` if none is in use there.
    ///
    /// A watch is enough to find none. Unlike two revisions under one driver, operations under two drivers never take each other's
    /// place, and a second LIST for each operation of every release would find what almost no release has.
    pub(crate) fn in_the_other_storage(&self) -> Result<Option<(Storage, &'a History)>, Undecided> {
        let Some(storage) = self.id.storage.sibling() else { return Ok(None) };
        if self.history_in(storage, Freshness::Cached)?.newest().is_none() {
            return Ok(None);
        }
        Ok(Some((storage, self.history_in(storage, Freshness::Live)?)))
    }

    fn history_in(&self, storage: Storage, freshness: Freshness) -> Result<&'a History, Undecided> {
        let RecordId { namespace, release, .. } = self.id.clone();
        let question = question::History { storage, namespace, release, freshness };
        ask_for(self.evidence, question, "the records of the release")
    }

    /// The namespace that policies use for the release. For an extension it is in the stored record. If the record is split over
    /// several Secrets, a single one cannot be read, and the ClusterExtension says it.
    pub(crate) fn home(&self) -> Result<String, Undecided> {
        let RecordId { storage, namespace, release, .. } = self.id;
        let stored = match self.change {
            RecordChange::Created(side) | RecordChange::Deleted(side) | RecordChange::Updated { before: side, .. } => {
                side
            }
        };
        let of_objects = match stored.target_namespace() {
            None => owners::rules::declared_namespace(self.evidence, *storage, release)?,
            known => known,
        };
        Ok(storage.home(namespace, of_objects.as_deref()).to_owned())
    }

    /// The JSON of the body of a record, or why it cannot be decoded; `None` if the record does not exist.
    pub(crate) fn body(&self, object: &str) -> Result<Option<Result<&'a [u8], DecodeError>>, Undecided> {
        Ok(self.stored_body(object)?.map(|body| match body {
            StoredBody::Json(json) => Ok(json.as_slice()),
            StoredBody::Broken(error) => Err(error.clone()),
        }))
    }

    fn stored_body(&self, object: &str) -> Result<Option<&'a StoredBody>, Undecided> {
        let RecordId { storage, namespace, .. } = self.id;
        ask(
            self.evidence,
            question::Body { storage: *storage, namespace: namespace.clone(), object: object.to_owned() },
        )
    }

    /// Why no client can read a record; `None` if one can, or if that is unknown.
    pub(crate) fn why_unreadable(&self, object: &str) -> Result<Option<DecodeError>, Undecided> {
        let body = if_answered(self.stored_body(object))?;
        Ok(body.and_then(|body| body.why_unreadable(self.facts.effort)))
    }

    /// The workloads with these names, in the same order; `None` for one that does not exist.
    pub(crate) fn workloads(&self, named: &[WorkloadRef]) -> Result<&'a [Option<Workload>], Undecided> {
        let workloads = question::Workloads(named.to_vec());
        Ok(ask_for(self.evidence, workloads, "the workloads of the release")?.as_slice())
    }

    /// The leases that nelm and werf hold in the namespace of the records.
    pub(crate) fn leases(&self) -> Result<Option<&'a BTreeMap<String, String>>, Undecided> {
        ask(self.evidence, question::Leases { namespace: self.id.namespace.clone() })
    }

    /// The newest record, if its label says that an operation is in flight, and its body too if the body can be read. A user may
    /// have edited only the label while the webhook was unavailable. Helm uses the body, so such an edit must not lock a release.
    pub(crate) fn in_flight(&self) -> Result<Option<&'a Entry>, Undecided> {
        let Some(newest) = self.history()?.newest().filter(|newest| newest.status.is_in_flight()) else {
            return Ok(None);
        };
        let body = match self.body(&newest.name) {
            Err(Undecided::Unavailable(_) | Undecided::Unclear { .. }) => None,
            body => body?,
        };
        let status = body
            .and_then(|body| Record::read(body.ok()?, self.facts.effort).ok())
            .map(|record| record.info.status.parse::<Status>());
        let at_rest = matches!(status, Some(Ok(status)) if !status.is_in_flight());
        Ok((!at_rest).then_some(newest))
    }

    /// Whether an operation is old enough to count as stuck. An operation with an unknown start never is.
    pub(crate) fn is_stale(&self, started: Option<Timestamp>, stamps: &Stamps) -> Result<bool, Undecided> {
        self.driven(stamps).is_stale(self.evidence, self.policy, started, self.now)
    }

    /// The age at which an operation counts as stuck. HelmReleases are queried only if they can make a difference.
    pub(crate) fn stale_after(&self, started: Option<Timestamp>, stamps: &Stamps) -> Result<SignedDuration, Undecided> {
        self.driven(stamps).stale_after(self.evidence, self.policy, started, self.now)
    }

    /// The release, for lookups of its HelmReleases.
    pub(crate) fn driven<'s>(&self, stamps: &'s Stamps) -> DrivenRelease<'s>
    where
        'a: 's,
    {
        let id = self.id;
        DrivenRelease { storage: id.storage, namespace: &id.namespace, release: &id.release, stamps }
    }

    /// Whether the name of the object is one that no client uses. Then it is not the record that its labels claim, and deleting
    /// it loses nothing.
    pub(crate) fn is_misnamed(&self) -> bool {
        self.id.object.parse::<RecordName>().is_err()
    }

    /// `release shop/web`, and the revision if it is known.
    pub(crate) fn subject(&self) -> String {
        let revision = self.id.revision.map(|revision| format!(", revision {revision}")).unwrap_or_default();
        format!("release {}/{}{revision}", self.id.namespace, self.id.release)
    }

    /// The terms that the owner of the release uses.
    pub(crate) fn words(&self) -> OwnerWords<'a> {
        let RecordId { storage, namespace, release, .. } = self.id;
        OwnerWords { storage: *storage, namespace, release }
    }

    /// `pending-upgrade, revision 6, held by alice for 12 s`.
    pub(crate) fn state(&self, entry: &Entry) -> String {
        wording::state(entry.status, entry.revision, entry.stamps.holder(), entry.started(), self.now)
    }
}

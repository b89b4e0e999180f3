//! The runbook's checks of a record that is in the way of its release. They are the checks of the rule for the deletion that is about to be requested.

use interlock_engine::effort::Effort;
use interlock_engine::evidence::{Evidence, question};
use interlock_engine::facts::{Facts, RequestObjects};
use interlock_engine::object::ObjectKey;
use interlock_engine::policy::Policy;
use interlock_engine::release::{DecodeError, Entry, ReleaseRef, Storage};
use interlock_engine::review::{Gvk, Gvr, Operation, Request, UserInfo};
use interlock_engine::rules::{RunbookCheck, inspect};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::diagnosis::ReleaseRecords;
use crate::budget::{Flow, Holdings};
use crate::world::{QueryBudget, World, ask};

/// The record of a release that is in its way, as read at one moment: the newest one if it is pending, or one that no client can
/// read. Checks, copy and deletion apply to this version only.
pub(crate) struct StuckRecord {
    pub(super) release: ReleaseRef,
    pub(super) storage: Storage,
    pub(super) entry: Entry,
    pub(super) object: Box<RawValue>,
}

impl StuckRecord {
    /// Reads the record; `None` if no record is in the way, or it was deleted meanwhile.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(crate) async fn read(world: &dyn World, records: ReleaseRecords<'_>) -> Result<Option<Self>, String> {
        let ReleaseRecords { release, storage, history, broken } = records;
        let pending = history.newest().filter(|newest| newest.status.is_pending());
        // One that lacks parts is not worth a copy.
        let is_damaged = |entry: &&Entry| {
            broken.get(&entry.name).is_some_and(|error| !matches!(error, DecodeError::MissingChunks(_)))
        };
        let Some(entry) = pending.or_else(|| history.iter().find(is_damaged)) else {
            return Ok(None);
        };
        let object = question::Object(record_key(release, storage, &entry.name));
        let Some(text) = ask(world, object).await? else { return Ok(None) };
        let object =
            RawValue::from_string(text).map_err(|error| format!("{} cannot be parsed: {error}", entry.name))?;
        Ok(Some(Self { release: release.clone(), storage, entry: entry.clone(), object }))
    }

    /// Evaluates every check of the runbook.
    ///
    /// # Errors
    /// When the record cannot be parsed. A check that cannot be evaluated says so.
    pub(crate) async fn checks(
        &self,
        world: &dyn World,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Vec<RunbookCheck>, String> {
        let kind = self.storage.kind();
        let request = Request {
            uid: "".into(),
            kind: Gvk { group: "".into(), version: "v1".into(), kind: kind.into() },
            resource: Gvr { group: "".into(), version: "v1".into(), resource: plural(kind).into() },
            sub_resource: None,
            name: Some(self.entry.name.as_str().into()),
            namespace: Some(self.release.namespace.as_str().into()),
            operation: Operation::Delete,
            // The checks do not depend on the user.
            user_info: UserInfo { username: "".into(), groups: Vec::new(), ..UserInfo::default() },
            object: None,
            old_object: Some(self.object.as_ref().into()),
            dry_run: None,
        };
        let objects = RequestObjects::read(&request).map_err(|error| error.to_string())?;
        let (effort, holdings) = (Effort::of_review(), Holdings::default());
        let bodies = objects.payloads(request.operation).inflate(&effort);
        let facts = Facts::of(&request, &objects, &bodies, &effort);
        let mut evidence = Evidence::default();
        loop {
            match inspect(&facts, policy, &evidence, now) {
                Ok(checks) => return Ok(checks),
                Err(query) => {
                    let own = QueryBudget { flow: Flow::own(), effort: &effort, holdings: &holdings };
                    let answer = world.answer_for(&query, own).await;
                    evidence.add(query, answer);
                }
            }
        }
    }

    /// The record in the history.
    #[must_use]
    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The object name of the record.
    #[must_use]
    pub(crate) fn record(&self) -> &str {
        &self.entry.name
    }
}

fn record_key(release: &ReleaseRef, storage: Storage, record: &str) -> ObjectKey {
    ObjectKey::new("", storage.kind(), &release.namespace, record)
}

/// The resource of a kind that stores records.
pub(super) fn plural(kind: &str) -> &'static str {
    if kind == "ConfigMap" { "configmaps" } else { "secrets" }
}

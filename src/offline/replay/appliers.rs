//! The objects of the input that apply other objects without a release. `interlock adopt` lists them.

use std::collections::BTreeMap;

use interlock_engine::json::RawObject;
use interlock_engine::object::ObjectKey;
use interlock_engine::owners::{APPLYING, CARRIERS, applied_objects};
use interlock_engine::review::Request;

/// The most objects that are remembered.
const MAX_APPLIERS: usize = 5_000;

/// What an object that applies others was seen to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Applier {
    /// The most objects that its status listed.
    pub(crate) objects: usize,
    /// The operations that started.
    pub(crate) operations: usize,
}

/// The appliers by key. Deleted ones stay.
#[derive(Debug, Default)]
pub(super) struct Appliers(BTreeMap<ObjectKey, Applier>);

impl Appliers {
    /// Notes an object as it is before the input, or as a dump of the cluster has it.
    pub(super) fn note_object(&mut self, key: &ObjectKey, text: &str) {
        self.note(key, None, text);
    }

    /// Notes a write, whether or not the registration sends it.
    pub(super) fn note_write(&mut self, request: &Request<'_>) {
        if request.dry_run.unwrap_or_default() || !is_applier(&request.kind.group, &request.kind.kind) {
            return;
        }
        if let (Some(key), Some(object)) = (ObjectKey::of_request(request), request.object) {
            self.note(&key, Some(request.old_object.map_or("", RawObject::get)), object.get());
        }
    }

    fn note(&mut self, key: &ObjectKey, before: Option<&str>, text: &str) {
        let is_new = !self.0.contains_key(key);
        if !is_applier(&key.group, &key.kind) || (is_new && self.0.len() >= MAX_APPLIERS) {
            return;
        }
        let seen = self.0.entry(key.clone()).or_default();
        seen.objects = seen.objects.max(applied_objects(&key.kind, text).len());
        seen.operations += usize::from(before.is_some_and(|before| starts_operation(key, before, text)));
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&ObjectKey, Applier)> {
        self.0.iter().map(|(key, applier)| (key, *applier))
    }
}

fn is_applier(group: &str, kind: &str) -> bool {
    APPLYING.contains(&(group, kind))
}

/// Whether a write is the start of an operation that the object carries.
fn starts_operation(key: &ObjectKey, before: &str, after: &str) -> bool {
    let carrier = CARRIERS.iter().find(|carrier| carrier.group == key.group && carrier.kind == key.kind);
    carrier.is_some_and(|carrier| {
        let is_in_flight = |text: &str| carrier.operation(text).is_ok_and(|operation| operation.is_some());
        is_in_flight(after) && !is_in_flight(before)
    })
}

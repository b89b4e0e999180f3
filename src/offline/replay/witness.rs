//! The world of a replay: a world in memory that notes the queried kinds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use interlock_engine::evidence::Query;
use interlock_engine::owners::Driver;
use interlock_engine::policy::NamespaceLabels;
use interlock_engine::release::{ReleaseRef, Storage};

use super::gaps::UnknownKind;
use crate::world::memory::Memory;
use crate::world::{AnswerFuture, LossVerdict, NoteFuture, QueryBudget, World};

/// A world in memory that notes the kinds that rules query.
#[derive(Debug)]
pub(super) struct Witness {
    memory: Arc<Memory>,
    /// By group and kind.
    asked: Mutex<BTreeMap<(String, String), AskedKind>>,
}

#[derive(Debug, Default)]
struct AskedKind {
    queries: usize,
    /// Whether an object of the kind existed at the time of a query.
    is_known: bool,
}

impl Witness {
    pub(super) fn of(memory: Arc<Memory>) -> Self {
        Self { memory, asked: Mutex::default() }
    }

    /// The queried kinds.
    pub(super) fn asked(&self) -> Vec<(String, String)> {
        self.lock().keys().cloned().collect()
    }

    /// The queried kinds that never had an object.
    pub(super) fn unknown(&self) -> Vec<UnknownKind> {
        let asked = self.lock();
        let unknown = asked.iter().filter(|((group, kind), asked)| !asked.is_known && !self.memory.holds(group, kind));
        let unknown = unknown.map(|((group, kind), asked)| UnknownKind {
            group: group.clone(),
            kind: kind.clone(),
            queries: asked.queries,
        });
        unknown.collect()
    }

    fn note(&self, query: &Query) {
        let mut all = self.lock();
        for (group, kind) in query.kinds() {
            let asked = all.entry((group.to_owned(), kind.to_owned())).or_default();
            asked.queries += 1;
            asked.is_known |= self.memory.holds(group, kind);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, String), AskedKind>> {
        // Nothing can panic while the lock is held.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World for Witness {
    fn namespace_labels(&self) -> Option<Arc<NamespaceLabels>> {
        self.memory.namespace_labels()
    }

    fn drivers_naming(&self, records: &ReleaseRef, matches: &dyn Fn(&Driver) -> bool) -> Vec<Driver> {
        self.memory.drivers_naming(records, matches)
    }

    fn protector_of(&self, storage: Storage, records: &ReleaseRef) -> Option<String> {
        self.memory.protector_of(storage, records)
    }

    fn note_loss<'w>(&'w self, verdict: LossVerdict<'w>) -> NoteFuture<'w> {
        self.memory.note_loss(verdict)
    }

    fn answer_for<'w>(&'w self, query: &'w Query, budget: QueryBudget<'w>) -> AnswerFuture<'w> {
        self.note(query);
        self.memory.answer_for(query, budget)
    }
}

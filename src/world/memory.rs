//! A world in memory: for the standalone server, which keeps the objects that it admits, for replay, and for tests.

use std::ops::Deref;
use std::sync::Arc;

use interlock_engine::evidence::{Answer, Query};
use interlock_engine::memory::{AdmittedWrite, Objects};
use interlock_engine::owners::Driver;
use interlock_engine::policy::{Freeze, NamespaceLabels};
use interlock_engine::release::{ReleaseRef, Storage};
use interlock_engine::release_override::Override;

use super::turns::Turns;
use super::{AnswerFuture, InFlight, Known, LossVerdict, NoteFuture, QueryBudget, World};
use crate::budget::{Budget, block_in_place_if_possible};

/// The maximum size of writes that are applied inline, in bytes. They take less than a millisecond.
const SHORT_BYTES: usize = 256 << 10;

/// Objects in memory. A query reads records in the turns of its own flow.
#[derive(Debug)]
pub struct Memory {
    objects: Objects,
    turns: Turns,
}

impl Memory {
    /// An empty world for objects of at most `limit` bytes, names included.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { objects: Objects::new(limit), turns: Turns::new(Arc::new(Budget::new(limit))) }
    }

    /// The same world, whose answers share a budget with reviews. By default the world has a budget of its own, with `limit` bytes.
    #[must_use]
    pub fn sharing(self, budget: Arc<Budget>) -> Self {
        Self { turns: Turns::new(budget), ..self }
    }

    /// The same world, which notes what objects lose.
    #[must_use]
    pub fn noting_losses(self) -> Self {
        Self { objects: self.objects.noting_losses(), ..self }
    }

    /// Adds an admitted write, as [`Objects::admit`]. Applying many writes does not block network tasks.
    pub fn admit(&self, write: AdmittedWrite) -> bool {
        if self.objects.settles_at(&write) {
            block_in_place_if_possible(|| self.objects.admit(write))
        } else {
            self.objects.admit(write)
        }
    }

    /// Applies the admitted writes. Long writes do not block network tasks.
    pub fn settle(&self) {
        if self.objects.unsettled_bytes() > SHORT_BYTES {
            block_in_place_if_possible(|| self.objects.settle());
        } else {
            self.objects.settle();
        }
    }

    /// A copy of this world, which changes independently.
    #[must_use]
    pub fn branch(&self) -> Self {
        Self { objects: self.objects.branch(), turns: self.turns.clone() }
    }

    async fn look_up(&self, query: &Query, budget: QueryBudget<'_>) -> Answer {
        self.settle();
        self.objects.answer_by(query, &self.turns.of(budget)).await
    }
}

/// A world in memory consists of its objects, and of turns for reading them.
impl Deref for Memory {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}

impl World for Memory {
    fn namespace_labels(&self) -> Option<Arc<NamespaceLabels>> {
        Some(Arc::new(self.objects.namespace_labels()))
    }

    fn drivers_naming(&self, records: &ReleaseRef, matches: &dyn Fn(&Driver) -> bool) -> Vec<Driver> {
        self.settle();
        self.helm_releases(|driver| driver.drives(&records.namespace, &records.name) && matches(driver))
    }

    fn protector_of(&self, storage: Storage, ReleaseRef { namespace, name }: &ReleaseRef) -> Option<String> {
        self.settle();
        self.objects.protector_of(storage, namespace, name)
    }

    fn note_loss<'w>(&'w self, LossVerdict { loss, known, admitted, now }: LossVerdict<'w>) -> NoteFuture<'w> {
        let is_noted = self.objects.note_loss(loss, known, admitted, now);
        Box::pin(async move { Ok(is_noted) })
    }

    fn answer_for<'w>(&'w self, query: &'w Query, budget: QueryBudget<'w>) -> AnswerFuture<'w> {
        Box::pin(self.look_up(query, budget))
    }
}

impl Known for Memory {
    fn in_flight(&self, limit: usize) -> (Vec<InFlight>, usize, bool) {
        let names = self.releases();
        let sets = names.iter().flat_map(|name| self.record_sets(name).into_iter().map(move |set| (name, set)));
        let found: Vec<_> = sets
            .filter_map(|(name, set)| {
                let newest = set.entries.iter().max_by_key(|entry| entry.revision)?;
                let started = newest.status.is_in_flight().then(|| newest.started())?;
                let release = ReleaseRef::new(set.namespace, name);
                Some(InFlight { started, release, storage: set.storage, entries: set.entries })
            })
            .collect();
        let total = found.len();
        (InFlight::oldest(found, limit), total, true)
    }

    fn drivers(&self) -> Option<Vec<Driver>> {
        Some(self.helm_releases(|_| true))
    }

    fn overrides_that(&self, matches: &dyn Fn(&Override) -> bool, limit: usize) -> Option<(Vec<Override>, usize)> {
        let mut matching = self.objects.overrides(matches);
        matching.sort_by_key(|it| it.spec.expires_at);
        let total = matching.len();
        matching.truncate(limit);
        Some((matching, total))
    }

    fn freezes(&self) -> Arc<[Freeze]> {
        self.objects.freezes(|_| true)
    }
}

#[cfg(test)]
mod tests;

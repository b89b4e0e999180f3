//! Turns at the cores and memory for the answers to a review. They are charged to the review.

use std::sync::Arc;

use interlock_engine::answers::read_document;
use interlock_engine::evidence::ReadDocument;
use interlock_engine::release::manifest::DocumentKey;
use interlock_engine::release::record::{DecodeError, Payload};

use super::QueryBudget;
use super::documents;
use crate::budget::{Budget, Grant, Price};

/// Approximate steps to inflate a byte of a record and to extract its manifest.
const INFLATE_STEPS: u64 = 5;

/// Approximate steps to search a byte of a manifest for a document.
const FIND_STEPS: u64 = 60;

/// The turns and the memory of answers.
#[derive(Debug, Clone)]
pub(super) struct Turns(Arc<Budget>);

impl Turns {
    pub(super) fn new(shared: Arc<Budget>) -> Self {
        Self(shared)
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.0
    }

    /// Inflates the body of a record in granted memory, and reads it. A short body runs inline. The inner error is about the
    /// record.
    ///
    /// # Errors
    /// When there was no turn.
    pub(super) async fn inflated<T>(
        &self,
        budget: QueryBudget<'_>,
        payload: Payload,
        read: impl FnOnce(Vec<u8>) -> Result<T, DecodeError>,
    ) -> Result<Result<T, DecodeError>, String> {
        let _reserved = self.reserve(budget, payload.memory()).await;
        let inflate = || payload.inflate(budget.effort).and_then(read);
        let price = Price::of_steps(payload.inflated_size() as u64 * INFLATE_STEPS);
        if price.is_short() { Ok(inflate()) } else { self.work(budget, price, inflate).await }
    }

    /// Searches a manifest for the document of an object, always in a turn: the aliases of a short manifest can repeat far more
    /// text than it has. The review keeps the memory of the document.
    ///
    /// # Errors
    /// When there was no turn.
    pub(super) async fn found(
        &self,
        budget: QueryBudget<'_>,
        manifest: &str,
        object: &DocumentKey,
    ) -> Result<ReadDocument, String> {
        let mut grant = self.reserve(budget, budget.effort.most_trees_of(manifest.len())).await;
        let price = Price::of_steps(manifest.len() as u64 * FIND_STEPS);
        let found = self
            .work(budget, price, || read_document(manifest, object, budget.effort))
            .await
            .and_then(|found| found)?;
        if let Ok(Some(document)) = &found {
            grant.shrink(documents::weight(document));
            budget.holdings.keep(grant);
        }
        Ok(found)
    }

    /// Waits for the memory that the review does not hold yet. A review with a large request already holds much, and would
    /// otherwise wait for itself.
    async fn reserve(&self, budget: QueryBudget<'_>, bytes: usize) -> Grant {
        let lacking = bytes.saturating_sub(budget.holdings.bytes());
        budget.holdings.waiting(self.0.grant(budget.flow, lacking)).await
    }

    /// Does work in a turn of the review. Without a turn, the effort counts as used up: only the review's own steps can be too many.
    async fn work<T>(&self, budget: QueryBudget<'_>, price: Price, work: impl FnOnce() -> T) -> Result<T, String> {
        budget.holdings.waiting(self.0.work(budget.flow, price, work)).await.map_err(|busy| {
            budget.effort.exceed();
            busy.to_string()
        })
    }
}

//! Turns at the cores and memory for the answers to a review. They are charged to the review.

use std::sync::Arc;

use interlock_engine::answers::read_document;
use interlock_engine::answers::record::RecordWork;
use interlock_engine::effort::Effort;
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

    /// The work on records for one query.
    pub(super) fn of<'t>(&'t self, budget: QueryBudget<'t>) -> TurnsOfQuery<'t> {
        TurnsOfQuery { shared: &self.0, budget }
    }
}

/// The turns and the memory for the answer to one query.
pub(super) struct TurnsOfQuery<'t> {
    shared: &'t Budget,
    budget: QueryBudget<'t>,
}

impl RecordWork for TurnsOfQuery<'_> {
    /// Inflates the body in granted memory. A short body runs inline.
    async fn inflated<T>(
        &self,
        payload: Payload,
        read: impl FnOnce(Vec<u8>, &Effort) -> Result<T, DecodeError>,
    ) -> Result<Result<T, DecodeError>, String> {
        let effort = self.budget.effort;
        let _reserved = self.reserve(payload.memory()).await;
        let inflate = || payload.inflate(effort).and_then(|body| read(body, effort));
        let price = Price::of_steps(payload.inflated_size() as u64 * INFLATE_STEPS);
        if price.is_short() { Ok(inflate()) } else { self.work(price, inflate).await }
    }

    /// Always in a turn: the aliases of a short manifest can repeat far more text than it has. The review keeps the memory of the
    /// document.
    async fn found(&self, manifest: &str, object: &DocumentKey) -> Result<ReadDocument, String> {
        let QueryBudget { effort, holdings, .. } = self.budget;
        let mut grant = self.reserve(effort.most_trees_of(manifest.len())).await;
        let price = Price::of_steps(manifest.len() as u64 * FIND_STEPS);
        let found = self.work(price, || read_document(manifest, object, effort)).await.and_then(|found| found)?;
        if let Ok(Some(document)) = &found {
            grant.shrink(documents::weight(document));
            holdings.keep(grant);
        }
        Ok(found)
    }
}

impl TurnsOfQuery<'_> {
    /// Waits for the memory that the review does not hold yet. A review with a large request already holds much, and would
    /// otherwise wait for itself.
    async fn reserve(&self, bytes: usize) -> Grant {
        let QueryBudget { flow, holdings, .. } = self.budget;
        let lacking = bytes.saturating_sub(holdings.bytes());
        holdings.waiting(self.shared.grant(flow, lacking)).await
    }

    /// Does work in a turn of the review. Without a turn, the effort counts as used up: only the review's own steps can be too many.
    async fn work<T>(&self, price: Price, work: impl FnOnce() -> T) -> Result<T, String> {
        let QueryBudget { flow, holdings, effort } = self.budget;
        holdings.waiting(self.shared.work(flow, price, work)).await.map_err(|busy| {
            effort.exceed();
            busy.to_string()
        })
    }
}

//! Turns at the cores and memory for the answers to a review. They are charged to the review.

use std::sync::Arc;

use interlock_engine::answers::{ReadDocument, read_document};
use interlock_engine::release::manifest::DocumentKey;
use interlock_engine::release::record::{DecodeError, Payload};

use super::Payer;
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
        payer: Payer<'_>,
        payload: Payload,
        read: impl FnOnce(Vec<u8>) -> Result<T, DecodeError>,
    ) -> Result<Result<T, DecodeError>, String> {
        let _reserved = self.reserve(payer, payload.memory()).await;
        let inflate = || payload.inflate(payer.effort).and_then(read);
        let price = Price::of_steps(payload.inflated_size() as u64 * INFLATE_STEPS);
        if price.is_short() { Ok(inflate()) } else { self.work(payer, price, inflate).await }
    }

    /// Searches a manifest for the document of an object, always in a turn: the aliases of a short manifest can repeat far more
    /// text than it has. The review keeps the memory of the document.
    ///
    /// # Errors
    /// When there was no turn.
    pub(super) async fn found(
        &self,
        payer: Payer<'_>,
        manifest: &str,
        object: &DocumentKey,
    ) -> Result<ReadDocument, String> {
        let mut grant = self.reserve(payer, payer.effort.most_trees_of(manifest.len())).await;
        let price = Price::of_steps(manifest.len() as u64 * FIND_STEPS);
        let found =
            self.work(payer, price, || read_document(manifest, object, payer.effort)).await.and_then(|found| found)?;
        if let Ok(Some(document)) = &found {
            grant.shrink(documents::weight(document));
            payer.holdings.keep(grant);
        }
        Ok(found)
    }

    /// Waits for the memory that the review does not hold yet. A review with a large request already holds much, and would
    /// otherwise wait for itself.
    async fn reserve(&self, payer: Payer<'_>, bytes: usize) -> Grant {
        let lacking = bytes.saturating_sub(payer.holdings.bytes());
        payer.holdings.waiting(self.0.grant(payer.flow, lacking)).await
    }

    /// Does work in a turn of the payer. Without a turn, the effort counts as used up: only the payer's own steps can be too many.
    async fn work<T>(&self, payer: Payer<'_>, price: Price, work: impl FnOnce() -> T) -> Result<T, String> {
        payer.holdings.waiting(self.0.work(payer.flow, price, work)).await.map_err(|busy| {
            payer.effort.exceed();
            busy.to_string()
        })
    }
}

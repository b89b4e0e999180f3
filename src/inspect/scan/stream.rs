//! Reads records page by page, and judges the releases of a namespace as soon as it has been read. So a scan keeps few records, whatever
//! the number of releases.

use std::collections::HashSet;

use interlock_engine::owners::Driver;
use kube::Error;

use super::context::ScanContext;
use super::gather::RecordListing;
use super::inventory::Inventory;
use super::listing::{LIST_ATTEMPTS, has_expired};
use super::releases::JudgedReleases;

/// Why a list must be read again.
enum Interrupted {
    Failed(Error),
    /// A namespace came back after another one. API servers list by namespace, but do not promise it.
    Unordered,
}

impl ScanContext<'_> {
    /// Reads the records of a list and judges their releases, with those that are known already.
    ///
    /// # Errors
    /// When the API server does not answer, or its answer cannot be parsed.
    pub(super) async fn judge_listed(
        &self,
        records: &RecordListing,
        known: &Inventory,
        drivers: &[Driver],
    ) -> Result<JudgedReleases, Error> {
        let (mut in_order, mut attempt) = (true, 1);
        loop {
            match self.judged_once(records, known.clone(), drivers, in_order).await {
                Ok(judged) => return Ok(judged),
                Err(Interrupted::Unordered) => in_order = false,
                Err(Interrupted::Failed(error)) if has_expired(&error) && attempt < LIST_ATTEMPTS => attempt += 1,
                Err(Interrupted::Failed(error)) => return Err(error),
            }
        }
    }

    async fn judged_once(
        &self,
        records: &RecordListing,
        mut known: Inventory,
        drivers: &[Driver],
        in_order: bool,
    ) -> Result<JudgedReleases, Interrupted> {
        let (mut judged, mut read, mut completed) = (JudgedReleases::default(), Inventory::default(), HashSet::new());
        let mut pages = records.listing.pages(&self.client);
        while pages.next(|item| read.add(records.kind, records.secret_type, item)).await.map_err(Interrupted::Failed)? {
            if !in_order {
                continue;
            }
            let mut ready = read.take_completed();
            let namespaces = ready.namespaces();
            if read.namespaces().iter().chain(&namespaces).any(|namespace| completed.contains(namespace)) {
                return Err(Interrupted::Unordered);
            }
            ready.merge(known.take(|namespace| namespaces.contains(namespace)));
            completed.extend(namespaces);
            self.judge(ready, drivers, &mut judged).await;
        }
        read.merge(known);
        self.judge(read, drivers, &mut judged).await;
        Ok(judged)
    }
}

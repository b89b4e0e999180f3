//! What every part of a scan has at hand.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use kube::{Client, Error};

use super::listing::Listing;
use super::options::ScanOptions;
use super::report::Gap;
use super::served::ServedKinds;
use crate::engine::policy::Policies;
use crate::inspect::api_error::reason;
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::kinds::Kinds;

/// A scan on its way.
pub(super) struct ScanContext<'s> {
    pub(super) client: Client,
    pub(super) world: Cluster,
    pub(super) policies: &'s Policies,
    pub(super) options: &'s ScanOptions,
    pub(super) now: Timestamp,
    pub(super) kinds: ServedKinds,
    pub(super) bodies: AtomicUsize,
    pub(super) objects: AtomicUsize,
    pub(super) gaps: Mutex<BTreeMap<&'static str, Gap>>,
}

impl ScanContext<'_> {
    /// Tells of a part that could not be looked at; the reason is that of the first time.
    pub(super) fn gap(&self, what: &'static str, why: String) {
        // Nothing can panic while it is held.
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.entry(what).or_insert(Gap { what: what.to_owned(), times: 0, why }).times += 1;
    }

    /// Whether a part could not be looked at.
    pub(super) fn is_gap(&self, what: &'static str) -> bool {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner).contains_key(what)
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.options.namespace.as_deref()
    }

    /// What is looked at.
    pub(super) fn places(&self) -> Vec<Option<&str>> {
        self.namespace().map_or_else(|| self.options.reach.places().collect(), |namespace| vec![Some(namespace)])
    }

    /// The objects of a kind in namespaces or in all, by its most stable version.
    pub(super) async fn listing<'p>(
        &self,
        group: &str,
        kind: &str,
        places: impl IntoIterator<Item = Option<&'p str>>,
        what: &'static str,
    ) -> Option<Listing> {
        let resolved = Kinds::default().resolve(&self.client, group, kind).await;
        self.or_gap(what, resolved).flatten().map(|resource| Listing::of(&resource, places))
    }

    pub(super) fn or_gap<T>(&self, what: &'static str, read: Result<T, Error>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            // The definition of the kind comes or goes at this moment.
            Err(Error::Api(status)) if status.code == 404 => None,
            Err(error) => {
                self.gap(what, reason(&error));
                None
            }
        }
    }
}

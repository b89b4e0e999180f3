//! The state that all parts of a scan share.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use interlock_engine::policy::Policies;
use jiff::Timestamp;
use kube::{Client, Error};

use super::listing::Listing;
use super::options::ScanOptions;
use super::report::Gap;
use super::served::ServedKinds;
use crate::budget::Budget;
use crate::world::kubernetes::Cluster;
use crate::world::kubernetes::api_error::reason;
use crate::world::kubernetes::kinds::Kinds;

/// The memory that inflated bodies may take at once, in bytes.
pub(crate) const DECODE_BYTES: usize = 64 << 20;

/// A running scan.
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

impl<'s> ScanContext<'s> {
    pub(super) fn new(client: Client, policies: &'s Policies, options: &'s ScanOptions, now: Timestamp) -> Self {
        let decodes = Arc::new(Budget::new(DECODE_BYTES));
        Self {
            world: Cluster::new(client.clone(), decodes).within(options.reach.clone()),
            client,
            policies,
            options,
            now,
            kinds: ServedKinds::default(),
            bodies: AtomicUsize::default(),
            objects: AtomicUsize::default(),
            gaps: Mutex::default(),
        }
    }

    /// Notes a part that could not be scanned. The first reason is kept.
    pub(super) fn gap(&self, what: &'static str, why: String) {
        // Nothing can panic while the lock is held.
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.entry(what).or_insert(Gap { what: what.to_owned(), times: 0, why }).times += 1;
    }

    /// Whether a part could not be scanned.
    pub(super) fn is_gap(&self, what: &'static str) -> bool {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner).contains_key(what)
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.options.namespace.as_deref()
    }

    /// The namespaces to scan; `None` for all.
    pub(super) fn places(&self) -> Vec<Option<&str>> {
        self.namespace().map_or_else(|| self.options.reach.places().collect(), |namespace| vec![Some(namespace)])
    }

    /// Lists the objects of a kind in its most stable version; `None` if the kind is not installed or cannot be read.
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
            // The CustomResourceDefinition has just been created or deleted.
            Err(Error::Api(status)) if status.code == 404 => None,
            Err(error) => {
                self.gap(what, reason(&error));
                None
            }
        }
    }
}

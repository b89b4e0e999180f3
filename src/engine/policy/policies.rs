//! The cluster policy and the policies of namespaces.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use super::accounts::Accounts;
use super::effective::Policy;
use super::freeze::{Freeze, LimitedFreeze};

/// The policies in force: of the cluster, and of namespaces.
#[derive(Debug, Clone)]
pub struct Policies {
    pub(in crate::engine) cluster: Arc<Policy>,
    pub(in crate::engine) namespaces: BTreeMap<String, Arc<Policy>>,
    /// Of the files.
    pub(in crate::engine) digest: String,
}

impl Policies {
    /// Gives every policy the bounds that namespaces set on their overrides.
    pub(in crate::engine) fn share_bounds(&mut self) {
        let bounds = self.namespaces.iter().filter(|(_, policy)| policy.overrides != self.cluster.overrides);
        let bounds = bounds.map(|(namespace, policy)| (namespace.clone(), policy.overrides.clone()));
        let bounds: Arc<BTreeMap<_, _>> = Arc::new(bounds.collect());
        for policy in iter::once(&mut self.cluster).chain(self.namespaces.values_mut()) {
            Arc::make_mut(policy).bounds = Arc::clone(&bounds);
        }
    }

    /// Tells every policy which releases the namespaces protect.
    pub(in crate::engine) fn share_protected(&mut self) {
        let named =
            self.namespaces.iter().filter_map(|(home, policy)| Some((home.clone(), policy.protected.here.clone()?)));
        let named: Arc<BTreeMap<_, _>> = Arc::new(named.collect());
        for policy in iter::once(&mut self.cluster).chain(self.namespaces.values_mut()) {
            Arc::make_mut(policy).protected.by_namespace = Arc::clone(&named);
        }
    }

    /// Tells every policy the freezes of all namespaces: an object of a release may be in another namespace, or in none.
    pub(in crate::engine) fn share_freezes(&mut self) {
        let own = self.namespaces.values().flat_map(|policy| policy.freezes.iter());
        let all: Vec<_> = self.cluster.freezes.iter().chain(own).cloned().collect();
        let all: Arc<[_]> = all.into();
        for policy in iter::once(&mut self.cluster).chain(self.namespaces.values_mut()) {
            Arc::make_mut(policy).freezes = Arc::clone(&all);
        }
    }

    /// The same policies, in place of others. Operations that started under those still count as theirs.
    #[must_use]
    pub fn following(mut self, replaced: &Self) -> Self {
        let mut accounts = self.cluster.accounts.as_ref().clone();
        accounts.follow(&replaced.cluster.accounts);
        let accounts = Arc::new(accounts);
        for policy in iter::once(&mut self.cluster).chain(self.namespaces.values_mut()) {
            Arc::make_mut(policy).accounts = Arc::clone(&accounts);
        }
        self
    }

    /// The users that are platforms and pipelines.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        &self.cluster.accounts
    }

    /// The policy for requests about objects of a namespace; empty for cluster-scoped ones.
    #[must_use]
    pub fn of(&self, namespace: &str) -> &Arc<Policy> {
        self.namespaces.get(namespace).unwrap_or(&self.cluster)
    }

    /// Every freeze of the policies, and of those stored in the cluster the ones that are allowed.
    pub fn freezes<'f>(&'f self, stored: &'f [Freeze]) -> impl Iterator<Item = LimitedFreeze<'f>> {
        self.cluster.all_freezes(stored)
    }

    /// Names the files that these policies were read from: the same texts have the same digest.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The namespaces with their own policy.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.keys().map(String::as_str)
    }
}

impl From<Policy> for Policies {
    fn from(policy: Policy) -> Self {
        Self { cluster: Arc::new(policy), namespaces: BTreeMap::new(), digest: String::new() }
    }
}

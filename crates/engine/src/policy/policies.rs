//! The cluster policy and the policies of namespaces.

use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;

use super::accounts::Accounts;
use super::effective::Policy;
use super::freeze::{Freeze, LimitedFreeze};
use super::globs::Globs;
use super::namespaces::{ByNamespace, NamespaceLabels, know_all};
use super::settings::OverrideSettings;
use crate::rule::Mode;

/// The policies in force: of the cluster, and of namespaces.
#[derive(Debug, Clone)]
pub struct Policies {
    pub(crate) cluster: Arc<Policy>,
    pub(crate) namespaces: ByNamespace<Arc<Policy>>,
    /// The labels that the selectors use.
    labels: Arc<NamespaceLabels>,
    /// Whether a condition depends on labels.
    uses_labels: bool,
    /// The digest of the files.
    pub(crate) digest: String,
}

impl Policies {
    /// Completes policies that were parsed from files. Each policy needs parts of the policies of other namespaces,
    /// because an object of a release may be in another namespace, or in none.
    pub(crate) fn complete(&mut self) {
        let own: Arc<BTreeSet<_>> = Arc::new(self.namespaces.own.keys().cloned().collect());
        for (namespaces, policy) in &mut self.namespaces.shared {
            *namespaces = namespaces.clone().except(Arc::clone(&own));
            let mut freezes = policy.freezes.to_vec();
            freezes.iter_mut().for_each(|freeze| freeze.namespaces = namespaces.clone());
            Arc::make_mut(policy).freezes = freezes.into();
        }
        let bounds = self.namespaces.filter_map(|policy| Some(policy.overrides.clone()));
        let protected = self.namespaces.filter_map(|policy| policy.protected.here.clone());
        let own = self.namespaces.values().flat_map(|policy| policy.freezes.iter());
        let freezes: Vec<_> = self.cluster.freezes.iter().chain(own).cloned().collect();
        self.share(bounds, protected, freezes);
        self.uses_labels = self.apply_labels();
    }

    /// Gives every policy the parts that all policies share.
    fn share(&mut self, bounds: ByNamespace<OverrideSettings>, protected: ByNamespace<Globs>, freezes: Vec<Freeze>) {
        let (bounds, protected, freezes): (_, _, Arc<[_]>) = (Arc::new(bounds), Arc::new(protected), freezes.into());
        for policy in self.all_mut() {
            let policy = Arc::make_mut(policy);
            policy.bounds = Arc::clone(&bounds);
            policy.protected.by_namespace = Arc::clone(&protected);
            policy.freezes = Arc::clone(&freezes);
        }
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Arc<Policy>> {
        iter::once(&mut self.cluster).chain(self.namespaces.values_mut())
    }

    /// Computes which namespaces match the label selectors. Returns whether there is a selector.
    fn apply_labels(&mut self) -> bool {
        let labels = Arc::clone(&self.labels);
        let mut freezes: Vec<_> = self.cluster.freezes.to_vec();
        let mut bounds = self.cluster.bounds.as_ref().clone();
        let mut protected = self.cluster.protected.by_namespace.as_ref().clone();
        let in_freezes = know_all(freezes.iter_mut().map(|freeze| &mut freeze.namespaces), &labels);
        let is_shared = self.namespaces.know(&labels) | bounds.know(&labels) | protected.know(&labels);
        self.share(bounds, protected, freezes);
        self.all_mut()
            .fold(in_freezes | is_shared, |uses_labels, policy| Arc::make_mut(policy).know(&labels) | uses_labels)
    }

    /// Whether a condition depends on the labels of Namespaces.
    #[must_use]
    pub fn uses_labels(&self) -> bool {
        self.uses_labels
    }

    /// Whether the selectors already use these labels.
    #[must_use]
    pub fn know(&self, labels: &Arc<NamespaceLabels>) -> bool {
        Arc::ptr_eq(&self.labels, labels) || self.labels == *labels
    }

    /// The labels that the selectors use.
    #[must_use]
    pub fn labels(&self) -> &NamespaceLabels {
        &self.labels
    }

    /// The same policies, with selectors that use these labels.
    #[must_use]
    pub fn knowing(mut self, labels: Arc<NamespaceLabels>) -> Self {
        self.labels = labels;
        if self.uses_labels {
            self.apply_labels();
        }
        self
    }

    /// The same policies, as the replacement of others. Operations that started under the old policies keep their accounts. The
    /// known labels are kept too.
    #[must_use]
    pub fn following(mut self, replaced: &Self) -> Self {
        let mut accounts = self.cluster.accounts.as_ref().clone();
        accounts.follow(&replaced.cluster.accounts);
        let accounts = Arc::new(accounts);
        for policy in self.all_mut() {
            Arc::make_mut(policy).accounts = Arc::clone(&accounts);
        }
        self.knowing(Arc::clone(&replaced.labels))
    }

    /// The same policies without their cap: what they would refuse.
    #[must_use]
    pub fn uncapped(mut self) -> Self {
        self.all_mut().for_each(|policy| Arc::make_mut(policy).cap = Mode::Enforce);
        self
    }

    /// The users that are platforms and pipelines.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        &self.cluster.accounts
    }

    /// The policy for requests about objects of a namespace. The namespace is empty for cluster-scoped objects.
    #[must_use]
    pub fn of(&self, namespace: &str) -> &Arc<Policy> {
        self.namespaces.get(namespace).unwrap_or(&self.cluster)
    }

    /// Every freeze: those of the policies, and those stored in the cluster, within the limits of the policy.
    pub fn freezes<'f>(&'f self, stored: &'f [Freeze]) -> impl Iterator<Item = LimitedFreeze<'f>> {
        self.cluster.all_freezes(stored)
    }

    /// The digest of the policy files: equal texts have equal digests.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The namespaces with their own policy.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.own.keys().map(String::as_str)
    }
}

impl From<Policy> for Policies {
    fn from(policy: Policy) -> Self {
        let (namespaces, labels) = (ByNamespace::default(), Arc::default());
        let mut policies =
            Self { cluster: Arc::new(policy), namespaces, labels, uses_labels: false, digest: String::new() };
        policies.uses_labels = policies.apply_labels();
        policies
    }
}

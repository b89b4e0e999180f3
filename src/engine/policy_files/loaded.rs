//! The layers of policy: that of the cluster, and over it those of namespaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster;
use super::file::{PolicyFile, PolicyKind, read};
use super::files::PolicyFiles;
use super::namespace::{self, refuse_cluster_only_keys};
use super::problem::{PolicyError, Problem, Problems, SourceFile};
use crate::engine::policy::Policies;

/// What came of policy files.
#[derive(Debug)]
pub struct LoadedPolicies {
    /// What can be in force: a namespace whose file is wrong gets the cluster's policy. `None` where that is wrong itself, and
    /// where not everything could be read.
    pub policies: Option<Policies>,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
}

/// The files as they were read, for those who want to know where what stands.
pub(super) struct ParsedFiles<'f> {
    pub(super) cluster: Option<(&'f SourceFile, PolicyFile)>,
    pub(super) namespaces: BTreeMap<&'f str, (&'f SourceFile, PolicyFile)>,
    pub(super) reading: LoadedPolicies,
}

impl LoadedPolicies {
    /// Checks files.
    #[must_use]
    pub fn of(files: &PolicyFiles) -> Self {
        ParsedFiles::read(files).reading
    }

    /// The policies, where nothing at all is wrong.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn into_policies(self) -> Result<Policies, PolicyError> {
        match self {
            Self { policies: Some(policies), problems } if problems.is_empty() => Ok(policies),
            Self { problems, .. } => Err(PolicyError { problems }),
        }
    }
}

impl<'f> ParsedFiles<'f> {
    pub(super) fn read(files: &'f PolicyFiles) -> Self {
        let mut problems: Vec<_> = files.unread.iter().chain(&files.wrong).cloned().collect();
        let mut policies = None;
        let cluster = files.cluster.as_ref().map(|source| {
            let mut found = Problems::of(source);
            let file = read(source, PolicyKind::Cluster, &mut found);
            if found.is_empty() {
                policies = Some(Policies::from(cluster::policy(&file)));
            }
            problems.extend(found.into_list());
            (source, file)
        });
        let delegated = cluster.as_ref().and_then(|(_, file)| file.delegate.as_ref());
        let delegated = delegated.map(|at| at.value.as_slice()).unwrap_or_default();
        let mut namespaces = BTreeMap::new();
        for (name, source) in &files.namespaces {
            let mut found = Problems::of(source);
            let file = read(source, PolicyKind::Namespace, &mut found);
            refuse_cluster_only_keys(&file, &mut found);
            // Over a cluster policy that is wrong nothing can be said to loosen.
            if let Some(policies) = &mut policies {
                let policy = namespace::policy(&policies.cluster, delegated, &file, &mut found);
                if found.is_empty() {
                    policies.namespaces.insert(name.clone(), Arc::new(policy));
                }
            }
            problems.extend(found.into_list());
            namespaces.insert(name.as_str(), (source, file));
        }
        policies.iter_mut().for_each(Policies::share_bounds);
        // What cannot be read now may be as it was: a failure that passes must not open what a namespace has closed.
        let policies = policies.filter(|_| files.unread.is_empty());
        Self { cluster, namespaces, reading: LoadedPolicies { policies, problems } }
    }
}

impl Policies {
    /// The policies of texts that were read already.
    ///
    /// # Errors
    /// Everything that is wrong, over all of them.
    pub fn of_files(files: &PolicyFiles) -> Result<Self, PolicyError> {
        LoadedPolicies::of(files).into_policies()
    }
}

#[cfg(test)]
mod tests;

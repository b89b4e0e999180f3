//! Loads policies: the cluster policy, and the policies of namespaces over it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::checks::check;
use super::cluster;
use super::file::{ParsedFile, PolicyKind, read};
use super::files::PolicyFiles;
use super::freezes;
use super::namespace::{self, refuse_cluster_only_keys};
use super::problem::{PolicyError, Problem, Problems};
use crate::policy::Policies;

/// The policies of a set of files, and the problems in these files.
#[derive(Debug)]
pub struct LoadedPolicies {
    /// The policies that can be in force: a namespace with a wrong file gets the cluster policy. `None` if the cluster policy is
    /// wrong, or if a file could not be read.
    pub policies: Option<Policies>,
    pub problems: Vec<Problem>,
    /// Valid settings that are probably not intended.
    pub warnings: Vec<Problem>,
}

/// The parsed files, with the location of each setting.
pub(super) struct ParsedFiles<'f> {
    pub(super) cluster: Option<ParsedFile<'f>>,
    pub(super) namespaces: BTreeMap<&'f str, ParsedFile<'f>>,
    pub(super) reading: LoadedPolicies,
}

impl LoadedPolicies {
    /// Parses and checks files.
    #[must_use]
    pub fn of(files: &PolicyFiles) -> Self {
        ParsedFiles::read(files).reading
    }

    /// The policies, if the files have no problem.
    ///
    /// # Errors
    /// Every problem in the files.
    pub fn into_policies(self) -> Result<Policies, PolicyError> {
        match self {
            Self { policies: Some(policies), problems, .. } if problems.is_empty() => Ok(policies),
            Self { problems, .. } => Err(PolicyError { problems }),
        }
    }
}

impl<'f> ParsedFiles<'f> {
    pub(super) fn read(files: &'f PolicyFiles) -> Self {
        let mut problems: Vec<_> = files.unread.iter().chain(&files.wrong).cloned().collect();
        let (mut policies, mut warnings) = (None, Vec::new());
        let mut report = |found: Problems<'_>| {
            let (errors, doubts) = found.into_lists();
            problems.extend(errors);
            warnings.extend(doubts);
        };
        let cluster = files.cluster.as_ref().map(|source| {
            let mut found = Problems::of(source);
            let parsed = read(source, PolicyKind::Cluster, &mut found);
            check(&parsed.file, None, &mut found);
            if found.is_empty() {
                policies = Some(Policies::from(cluster::policy(&parsed.file, &mut found)));
            }
            report(found);
            parsed
        });
        let delegated = cluster.as_ref().map(|parsed| parsed.file.delegate.items()).unwrap_or_default();
        let mut namespaces = BTreeMap::new();
        for (name, source) in &files.namespaces {
            let mut found = Problems::of(source);
            let parsed = read(source, PolicyKind::Namespace, &mut found);
            let file = &parsed.file;
            refuse_cluster_only_keys(file, &mut found);
            check(file, Some(name), &mut found);
            // Without a correct cluster policy, nothing can be compared with it.
            if let Some(policies) = &mut policies {
                let policy = namespace::policy(&policies.cluster, delegated, (name, file), &mut found);
                if found.is_empty() && file.is_shared() {
                    policies.namespaces.shared.push((file.served(), Arc::new(policy)));
                } else if found.is_empty() {
                    policies.namespaces.own.insert(name.clone(), Arc::new(policy));
                }
            }
            report(found);
            namespaces.insert(name.as_str(), parsed);
        }
        if let Some(policies) = &mut policies {
            policies.complete();
            policies.digest = files.digest();
        }
        // A file that cannot be read may be unchanged. A temporary failure must not loosen the policy of a namespace.
        let policies = policies.filter(|_| files.unread.is_empty());
        Self { cluster, namespaces, reading: LoadedPolicies { policies, problems, warnings } }
    }
}

impl PolicyFiles {
    /// The freezes that no longer change anything.
    #[must_use]
    pub fn past_freezes(&self, now: Timestamp) -> Vec<Problem> {
        let ParsedFiles { cluster, namespaces, .. } = ParsedFiles::read(self);
        let cluster = cluster.iter().map(|parsed| (parsed, None));
        let namespaces = namespaces.iter().map(|(name, parsed)| (parsed, Some(*name)));
        let past = cluster.chain(namespaces).flat_map(|(ParsedFile { source, file, .. }, home)| {
            let mut problems = Problems::of(source);
            freezes::report_past(file, home, now, &mut problems);
            problems.into_lists().1
        });
        past.collect()
    }
}

impl Policies {
    /// The policies of files that are already in memory.
    ///
    /// # Errors
    /// Every problem in the files.
    pub fn of_files(files: &PolicyFiles) -> Result<Self, PolicyError> {
        LoadedPolicies::of(files).into_policies()
    }
}

#[cfg(test)]
mod tests;

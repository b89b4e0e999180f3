//! Converts conditions of a file to those of a policy.

use super::parts::{LabelSelectorFile, WhenFile};
use super::read::Key;
use super::values::GlobList;
use crate::policy::{LabelOperator, LabelRequirement, LabelSelector, NamespaceCondition, When};

/// A condition on namespaces: on their names, and on their labels.
pub(in crate::policy_files) fn namespaces(
    names: &Key<GlobList>,
    labels: &Key<LabelSelectorFile>,
) -> NamespaceCondition {
    NamespaceCondition::new(names.globs().cloned(), labels.value().map(LabelSelectorFile::selector))
}

impl LabelSelectorFile {
    pub(in crate::policy_files) fn selector(&self) -> LabelSelector {
        let equal = self.match_labels.items().iter().map(|(key, value)| LabelRequirement {
            key: key.clone(),
            operator: LabelOperator::In,
            values: vec![value.clone()],
        });
        let expressions = self.match_expressions.items().iter().filter_map(|one| {
            Some(LabelRequirement {
                key: one.key.value()?.clone(),
                operator: *one.operator.value()?,
                values: one.values.items().to_vec(),
            })
        });
        LabelSelector(equal.chain(expressions).collect())
    }
}

impl WhenFile {
    pub(in crate::policy_files) fn when(&self) -> When {
        When {
            users: self.users.globs().cloned(),
            groups: self.groups.globs().cloned(),
            service_accounts: self.service_accounts.globs().cloned(),
            pipelines: self.pipelines.globs().cloned(),
            namespaces: namespaces(&self.namespaces, &self.namespace_selector),
            releases: self.releases.globs().cloned(),
            kinds: self.kinds.globs().cloned(),
            owners: self.owners.globs().cloned(),
            operations: self.operations.globs().cloned(),
        }
    }
}

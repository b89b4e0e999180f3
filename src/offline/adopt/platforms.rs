//! The accounts that platforms are known to have: those of the policies for platforms, which are shipped beside the policy.

use std::path::Path;

use interlock_engine::policy::Policy;
use interlock_engine::policy_files::PolicyError;

use super::opening::List;

/// The policies for platforms, by the name of the platform.
const POLICIES: [(&str, &str); 3] = [
    ("AKS", include_str!("../../../policies/platforms/aks/cluster.yaml")),
    ("EKS", include_str!("../../../policies/platforms/eks/cluster.yaml")),
    ("OpenShift", include_str!("../../../policies/platforms/openshift/cluster.yaml")),
];

/// The policies for platforms, and the shipped policy that they add to.
#[derive(Debug)]
pub(super) struct Platforms {
    added: Vec<(&'static str, Policy)>,
    shipped: Policy,
}

impl Platforms {
    /// # Errors
    /// Not in a build whose tests passed.
    pub(super) fn shipped() -> Result<Self, PolicyError> {
        let parsed = POLICIES.map(|(name, text)| Ok((name, Policy::parse(text, Path::new(name))?)));
        Ok(Self { added: parsed.into_iter().collect::<Result<_, _>>()?, shipped: Policy::shipped()? })
    }

    /// The list that a platform adds a user to, and the name of the platform.
    pub(super) fn list_of(&self, user: &str) -> Option<(List, &'static str)> {
        self.added.iter().find_map(|(name, policy)| {
            let lists = [
                (List::Managers, &policy.managers, &self.shipped.managers),
                (List::Tools, &policy.tools, &self.shipped.tools),
                (List::Platform, &policy.accounts.platform, &self.shipped.accounts.platform),
            ];
            let found = lists.into_iter().find(|(_, list, shipped)| list.contains(user) && !shipped.contains(user));
            found.map(|(list, ..)| (list, *name))
        })
    }
}

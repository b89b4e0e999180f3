//! Who writes: people, pipelines and controllers, under the accounts that the shipped policy knows.

/// A user of the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum User {
    Alice,
    Bob,
    /// May write in another namespace only, but for what everybody may read.
    Mallory,
    /// A pipeline's service account, which no policy names.
    Pipeline,
    Flux,
    /// Flux under an account of the tenant (`spec.serviceAccountName`).
    FluxTenant,
    Sveltos,
    Olm,
    Fleet,
    /// The account of the Jobs of the Helm controller of k3s.
    Klipper,
    Nelm,
    Crossplane,
    /// The garbage collector.
    Collector,
}

impl User {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Alice => "alice",
            Self::Bob => "bob",
            Self::Mallory => "mallory",
            Self::Pipeline => "system:serviceaccount:ci:deployer",
            Self::Flux => "system:serviceaccount:flux-system:helm-controller",
            Self::FluxTenant => "system:serviceaccount:shop:flux-tenant",
            Self::Sveltos => "system:serviceaccount:projectsveltos:addon-controller",
            Self::Olm => "system:serviceaccount:olmv1-system:operator-controller-controller-manager",
            Self::Fleet => "system:serviceaccount:cattle-fleet-system:fleet-agent",
            Self::Klipper => "system:serviceaccount:shop:helm-web",
            Self::Nelm => "system:serviceaccount:ci:werf",
            Self::Crossplane => "system:serviceaccount:crossplane-system:provider-helm-1a2b3c",
            Self::Collector => "system:serviceaccount:kube-system:generic-garbage-collector",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|user| user.name() == name)
    }

    pub(crate) const ALL: [Self; 13] = [
        Self::Alice,
        Self::Bob,
        Self::Mallory,
        Self::Pipeline,
        Self::Flux,
        Self::FluxTenant,
        Self::Sveltos,
        Self::Olm,
        Self::Fleet,
        Self::Klipper,
        Self::Nelm,
        Self::Crossplane,
        Self::Collector,
    ];

    pub(crate) fn is_person(self) -> bool {
        matches!(self, Self::Alice | Self::Bob | Self::Mallory)
    }

    /// Whether Flux works under this account.
    pub(crate) fn is_flux(self) -> bool {
        matches!(self, Self::Flux | Self::FluxTenant)
    }

    /// One of `managers` in the shipped policy.
    pub(crate) fn is_manager(self) -> bool {
        matches!(self, Self::Flux | Self::Sveltos | Self::Olm | Self::Fleet | Self::Crossplane)
    }
}

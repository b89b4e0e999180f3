//! Helm: the command line, and programs with its SDK. The format of its records is in [`crate::release`].

pub(crate) mod words;

use super::{flux, olm};
use crate::managed::{MANAGED_BY_LABEL, MarkKey, Owner, OwnerKind};

/// Helm's own name.
pub(crate) const NAME: &str = "Helm";

/// The marks of Helm, and of programs that use its SDK. The CLI calls itself `helm`. A program that sets no name appears as the first part
/// of its user agent.
pub(super) const MARKS: OwnerKind = OwnerKind {
    label: Some((MANAGED_BY_LABEL, Some("Helm"))),
    name: MarkKey::annotation("meta.helm.sh/release-name"),
    scope: MarkKey::annotation("meta.helm.sh/release-namespace"),
    managers: &["helm", "Helm", "helm-controller", "operator-controller", "fleetagent"],
    switches: &[],
    keeps: |_, _| false,
    applied: None,
    owner: |name, scope, label| Owner::Release {
        name: name.to_owned(),
        target_namespace: scope.to_owned(),
        origin: flux::origin(label),
        of_extension: olm::is_of_extension(name, label),
    },
};

//! A mapping with known keys, some of which are fields of a policy.

use super::limits::Limits;
use super::read::KeySpec;
use crate::policy::Policy;
use crate::policy_files::problem::Span;

/// Sets a field of a policy to the value of a key.
pub(in crate::policy_files) type SetField<F> = fn(&F, &mut Policy, &mut Limits<'_, '_>);

/// A mapping with known keys.
pub(in crate::policy_files) trait Mapping: 'static {
    /// Every key, in the order of the documentation.
    const KEYS: &'static [KeySpec];
    /// The keys that are fields of a policy.
    const FIELDS: &'static [SetField<Self>];

    /// The keys that are present, with their locations.
    fn given(&self) -> Vec<(&'static str, Span)>;

    /// Sets the fields of the policy below that the mapping has as keys.
    fn set(&self, policy: &mut Policy, limits: &mut Limits<'_, '_>) {
        Self::FIELDS.iter().for_each(|set| set(self, policy, limits));
    }
}

//! Sets the values of a file over those of the policy below: those of the cluster over the defaults, and those of a namespace over
//! the cluster policy.

use std::cmp::Ordering;

use super::read::{Key, Spanned};
use super::values::Spelled;
use crate::policy_files::problem::Problems;

/// The values that are at least as strict as the value of the policy below.
#[derive(Debug, Clone, Copy)]
pub(in crate::policy_files) enum Limit {
    AtLeast,
    AtMost,
    Any,
}

/// Which values may be looser than those of the policy below.
pub(in crate::policy_files) struct Limits<'l, 's> {
    /// Why the value of a key must not be looser; `None` if it may be.
    pub(in crate::policy_files) reason: &'l dyn Fn(&str) -> Option<String>,
    pub(in crate::policy_files) problems: &'l mut Problems<'s>,
}

impl Limits<'_, '_> {
    /// Replaces the value of the policy below. Reports a value that is looser and must not be.
    pub(in crate::policy_files) fn set<T: Clone + PartialOrd + Spelled>(
        &mut self,
        key: &str,
        given: &Key<T>,
        limit: Limit,
        current: &mut T,
    ) {
        let Some(at) = given.as_ref() else { return };
        let order = at.value.partial_cmp(current);
        let is_looser = match limit {
            Limit::AtLeast => order == Some(Ordering::Less),
            Limit::AtMost => order == Some(Ordering::Greater),
            Limit::Any => false,
        };
        if !is_looser || !self.refuses(key, at, &current.spelled()) {
            *current = at.value.clone();
        }
    }

    /// Reports a looser value, unless it may be looser.
    pub(in crate::policy_files) fn refuses<T>(&mut self, key: &str, at: &Spanned<T>, below: &str) -> bool {
        let Some(reason) = (self.reason)(key) else { return false };
        self.problems.at(at.span, format!("`{}` loosens the cluster policy, which says {below}; {reason}", at.text));
        true
    }
}

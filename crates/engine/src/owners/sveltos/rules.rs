//! Sveltos' own rules: what a commit of bundles may leave out.

pub(crate) mod dangling_bundle;
pub(crate) mod dropped_bundles;
pub(crate) mod group_commit;
pub(crate) mod protected_release;
pub(crate) mod remove_while_live;
pub(crate) mod start;

use super::{Bundle, BundleRef, CONFIGURATION_GROUP, ConfigurationGroup};
use crate::evidence::question;
use crate::facts::{Declaration, DeclarationWrite};
use crate::rules::declarations::case::{DeclarationCase, unless_unread, unread};
use crate::rules::undecided::{Undecided, ask_for};

impl<'a> DeclarationCase<'a> {
    /// The write of a ConfigurationGroup.
    pub(crate) fn group(&self) -> Result<Option<&'a DeclarationWrite<'a, ConfigurationGroup<'a>>>, Undecided> {
        match self.declaration {
            Declaration::ConfigurationGroup(written, _) => Ok(Some(written)),
            other => unless_unread(other, &[CONFIGURATION_GROUP]),
        }
    }

    /// The bundles with these names, in the same order; `None` for one that does not exist.
    pub(crate) fn bundles(&self, named: &[BundleRef]) -> Result<&'a [Option<Bundle>], Undecided> {
        if named.is_empty() {
            return Ok(&[]);
        }
        let found = ask_for(self.evidence, question::Bundles(named.to_vec()), "the bundles of the group")?;
        found.as_deref().map_err(|why| unread(why))
    }
}

#[cfg(test)]
pub(crate) mod tests;

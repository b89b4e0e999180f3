//! OLM's own rules, and the parts of a record that it stores in several Secrets.

pub(crate) mod extension;
pub(crate) mod extension_change_while_pending;
pub(crate) mod extension_safety;
pub(crate) mod protected_release;
pub(crate) mod record_part;
pub(crate) mod revision;
pub(crate) mod start;

use super::{CLUSTER_EXTENSION, ClusterExtension, ClusterObjectSet, OBJECT_SET_KINDS};
use crate::facts::{Declaration, DeclarationWrite};
use crate::rules::declarations::case::{DeclarationCase, unless_unread};
use crate::rules::undecided::Undecided;

impl<'a> DeclarationCase<'a> {
    /// The write of a ClusterExtension; `None` for other requests.
    pub(crate) fn extension(&self) -> Result<Option<&'a DeclarationWrite<'a, ClusterExtension<'a>>>, Undecided> {
        match self.declaration {
            Declaration::ClusterExtension(written) => Ok(Some(written)),
            other => unless_unread(other, &[CLUSTER_EXTENSION]),
        }
    }

    /// The write of a ClusterObjectSet.
    pub(crate) fn object_set(&self) -> Result<Option<&'a DeclarationWrite<'a, ClusterObjectSet<'a>>>, Undecided> {
        match self.declaration {
            Declaration::ClusterObjectSet(written) => Ok(Some(written)),
            other => unless_unread(other, &OBJECT_SET_KINDS),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

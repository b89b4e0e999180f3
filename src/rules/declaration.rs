//! One request that writes an object which declares releases.

use jiff::Timestamp;

use super::need::{Need, known};
use crate::facts::{Declaration, Facts, Written};
use crate::flux::{self, HelmRelease};
use crate::olm::{self, Extension, ObjectSet};
use crate::policy::Policy;
use crate::world::{Evidence, Knowledge, ObjectKey, Query};

/// One request about a declaration.
pub(super) struct DeclarationCase<'a> {
    pub(super) facts: &'a Facts<'a>,
    pub(super) declaration: &'a Declaration<'a>,
    pub(super) policy: &'a Policy,
    pub(super) evidence: &'a Evidence,
    pub(super) now: Timestamp,
}

impl<'a> DeclarationCase<'a> {
    /// The write of a ClusterExtension; `None` where the request is about something else.
    pub(super) fn extension(&self) -> Result<Option<&'a Written<'a, Extension<'a>>>, Need> {
        match self.declaration {
            Declaration::Extension(written) => Ok(Some(written)),
            other => unless_unread(other, &[olm::EXTENSION]),
        }
    }

    /// The write of a ClusterObjectSet.
    pub(super) fn object_set(&self) -> Result<Option<&'a Written<'a, ObjectSet<'a>>>, Need> {
        match self.declaration {
            Declaration::ObjectSet(written) => Ok(Some(written)),
            other => unless_unread(other, &olm::OBJECT_SETS),
        }
    }

    /// The write of a HelmRelease.
    pub(super) fn helm_release(&self) -> Result<Option<&'a Written<'a, HelmRelease>>, Need> {
        match self.declaration {
            Declaration::HelmRelease(written, _) => Ok(Some(written)),
            other => unless_unread(other, &[flux::HELM_RELEASE]),
        }
    }

    /// `ClusterExtension argocd`.
    pub(super) fn subject(&self) -> String {
        let declaration = self.declaration;
        let scope = if declaration.namespace().is_empty() { "" } else { "/" };
        format!("{} {}{scope}{}", declaration.kind(), declaration.namespace(), declaration.name())
    }

    /// The JSON text of an object; `None` where there is none.
    pub(super) fn object(&self, key: ObjectKey) -> Result<Option<&'a str>, Need> {
        match known(self.evidence, Query::Object(key))? {
            Some(Knowledge::Object(text)) => Ok(Some(text)),
            _ => Ok(None),
        }
    }
}

/// Nothing, unless the request is about one of these kinds and its object does not read.
fn unless_unread<T>(declaration: &Declaration<'_>, kinds: &[&str]) -> Result<Option<T>, Need> {
    match declaration {
        Declaration::Unread { kind, why, .. } if kinds.contains(kind) => Err(Need::Unclear {
            why: format!("it does not read ({why})"),
            way_out: "Its version may be newer than this Interlock: update Interlock, or switch the rule off.",
        }),
        _ => Ok(None),
    }
}

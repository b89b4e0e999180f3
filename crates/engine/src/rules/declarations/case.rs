//! One request that writes an object which declares releases.

use jiff::Timestamp;
use serde::Deserialize;

use crate::evidence::{Evidence, Freshness, question};
use crate::facts::{Declaration, Facts};
use crate::json::redacted;
use crate::object::ObjectKey;
use crate::policy::Policy;
use crate::release::{History, ReleaseRef, Storage};
use crate::rules::undecided::{Undecided, ask, ask_for};

/// Steps to parse one byte of an object.
const READ_STEPS: u64 = 4;

/// Steps to compare two items of two lists.
const PAIR_STEPS: u64 = 10;

/// One request about a declaration.
pub(crate) struct DeclarationCase<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) declaration: &'a Declaration<'a>,
    pub(crate) policy: &'a Policy,
    pub(crate) evidence: &'a Evidence,
    pub(crate) now: Timestamp,
}

impl<'a> DeclarationCase<'a> {
    /// `ClusterExtension argocd`, `the Helm commit of ClusterSummary civ/shop-sveltos-prod`.
    pub(crate) fn subject(&self) -> String {
        let declaration = self.declaration;
        if let Some(subject) = declaration.subject() {
            return subject;
        }
        let scope = if declaration.namespace().is_empty() { "" } else { "/" };
        format!("{} {}{scope}{}", declaration.kind(), declaration.namespace(), declaration.name())
    }

    /// Fetches and parses an object; `None` if it does not exist.
    pub(crate) fn read<T: Deserialize<'a>>(&self, key: ObjectKey) -> Result<Option<T>, Undecided> {
        let subject = format!("{} {}", key.kind, key.name);
        let Some(text) = ask(self.evidence, question::Object(key))? else {
            return Ok(None);
        };
        self.facts.effort.take_text(text, READ_STEPS)?;
        serde_json::from_str(text)
            .map(Some)
            .map_err(|error| unread(&format!("{subject} cannot be parsed ({})", redacted(&error))))
    }

    /// Charges the budget for comparing every item of one list with every item of another.
    pub(crate) fn pay_for_pairs(&self, one: usize, other: usize) -> Result<(), Undecided> {
        Ok(self.facts.effort.take((one as u64).saturating_mul(other as u64).saturating_mul(PAIR_STEPS))?)
    }

    /// The records of a release in one storage.
    pub(crate) fn history_in(&self, storage: Storage, release: &ReleaseRef) -> Result<&'a History, Undecided> {
        let ReleaseRef { namespace, name } = release.clone();
        let question = question::History { storage, namespace, release: name, freshness: Freshness::Live };
        ask_for(self.evidence, question, "the records of the release")
    }
}

/// The object has an unknown shape.
pub(crate) fn unread(why: &str) -> Undecided {
    Undecided::Unclear {
        why: why.to_owned(),
        way_out: "Its API version may be newer than this Interlock. Update Interlock, or switch the rule off.",
    }
}

/// Undecided if the request is about one of these kinds and its object cannot be parsed; `None` otherwise.
pub(crate) fn unless_unread<T>(declaration: &Declaration<'_>, kinds: &[&str]) -> Result<Option<T>, Undecided> {
    match declaration {
        Declaration::Unparsed { kind, why, .. } if kinds.contains(kind) => {
            Err(unread(&format!("it cannot be parsed ({why})")))
        }
        _ => Ok(None),
    }
}

//! What people are told about each rule by `interlock explain`.

mod declarations;
mod objects;
mod records;

use super::RuleId;

/// A rule in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Documentation {
    /// The rule in a sentence.
    pub what: &'static str,
    /// What goes wrong without it.
    pub why: &'static str,
    /// A neighbouring act that passes.
    pub allowed: &'static str,
    /// An act that does not, where the rule is enforced.
    pub refused: &'static str,
    /// What to do in place of it.
    pub way_out: &'static str,
}

impl RuleId {
    /// The rule in words.
    #[must_use]
    pub fn documentation(self) -> Documentation {
        match self {
            Self::ConcurrentOperation => records::CONCURRENT_OPERATION,
            Self::PendingRecovery => records::PENDING_RECOVERY,
            Self::ResumeInterrupted => records::RESUME_INTERRUPTED,
            Self::RevisionOrder => records::REVISION_ORDER,
            Self::UnusualCreate => records::UNUSUAL_CREATE,
            Self::IllegalTransition => records::ILLEGAL_TRANSITION,
            Self::RecordIntegrity => records::RECORD_INTEGRITY,
            Self::RecordTampering => records::RECORD_TAMPERING,
            Self::RecordDeletion => records::RECORD_DELETION,
            Self::ForgedStamp => records::FORGED_STAMP,
            Self::ForeignEditInTransition => objects::FOREIGN_EDIT_IN_TRANSITION,
            Self::ManualEdit => objects::MANUAL_EDIT,
            Self::ManualDelete => objects::MANUAL_DELETE,
            Self::ManualScale => objects::MANUAL_SCALE,
            Self::DroppedBundles => declarations::DROPPED_BUNDLES,
            Self::DanglingBundle => declarations::DANGLING_BUNDLE,
            Self::RemoveWhileLive => declarations::REMOVE_WHILE_LIVE,
            Self::DuplicateRelease => declarations::DUPLICATE_RELEASE,
            Self::Retarget => declarations::RETARGET,
            Self::RetryStrategy => declarations::RETRY_STRATEGY,
            Self::ExtensionChangeWhilePending => declarations::EXTENSION_CHANGE_WHILE_PENDING,
            Self::ExtensionSafety => declarations::EXTENSION_SAFETY,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_rule_has_words_of_its_own() {
        let mut said = HashSet::new();
        for rule in RuleId::ALL {
            let Documentation { what, why, allowed, refused, way_out } = rule.documentation();
            for text in [what, why, allowed, refused, way_out] {
                assert!(text.ends_with('.') && text.len() > 20, "{rule}: {text}");
            }
            assert!(said.insert(what) && said.insert(why), "{rule} says what another rule says");
        }
    }
}

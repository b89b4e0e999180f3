//! The last refusals of this replica, for the page on the admin port.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use interlock_engine::decision::Decision;
use interlock_engine::release::ReleaseRef;
use jiff::Timestamp;

/// How many refusals are kept and shown. Each usually takes half a KiB, at most about 10 KiB.
pub(crate) const KEPT: usize = 50;

/// The newest delivered refusals, except repeats and dry runs.
#[derive(Debug, Default)]
pub(crate) struct LastRefusals(Mutex<VecDeque<Refusal>>);

/// A refusal: names and sentences. They come from a [`Decision`], so they are printable and bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// By the clock of the reviews, that is the API server's clock.
    pub(crate) at: Timestamp,
    pub(crate) user: String,
    pub(crate) operation: String,
    pub(crate) namespace: String,
    pub(crate) release: Option<ReleaseRef>,
    /// `apps/v1 Deployment shop/web`, or resource, namespace and name.
    pub(crate) object: String,
    pub(crate) rules: Vec<String>,
    pub(crate) sentences: Vec<String>,
    /// The commands of the ways out.
    pub(crate) commands: Vec<String>,
    /// How often, as far as the reports count.
    pub(crate) times: u64,
}

impl LastRefusals {
    /// Keeps a refusal, and drops the oldest one above the limit.
    pub(crate) fn note(&self, decision: &Decision, at: Timestamp) {
        if decision.allowed || decision.dry_run {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_back();
        }
        kept.push_front(Refusal::of(decision, at));
    }

    /// Newest first.
    pub(crate) fn newest(&self) -> Vec<Refusal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Refusal {
    fn of(decision: &Decision, at: Timestamp) -> Self {
        let Decision { resource, namespace, name, .. } = decision;
        let refusing = || decision.findings.iter().filter(|finding| finding.refuses);
        Self {
            at,
            user: decision.user.clone(),
            operation: decision.operation.as_str().to_owned(),
            namespace: namespace.clone(),
            release: decision.release.clone(),
            object: decision
                .object
                .as_ref()
                .map_or_else(|| format!("{resource} {namespace}/{name}"), ToString::to_string),
            rules: refusing().map(|finding| finding.rule.as_str().to_owned()).collect(),
            sentences: refusing().map(|finding| finding.message.clone()).chain(decision.objection.clone()).collect(),
            commands: refusing().flat_map(|finding| finding.ways_out.commands()).map(str::to_owned).collect(),
            times: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::decision::fixtures::{decision, finding};
    use interlock_engine::rule::{Mode, RuleId};

    use super::*;

    #[test]
    fn only_the_newest_refusals_are_kept() {
        let refusals = LastRefusals::default();
        let refused = |uid: &str| Decision {
            user: uid.to_owned(),
            ..decision(vec![
                finding(RuleId::known("manual-edit"), Mode::Enforce),
                finding(RuleId::known("manual-scale"), Mode::Warn),
            ])
        };
        let at = Timestamp::UNIX_EPOCH;
        refusals.note(&decision(vec![finding(RuleId::known("manual-edit"), Mode::Warn)]), at);
        refusals.note(&Decision { dry_run: true, ..refused("dry") }, at);
        assert_eq!(refusals.newest(), []);
        for user in 0..=KEPT {
            refusals.note(&refused(&user.to_string()), at);
        }
        let newest = refusals.newest();
        assert_eq!((newest.len(), &*newest[0].user, &*newest[KEPT - 1].user), (KEPT, "50", "1"));
        assert_eq!(
            (&*newest[0].object, &newest[0].rules[..]),
            ("apps/v1 Deployment shop/web", &["manual-edit".to_owned()][..])
        );
        assert_eq!(newest[0].sentences, ["It is so. Do this. [manual-edit]"]);
    }
}

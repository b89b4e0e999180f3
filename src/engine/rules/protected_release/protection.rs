//! What is protected and why, as every door sees it.

use crate::engine::policy::Policy;
use crate::engine::release::{History, ReleaseRef, Status};
use crate::engine::rules::check::Refusal;

/// Why a release is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Policy,
    /// The object of the request, or the namespace of the records, is annotated.
    Annotation,
}

impl Reason {
    /// The subject of "protects".
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Policy => "the policy",
            Self::Annotation => "the annotation interlock.dev/protected",
        }
    }
}

/// Whether there is something to protect: a revision was deployed, and no uninstall that was let through has begun. One that began
/// while the webhook was away has no stamp.
pub(super) fn stands(history: &History) -> bool {
    let was_deployed = || history.iter().any(|entry| matches!(entry.status, Status::Deployed | Status::Superseded));
    history.newest().is_some_and(|newest| match newest.status {
        Status::Uninstalled => false,
        Status::Uninstalling => newest.stamps.holder().is_none(),
        _ => was_deployed(),
    })
}

/// The refusal, with who can open it.
pub(super) fn refusal(policy: &Policy, release: ReleaseRef, sentence: String, other_way: &str) -> Refusal {
    let home = policy.overrides.home_of(&release).namespace;
    let way_out = format!(
        "{other_way}If the release must go, ask somebody who may create ReleaseOverrides in namespace {home} for one of protected-release."
    );
    Refusal::new(sentence, way_out).about(release)
}

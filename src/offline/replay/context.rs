//! What a review says beside its verdict. `interlock adopt` reports it over a whole log.

use interlock_engine::decision::{Decision, Groups, Transition};
use interlock_engine::json::{Patch, PatchOperation};
use interlock_engine::release::stamps::DRIVER;
use interlock_engine::review::Request;

/// The longest list of groups that is kept, in bytes.
const MAX_GROUPS_BYTES: usize = 4096;

/// What a review says beside its verdict. Empty for an object without an owner, because nearly all lines of a log concern such objects.
#[derive(Debug, Default)]
pub struct ReplayedContext {
    /// Whether the object can concern a release.
    pub concerns_releases: bool,
    pub is_dry_run: bool,
    /// The groups of the user.
    pub groups: Groups,
    /// Whether the token of the user is bound to a pod.
    pub is_in_pod: bool,
    /// The kind of the object; for a Scale the kind of the scaled object. Empty if no rule is broken.
    pub kind: String,
    /// What happens to the status of a record. A sync has no record, and starts for whoever clicks or commits.
    pub transition: Option<Box<Transition>>,
    /// The declaration for which the operation starts, as the mutating half stamps it.
    pub driver: Option<String>,
}

impl ReplayedContext {
    pub(super) fn of(request: &Request<'_>, decision: &mut Decision, patch: Option<&Patch>) -> Self {
        if !decision.concerns_releases {
            return Self::default();
        }
        let user = &request.user_info;
        Self {
            concerns_releases: true,
            is_dry_run: decision.dry_run,
            groups: Groups::of(user.groups.iter().map(AsRef::as_ref), MAX_GROUPS_BYTES),
            is_in_pod: user.pod().is_some(),
            kind: decision.object.take().map(|object| object.kind).unwrap_or_default(),
            transition: decision.transition.take().filter(|transition| transition.revision.is_some()),
            driver: patch.and_then(driver),
        }
    }
}

/// The stamp of the driver in a patch of annotations.
fn driver(patch: &Patch) -> Option<String> {
    let added = patch.0.iter().filter_map(|operation| match operation {
        PatchOperation::Add { path, value } => Some((path, value)),
        PatchOperation::Remove { .. } => None,
    });
    let key = DRIVER.replace('/', "~1");
    let stamps = added.filter_map(|(path, value)| if path.ends_with(&key) { Some(value) } else { value.get(DRIVER) });
    stamps.filter_map(|stamp| stamp.as_str()).next().map(str::to_owned)
}

//! Flux's commands, with which people make it continue at once.

use super::Driver;
use crate::text::command::command;
use crate::ways_out::Step;

impl Driver {
    /// The command that makes Flux reconcile the HelmRelease at once.
    #[must_use]
    pub fn reconcile_command(&self) -> String {
        command(&["flux", "reconcile", "helmrelease", &self.name, "--with-source", "-n", &self.namespace])
    }

    /// The command that makes Flux try again after its last retry.
    #[must_use]
    pub fn reset_command(&self) -> String {
        command(&["flux", "reconcile", "helmrelease", &self.name, "--reset", "-n", &self.namespace])
    }

    /// The command that removes the release: Flux installs again what helm uninstalls.
    #[must_use]
    pub fn delete_command(&self) -> String {
        command(&["kubectl", "delete", "helmrelease", &self.name, "-n", &self.namespace])
    }

    /// The step for a stuck operation.
    pub(crate) fn unstick(&self) -> Step {
        Step::run("run {}, with which Flux unlocks the release and tries again", self.reconcile_command())
    }
}

/// What happens while several HelmReleases manage a release.
pub const DUPLICATES: &str = "Flux repeatedly upgrades or uninstalls one in favour of the other";

/// How to resolve that.
pub const SUSPEND_ALL_BUT_ONE: &str = "Suspend all but one (spec.suspend: true), then delete the suspended ones: Flux does not uninstall \
                                       for a suspended HelmRelease.";

/// What happens after [`Driver::reset_command`].
pub(in crate::owners) const TRIES_AGAIN: &str = "Flux tries again, also after its last retry";

/// What happens after [`Driver::reconcile_command`].
pub const UNLOCKS: &str = "Flux unlocks the release and tries again";

/// How to make Flux continue after a refused unlock, even if its HelmRelease is unknown.
pub(crate) fn goes_on_at_once(driver: Option<&Driver>) -> Step {
    let unknown = || "flux reconcile helmrelease NAME --with-source".to_owned();
    Step::run("{} makes Flux go on at once", driver.map_or_else(unknown, Driver::reconcile_command))
}

//! The statuses of a record and every transition between them.
//!
//! [`TRANSITIONS`] lists every change that Helm's actions, and the other clients that write records, make to the status
//! of a record. Rules use this table; nothing else in the crate defines a transition.

use std::fmt;
use std::str::FromStr;

/// The status of a record, as Helm writes it to the label `status` and to `info.status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Helm's initial value in memory. Helm never stores it.
    Unknown,
    /// The live revision.
    Deployed,
    /// Uninstalled with `--keep-history`.
    Uninstalled,
    /// Replaced by a later revision.
    Superseded,
    /// The operation failed, or the record was unlocked.
    Failed,
    /// An uninstall is running, or died.
    Uninstalling,
    /// An install is running, or died.
    PendingInstall,
    /// An upgrade is running, or died.
    PendingUpgrade,
    /// A rollback is running, or died.
    PendingRollback,
}

/// A status that Helm does not know.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a release status")]
pub struct BadStatus(String);

impl Status {
    /// Every status, in the order of the type.
    pub const ALL: [Self; 9] = [
        Self::Unknown,
        Self::Deployed,
        Self::Uninstalled,
        Self::Superseded,
        Self::Failed,
        Self::Uninstalling,
        Self::PendingInstall,
        Self::PendingUpgrade,
        Self::PendingRollback,
    ];

    /// Helm's spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Deployed => "deployed",
            Self::Uninstalled => "uninstalled",
            Self::Superseded => "superseded",
            Self::Failed => "failed",
            Self::Uninstalling => "uninstalling",
            Self::PendingInstall => "pending-install",
            Self::PendingUpgrade => "pending-upgrade",
            Self::PendingRollback => "pending-rollback",
        }
    }

    /// Whether the status is one of the three `pending-*`. `uninstalling` is not one of them.
    #[must_use]
    pub fn is_pending(self) -> bool {
        matches!(self, Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback)
    }

    /// Whether an operation holds the release: pending or uninstalling.
    #[must_use]
    pub fn is_in_flight(self) -> bool {
        self.is_pending() || self == Self::Uninstalling
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for Status {
    type Err = BadStatus;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|status| status.as_str() == text);
        known.ok_or_else(|| BadStatus(text.chars().take(40).collect()))
    }
}

/// The condition under which a transition is legitimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Always legitimate.
    Free,
    /// A new operation: only if no other operation holds the release.
    NothingInFlight,
    /// Only as helm-mapkubeapis does it: the newest record has just been superseded, and no record is deployed.
    MappedApis,
    /// Ends or takes over an operation in flight. Allowed for its holder, for a manager if a manager holds it, for an account of
    /// its own HelmRelease, and for anyone once it is stale. A promotion is also refused if a higher revision exists, because it
    /// would leave two deployed records.
    Unlock,
    /// Only while a newer rollback is pending: a rollback whose apply failed supersedes the record that it rolled back
    /// over.
    NewerRollback,
    /// Only by the holder of an operation, right after its end: a cancelled install fails the record that it has just
    /// promoted.
    JustEnded,
    /// Only on the newest record while none is deployed, by the controller that holds it: the controller resumes its
    /// own work.
    Resumption,
    /// Neither the newest deployed record of a live release, nor the record that Helm would upgrade from.
    Deletion,
    /// No client does this.
    Never,
}

/// The status before or after a transition; `None` stands for "no record".
pub type State = Option<Status>;

use Status::{
    Deployed, Failed, PendingInstall, PendingRollback, PendingUpgrade, Superseded, Uninstalled, Uninstalling, Unknown,
};

/// Every transition that some client makes. `None` stands for "no record". An unlisted transition is [`Guard::Never`].
///
/// A change to the same status is [`Guard::Free`] unless it is listed, because hooks, tests and failure paths rewrite a
/// record.
/// Sources: the actions of Helm 3.22 and 4.3, the clients that use its SDK, and the traffic of helm, Flux, OLM and mapkubeapis
/// recorded on a real API server.
pub const TRANSITIONS: &[(State, State, Guard)] = &[
    // A new operation writes its record before it touches an object.
    (None, Some(PendingInstall), Guard::NothingInFlight),
    (None, Some(PendingUpgrade), Guard::NothingInFlight),
    (None, Some(PendingRollback), Guard::NothingInFlight),
    // helm-mapkubeapis supersedes the newest record and creates its mapped copy as deployed.
    (None, Some(Deployed), Guard::MappedApis),
    // All ways to end an operation use the same check.
    (Some(PendingInstall), Some(Deployed), Guard::Unlock),
    (Some(PendingUpgrade), Some(Deployed), Guard::Unlock),
    (Some(PendingRollback), Some(Deployed), Guard::Unlock),
    (Some(PendingInstall), Some(Failed), Guard::Unlock),
    (Some(PendingUpgrade), Some(Failed), Guard::Unlock),
    (Some(PendingRollback), Some(Failed), Guard::Unlock),
    (Some(PendingInstall), Some(Uninstalling), Guard::Unlock),
    (Some(PendingUpgrade), Some(Uninstalling), Guard::Unlock),
    (Some(PendingRollback), Some(Uninstalling), Guard::Unlock),
    (Some(Uninstalling), Some(Uninstalled), Guard::Unlock),
    // A failed plan of nelm; `helm set-status` in the Jobs of the Helm controller of k3s.
    (Some(Uninstalling), Some(Failed), Guard::Unlock),
    // Another user continues a dead uninstall.
    (Some(Uninstalling), Some(Uninstalling), Guard::Unlock),
    (Some(Uninstalling), None, Guard::Unlock),
    (Some(PendingInstall), None, Guard::Unlock),
    (Some(PendingUpgrade), None, Guard::Unlock),
    (Some(PendingRollback), None, Guard::Unlock),
    // A rollback whose apply failed supersedes the record that it rolled back over, with any status.
    (Some(PendingInstall), Some(Superseded), Guard::NewerRollback),
    (Some(PendingUpgrade), Some(Superseded), Guard::NewerRollback),
    (Some(PendingRollback), Some(Superseded), Guard::NewerRollback),
    (Some(Uninstalling), Some(Superseded), Guard::NewerRollback),
    (Some(Unknown), Some(Superseded), Guard::NewerRollback),
    // Superseded by an upgrade, a rollback, an uninstall that keeps history, mapkubeapis, or install --replace.
    (Some(Deployed), Some(Superseded), Guard::Free),
    (Some(Failed), Some(Superseded), Guard::Free),
    (Some(Uninstalled), Some(Superseded), Guard::Free),
    // SIGTERM right after an install wrote `deployed`.
    (Some(Deployed), Some(Failed), Guard::JustEnded),
    // Fleet, after a rollback that failed; the Helm controller of k3s, before it upgrades.
    (Some(Superseded), Some(Deployed), Guard::Resumption),
    (Some(Superseded), Some(Failed), Guard::Resumption),
    // An uninstall starts over any status but `uninstalled`. Refusing this write does not stop it, so its deletions are
    // judged too.
    (Some(Unknown), Some(Uninstalling), Guard::NothingInFlight),
    (Some(Deployed), Some(Uninstalling), Guard::NothingInFlight),
    (Some(Superseded), Some(Uninstalling), Guard::NothingInFlight),
    (Some(Failed), Some(Uninstalling), Guard::NothingInFlight),
    // Pruning and purging delete records of any status.
    (Some(Deployed), None, Guard::Deletion),
    (Some(Superseded), None, Guard::Deletion),
    (Some(Unknown), None, Guard::Free),
    (Some(Uninstalled), None, Guard::Free),
    (Some(Failed), None, Guard::Free),
];

/// The condition of a transition.
#[must_use]
pub fn transition(from: State, to: State) -> Guard {
    let listed = TRANSITIONS.iter().find(|(before, after, _)| (*before, *after) == (from, to));
    let unlisted = if from == to { Guard::Free } else { Guard::Never };
    listed.map_or(unlisted, |(_, _, guard)| *guard)
}

/// The table that the rules use: [`TRANSITIONS`]. The model checker opens one edge after the other, to show that each
/// guard is needed. No policy file can open an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transitions {
    opened: Option<(State, State)>,
}

impl Transitions {
    /// The table with one transition free for everybody.
    #[must_use]
    pub fn with_open(from: State, to: State) -> Self {
        Self { opened: Some((from, to)) }
    }

    /// The condition of a transition.
    #[must_use]
    pub fn guard(self, from: State, to: State) -> Guard {
        if self.opened == Some((from, to)) { Guard::Free } else { transition(from, to) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_spelled_as_helm_spells_them() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert!("Deployed".parse::<Status>().is_err());
    }

    #[test]
    fn no_transition_is_listed_twice() {
        for (index, (from, to, _)) in TRANSITIONS.iter().enumerate() {
            let again = TRANSITIONS[index + 1..].iter().find(|(f, t, _)| (f, t) == (from, to));
            assert_eq!(again, None);
        }
    }

    /// The table as a picture: rows are the status before, columns the status after, in the order of `Status::ALL`
    /// after "no record". F free, O operation, M mapped, U unlock, R newer rollback, J just ended, C resumption by a controller,
    /// D deletion, - never.
    const PICTURE: [&str; 10] = [
        //                     - U D u S F g i p r
        /* no record        */
        "F-M----OOO",
        /* unknown          */ "FF--R-O---",
        /* deployed         */ "D-F-FJO---",
        /* uninstalled      */ "F--FF-----",
        /* superseded       */ "D-C-FCO---",
        /* failed           */ "F---FFO---",
        /* uninstalling     */ "U--URUU---",
        /* pending-install  */ "U-U-RUUF--",
        /* pending-upgrade  */ "U-U-RUU-F-",
        /* pending-rollback */ "U-U-RUU--F",
    ];

    #[test]
    fn every_pair_of_states_has_the_guard_of_the_picture() {
        let states: Vec<State> = std::iter::once(None).chain(Status::ALL.map(Some)).collect();
        for (row, from) in states.iter().enumerate() {
            for (column, to) in states.iter().enumerate() {
                let drawn = match PICTURE[row].as_bytes()[column] {
                    b'F' => Guard::Free,
                    b'O' => Guard::NothingInFlight,
                    b'M' => Guard::MappedApis,
                    b'U' => Guard::Unlock,
                    b'R' => Guard::NewerRollback,
                    b'J' => Guard::JustEnded,
                    b'C' => Guard::Resumption,
                    b'D' => Guard::Deletion,
                    _ => Guard::Never,
                };
                assert_eq!(transition(*from, *to), drawn, "{from:?} -> {to:?}");
            }
        }
    }
}

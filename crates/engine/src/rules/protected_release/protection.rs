//! Which release a request concerns, whether it is installed, and what protects it. The checks for all kinds of requests use this
//! code.

use crate::evidence::{CandidateRecords, Evidence, question};
use crate::object::PROTECTED;
use crate::owners;
use crate::policy::Policy;
use crate::release::stamps::TARGET_NAMESPACE;
use crate::release::{History, ProtectorRef, ProtectorState, ReleaseRef, Status, Storage};
use crate::rules::check::{Refusal, Step, StepKind, WaysOut};
use crate::rules::undecided::{Undecided, ask, is_protected_namespace};
use crate::rules::wording::command;

/// What protects a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Protection {
    Policy,
    /// The annotation of this object.
    Annotation(String),
    /// The stamp on the records, of an annotated object that has been deleted since.
    Stamp {
        object: String,
        records: ReleaseRef,
    },
}

impl Protection {
    /// The subject of a sentence with "protects".
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Policy => "the policy".to_owned(),
            Self::Annotation(object) => format!("the annotation {PROTECTED} of {object}"),
            Self::Stamp { object, .. } => format!("the annotation {PROTECTED} of {object} (deleted since)"),
        }
    }
}

/// A release with its home.
#[derive(Debug, Clone)]
pub(crate) struct ReleaseAtHome {
    pub(crate) storage: Storage,
    /// The namespace is that of its records.
    pub(crate) release: ReleaseRef,
    /// The namespace that policies use for the release. Its annotation protects the release; see [`Storage::home`].
    pub(crate) home: String,
}

impl ReleaseAtHome {
    pub(crate) fn new(storage: Storage, release: ReleaseRef, target_namespace: Option<&str>) -> Self {
        let home = storage.home(&release.namespace, target_namespace.filter(|target| !target.is_empty())).to_owned();
        Self { storage, release, home }
    }

    /// The release that these records belong to.
    pub(crate) fn of_records(candidate: &CandidateRecords, name: &str) -> Self {
        let target = candidate.history.newest().and_then(|newest| newest.stamps.get(TARGET_NAMESPACE));
        Self::new(candidate.storage, ReleaseRef::new(&candidate.namespace, name), target)
    }

    /// What protects the release: the policy, the annotation of the HelmRelease or ClusterExtension that declares it, the
    /// annotation of its home, or the stamps on its records.
    pub(crate) fn protection(
        &self,
        policy: &Policy,
        evidence: &Evidence,
        history: &History,
    ) -> Result<Option<Protection>, Undecided> {
        if self.is_covered(policy) {
            return Ok(Some(Protection::Policy));
        }
        if let Some(declaration) = owners::rules::annotated_declaration(evidence, self.storage, &self.release)? {
            return Ok(Some(Protection::Annotation(declaration)));
        }
        match self.protection_of_home(evidence)? {
            None => by_stamps(evidence, &self.release, history.protectors()),
            home => Ok(home),
        }
    }

    /// Like [`Self::protection`], if the request contains the declaration: its name, and whether it is annotated.
    pub(crate) fn protection_declared_by(
        &self,
        (declaration, is_annotated): (String, bool),
        policy: &Policy,
        evidence: &Evidence,
    ) -> Result<Option<Protection>, Undecided> {
        match () {
            () if self.is_covered(policy) => Ok(Some(Protection::Policy)),
            () if is_annotated => Ok(Some(Protection::Annotation(declaration))),
            () => self.protection_of_home(evidence),
        }
    }

    /// Whether the policy names the release.
    pub(crate) fn is_covered(&self, policy: &Policy) -> bool {
        policy.protected.covers(&ReleaseRef::new(&*self.home, &*self.release.name))
    }

    fn protection_of_home(&self, evidence: &Evidence) -> Result<Option<Protection>, Undecided> {
        let is_protected = !self.home.is_empty() && is_protected_namespace(evidence, &self.home)?;
        Ok(is_protected.then(|| Protection::Annotation(format!("Namespace {}", self.home))))
    }
}

/// The protection by the objects that the stamps on some records name. Such an object protects while it is annotated, and after its
/// deletion: otherwise deleting it would be the first half of an uninstall.
pub(crate) fn by_stamps<'s>(
    evidence: &Evidence,
    records: &ReleaseRef,
    protectors: impl Iterator<Item = ProtectorRef<'s>>,
) -> Result<Option<Protection>, Undecided> {
    for protector in protectors {
        let Some(key) = owners::key_of_protector(protector) else { continue };
        let (object, stored) = (protector.title(), ask(evidence, question::Object(key))?);
        match protector.state(stored.map(String::as_str)) {
            Ok(ProtectorState::Deleted) => {
                return Ok(Some(Protection::Stamp { object, records: records.clone() }));
            }
            Ok(ProtectorState::Annotated) => return Ok(Some(Protection::Annotation(object))),
            Ok(ProtectorState::Unannotated) => {}
            Err(why) => return Err(Undecided::Unavailable(format!("{object} cannot be read: {why}"))),
        }
    }
    Ok(None)
}

/// Whether there is anything to protect: a revision was deployed in the current life of the release, and no admitted uninstall
/// has begun.
///
/// The mutating half stamps an uninstall with its holder. An uninstall that began while the webhook was unavailable has no stamp,
/// or the stamps of the previous operation, which has ended.
pub(crate) fn is_installed(history: &History) -> bool {
    history.newest().is_some_and(|newest| match newest.status {
        Status::Uninstalled => false,
        Status::Uninstalling => newest.stamps.holder().is_none() || newest.stamps.ended().is_some(),
        _ => history.was_deployed(),
    })
}

/// Whether the release may be installed, by records from a cache. Caches leave out superseded records.
pub(crate) fn may_be_installed(cached: &History) -> bool {
    let may_rest_on_superseded =
        |newest: Status| !matches!(newest, Status::Uninstalled | Status::Uninstalling | Status::PendingInstall);
    is_installed(cached) || cached.newest().is_some_and(|newest| may_rest_on_superseded(newest.status))
}

/// The refusal. It says who can override it.
pub(crate) fn refusal(
    policy: &Policy,
    release: ReleaseRef,
    protection: &Protection,
    sentence: String,
    other_ways: WaysOut,
) -> Refusal {
    let home = policy.overrides.home_of(&release).namespace;
    let ask = format!("ask somebody who may create ReleaseOverrides in namespace {home} for one of protected-release");
    let mut ways_out = other_ways.when("if the release must go", Step::of(StepKind::Override, ask));
    if let Protection::Stamp { records, .. } = protection {
        let end = Step::run("under such an override, {}", command(&["interlock", "unprotect", &records.to_string()]));
        ways_out = ways_out.when("to end the protection and keep the release", end);
    }
    Refusal::new(sentence, ways_out).about(release)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::stamps::{ENDED, HOLDER};
    use crate::release::{Entry, Stamps};

    fn history(statuses: &[Status]) -> History {
        let newest = statuses.len() as u64;
        History::new(statuses.iter().zip(0..).map(|(status, age)| Entry::of_web(newest - age, *status)).collect())
    }

    /// Statuses are newest first.
    #[test]
    fn a_release_is_installed_after_its_first_deployment() {
        use Status::{Deployed, Failed, PendingInstall, PendingUpgrade, Superseded, Uninstalled, Uninstalling};
        for (statuses, installed) in [
            (&[][..], false),
            (&[Deployed], true),
            (&[Failed], false),
            (&[PendingInstall], false),
            (&[PendingUpgrade, Deployed], true),
            (&[Failed, Superseded], true),
            (&[Uninstalled, Superseded], false),
            // An uninstall that nobody admitted.
            (&[Uninstalling], true),
            // `upgrade --install --atomic` over the history that `uninstall --keep-history` left.
            (&[PendingInstall, Uninstalled, Superseded], false),
            (&[Failed, Uninstalled, Superseded], false),
            // After the deployment, Helm marks the records of the previous life as superseded.
            (&[Failed, Deployed, Superseded, Superseded], true),
            (&[PendingInstall, Deployed], true),
        ] {
            assert_eq!(is_installed(&history(statuses)), installed, "{statuses:?}");
        }
    }

    #[test]
    fn an_admitted_uninstall_has_its_own_stamps() {
        for (stamps, admitted) in [(&[][..], false), (&[HOLDER], true), (&[HOLDER, ENDED], false)] {
            let stamps = Stamps::of(|key| stamps.contains(&key).then(|| "2026-11-21T10:00:00Z".to_owned()));
            let history = History::new(vec![Entry { stamps, ..Entry::of_web(5, Status::Uninstalling) }]);
            assert_eq!(is_installed(&history), !admitted, "{history:?}");
        }
    }

    #[test]
    fn cached_records_may_omit_a_superseded_revision() {
        use Status::{Failed, PendingInstall, PendingRollback, Uninstalled};
        for (status, may) in [(Failed, true), (PendingRollback, true), (PendingInstall, false), (Uninstalled, false)] {
            assert_eq!(may_be_installed(&history(&[status])), may, "{status}");
        }
    }
}

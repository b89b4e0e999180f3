//! The rule `duplicate-release`.
//!
//! Flux finds records by their namespace and the shortened name of the release alone, so each of two HelmReleases takes the other's
//! revisions for its own: they upgrade over one another at every reconciliation, or uninstall where the charts differ.

use super::case::DeclarationCase;
use crate::engine::facts::DeclarationWrite;
use crate::engine::flux::{Driver, HelmRelease};
use crate::engine::release::ReleaseRef;
use crate::engine::rule::{FORBIDDEN, FailsClosed, Mode, ReleaseOwner, Specification};
use crate::engine::rules::check::{Check, CheckedAll, Refusal, Rule};
use crate::engine::rules::flux_release::helm_releases;

/// The rule `duplicate-release`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "duplicate-release",
        owners: &[ReleaseOwner::Flux],
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        summary: "One HelmRelease drives a release.",
        why: "Two HelmReleases upgrade over one another forever, and deleting either uninstalls the release of both.",
        allowed: "A second HelmRelease whose records are in another namespace, or one that is suspended.",
        refused: "HelmRelease shop/two with `releaseName: web` beside HelmRelease shop/web.",
        way_out: "Set another releaseName or storageNamespace, or remove the other HelmRelease first.",
        settings: &[],
    },
    checks: &[Check::Declaration(check)],
};

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let Some(written) = case.helm_release()? else {
        return Ok(Vec::new());
    };
    let Some(after) = written.after.as_ref().filter(|after| starts_to_drive(written, after)) else {
        return Ok(Vec::new());
    };
    let release = after.release();
    let drivers = helm_releases(case.evidence, &release.namespace, &release.name)?;
    let other = drivers.iter().find(|driver| {
        let itself = driver.namespace == written.namespace && driver.name == written.name;
        !itself && !driver.suspended && driver.shares_cluster(after) && has_a_claim(driver, written.namespace, &release)
    });
    let Some(other) = other else {
        return Ok(Vec::new());
    };
    let first = format!("HelmRelease {}/{}", other.namespace, other.name);
    let state = match () {
        () if other.being_deleted => "is uninstalling",
        () if !other.wants(&release) => "still has installed",
        () => "already manages",
    };
    let sentence = format!(
        "{} would manage release {}/{}, which {first} {state}: Flux would upgrade or uninstall one for the other, forever.",
        case.subject(),
        release.namespace,
        release.name
    );
    let way_out = if other.being_deleted {
        "Wait until that HelmRelease is gone.".to_owned()
    } else {
        format!(
            "Set another releaseName or storageNamespace. To move the release, first suspend {first} (spec.suspend: true), then \
             delete it: Flux does nothing for a suspended HelmRelease."
        )
    };
    Ok(vec![Refusal::new(sentence, way_out).at("/spec/releaseName").at("/spec/storageNamespace")])
}

/// Whether a HelmRelease has a claim on a release that another one in this namespace wants too. A HelmRelease can name the records of
/// any namespace; naming them first is no claim.
fn has_a_claim(other: &Driver, namespace: &str, release: &ReleaseRef) -> bool {
    let near = [namespace, release.namespace.as_str()].contains(&other.namespace.as_str());
    near || other.has_installed(&release.namespace, &release.name)
}

/// Whether a write makes a HelmRelease drive a release that it did not drive before.
fn starts_to_drive(written: &DeclarationWrite<'_, HelmRelease>, after: &HelmRelease) -> bool {
    if after.spec.suspend || after.metadata.deletion_timestamp.is_some() || written.same_spec {
        return false;
    }
    written.before.as_ref().is_none_or(|before| {
        before.spec.suspend || before.release() != after.release() || before.spec.kube_config != after.spec.kube_config
    })
}

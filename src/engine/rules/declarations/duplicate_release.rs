//! `duplicate-release`: no two HelmReleases drive one release.
//!
//! Flux finds records by their namespace and the release's shortened name alone, so each of the two takes the other's
//! revisions for its own: they upgrade over one another at every reconciliation, or uninstall where the charts differ, and
//! the deletion of either uninstalls the release of both.
//!
//! Allowed: a second HelmRelease whose records lie in another namespace, or of one that is suspended.
//! Denied: HelmRelease shop/two with `releaseName: web` beside HelmRelease shop/web.

use super::case::DeclarationCase;
use crate::engine::facts::DeclarationWrite;
use crate::engine::flux::HelmRelease;
use crate::engine::rules::drivers::helm_releases;
use crate::engine::rules::{Findings, Refusal};

pub(crate) fn check(case: &DeclarationCase<'_>) -> Findings {
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
        !itself && !driver.suspended && driver.shares_cluster(after)
    });
    let Some(other) = other else {
        return Ok(Vec::new());
    };
    let first = format!("HelmRelease {}/{}", other.namespace, other.name);
    let state = match () {
        () if other.being_deleted => "is uninstalling",
        () if !other.wants(&release) => "still has installed",
        () => "drives already",
    };
    let sentence = format!(
        "{} would drive release {}/{}, which {first} {state}: Flux would upgrade or uninstall the one for the other, for ever.",
        case.subject(),
        release.namespace,
        release.name
    );
    let way_out = if other.being_deleted {
        "Wait until it is gone.".to_owned()
    } else {
        format!(
            "Give it another releaseName or storageNamespace. To move the release, suspend {first} first (spec.suspend: true), \
             then delete that: Flux does nothing for a suspended one."
        )
    };
    Ok(vec![Refusal::new(sentence, way_out).at("/spec/releaseName").at("/spec/storageNamespace")])
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

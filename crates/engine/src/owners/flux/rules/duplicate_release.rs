//! The rule `duplicate-release`.
//!
//! Flux finds records only by their namespace and the shortened name of the release. So each of two HelmReleases treats the
//! other's revisions as its own: they upgrade over each other at every reconciliation, or uninstall if the charts differ.
//!
//! The API server is queried before a HelmRelease passes, so one that was stored a moment ago is seen. If two requests are in
//! progress at the same time, neither HelmRelease is stored yet, so neither is seen. `interlock scan` reports them.

use serde_json::json;

use crate::facts::DeclarationWrite;
use crate::owners::flux;
use crate::owners::flux::HELM_RELEASE;
use crate::owners::flux::rules::release::{helm_releases, helm_releases_in};
use crate::owners::flux::{Driver, HelmRelease, InstalledRelease};
use crate::release::{ReleaseRef, Stamps};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, CheckedAll, Refusal, Rule, Step, Way, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::undecided::Undecided;
use crate::rules::wording::command;

/// The rule `duplicate-release`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "duplicate-release",
        owners: &[flux::NAME],
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        requests: Requests {
            operations: &[Operation::Create, Operation::Update, Operation::Delete],
            kinds: &[HELM_RELEASE],
        },
        summary: "One HelmRelease drives a release.",
        why: "Two HelmReleases upgrade over one another forever, and deleting either uninstalls the release of both.",
        allowed: "A second HelmRelease whose records are in another namespace, or one that is suspended. With a warning: the deletion \
                  of one of two.",
        refused: "HelmRelease shop/two with `releaseName: web` beside HelmRelease shop/web.",
        way_out: "Set another releaseName or storageNamespace, or suspend the other HelmRelease first and then delete it. `interlock \
                  scan` reports two that were created within the same instant, before either was stored.",
        settings: &[],
    },
    checks: &[Check::Declaration(check)],
};

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let Some(written) = case.helm_release()? else {
        return Ok(Vec::new());
    };
    let refusal = match (&written.before, &written.after) {
        (Some(before), None) => deletion(case, written, before)?,
        (_, Some(after)) if starts_to_drive(written, after) => second(case, written, after)?,
        _ => None,
    };
    Ok(refusal.into_iter().collect())
}

/// The refusal of a HelmRelease that would drive the release of another one.
fn second(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, HelmRelease>, after: &HelmRelease) -> Checked {
    let release = after.release();
    let drives = |driver: &&Driver| !driver.suspended && is_other(driver, written, after, &release);
    let mut other = helm_releases(case.evidence, &release.namespace, &release.name, Stamps::NONE)?.iter().find(drives);
    // A cache may not contain a HelmRelease that was created a moment ago. HelmReleases in other namespaces have no claim.
    let mut near = vec![written.namespace, release.namespace.as_str()];
    near.dedup();
    for namespace in near {
        if other.is_none() {
            other = helm_releases_in(case.evidence, namespace)?.iter().find(drives);
        }
    }
    let Some(other) = other else {
        return Ok(None);
    };
    let first = format!("HelmRelease {}/{}", other.namespace, other.name);
    let state = match () {
        () if other.being_deleted => "is uninstalling",
        () if !other.wants(&release) => "still has installed",
        () => "already manages",
    };
    let sentence = format!(
        "{} would manage release {release}, which {first} {state}: Flux would upgrade or uninstall one for the other, forever.",
        case.subject(),
    );
    let ways_out = if other.being_deleted {
        Step::wait("wait until that HelmRelease is gone").into()
    } else {
        let Driver { namespace, name, .. } = other;
        let suspend = json!({"spec": {"suspend": true}}).to_string();
        let suspend =
            command(&["kubectl", "patch", "helmrelease", name, "-n", namespace, "--type", "merge", "-p", &suspend]);
        let retry = Step::retry("try again: Flux does nothing for a suspended HelmRelease");
        let suspend = Way::from(Step::run(format!("suspend {first} with {{}}"), suspend));
        WaysOut::from("set another releaseName").or("set another storageNamespace").when(
            "to move the release",
            suspend.then(Step::run("delete it with {}", other.delete_command())).then(retry),
        )
    };
    Ok(Some(Refusal::new(sentence, ways_out).at("/spec/releaseName").at("/spec/storageNamespace")))
}

/// A warning if another HelmRelease claims the release of a deleted one too. It never refuses, because the deletion may end the
/// conflict.
fn deletion(case: &DeclarationCase<'_>, written: &DeclarationWrite<'_, HelmRelease>, before: &HelmRelease) -> Checked {
    if before.spec.suspend || before.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    let release = before.installed().map_or_else(|| before.release(), InstalledRelease::release);
    let claims = |driver: &&Driver| !driver.being_deleted && is_other(driver, written, before, &release);
    let others = match helm_releases(case.evidence, &release.namespace, &release.name, Stamps::NONE) {
        Ok(drivers) => {
            drivers.iter().find(claims).map(|other| format!("HelmRelease {}/{}", other.namespace, other.name))
        }
        // This deletion reduces their number.
        Err(Undecided::HelmReleasesOverLimit(_)) => Some("another HelmRelease".to_owned()),
        Err(need) => return Err(need),
    };
    let Some(other) = others else {
        return Ok(None);
    };
    let sentence = format!(
        "{} is deleted, and {other} claims release {release} too: Flux uninstalls the release of both.",
        case.subject()
    );
    let suspend = "first suspend the HelmRelease that you delete (spec.suspend: true): Flux uninstalls nothing for a \
                   suspended HelmRelease";
    let keep = WaysOut::default().when("to keep the release", suspend);
    Ok(Some(Refusal::new(sentence, keep).about(release).into_advice()))
}

/// Whether a driver is another HelmRelease than the written one, and has a claim on this release.
fn is_other(
    driver: &Driver,
    written: &DeclarationWrite<'_, HelmRelease>,
    side: &HelmRelease,
    release: &ReleaseRef,
) -> bool {
    let itself = driver.namespace == written.namespace && driver.name == written.name;
    !itself
        && driver.drives(&release.namespace, &release.name)
        && driver.shares_cluster(side)
        && has_a_claim(driver, written.namespace, release)
}

/// Whether a HelmRelease has a claim on a release that a HelmRelease in this namespace wants too. A HelmRelease can name records
/// in any namespace, so naming them first is not a claim. Its status is not a claim either, as long as clients other than Flux
/// can write it.
fn has_a_claim(other: &Driver, namespace: &str, release: &ReleaseRef) -> bool {
    [namespace, release.namespace.as_str()].contains(&other.namespace.as_str())
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

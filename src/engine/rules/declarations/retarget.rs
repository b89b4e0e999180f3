//! The rule `retarget`.
//!
//! Flux compares its last release with what the HelmRelease asks for now. If the namespace of the records or of the objects, the
//! name of the release or that of the chart differs, it uninstalls the one and installs the other.

use super::case::DeclarationCase;
use crate::engine::flux::{HelmRelease, InstalledRelease};
use crate::engine::rule::{FORBIDDEN, FailsClosed, Mode, ReleaseOwner, Specification};
use crate::engine::rules::check::{Check, CheckedAll, Refusal, Rule};

/// The rule `retarget`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "retarget",
        owners: &[ReleaseOwner::Flux],
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        summary: "An edit of a HelmRelease does not uninstall its release.",
        why: "Flux uninstalls the release and installs it again when its name, namespace or storage changes. Its volumes \
              and data can be lost.",
        allowed: "Another chart version or other values; the same edit before anything is installed.",
        refused: "Another releaseName, targetNamespace or storageNamespace while the release is deployed.",
        way_out: "To confirm the change, set the annotation interlock.dev/allow-retarget on the HelmRelease. The refusal \
              names its value.",
        settings: &[],
    },
    checks: &[Check::Declaration(check)],
};

/// The annotation that acknowledges the loss of the installed release. Its value names the new target, so that it opens no
/// later change.
const ACKNOWLEDGEMENT: &str = "interlock.dev/allow-retarget";

pub(crate) fn check(case: &DeclarationCase<'_>) -> CheckedAll {
    let Some(written) = case.helm_release()? else {
        return Ok(Vec::new());
    };
    let (Some(before), Some(after)) = (&written.before, &written.after) else {
        return Ok(Vec::new());
    };
    if written.same_spec || after.metadata.deletion_timestamp.is_some() {
        return Ok(Vec::new());
    }
    // The status of what is stored: this edit cannot change it.
    let Some(installed) = before.installed() else {
        return Ok(Vec::new());
    };
    let Some(change) = change(after, installed).filter(|_| change(before, installed).is_none()) else {
        return Ok(Vec::new());
    };
    let release = after.release();
    let mut acknowledged = format!("{}/{}", release.namespace, release.name);
    if acknowledged == format!("{}/{}", installed.storage_namespace, installed.snapshot.name) {
        acknowledged = format!("{acknowledged}/{}", change.new);
    }
    if after.metadata.annotations.get(ACKNOWLEDGEMENT) == Some(&acknowledged) {
        return Ok(Vec::new());
    }
    let Change { what, old, new, pointer } = change;
    let sentence = format!(
        "{} would make Flux uninstall release {}/{} ({}): its {what} changes from {old} to {new}.",
        case.subject(),
        installed.storage_namespace,
        installed.snapshot.name,
        installed.snapshot.status
    );
    let way_out = format!(
        "Create another HelmRelease for the new release. To let Flux uninstall the old one, annotate this HelmRelease with \
         {ACKNOWLEDGEMENT}: {acknowledged}"
    );
    Ok(vec![Refusal::new(sentence, way_out).at(pointer).about(installed.release())])
}

/// What makes Flux give up the installed release.
struct Change {
    what: &'static str,
    old: String,
    new: String,
    pointer: &'static str,
}

/// The first difference between what is installed and what is asked for, in Flux's order.
fn change(asked: &HelmRelease, installed: InstalledRelease<'_>) -> Option<Change> {
    let (release, snapshot) = (asked.release(), installed.snapshot);
    let parts = [
        ("storage namespace", installed.storage_namespace, Some(release.namespace.as_str()), "/spec/storageNamespace"),
        ("target namespace", &snapshot.namespace, Some(asked.target_namespace()), "/spec/targetNamespace"),
        ("release name", &snapshot.name, Some(release.name.as_str()), "/spec/releaseName"),
        ("chart", &snapshot.chart_name, chart(asked), "/spec/chart/spec/chart"),
    ];
    parts.into_iter().find_map(|(what, old, new, pointer)| {
        let new = new.filter(|new| *new != old)?;
        Some(Change { what, old: old.to_owned(), new: new.to_owned(), pointer })
    })
}

/// The name of the chart, where the object tells it and Flux goes by it: a path in another source than a repository of charts
/// tells nothing, and neither does a reference to a source.
fn chart(asked: &HelmRelease) -> Option<&str> {
    if asked.spec.upgrade.chart_name_change_strategy == "InPlaceUpdate" {
        return None;
    }
    let chart = asked.spec.chart.as_ref().filter(|chart| chart.spec.source_ref.kind == "HelmRepository")?;
    // Of a registry the name may have a path before it, which the chart's own metadata has not.
    chart.spec.chart.rsplit('/').next().filter(|name| !name.is_empty())
}

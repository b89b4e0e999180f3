//! The rule `retarget`.
//!
//! Flux compares its last release with the HelmRelease. If the namespace of the records, the namespace of the objects, the name
//! of the release or the name of the chart differs, Flux uninstalls the old release and installs the new one.
//!
//! The name of a chart from Git, a bucket or `chartRef` is only in the chart itself, so an edit that selects another chart only
//! gives a warning.

use crate::owners::flux;
use crate::owners::flux::HELM_RELEASE;
use crate::owners::flux::{ChartSourceRef, HelmRelease, InstalledRelease};
use crate::release::Status;
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, CheckedAll, Refusal, Rule, Step, Way, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::undecided::Undecided;
use crate::rules::wording::command;

/// The rule `retarget`.
pub(crate) static RULE: Rule = Rule {
    specification: Specification {
        id: "retarget",
        owners: &[flux::NAME],
        mode: Mode::Enforce,
        status_code: FORBIDDEN,
        fails_closed: FailsClosed::Never,
        requests: Requests { operations: &[Operation::Update], kinds: &[HELM_RELEASE] },
        summary: "An edit of a HelmRelease does not uninstall its release.",
        why: "Flux uninstalls the release and installs it again when its name, its namespace, its storage or the name of its chart \
              changes. Its volumes and data can be lost.",
        allowed: "Another chart version or other values; the same edit before any revision was deployed, also after a failed \
                  first install. With a warning: another chartRef, or another path in Git. Only Flux sees the name of that chart.",
        refused: "Another releaseName, targetNamespace or storageNamespace while the release is deployed.",
        way_out: "To confirm the change, set the annotation interlock.dev/allow-retarget on the HelmRelease. The refusal \
              names its value. Another chart is harmless with `upgrade.chartNameChangeStrategy: InPlaceUpdate`.",
        settings: &[],
    },
    checks: &[Check::Declaration(check)],
};

/// The annotation that acknowledges the loss of the installed release. Its value is the new target, so that it allows no later
/// change.
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
    // The stored status, which this edit cannot change.
    let Some(installed) = before.installed() else {
        return Ok(Vec::new());
    };
    let change = new_change(before, after, installed);
    let is_unknown = chart(after).is_none() && chart_source(after).is_some_and(|new| chart_source(before) != Some(new));
    if change.is_none() && !is_unknown {
        return Ok(Vec::new());
    }
    let refusal = |state: &str| match change {
        Some(change) => retarget(case, after, installed, state, change),
        None => Some(unknown_chart(case, installed, state)),
    };
    let refusal = match deployed(case, before, installed)? {
        Deployed::Never => None,
        Deployed::Once(status) => refusal(&status),
        Deployed::Unknown => refusal("unknown").map(Refusal::into_advice),
    };
    Ok(refusal.into_iter().collect())
}

/// The refusal of a change that Flux treats as another release; `None` if it is acknowledged.
fn retarget(
    case: &DeclarationCase<'_>,
    after: &HelmRelease,
    installed: InstalledRelease<'_>,
    state: &str,
    change: Change,
) -> Option<Refusal> {
    let Change { what, old, new, pointer } = change;
    let mut acknowledged = after.release().to_string();
    if acknowledged == installed.release().to_string() {
        acknowledged = format!("{acknowledged}/{new}");
    }
    if after.metadata.annotations.get(ACKNOWLEDGEMENT) == Some(&acknowledged) {
        return None;
    }
    let sentence = format!(
        "{} would make Flux uninstall release {} ({state}): its {what} changes from {old} to {new}.",
        case.subject(),
        installed.release(),
    );
    let annotation = format!("{ACKNOWLEDGEMENT}={acknowledged}");
    let (namespace, name) = (case.declaration.namespace(), case.declaration.name());
    let annotate = command(&["kubectl", "annotate", "helmrelease", name, "-n", namespace, "--overwrite", &annotation]);
    let text = format!("annotate this HelmRelease with {ACKNOWLEDGEMENT}: {acknowledged} ({{}})");
    let annotate = Way::from(Step::run(text, annotate)).then(Step::retry("try again"));
    let ways_out = WaysOut::from("create another HelmRelease for the new release")
        .when("to let Flux uninstall the old one", annotate);
    Some(Refusal::new(sentence, ways_out).at(pointer).about(installed.release()))
}

/// The warning about another chart with a name that only Flux knows.
fn unknown_chart(case: &DeclarationCase<'_>, installed: InstalledRelease<'_>, state: &str) -> Refusal {
    let sentence = format!(
        "{} takes another chart, and only Flux sees the name of it: if the name is no longer {}, Flux uninstalls release {} ({state}).",
        case.subject(),
        installed.snapshot.chart_name,
        installed.release(),
    );
    let set = "set upgrade.chartNameChangeStrategy to InPlaceUpdate";
    Refusal::new(sentence, WaysOut::default().when("if the chart has another name", set))
        .about(installed.release())
        .into_advice()
}

/// The change that makes Flux abandon the installed release.
struct Change {
    what: &'static str,
    old: String,
    new: String,
    pointer: &'static str,
}

/// Whether an edit makes Flux uninstall the installed release.
pub(crate) fn abandons(before: &HelmRelease, after: &HelmRelease, installed: InstalledRelease<'_>) -> bool {
    after.metadata.deletion_timestamp.is_none() && new_change(before, after, installed).is_some()
}

/// The change in an edit that makes Flux abandon the installed release; `None` if Flux abandons it anyway.
fn new_change(before: &HelmRelease, after: &HelmRelease, installed: InstalledRelease<'_>) -> Option<Change> {
    change(after, installed).filter(|_| change(before, installed).is_none())
}

/// The first difference between the installed release and the HelmRelease, in Flux's order.
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

/// The name of the chart, if the object contains it and Flux compares it. A path in a source that is not a chart repository does
/// not contain it. Neither does a reference to a source.
fn chart(asked: &HelmRelease) -> Option<&str> {
    if is_updated_in_place(asked) {
        return None;
    }
    let chart = asked.spec.chart.as_ref().filter(|chart| chart.spec.source_ref.kind == "HelmRepository")?;
    // In a registry, the name may have a path in front, which is not in the chart's metadata.
    chart.spec.chart.rsplit('/').next().filter(|name| !name.is_empty())
}

fn is_updated_in_place(asked: &HelmRelease) -> bool {
    asked.spec.upgrade.chart_name_change_strategy == "InPlaceUpdate"
}

/// Where a chart comes from.
#[derive(PartialEq, Eq)]
struct ChartSource<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    /// The name or path in the source; empty for `chartRef`.
    chart: &'a str,
}

/// The source of the chart. `None` if there is none, or if Flux does not compare the name of the chart.
fn chart_source(asked: &HelmRelease) -> Option<ChartSource<'_>> {
    if is_updated_in_place(asked) {
        return None;
    }
    let (reference, chart) = match (&asked.spec.chart_ref, &asked.spec.chart) {
        (Some(reference), _) => (reference, ""),
        (None, Some(chart)) => (&chart.spec.source_ref, chart.spec.chart.as_str()),
        (None, None) => return None,
    };
    let ChartSourceRef { kind, name, namespace } = reference;
    let namespace = if namespace.is_empty() { &asked.metadata.namespace } else { namespace };
    Some(ChartSource { kind, namespace, name, chart })
}

/// Whether a revision of the installed release was ever deployed.
pub(crate) enum Deployed {
    Never,
    /// The status of the release.
    Once(String),
    /// Unknown: the records are on another cluster.
    Unknown,
}

/// Uses the records if the status of the HelmRelease no longer has the answer.
pub(crate) fn deployed(
    case: &DeclarationCase<'_>,
    before: &HelmRelease,
    installed: InstalledRelease<'_>,
) -> Result<Deployed, Undecided> {
    if let Some(status) = before.release_status() {
        return Ok(Deployed::Once(status.to_owned()));
    }
    if before.has_complete_history() {
        return Ok(Deployed::Never);
    }
    if before.spec.kube_config.is_some() {
        return Ok(Deployed::Unknown);
    }
    let history = case.history(&installed.release())?;
    if history.newest_deployed().is_some() {
        return Ok(Deployed::Once(Status::Deployed.to_string()));
    }
    let was_deployed = history.iter().any(|entry| entry.status == Status::Superseded);
    Ok(match history.newest() {
        Some(newest) if was_deployed => Deployed::Once(newest.status.to_string()),
        _ => Deployed::Never,
    })
}

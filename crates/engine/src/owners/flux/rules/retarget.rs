//! The rule `retarget`.
//!
//! Flux compares its last release with the HelmRelease. If the namespace of the records, the namespace of the objects, the name
//! of the release or the name of the chart differs, Flux uninstalls the old release and installs the new one.
//!
//! The name of a chart from Git, a bucket or `chartRef` is only in the chart itself, so an edit that selects another chart only
//! gives a warning.

use crate::facts::DeclarationWrite;
use crate::owners::flux;
use crate::owners::flux::HELM_RELEASE;
use crate::owners::flux::rules::protected_release::protection_of;
use crate::owners::flux::{ChartSourceRef, HelmRelease, InstalledRelease};
use crate::release::{Status, Storage};
use crate::review::Operation;
use crate::rule::{FORBIDDEN, FailsClosed, Mode, Requests, Specification};
use crate::rules::check::{Check, Checked, CheckedAll, Refusal, Rule, Step, Way, WaysOut};
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::protected_release::protection::ReleaseAtHome;
use crate::rules::undecided::{Undecided, if_answered};
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
                  first install. With a warning: another chartRef, or another path in Git. Only Flux sees the name of that chart. With a warning: \
              another cluster in kubeConfig, which leaves the release behind.",
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
    let moves = before.spec.kube_config != after.spec.kube_config;
    if change.is_none() && !is_unknown && !moves {
        return Ok(Vec::new());
    }
    let (state, is_known) = match deployed(case, before, installed)? {
        Deployed::Never => return Ok(Vec::new()),
        Deployed::Once(status) => (status, true),
        Deployed::Unknown => ("unknown".to_owned(), false),
    };
    let refusal = match change {
        // Also beside a move: the cluster may be taken back later, and then this edit has changed the name before.
        Some(change) => retarget(case, (before, after), installed, &state, change)?,
        None if is_unknown => Some(unknown_chart(case, installed, &state)),
        _ => None,
    };
    let refusal = refusal.map(|refusal| if is_known { refusal } else { refusal.into_advice() });
    Ok(refusal.into_iter().chain(moves.then(|| left_behind(case, installed, &state))).collect())
}

/// The refusal of a change that Flux treats as another release; `None` if it is acknowledged.
fn retarget(
    case: &DeclarationCase<'_>,
    (before, after): (&HelmRelease, &HelmRelease),
    installed: InstalledRelease<'_>,
    state: &str,
    change: Change,
) -> Checked {
    let Change { what, old, new, pointer } = change;
    let mut acknowledged = after.release().to_string();
    if acknowledged == installed.release().to_string() {
        acknowledged = format!("{acknowledged}/{new}");
    }
    if after.metadata.annotations.get(ACKNOWLEDGEMENT) == Some(&acknowledged) {
        return Ok(None);
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
    let mut ways_out = WaysOut::from("create another HelmRelease for the new release");
    let at_home = ReleaseAtHome::new(Storage::Secret, installed.release(), None);
    // The annotation does not open `protected-release`, which says what does.
    if if_answered(protection_of(case, before, &at_home))?.is_none() {
        ways_out = ways_out.when("to let Flux uninstall the old one", annotate);
    }
    Ok(Some(Refusal::new(sentence, ways_out).at(pointer).about(installed.release())))
}

/// The warning about a release that nothing manages after Flux works on another cluster.
fn left_behind(case: &DeclarationCase<'_>, installed: InstalledRelease<'_>, state: &str) -> Refusal {
    let sentence = format!(
        "{} moves to another cluster: Flux installs the release there, and nothing manages release {} ({state}) on this one \
         any longer.",
        case.subject(),
        installed.release()
    );
    let way_out = "create another HelmRelease for the other cluster, and delete this one if its release must go";
    Refusal::new(sentence, WaysOut::from(way_out)).at("/spec/kubeConfig").about(installed.release()).into_advice()
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

/// The installed release that Flux uninstalls after a write, and the HelmRelease before it; `None` if it keeps the release.
pub(crate) fn leaves<'w>(
    written: &'w DeclarationWrite<'_, HelmRelease>,
) -> Option<(&'w HelmRelease, InstalledRelease<'w>)> {
    let before = written.before.as_ref().filter(|before| before.metadata.deletion_timestamp.is_none())?;
    let installed = before.installed()?;
    let leaves = match &written.after {
        // Flux keeps the release of a suspended HelmRelease.
        None => !before.spec.suspend,
        Some(after) => !written.same_spec && abandons(before, after, installed),
    };
    leaves.then_some((before, installed))
}

/// Whether an edit makes Flux uninstall the installed release.
fn abandons(before: &HelmRelease, after: &HelmRelease, installed: InstalledRelease<'_>) -> bool {
    after.metadata.deletion_timestamp.is_none() && new_change(before, after, installed).is_some()
}

/// The first change in an edit that makes Flux abandon the installed release, in Flux's order; `None` if the edit makes no such
/// change.
///
/// What differed from the installed release before the edit does not count, but for the name of the chart: the chart itself may have
/// another name than the entry in its repository, and then that difference is there for ever.
fn new_change(before: &HelmRelease, after: &HelmRelease, installed: InstalledRelease<'_>) -> Option<Change> {
    let snapshot = installed.snapshot;
    let (was, is) = (before.release(), after.release());
    let names = [
        ("storage namespace", "/spec/storageNamespace", installed.storage_namespace, &*was.namespace, &*is.namespace),
        (
            "target namespace",
            "/spec/targetNamespace",
            &snapshot.namespace,
            before.target_namespace(),
            after.target_namespace(),
        ),
        ("release name", "/spec/releaseName", &snapshot.name, &was.name, &is.name),
    ];
    let renamed = names.into_iter().find(|(_, _, installed, was, is)| was == installed && is != installed);
    let renamed = renamed.map(|(what, pointer, old, _, new)| (what, pointer, old, new));
    let other_chart = chart(after)
        .filter(|name| *name != snapshot.chart_name && chart(before) != Some(*name))
        .map(|name| ("chart", "/spec/chart/spec/chart", snapshot.chart_name.as_str(), name));
    let (what, pointer, old, new) = renamed.or(other_chart)?;
    Some(Change { what, old: old.to_owned(), new: new.to_owned(), pointer })
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

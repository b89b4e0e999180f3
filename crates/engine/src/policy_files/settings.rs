//! Sets the rules and limits of a file over those of the policy below: the one way in which the cluster policy and the policies of
//! namespaces are layered.

use std::iter;

use super::file::{CaseFile, Limit, Limits, Mapping, PolicyFile, RuleFile};
use super::problem::Problems;
use super::reasons;
use crate::policy::{Modes, OnUndecided, Policy, RuleSettings, When};
use crate::rule::{Mode, RuleId};

/// Sets the settings of a file. `reason` says why the value of a key must not be looser, of a rule or of the overrides; `None` if it may
/// be.
pub(super) fn set(
    file: &PolicyFile,
    policy: &mut Policy,
    problems: &mut Problems<'_>,
    reason: impl Fn(Option<RuleId>, &str) -> Option<String>,
) {
    for (rule, file) in file.rules() {
        let mut limits = Limits { reason: &|key| reason(Some(rule), key), problems };
        let settings = policy.settings_mut(rule);
        set_modes(file, settings, &mut limits);
        set_undecided(file, settings, &mut limits);
        file.set(policy, &mut limits);
    }
    let mut limits = Limits { reason: &|key| reason(None, key), problems };
    if let Some(file) = file.overrides.value() {
        file.set(policy, &mut limits);
        policy.overrides.reason_patterns.extend(reasons::of_file(file));
    }
    if let Some(file) = file.team_freezes.value() {
        file.set(policy, &mut limits);
    }
}

/// If the modes must not be looser, each must be at least as strict as the mode of the policy below outside its cases.
fn set_modes(file: &RuleFile, settings: &mut RuleSettings, limits: &mut Limits<'_, '_>) {
    if file.mode.is_none() && file.cases.is_none() {
        return;
    }
    if (limits.reason)("mode").is_none() {
        settings.modes = modes(file, settings.modes.mode);
        return;
    }
    for mode in iter::once(&file.mode).chain(file.cases.items().iter().map(|case| &case.mode)) {
        let mut least = settings.modes.mode;
        limits.set("mode", mode, Limit::AtLeast, &mut least);
    }
    settings.tightened = Some(modes(file, Mode::Off));
}

fn modes(file: &RuleFile, otherwise: Mode) -> Modes {
    let cases = file.cases.items().iter().filter_map(case).collect();
    Modes { mode: file.mode.value().copied().unwrap_or(otherwise), cases }
}

fn case(file: &CaseFile) -> Option<(When, Mode)> {
    Some((file.when.value()?.when(), *file.mode.value()?))
}

/// Without a value in the policy below, `allow` loosens and `deny` does not.
fn set_undecided(file: &RuleFile, settings: &mut RuleSettings, limits: &mut Limits<'_, '_>) {
    let Some(at) = file.on_undecided.as_ref() else { return };
    if settings.on_undecided.is_none() && at.value == OnUndecided::Allow {
        limits.refuses("onUndecided", at, "nothing, so that the CREATE of a record is refused");
    }
    let mut current = settings.on_undecided.unwrap_or(at.value);
    limits.set("onUndecided", &file.on_undecided, Limit::AtLeast, &mut current);
    settings.on_undecided = Some(current);
}

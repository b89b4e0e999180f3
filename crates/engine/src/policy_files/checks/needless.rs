//! Settings without effect, and exemptions that match everybody.

use super::names::{EVERYBODY, Names, match_everybody};
use crate::policy::StartedBy;
use crate::policy_files::file::{ExemptFile, PolicyFile, RuleFile};
use crate::rule::Mode;

/// The fields whose keys may have a `/`.
const MAPS_OF_QUALIFIED_NAMES: [[&str; 2]; 2] = [["metadata", "labels"], ["metadata", "annotations"]];

pub(super) fn check(file: &PolicyFile, home: Option<&str>, names: &mut Names<'_, '_>) {
    check_paths(file, names);
    for exempt in file.freezes.items().iter().filter_map(|freeze| freeze.exempt.value()) {
        check_exemption(exempt, names);
    }
    if let Some(at) = file.protected.as_ref()
        && at.value.releases.is_none()
        && at.value.namespaces.is_none()
        && at.value.namespace_selector.is_none()
    {
        let message = "this names no release; give `releases`, `namespaces` or both, as lists of globs";
        names.problems.at(at.span, message);
    }
    // The policy of a namespace does not have the settings of the cluster policy.
    if home.is_none() {
        check_managers(file, names);
        check_protection(file, names);
    }
}

/// Warns of pointers with text that has no meaning in a JSON pointer, or to the whole object.
fn check_paths(file: &PolicyFile, names: &mut Names<'_, '_>) {
    for paths in file.ignore.items().iter().filter_map(|ignored| ignored.paths.as_ref()) {
        if paths.value.iter().any(|path| path.is_root()) {
            names.problems.warn(paths.span, "the empty pointer is the whole object, so every change of it is ignored");
        }
        for (pointer, (span, text)) in paths.value.iter().zip(&paths.items) {
            let tokens: Vec<_> = pointer.tokens().map(|token| token.decoded().into_owned()).collect();
            if tokens.iter().any(|token| token == "*") {
                let message = format!("`*` in `{text}` is the name of a field, and matches no other; list the fields");
                names.problems.warn(*span, message);
            }
            let is_qualified = MAPS_OF_QUALIFIED_NAMES.iter().any(|map| tokens.starts_with(&map.map(str::to_owned)));
            if is_qualified && tokens.len() > 3 {
                let meant = format!("/{}/{}", tokens[..2].join("/"), tokens[2..].join("~1"));
                names.problems.warn(
                    *span,
                    format!(
                        "`{text}` is a field of a label or an annotation, which have none; did you mean `{meant}`?"
                    ),
                );
            }
        }
    }
}

fn check_exemption(exempt: &ExemptFile, names: &mut Names<'_, '_>) {
    let users = exempt.users.as_ref().filter(|users| match_everybody(&users.value)).map(|at| at.span);
    let groups = exempt.groups.as_ref().filter(|groups| groups.value.globs.contains(EVERYBODY)).map(|at| at.span);
    for span in users.into_iter().chain(groups) {
        names.problems.warn(span, "everybody is exempt, so that nothing is frozen; name the users or groups");
    }
}

/// Warns if only managers may start operations and no manager is listed.
fn check_managers(file: &PolicyFile, names: &mut Names<'_, '_>) {
    let has_managers = file.managers.globs().is_some_and(|globs| !globs.texts().is_empty());
    let started_by = file.rules().find_map(|(_, rule)| rule.started_by.as_ref());
    if let Some(at) = started_by.filter(|at| at.value == StartedBy::Managers && !has_managers) {
        let message = "`managers` is empty, so that only accounts that a HelmRelease names could start operations; list the accounts";
        names.problems.warn(at.span, message);
    }
}

/// Warns of protected releases if the rule that protects them is off.
fn check_protection(file: &PolicyFile, names: &mut Names<'_, '_>) {
    let Some(protected) = file.protected.as_ref() else { return };
    let rule = file.rules().find(|(rule, _)| rule.as_str() == "protected-release");
    if rule.is_some_and(|(_, rule)| is_off(rule)) {
        names.problems.warn(protected.key, "nothing is protected, because the rule protected-release is off");
    }
}

/// Whether all modes of a rule are off.
fn is_off(rule: &RuleFile) -> bool {
    let mut modes = rule.mode.value().into_iter().chain(rule.cases.items().iter().filter_map(|case| case.mode.value()));
    rule.mode.is_some() && modes.all(|mode| *mode == Mode::Off)
}

//! Settings without effect, and entries that match everybody.

use super::domain::Domain;
use super::names::{Names, is_literal, language};
use crate::object::{MAX_NAME_LENGTH, SERVICE_ACCOUNT_PREFIX, is_dns_label, is_dns_subdomain};
use crate::policy::StartedBy;
use crate::policy_files::file::{ExemptFile, GlobList, PolicyFile, RuleFile};
use crate::policy_files::problem::Span;
use crate::rule::{Mode, RuleId};

/// The group of every user that the API server knows.
const EVERYBODY: &str = "system:authenticated";

/// The fields whose keys may have a `/`.
const MAPS_OF_QUALIFIED_NAMES: [[&str; 2]; 2] = [["metadata", "labels"], ["metadata", "annotations"]];

pub(super) fn check(file: &PolicyFile, home: Option<&str>, names: &mut Names<'_, '_>) {
    for (name, list) in [("managers", &file.managers), ("tools", &file.tools), ("controllers", &file.controllers)] {
        for (span, glob) in list.iter().flat_map(|list| &list.value.globs) {
            check_account(name, *span, glob, names);
        }
    }
    check_paths(file, names);
    for exempt in file.freezes.iter().flat_map(|freezes| &freezes.value).filter_map(|freeze| freeze.exempt.as_ref()) {
        check_exemption(&exempt.value, names);
    }
    // The policy of a namespace does not have the settings of the cluster policy.
    if home.is_none() {
        check_managers(file, names);
        check_protection(file, names);
    }
}

/// Warns of an entry that matches every user, or that is an account without the prefix of its user name.
fn check_account(list: &str, span: Span, glob: &str, names: &mut Names<'_, '_>) {
    let one = GlobList { globs: vec![(span, glob.to_owned())], ..GlobList::default() };
    if covers_everybody(&one) {
        let message = format!("`{glob}` matches every user, so that everybody is among `{list}`; name the accounts");
        return names.problems.warn(span, message);
    }
    if is_literal(glob)
        && glob
            .split_once(':')
            .is_some_and(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name, MAX_NAME_LENGTH))
    {
        let message = format!(
            "`{glob}` is a user of this name, and no service account; did you mean `{SERVICE_ACCOUNT_PREFIX}{glob}`?"
        );
        names.problems.warn(span, message);
    }
}

/// Whether a list matches every user that is not a controller of the cluster.
fn covers_everybody(list: &GlobList) -> bool {
    let globs = language(list.globs.iter().map(|(_, glob)| glob.as_str()));
    globs.zip(Domain::Session.language()).is_some_and(|(globs, users)| globs.covers(users))
}

/// Warns of pointers with text that has no meaning in a JSON pointer.
fn check_paths(file: &PolicyFile, names: &mut Names<'_, '_>) {
    let paths = file.ignore.iter().flat_map(|ignore| &ignore.value).filter_map(|one| one.paths.as_ref());
    for (pointer, (span, text)) in paths.flat_map(|paths| paths.value.0.iter().zip(&paths.items)) {
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
                format!("`{text}` is a field of a label or an annotation, which have none; did you mean `{meant}`?"),
            );
        }
    }
}

fn check_exemption(exempt: &ExemptFile, names: &mut Names<'_, '_>) {
    let users = exempt.users.as_ref().filter(|users| covers_everybody(&users.value)).map(|at| at.span);
    let groups = exempt.groups.as_ref().filter(|groups| groups.value.compiled.contains(EVERYBODY)).map(|at| at.span);
    for span in users.into_iter().chain(groups) {
        names.problems.warn(span, "everybody is exempt, so that nothing is frozen; name the users or groups");
    }
}

/// Warns if only managers may start operations and no manager is listed.
fn check_managers(file: &PolicyFile, names: &mut Names<'_, '_>) {
    let has_managers = file.managers.as_ref().is_some_and(|list| !list.value.globs.is_empty());
    let started_by = rules_of(file).find_map(|(_, rule)| rule.started_by.as_ref());
    if let Some(at) = started_by.filter(|at| at.value == StartedBy::Managers && !has_managers) {
        let message = "`managers` is empty, so that only accounts that a HelmRelease names could start operations; list the accounts";
        names.problems.warn(at.span, message);
    }
}

/// Warns of protected releases if the rule that protects them is off.
fn check_protection(file: &PolicyFile, names: &mut Names<'_, '_>) {
    let Some(protected) = &file.protected else { return };
    let rule = rules_of(file).find(|(rule, _)| rule.as_str() == "protected-release").map(|(_, rule)| rule);
    if rule.is_some_and(is_off) {
        names.problems.warn(protected.key, "nothing is protected, because the rule protected-release is off");
    }
}

/// Whether all modes of a rule are off.
fn is_off(rule: &RuleFile) -> bool {
    let cases = rule.cases.iter().flat_map(|cases| &cases.value);
    let modes = rule.mode.iter().chain(cases.filter_map(|case| case.mode.as_ref()));
    rule.mode.is_some() && modes.map(|mode| mode.value).all(|mode| mode == Mode::Off)
}

fn rules_of(file: &PolicyFile) -> impl Iterator<Item = (RuleId, &RuleFile)> {
    file.rules.iter().flat_map(|rules| &rules.value.0).map(|(rule, at)| (*rule, &at.value))
}

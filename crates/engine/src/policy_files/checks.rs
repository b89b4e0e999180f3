//! Checks a policy file that parses without an error: for conditions that never or always hold, and for names that are
//! not what they seem.
//!
//! A condition that no request can meet is an error. Everything that still has a meaning is a warning, so that a policy
//! that works today does not keep a newer server from starting.

mod accounts;
mod cases;
mod domain;
mod language;
mod names;
mod needless;

use super::file::{GlobList, Key, LabelSelectorFile, PolicyFile, Spanned};
use super::namespace::refuse_namespaces;
use super::problem::Problems;
use super::{freezes, reasons};
use crate::policy::LabelOperator;
use crate::text::look_alike;
use domain::Domain;
use names::Names;

/// Why no request can have a user of this name; `None` if a request can.
pub fn impossible_user(name: &str) -> Option<String> {
    impossible(name, "user", Domain::User)
}

/// Why no request can have a group of this name; `None` if a request can.
pub fn impossible_group(name: &str) -> Option<String> {
    impossible(name, "group", Domain::Group)
}

/// Why no object can have this kind; `None` if an object can.
pub fn impossible_kind(name: &str) -> Option<String> {
    impossible(name, "kind", Domain::Kind)
}

fn impossible(name: &str, what: &str, domain: Domain) -> Option<String> {
    let is_possible = domain.language().is_none_or(|values| values.contains(name));
    if is_possible {
        return None;
    }
    let meant = domain.nearest(name).map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    let look_alike = look_alike(name).map(|found| format!("; it {found}")).unwrap_or_default();
    Some(format!("there is no {what} `{name}`: {}{look_alike}{meant}", domain.shape()))
}

/// Checks a parsed file; `home` is the namespace whose policy it is.
pub(super) fn check(file: &PolicyFile, home: Option<&str>, problems: &mut Problems<'_>) {
    let is_read = problems.is_empty();
    if let Some(overrides) = file.overrides.value() {
        reasons::check(overrides, problems);
    }
    let mut names = Names::new(problems);
    for (list, domain, otherwise) in lists(file) {
        names.key(list, domain, otherwise);
    }
    for (name, domain, otherwise) in single_names(file) {
        names.name(name, domain, otherwise);
    }
    accounts::check(file, home, &mut names);
    freezes::check(file, names.problems);
    needless::check(file, home, &mut names);
    if home.is_none() {
        refuse_namespaces(file, names.problems);
    }
    selectors(file).for_each(|selector| check_selector(selector, names.problems));
    for (rule, settings) in file.rules() {
        cases::check(rule, settings, cases::Context { file, home, is_read }, &mut names);
    }
}

/// The lists of globs outside cases, with the values of their fields, and the consequence of a list that matches nothing.
fn lists(file: &PolicyFile) -> Vec<(&Key<GlobList>, Domain, &'static str)> {
    let nobody = "so the list names nobody";
    let mut lists = vec![
        (&file.managers, Domain::User, nobody),
        (&file.tools, Domain::User, nobody),
        (&file.controllers, Domain::User, nobody),
        (&file.platform, Domain::User, nobody),
        (&file.namespaces, Domain::Namespace, "so the policy is for no namespace"),
    ];
    for pipeline in file.pipelines.items().iter().filter(|pipeline| pipeline.name.is_some()) {
        let otherwise = "so the pipeline has no sessions";
        lists.extend([(&pipeline.users, Domain::Session, otherwise), (&pipeline.groups, Domain::Group, otherwise)]);
    }
    for target in file.ignore.items().iter().filter_map(|ignored| ignored.target.value()) {
        let otherwise = "so nothing is ignored";
        lists.extend([(&target.kind, Domain::Kind, otherwise), (&target.name, Domain::ObjectName, otherwise)]);
        lists.push((&target.namespace, Domain::Namespace, otherwise));
    }
    for freeze in file.freezes.items() {
        let otherwise = "so that nothing is frozen";
        lists.extend([
            (&freeze.releases, Domain::Release, otherwise),
            (&freeze.namespaces, Domain::Namespace, otherwise),
        ]);
    }
    for exempt in file.freezes.items().iter().filter_map(|freeze| freeze.exempt.value()) {
        let otherwise = "so that nobody is exempt";
        lists.extend([(&exempt.users, Domain::User, otherwise), (&exempt.groups, Domain::Group, otherwise)]);
    }
    if let Some(protected) = file.protected.value() {
        let otherwise = "so nothing is protected";
        lists.extend([
            (&protected.releases, Domain::Release, otherwise),
            (&protected.namespaces, Domain::Namespace, otherwise),
        ]);
    }
    lists
}

/// The names that are no globs, likewise.
fn single_names(file: &PolicyFile) -> impl Iterator<Item = (&Spanned<String>, Domain, &'static str)> {
    let namespace = file.overrides.value().and_then(|overrides| overrides.namespace.as_ref());
    let namespace =
        namespace.map(|name| (name, Domain::Namespace, "so there are no overrides for cluster-scoped releases"));
    let resources = file.rules().flat_map(|(_, rule)| rule.resources.items());
    let kinds = resources.filter_map(|resource| resource.kind.as_ref());
    namespace.into_iter().chain(kinds.map(|kind| (kind, Domain::Kind, "so the resource is never found")))
}

/// Every selector of a file.
fn selectors(file: &PolicyFile) -> impl Iterator<Item = &Spanned<LabelSelectorFile>> {
    let of_cases = file.cases().filter_map(|case| case.when.value()?.namespace_selector.as_ref());
    let of_freezes = file.freezes.items().iter().filter_map(|freeze| freeze.namespace_selector.as_ref());
    let protected = file.protected.value().and_then(|protected| protected.namespace_selector.as_ref());
    file.namespace_selector.iter().chain(of_cases).chain(of_freezes).chain(protected)
}

/// Reports a selector that selects every Namespace, and requirements that Kubernetes would reject.
fn check_selector(selector: &Spanned<LabelSelectorFile>, problems: &mut Problems<'_>) {
    let LabelSelectorFile { match_labels, match_expressions } = &selector.value;
    if match_expressions.items().is_empty() && match_labels.items().is_empty() {
        let message = "the selector has no requirement, so that it selects every Namespace; name a label, or remove it";
        problems.at(selector.span, message);
    }
    for one in match_expressions.items() {
        let Some(operator) = one.operator.as_ref() else { continue };
        match operator.value {
            LabelOperator::In | LabelOperator::NotIn if one.values.items().is_empty() => {
                problems.at(operator.span, format!("{} needs `values`", operator.text));
            }
            LabelOperator::Exists | LabelOperator::DoesNotExist if !one.values.items().is_empty() => {
                problems.at(operator.span, format!("{} takes no `values`; use In or NotIn", operator.text));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;

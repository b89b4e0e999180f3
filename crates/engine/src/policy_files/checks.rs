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

use super::file::{LabelSelectorFile, PolicyFile, ProtectedFile, Spanned};
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
    let mut names = Names::new(problems);
    for list in [&file.managers, &file.tools, &file.controllers].into_iter().flatten() {
        names.list(&list.value, Domain::User, "so the list names nobody");
    }
    accounts::check(file, home, &mut names);
    check_ignored(file, &mut names);
    for freeze in file.freezes.iter().flat_map(|freezes| &freezes.value) {
        let exempt = freeze.exempt.as_ref().map(|exempt| &exempt.value);
        let users = exempt.and_then(|exempt| exempt.users.as_ref()).map(|at| (&at.value, Domain::User));
        let groups = exempt.and_then(|exempt| exempt.groups.as_ref()).map(|at| (&at.value, Domain::Group));
        for (list, domain) in [users, groups].into_iter().flatten() {
            names.list(list, domain, "so that nobody is exempt");
        }
        let releases = freeze.releases.as_ref().map(|at| (&at.value.0, Domain::Release));
        let namespaces = freeze.namespaces.as_ref().map(|at| (&at.value.0, Domain::Namespace));
        for (list, domain) in [releases, namespaces].into_iter().flatten() {
            names.list(list, domain, "so that nothing is frozen");
        }
    }
    freezes::check(file, names.problems);
    needless::check(file, home, &mut names);
    if let Some(overrides) = file.overrides.as_ref().map(|overrides| &overrides.value) {
        reasons::check(overrides, names.problems);
    }
    if let Some(namespace) = file.overrides.as_ref().and_then(|overrides| overrides.value.namespace.as_ref()) {
        names.name(namespace, Domain::Namespace, "so there are no overrides for cluster-scoped releases");
    }
    if let Some(protected) = &file.protected {
        let ProtectedFile { releases, namespaces, namespace_selector } = &protected.value;
        if releases.is_none() && namespaces.is_none() && namespace_selector.is_none() {
            names
                .problems
                .at(protected.span, "this names no release; give `releases`, `namespaces` or both, as lists of globs");
        }
        for (list, domain) in [(releases, Domain::Release), (namespaces, Domain::Namespace)] {
            if let Some(at) = list {
                names.list(&at.value.0, domain, "so nothing is protected");
            }
        }
    }
    if home.is_none() {
        refuse_namespaces(file, names.problems);
    }
    if let Some(namespaces) = &file.namespaces {
        names.list(&namespaces.value.0, Domain::Namespace, "so the policy is for no namespace");
    }
    selectors(file).for_each(|selector| check_selector(selector, names.problems));
    for (rule, settings) in file.rules.iter().flat_map(|rules| &rules.value.0) {
        for kind in settings.value.resources.iter().flat_map(|all| &all.value).filter_map(|one| one.kind.as_ref()) {
            names.name(kind, Domain::Kind, "so the resource is never found");
        }
        cases::check(*rule, &settings.value, cases::Context { file, home, is_read }, &mut names);
    }
}

/// Every selector of a file.
fn selectors(file: &PolicyFile) -> impl Iterator<Item = &Spanned<LabelSelectorFile>> {
    let rules = file.rules.iter().flat_map(|rules| &rules.value.0);
    let cases = rules.flat_map(|(_, rule)| rule.value.cases.iter().flat_map(|cases| &cases.value));
    let of_cases = cases.filter_map(|case| case.when.as_ref()?.value.namespace_selector.as_ref());
    let freezes = file.freezes.iter().flat_map(|freezes| &freezes.value);
    let of_freezes = freezes.filter_map(|freeze| freeze.namespace_selector.as_ref());
    let protected = file.protected.iter().filter_map(|protected| protected.value.namespace_selector.as_ref());
    file.namespace_selector.iter().chain(of_cases).chain(of_freezes).chain(protected)
}

/// Reports a selector that selects every Namespace, and requirements that Kubernetes would reject.
fn check_selector(selector: &Spanned<LabelSelectorFile>, problems: &mut Problems<'_>) {
    let LabelSelectorFile { match_labels, match_expressions } = &selector.value;
    let expressions = match_expressions.as_ref().map(|all| all.value.as_slice()).unwrap_or_default();
    if expressions.is_empty() && match_labels.as_ref().is_none_or(|labels| labels.value.0.is_empty()) {
        let message = "the selector has no requirement, so that it selects every Namespace; name a label, or remove it";
        problems.at(selector.span, message);
    }
    for one in expressions {
        let Some(operator) = &one.operator else { continue };
        let has_values = one.values.as_ref().is_some_and(|values| !values.value.is_empty());
        match operator.value {
            LabelOperator::In | LabelOperator::NotIn if !has_values => {
                problems.at(operator.span, format!("{} needs `values`", operator.text));
            }
            LabelOperator::Exists | LabelOperator::DoesNotExist if has_values => {
                problems.at(operator.span, format!("{} takes no `values`; use In or NotIn", operator.text));
            }
            _ => {}
        }
    }
}

/// Checks the fields of objects that all rules ignore.
fn check_ignored(file: &PolicyFile, names: &mut Names<'_, '_>) {
    for ignored in file.ignore.iter().flat_map(|ignore| &ignore.value) {
        let target = ignored.target.as_ref().map(|at| &at.value);
        let globs = target.into_iter().flat_map(|target| {
            let kind = target.kind.as_ref().map(|at| (at, Domain::Kind));
            let name = target.name.as_ref().map(|at| (at, Domain::ObjectName));
            let namespace = target.namespace.as_ref().map(|at| (at, Domain::Namespace));
            [kind, name, namespace].into_iter().flatten()
        });
        for (glob, domain) in globs {
            names.list(&glob.value.0, domain, "so nothing is ignored");
        }
        if let Some(paths) = ignored.paths.as_ref().filter(|at| at.value.0.iter().any(|path| path.is_root())) {
            names.problems.warn(paths.span, "the empty pointer is the whole object, so every change of it is ignored");
        }
    }
}

#[cfg(test)]
mod tests;

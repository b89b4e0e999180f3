//! What a policy file says although it is read without an error: conditions that never or always hold, and names that are not what
//! they seem.
//!
//! A condition that no request can meet is an error. Everything that still means something is a warning, so that a policy that
//! works today does not keep a newer server from starting.

mod accounts;
mod cases;
mod domain;
mod language;
mod names;
mod needless;

use super::file::{PolicyFile, ProtectedFile};
use super::problem::Problems;
use super::{freezes, reasons};
use crate::engine::text::look_alike;
use domain::Domain;
use names::Names;

/// Why no request has a user of this name; `None` if one may.
pub(crate) fn impossible_user(name: &str) -> Option<String> {
    impossible(name, "user", Domain::User)
}

/// Why no request has a group of this name; `None` if one may.
pub(crate) fn impossible_group(name: &str) -> Option<String> {
    impossible(name, "group", Domain::Group)
}

/// Why no object has this kind; `None` if one may.
pub(crate) fn impossible_kind(name: &str) -> Option<String> {
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

/// Checks a file that was read; `home` is the namespace whose policy it is.
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
        let ProtectedFile { releases, namespaces } = &protected.value;
        if releases.is_none() && namespaces.is_none() {
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
    for (rule, settings) in file.rules.iter().flat_map(|rules| &rules.value.0) {
        for kind in settings.value.resources.iter().flat_map(|all| &all.value).filter_map(|one| one.kind.as_ref()) {
            names.name(kind, Domain::Kind, "so the resource is never found");
        }
        cases::check(*rule, &settings.value, cases::Context { file, home, is_read }, &mut names);
    }
}

/// Checks the fields of objects that no rule looks at.
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

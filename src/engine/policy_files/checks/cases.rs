//! Whether the cases of a rule can apply, and change anything.

use super::domain::Domain;
use super::language::Language;
use super::names::{Names, language};
use crate::engine::object::SERVICE_ACCOUNT_PREFIX;
use crate::engine::policy_files::file::{AtLeastOne, CaseFile, GlobList, RuleFile, Spanned, WhenFile};
use crate::engine::policy_files::problem::Span;
use crate::engine::release::Storage;
use crate::engine::rule::{Mode, RuleId};
use crate::engine::rules::Judged;

/// How many cases of a rule are compared with each other.
const MAX_COMPARED_CASES: usize = 100;

type List<'f> = (Domain, &'f Spanned<AtLeastOne<GlobList>>);

/// A case that can apply.
struct Case {
    /// Of its condition.
    at: Span,
    mode: Option<Mode>,
    /// The lists that do not match every request, with what they match. A request must match all of them.
    limits: Vec<(Domain, Option<Language>)>,
}

/// Checks the cases of a rule; `home` is the namespace of the policy, and `is_read` whether the file has no error so far.
pub(super) fn check(rule: RuleId, file: &RuleFile, home: Option<&str>, is_read: bool, names: &mut Names<'_, '_>) {
    let files = || file.cases.iter().flat_map(|cases| &cases.value);
    let dead = files().filter(|case| !can_apply(rule, case, home, names)).count();
    if dead > 0 || !is_read {
        return;
    }
    let cases: Vec<_> = files().filter_map(|case| read(rule, case, names)).collect();
    report_hidden(&cases, names);
    let shipped = || home.is_none().then(|| rule.specification().mode);
    let otherwise = file.mode.as_ref().map(|at| at.value).or_else(shipped);
    for case in cases.iter().rev().take_while(|case| otherwise.is_some() && case.mode == otherwise) {
        let mode = otherwise.map_or("", Mode::as_str);
        let message = format!("the case changes nothing, because {rule} has the mode {mode} anyway");
        names.problems.warn(case.at, message);
    }
}

/// The lists of a condition.
fn lists(rule: RuleId, when: &WhenFile) -> impl Iterator<Item = List<'_>> {
    let WhenFile { users, groups, service_accounts, pipelines, namespaces, releases, kinds, operations, owners } = when;
    let (kind, owner) = match Judged::by(rule) {
        Judged::Records => (Domain::RecordKind, Domain::Owner),
        Judged::Objects => (Domain::Kind, Domain::Owner),
        Judged::Declarations => (Domain::Kind, Domain::Nothing),
    };
    let all = [
        (Domain::User, users),
        (Domain::Group, groups),
        (Domain::ServiceAccount, service_accounts),
        (Domain::Pipeline, pipelines),
        (Domain::Namespace, namespaces),
        (Domain::Release, releases),
        (kind, kinds),
        (Domain::Operation, operations),
        (owner, owners),
    ];
    all.into_iter().filter_map(|(domain, list)| Some((domain, list.as_ref()?)))
}

/// Reports a case that no request can meet.
fn can_apply(rule: RuleId, case: &CaseFile, home: Option<&str>, names: &mut Names<'_, '_>) -> bool {
    let Some(when) = &case.when else { return true };
    let never = "so the case never applies";
    let mut can = true;
    for (domain, list) in lists(rule, &when.value) {
        can &= names.list(&list.value.0, domain, never);
    }
    if !can {
        return false;
    }
    let WhenFile { users, service_accounts, namespaces, kinds, owners, .. } = &when.value;
    if let (Some(list), Some(home)) = (namespaces, home) {
        let globs = &list.value.0.compiled;
        // A cluster-scoped object has none.
        if !globs.contains(home) && !globs.contains("") {
            names.problems.at(list.span, format!("this policy applies to namespace {home} only, {never}"));
            can = false;
        }
    }
    if let (Some(users), Some(accounts)) = (users, service_accounts) {
        let accounts = accounts.value.0.globs.iter().map(|(_, glob)| format!("{SERVICE_ACCOUNT_PREFIX}{glob}"));
        let accounts: Vec<_> = accounts.collect();
        let accounts = language(accounts.iter().map(String::as_str));
        if accounts.zip(of(&users.value.0)).is_some_and(|(accounts, users)| !accounts.meets(&users)) {
            let message = "no user is among `users` and among `serviceAccounts`";
            names.problems.at(users.span, format!("{message}, {never}; move one of them to a case of its own"));
            can = false;
        }
    }
    if let (Some(owners), Some(kinds)) = (owners, kinds) {
        let (listed, kinds) = (&owners.value.0.compiled, &kinds.value.0.compiled);
        let stored = [Storage::Secret, Storage::ConfigMap, Storage::OlmIndex];
        if !stored.iter().any(|storage| listed.contains(storage.owner()) && kinds.contains(storage.kind())) {
            names.problems.at(owners.span, format!("no record of these owners is of these `kinds`, {never}"));
            can = false;
        }
    }
    can
}

/// Reads a case, and warns of conditions that hold for every request.
fn read(rule: RuleId, case: &CaseFile, names: &mut Names<'_, '_>) -> Option<Case> {
    let when = case.when.as_ref()?;
    let mut limits = Vec::new();
    let mut full = Vec::new();
    for (domain, list) in lists(rule, &when.value) {
        let globs = of(&list.value.0);
        if domain.is_always_given() && globs.as_ref().zip(domain.language()).is_some_and(|(all, of)| all.covers(of)) {
            full.push(list);
        } else {
            limits.push((domain, globs));
        }
    }
    if limits.is_empty() {
        let message = "the condition holds for every request, so `mode` and later cases have no effect; name the requests, or set \
                       `mode` instead";
        names.problems.warn(when.key, message);
    } else {
        for list in full {
            names.problems.warn(list.span, "the list matches every request; remove the key");
        }
    }
    Some(Case { at: when.key, mode: case.mode.as_ref().map(|at| at.value), limits })
}

fn of(list: &GlobList) -> Option<Language> {
    language(list.globs.iter().map(|(_, glob)| glob.as_str()))
}

/// Warns of cases whose requests all meet the condition of one earlier case.
fn report_hidden(cases: &[Case], names: &mut Names<'_, '_>) {
    for (index, case) in cases.iter().enumerate().take(MAX_COMPARED_CASES) {
        if let Some(first) = cases[..index].iter().find(|earlier| earlier.hides(case)) {
            let line = names.problems.line(first.at);
            let message = format!("the case never applies, because the case on line {line} matches all its requests");
            names.problems.warn(case.at, message);
        }
    }
}

impl Case {
    /// Whether every request that meets the condition of another case meets this one too.
    fn hides(&self, other: &Self) -> bool {
        self.limits.iter().all(|(domain, ours)| {
            let theirs = other.limits.iter().find(|(other, _)| other == domain).and_then(|(_, list)| list.as_ref());
            ours.as_ref().zip(theirs).is_some_and(|(ours, theirs)| ours.covers(theirs))
        })
    }
}

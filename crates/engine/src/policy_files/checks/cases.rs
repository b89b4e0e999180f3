//! Whether the cases of a rule can apply, and change anything.

use std::cell::OnceCell;

use super::domain::Domain;
use super::language::Language;
use super::names::{Names, language, match_all};
use crate::object::SERVICE_ACCOUNT_PREFIX;
use crate::owners::{CLUSTER_EXTENSION, CONFIGURATION_GROUP};
use crate::policy::Globs;
use crate::policy_files::file::{CaseFile, GlobList, Key, PolicyFile, RuleFile, Spanned, WhenFile};
use crate::policy_files::problem::Span;
use crate::release::Storage;
use crate::rule::{Mode, Requests, RuleId};
use crate::rules::{Judged, judges_records};

/// The most cases of a rule that are compared with each other.
const MAX_COMPARED_CASES: usize = 100;

type List<'f> = (Domain, &'f Key<GlobList>);

/// A case that can apply.
struct Case<'f> {
    /// The position of its condition.
    at: Span,
    mode: Option<Mode>,
    when: &'f WhenFile,
    file: &'f PolicyFile,
    /// What does not hold for every request. A request must match all of it.
    limits: Vec<Limit<'f>>,
    users: OnceCell<Vec<Language>>,
}

/// A list of a condition.
struct Limit<'f> {
    domain: Domain,
    /// `None` if the file does not have the values.
    list: Option<&'f GlobList>,
    texts: OnceCell<Option<Language>>,
}

/// The file whose cases are checked.
#[derive(Clone, Copy)]
pub(super) struct Context<'f> {
    pub(super) file: &'f PolicyFile,
    /// The namespace of the policy.
    pub(super) home: Option<&'f str>,
    /// Whether the file has no error so far.
    pub(super) is_read: bool,
}

/// Checks the cases of a rule.
pub(super) fn check(rule: RuleId, file: &RuleFile, context: Context<'_>, names: &mut Names<'_, '_>) {
    let files = file.cases.items();
    // A file for several namespaces may have cases for some of them.
    let only = context.home.filter(|_| !context.file.is_shared());
    let dead = files.iter().filter(|case| !can_apply(rule, case, only, names)).count();
    if dead > 0 || !context.is_read {
        return;
    }
    let cases: Vec<_> = files.iter().filter_map(|case| read(rule, case, context, names)).collect();
    report_hidden(&cases, names);
    let otherwise = file.mode.value().copied();
    let otherwise = otherwise.or_else(|| context.home.is_none().then(|| rule.specification().mode));
    report_idle(rule, &cases, otherwise, names);
}

/// Warns of cases whose requests have the same mode without them: by one later case, or by the mode of the rule.
fn report_idle(rule: RuleId, cases: &[Case<'_>], otherwise: Option<Mode>, names: &mut Names<'_, '_>) {
    for (index, case) in cases.iter().enumerate().take(MAX_COMPARED_CASES) {
        let Some(mode) = case.mode else { continue };
        let mut later = cases[index + 1..].iter().take(MAX_COMPARED_CASES).filter(|other| case.meets(other));
        let anyway = loop {
            match later.next() {
                None if otherwise == Some(mode) => break Some(rule.to_string()),
                Some(other) if other.mode != case.mode => break None,
                Some(other) if other.hides(case) => break Some(names.problems.case_at(other.at)),
                None => break None,
                Some(_) => {}
            }
        };
        if let Some(anyway) = anyway {
            let message = format!("the case changes nothing, because {anyway} has the mode {} anyway", mode.as_str());
            names.problems.warn(case.at, message);
        }
    }
}

/// The lists of a condition.
fn lists(rule: RuleId, when: &WhenFile) -> impl Iterator<Item = List<'_>> {
    let WhenFile {
        users, groups, service_accounts, pipelines, namespaces, releases, kinds, operations, owners, ..
    } = when;
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
    all.into_iter().filter(|(_, list)| list.is_some())
}

/// Reports a case that no request can meet.
fn can_apply(rule: RuleId, case: &CaseFile, home: Option<&str>, names: &mut Names<'_, '_>) -> bool {
    let Some(when) = case.when.value() else { return true };
    let never = "so the case never applies";
    let mut can = true;
    for (domain, list) in lists(rule, when) {
        can &= names.key(list, domain, never);
    }
    if !can {
        return false;
    }
    let WhenFile { users, service_accounts, namespaces, kinds, owners, .. } = when;
    if let (Some(list), Some(home)) = (namespaces.as_ref(), home)
        // A cluster-scoped object has no namespace.
        && !matches_one(list, &[home, ""])
    {
        names.problems.at(list.span, format!("this policy applies to namespace {home} only, {never}"));
        can = false;
    }
    if let (Some(users), Some(accounts)) = (users.as_ref(), service_accounts.value())
        && let (Some(accounts), Some(among)) = (account_users(accounts), of(&users.value))
        && !accounts.meets(&among)
    {
        let message = "no user is among `users` and among `serviceAccounts`";
        names.problems.at(users.span, format!("{message}, {never}; move one of them to a case of its own"));
        can = false;
    }
    if let (Some(owners), Some(kinds)) = (owners.as_ref(), kinds.globs()) {
        let stored = [Storage::Secret, Storage::ConfigMap, Storage::Index];
        let mut of_kinds = stored.iter().filter(|storage| kinds.contains(storage.kind()));
        if !of_kinds.any(|storage| owners.value.globs.contains(storage.owner())) {
            names.problems.at(owners.span, format!("no record of these owners is of these `kinds`, {never}"));
            can = false;
        }
    }
    can && can_be_of(rule, when, names)
}

/// Warns of a condition on a field that the requests of the rule lack, or that has another value in all of them.
fn can_be_of(rule: RuleId, when: &WhenFile, names: &mut Names<'_, '_>) -> bool {
    let Requests { operations, kinds } = rule.specification().requests;
    let operations: Vec<_> = operations.iter().map(|operation| operation.as_str()).collect();
    let mut can = true;
    let mut warn = |list: &Spanned<GlobList>, what: String| {
        names.problems.warn(list.span, format!("{what}, so the case never applies"));
        can = false;
    };
    if let Some(list) = when.operations.as_ref().filter(|list| !matches_one(list, &operations)) {
        warn(list, format!("{rule} finds nothing but in requests with the operation {}", operations.join(" and ")));
    }
    if let Some(list) = when.kinds.as_ref().filter(|list| !kinds.is_empty() && !matches_one(list, kinds)) {
        warn(list, format!("{rule} judges objects of the kind {}", kinds.join(" or ")));
    }
    if let Some(list) = when.owners.as_ref().filter(|_| !judges_records(rule)) {
        warn(list, format!("only records have owners, and {rule} judges other objects"));
    }
    let commits = when.releases.as_ref().filter(|_| kinds.contains(&CONFIGURATION_GROUP));
    if let Some(list) = commits.filter(|list| !may_be_commit(list)) {
        warn(list, format!("{rule} judges commits of bundles, whose names end in .helm or .resources"));
    }
    let extensions = when.namespaces.as_ref().filter(|_| kinds.contains(&CLUSTER_EXTENSION));
    if let Some(list) = extensions.filter(|list| !matches_one(list, &[""])) {
        warn(
            list,
            format!("{rule} judges objects without a namespace; match them by `releases`, or by the namespace ''"),
        );
    }
    can
}

fn matches_one(list: &Spanned<GlobList>, values: &[&str]) -> bool {
    values.iter().any(|value| list.value.globs.contains(value))
}

/// Whether a glob of a list can match the name of a Sveltos commit.
fn may_be_commit(list: &Spanned<GlobList>) -> bool {
    of(&list.value).zip(Domain::Commit.language()).is_none_or(|(globs, commits)| globs.meets(commits))
}

/// Converts a case, and warns of conditions that hold for every request.
fn read<'f>(rule: RuleId, case: &'f CaseFile, context: Context<'f>, names: &mut Names<'_, '_>) -> Option<Case<'f>> {
    let when = case.when.as_ref()?;
    let mut limits = Vec::new();
    let mut full = Vec::new();
    for (domain, list) in lists(rule, &when.value) {
        let limit = Limit::of(domain, list.value());
        if limit.holds_always() {
            full.extend(list.as_ref());
        } else {
            limits.push(limit);
        }
    }
    // The file does not have the labels of the Namespaces.
    if when.value.namespace_selector.is_some() {
        limits.push(Limit::of(Domain::Namespace, None));
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
    Some(Case {
        at: when.key,
        mode: case.mode.value().copied(),
        when: &when.value,
        file: context.file,
        limits,
        users: OnceCell::new(),
    })
}

/// The sets of user names in a condition, as far as they are known.
fn users_of(when: &WhenFile, file: &PolicyFile) -> Vec<Language> {
    let users = when.users.value().and_then(of);
    let accounts = when.service_accounts.value().and_then(account_users);
    let sessions = when.pipelines.globs().and_then(|named| session_users(named, file));
    [users, accounts, sessions].into_iter().flatten().collect()
}

fn account_users(list: &GlobList) -> Option<Language> {
    let accounts: Vec<_> = list.texts().map(|glob| format!("{SERVICE_ACCOUNT_PREFIX}{glob}")).collect();
    language(accounts.iter().map(String::as_str))
}

/// The users of the pipelines with these names; `None` if a pipeline has only groups, or if no pipeline is listed.
fn session_users(named: &Globs, file: &PolicyFile) -> Option<Language> {
    let listed = file.pipelines.items().iter();
    let meant = listed.filter(|pipeline| pipeline.name.value().is_some_and(|name| named.contains(name)));
    let users: Option<Vec<_>> = meant.map(|pipeline| pipeline.users.value()).collect();
    let users = users.filter(|users| !users.is_empty())?;
    language(users.into_iter().flat_map(GlobList::texts))
}

fn of(list: &GlobList) -> Option<Language> {
    language(list.texts())
}

/// Warns of cases whose requests all meet the condition of one earlier case.
fn report_hidden(cases: &[Case<'_>], names: &mut Names<'_, '_>) {
    for (index, case) in cases.iter().enumerate().take(MAX_COMPARED_CASES) {
        if let Some(first) = cases[..index].iter().find(|earlier| earlier.hides(case)) {
            let first = names.problems.case_at(first.at);
            let message = format!("the case never applies, because {first} matches all its requests");
            names.problems.warn(case.at, message);
        }
    }
}

impl Case<'_> {
    /// Whether a request may meet the conditions of both cases.
    fn meets(&self, other: &Self) -> bool {
        let mut one_valued = self.limits.iter().filter(|limit| limit.domain.is_always_given());
        let is_met = one_valued.all(|limit| {
            let of_other = other.texts_of(limit.domain).zip(limit.texts());
            of_other.is_none_or(|(of_other, texts)| texts.meets(of_other))
        });
        is_met && self.users().iter().all(|users| other.users().iter().all(|of_other| users.meets(of_other)))
    }

    /// Whether this case matches every request that meets the condition of another case.
    fn hides(&self, other: &Self) -> bool {
        self.limits.iter().all(|limit| {
            // What the other case does not limit needs no automaton.
            let of_other = other.texts_of(limit.domain);
            of_other.is_some_and(|of_other| limit.texts().is_some_and(|texts| texts.covers(of_other)))
        })
    }

    /// The sets of user names that the lists allow. A user must be in all of them.
    fn users(&self) -> &[Language] {
        self.users.get_or_init(|| users_of(self.when, self.file))
    }

    fn texts_of(&self, domain: Domain) -> Option<&Language> {
        self.limits.iter().find(|limit| limit.domain == domain)?.texts()
    }
}

impl<'f> Limit<'f> {
    fn of(domain: Domain, list: Option<&'f GlobList>) -> Self {
        Self { domain, list, texts: OnceCell::new() }
    }

    /// The texts that the list matches.
    fn texts(&self) -> Option<&Language> {
        self.texts.get_or_init(|| self.list.and_then(of)).as_ref()
    }

    /// Whether every request matches the list.
    fn holds_always(&self) -> bool {
        self.domain.is_always_given() && self.list.is_some_and(|list| match_all(list, self.domain))
    }
}

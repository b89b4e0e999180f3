//! Whether the lists of accounts and pipelines match more users than intended.

use super::domain::Domain;
use super::names::{EVERYBODY, Names, alone_matches_everybody, can_match, is_literal, match_everybody};
use crate::object::{MAX_NAME_LENGTH, SERVICE_ACCOUNT_PREFIX, is_dns_label, is_dns_subdomain};
use crate::policy::PipelineHolder;
use crate::policy_files::file::{GlobList, PipelineFile, PolicyFile, Spanned, nearest_to};

/// The namespace of a client that sets none.
const DEFAULT_NAMESPACE: &str = "default";

/// Checks the lists, and the cases for pipelines; `home` is the namespace whose policy it is.
pub(super) fn check(file: &PolicyFile, home: Option<&str>, names: &mut Names<'_, '_>) {
    let lists = [
        ("managers", &file.managers),
        ("tools", &file.tools),
        ("controllers", &file.controllers),
        ("platform", &file.platform),
    ];
    for (name, list) in lists {
        let Some(list) = list.value() else { continue };
        for (span, glob) in list.iter() {
            let is_everybody = alone_matches_everybody(glob, list);
            let doubt = match name {
                "platform" => doubt_of_platform(glob, is_everybody),
                _ => doubt_of_account(name, glob, is_everybody),
            };
            if let Some(doubt) = doubt {
                names.problems.warn(span, format!("`{glob}` {doubt}"));
            }
        }
    }
    let pipelines = file.pipelines.items();
    for (index, pipeline) in pipelines.iter().enumerate() {
        let Some(name) = pipeline.name.as_ref() else { continue };
        report_duplicate(name, &pipelines[..index], names);
        check_pipeline(pipeline, name, names);
    }
    // The policy of a namespace does not have the list of pipelines.
    if home.is_none() {
        check_cases(file, names);
    }
}

/// Warns of cases for pipelines that are not listed.
fn check_cases(file: &PolicyFile, names: &mut Names<'_, '_>) {
    let listed = file.pipelines.items().iter().filter_map(|pipeline| pipeline.name.value());
    let listed: Vec<_> = listed.map(String::as_str).collect();
    let lists = file.cases().filter_map(|case| case.when.value()?.pipelines.value());
    for (span, name) in lists.flat_map(GlobList::iter) {
        if is_literal(name) && !listed.contains(&name) {
            let meant = nearest_to(name, listed.iter().copied());
            let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            names.problems.warn(span, format!("`pipelines` lists no pipeline named {name}{meant}"));
        }
    }
}

/// Why an entry of another list is suspicious: it matches every user, or is an account without the prefix of its user name.
fn doubt_of_account(list: &str, glob: &str, is_everybody: bool) -> Option<String> {
    if is_everybody {
        return Some(format!("matches every user, so that everybody is among `{list}`; name the accounts"));
    }
    let (namespace, name) = glob.split_once(':')?;
    let is_account = is_literal(glob) && is_dns_label(namespace) && is_dns_subdomain(name, MAX_NAME_LENGTH);
    is_account.then(|| {
        format!("is a user of this name, and no service account; did you mean `{SERVICE_ACCOUNT_PREFIX}{glob}`?")
    })
}

/// Why an entry of `platform` is suspicious.
fn doubt_of_platform(glob: &str, is_everybody: bool) -> Option<String> {
    if is_everybody {
        return Some("matches every user, so that the rules over objects guard nothing; name the accounts".to_owned());
    }
    let account = glob.strip_prefix(SERVICE_ACCOUNT_PREFIX).and_then(|account| account.split_once(':'));
    match account.map(|(namespace, _)| namespace) {
        Some(DEFAULT_NAMESPACE) => Some(
            "matches service accounts of the namespace default, which tenants use; they may then change the objects of every release".to_owned(),
        ),
        Some(namespace) if is_dns_label(namespace) => None,
        _ if can_match(glob, Domain::AccountUser.language()?) => Some(
            "matches service accounts of tenants, who may then change the objects of every release; spell out the namespace".to_owned(),
        ),
        _ => None,
    }
}

fn report_duplicate(name: &Spanned<String>, earlier: &[PipelineFile], names: &mut Names<'_, '_>) {
    let mut named = earlier.iter().filter_map(|other| other.name.as_ref());
    if let Some(first) = named.find(|other| other.value == name.value) {
        let line = names.problems.line(first.span);
        names.problems.at(name.span, format!("the pipeline on line {line} has the name {} already", name.value));
    }
}

fn check_pipeline(pipeline: &PipelineFile, name: &Spanned<String>, names: &mut Names<'_, '_>) {
    let PipelineFile { users, groups, holder, .. } = pipeline;
    let is_everybody =
        users.value().is_none_or(match_everybody) && groups.globs().is_none_or(|globs| globs.contains(EVERYBODY));
    match users.as_ref().or(groups.as_ref()) {
        None => {
            let message = "this pipeline has no sessions; give `users`, `groups` or both, as lists of globs";
            names.problems.at(name.span, message);
        }
        // A pipeline that matches everybody makes people programs. Most rules over objects only audit programs.
        Some(list) if is_everybody => {
            let message = format!(
                "the pipeline {} matches everybody, so that people count as a pipeline too; name the users of its jobs",
                name.value
            );
            names.problems.warn(list.span, message);
        }
        Some(_) => {}
    }
    if let Some(at) = holder.as_ref()
        && let Some(doubt) = doubt_of_holder(&at.value)
    {
        names.problems.warn(at.span, doubt);
    }
}

fn doubt_of_holder(holder: &PipelineHolder) -> Option<&'static str> {
    match holder {
        PipelineHolder::Session => None,
        PipelineHolder::Pipeline => Some(
            "every session of the pipeline holds the operations of the others, so that of two jobs at a time one may end the \
             operation of the other; use this only if jobs on one release run one after the other",
        ),
        PipelineHolder::Group(globs) if globs.contains(EVERYBODY) => Some(
            "the glob also matches system:authenticated, the group of every user, so that it distinguishes no sessions; name a prefix",
        ),
        PipelineHolder::Group(_) => None,
    }
}

//! Whether the lists of platforms and pipelines match more users than intended, or none.

use super::domain::Domain;
use super::names::{Names, is_literal, language};
use crate::object::{SERVICE_ACCOUNT_PREFIX, is_dns_label};
use crate::policy::PipelineHolder;
use crate::policy_files::file::{PipelineFile, PipelineName, PolicyFile, Spanned, nearest_to};

/// The group of every user that the API server knows.
const EVERYBODY: &str = "system:authenticated";

/// The namespace of a client that sets none.
const DEFAULT_NAMESPACE: &str = "default";

/// Checks both lists, and the cases for pipelines; `home` is the namespace whose policy it is.
pub(super) fn check(file: &PolicyFile, home: Option<&str>, names: &mut Names<'_, '_>) {
    if let Some(platform) = &file.platform {
        names.list(&platform.value, Domain::User, "so the list names nobody");
        for (span, glob) in &platform.value.globs {
            if let Some(doubt) = doubt_of_platform(glob) {
                names.problems.warn(*span, format!("`{glob}` {doubt}"));
            }
        }
    }
    let pipelines = file.pipelines.as_ref().map(|at| at.value.as_slice()).unwrap_or_default();
    for (index, pipeline) in pipelines.iter().enumerate() {
        report_duplicate(pipeline, &pipelines[..index], names);
        check_pipeline(pipeline, names);
    }
    // The policy of a namespace does not have the list of pipelines.
    if home.is_none() {
        check_cases(file, names);
    }
}

/// Warns of cases for pipelines that are not listed.
fn check_cases(file: &PolicyFile, names: &mut Names<'_, '_>) {
    let pipelines = file.pipelines.iter().flat_map(|at| &at.value).filter_map(|pipeline| pipeline.name.as_ref());
    let listed: Vec<_> = pipelines.map(|name| name.value.0.as_str()).collect();
    let rules = file.rules.iter().flat_map(|rules| &rules.value.0).map(|(_, rule)| &rule.value);
    let cases = rules.filter_map(|rule| rule.cases.as_ref()).flat_map(|cases| &cases.value);
    let conditions = cases.filter_map(|case| case.when.as_ref());
    for list in conditions.filter_map(|when| when.value.pipelines.as_ref()) {
        for (span, name) in &list.value.0.globs {
            if is_literal(name) && !listed.contains(&name.as_str()) {
                let meant = nearest_to(name, listed.iter().copied());
                let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
                names.problems.warn(*span, format!("`pipelines` lists no pipeline named {name}{meant}"));
            }
        }
    }
}

/// Why an entry of `platform` is suspicious.
fn doubt_of_platform(glob: &str) -> Option<&'static str> {
    let entry = language(std::iter::once(glob))?;
    if entry.covers(Domain::Session.language()?) {
        return Some("matches every user, so that the rules over objects guard nothing; name the accounts");
    }
    let account = glob.strip_prefix(SERVICE_ACCOUNT_PREFIX).and_then(|account| account.split_once(':'));
    match account.map(|(namespace, _)| namespace) {
        Some(DEFAULT_NAMESPACE) => Some(
            "matches service accounts of the namespace default, which tenants use; they may then change the objects of every release",
        ),
        Some(namespace) if is_dns_label(namespace) => None,
        _ if entry.meets(Domain::AccountUser.language()?) => Some(
            "matches service accounts of tenants, who may then change the objects of every release; spell out the namespace",
        ),
        _ => None,
    }
}

fn report_duplicate(pipeline: &PipelineFile, earlier: &[PipelineFile], names: &mut Names<'_, '_>) {
    let Some(name) = &pipeline.name else { return };
    let mut named = earlier.iter().filter_map(|other| other.name.as_ref());
    if let Some(first) = named.find(|other| other.value.0 == name.value.0) {
        let line = names.problems.line(first.span);
        names.problems.at(name.span, format!("the pipeline on line {line} has the name {} already", name.value.0));
    }
}

fn check_pipeline(pipeline: &PipelineFile, names: &mut Names<'_, '_>) {
    let PipelineFile { name, users, groups, holder } = pipeline;
    let Some(name) = name else { return };
    if users.is_none() && groups.is_none() {
        names
            .problems
            .at(name.span, "this pipeline has no sessions; give `users`, `groups` or both, as lists of globs");
    }
    for (domain, list) in [(Domain::Session, users), (Domain::Group, groups)] {
        if let Some(at) = list {
            names.list(&at.value.0, domain, "so the pipeline has no sessions");
        }
    }
    warn_of_everybody(pipeline, name, names);
    if let Some(at) = holder
        && let Some(doubt) = doubt_of_holder(&at.value)
    {
        names.problems.warn(at.span, doubt);
    }
}

/// A pipeline that matches everybody makes people programs. Most rules over objects only audit programs.
fn warn_of_everybody(pipeline: &PipelineFile, name: &Spanned<PipelineName>, names: &mut Names<'_, '_>) {
    let all = Domain::Session.language();
    let users = pipeline.users.as_ref();
    let groups = pipeline.groups.as_ref();
    let has_all_users = users.is_none_or(|at| {
        let globs = at.value.0.globs.iter().map(|(_, glob)| glob.as_str());
        language(globs).zip(all).is_some_and(|(globs, all)| globs.covers(all))
    });
    let has_all_groups = groups.is_none_or(|at| at.value.0.compiled.contains(EVERYBODY));
    let Some(span) = users.or(groups).map(|at| at.span).filter(|_| has_all_users && has_all_groups) else { return };
    let message = format!(
        "the pipeline {} matches everybody, so that people count as a pipeline too; name the users of its jobs",
        name.value.0
    );
    names.problems.warn(span, message);
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

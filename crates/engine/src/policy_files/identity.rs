//! The kind of a user, and the lines of the policy that decide it, for `interlock explain --user`.

use std::borrow::Cow;

use super::cluster::accounts;
use super::file::{GlobList, Key, ParsedFile};
use super::files::PolicyFiles;
use super::in_force::{SettingInForce, SettingOrigin};
use super::loaded::ParsedFiles;
use super::problem::{PolicyError, SourceFile};
use crate::facts::{Actor, ActorKind, SharedHolder};
use crate::policy::Globs;

/// The kind of a user, and its reasons.
#[derive(Debug)]
pub struct Identity {
    pub kind: ActorKind,
    /// The pipeline that the user is a session of.
    pub pipeline: Option<PipelineIdentity>,
    /// The entries of the policy's lists that match the user, with their lists.
    pub entries: Vec<SettingInForce>,
}

/// A session of a pipeline.
#[derive(Debug)]
pub struct PipelineIdentity {
    pub name: String,
    /// Who holds the operations that the session starts: the user, the pipeline, or the group of this name.
    pub holder: HeldBy,
}

/// Who holds the operations of a session.
#[derive(Debug, PartialEq, Eq)]
pub enum HeldBy {
    User,
    Pipeline,
    Group(String),
}

/// The identity of a user in these groups, by the cluster policy.
///
/// # Errors
/// Every problem in the file of the cluster.
pub fn identity(files: &PolicyFiles, user: &str, groups: &[String]) -> Result<Identity, PolicyError> {
    let ParsedFiles { cluster, reading, .. } = ParsedFiles::read(files);
    let Some(ParsedFile { source, file, .. }) = &cluster else {
        return Err(PolicyError { problems: reading.problems });
    };
    let problems: Vec<_> = reading.problems.into_iter().filter(|problem| problem.file == source.path).collect();
    if !problems.is_empty() {
        return Err(PolicyError { problems });
    }
    let groups: Vec<_> = groups.iter().map(|group| Cow::Borrowed(group.as_str())).collect();
    let accounts = accounts(file);
    let unlisted = Actor::named(user, &groups);
    let actor = accounts.recognise(unlisted);
    let is_listed = actor.kind == ActorKind::Platform && unlisted.kind != ActorKind::Platform;
    let platform = is_listed.then_some(("platform", &file.platform));
    let lists = [("managers", &file.managers), ("tools", &file.tools), ("controllers", &file.controllers)];
    let lists = platform.into_iter().chain(lists);
    let mut entries: Vec<_> = lists.filter_map(|(name, list)| first(source, name, list, &[user])).collect();
    let session = actor.session;
    let pipeline = session.and_then(|session| {
        let mut pipelines = file.pipelines.items().iter();
        pipelines.find(|pipeline| pipeline.name.value().is_some_and(|name| name == session.pipeline))
    });
    if let Some(pipeline) = pipeline {
        let groups: Vec<_> = groups.iter().map(AsRef::as_ref).collect();
        entries.extend(first(source, "pipelines.users", &pipeline.users, &[user]));
        entries.extend(first(source, "pipelines.groups", &pipeline.groups, &groups));
    }
    let pipeline = session.map(|session| PipelineIdentity {
        name: session.pipeline.to_owned(),
        holder: match session.holder {
            SharedHolder::Session => HeldBy::User,
            SharedHolder::Pipeline => HeldBy::Pipeline,
            SharedHolder::Group(group) => HeldBy::Group(group.to_owned()),
        },
    });
    Ok(Identity { kind: actor.kind, pipeline, entries })
}

/// The first entry of a list that matches one of these values.
fn first(source: &SourceFile, name: &'static str, list: &Key<GlobList>, values: &[&str]) -> Option<SettingInForce> {
    let (span, glob) = list
        .value()?
        .iter()
        .find(|(_, glob)| Globs::new([*glob]).is_ok_and(|globs| values.iter().any(|value| globs.contains(value))))?;
    Some(SettingInForce { name, value: glob.to_owned(), origin: SettingOrigin::of(source, span) })
}

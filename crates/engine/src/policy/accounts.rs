//! Which users are platforms and pipelines, by the lists of the cluster policy.

use std::sync::Arc;

use super::globs::{Globs, matches};
use crate::facts::{Actor, ActorKind, Session, SharedHolder, may_be_platform};

/// The users that a policy lists as platforms and pipelines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    pub platform: Globs,
    pub pipelines: Vec<Pipeline>,
    /// The lists before the last change; `None` if they never changed.
    former: Option<Arc<Accounts>>,
}

/// A pipeline: one actor under many user names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    pub name: String,
    pub users: Option<Globs>,
    pub groups: Option<Globs>,
    pub holder: PipelineHolder,
}

/// Which sessions of a pipeline share their operations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PipelineHolder {
    /// None: each user name holds its own operations.
    #[default]
    Session,
    /// All sessions.
    Pipeline,
    /// The sessions that share a group that matches these globs.
    Group(Globs),
}

impl Accounts {
    /// The lists of a policy.
    #[must_use]
    pub fn new(platform: Globs, pipelines: Vec<Pipeline>) -> Self {
        Self { platform, pipelines, former: None }
    }

    /// The actor as a platform or a pipeline, if a list contains the user.
    #[must_use]
    pub fn recognise<'a>(&'a self, actor: Actor<'a>) -> Actor<'a> {
        if !matches!(actor.kind, ActorKind::Person | ActorKind::ServiceAccount) {
            return actor;
        }
        let may_be_platform = actor.is_service_account() || may_be_platform(actor.name);
        if may_be_platform && self.platform.contains(actor.name) {
            return actor.as_platform();
        }
        match self.pipelines.iter().find(|pipeline| pipeline.has(&actor)) {
            Some(pipeline) => actor.as_session(pipeline.session(&actor)),
            None => actor,
        }
    }

    /// The actor according to the lists before the last change; `None` if this process has seen no change.
    #[must_use]
    pub fn formerly<'a>(&'a self, actor: Actor<'a>) -> Option<Actor<'a>> {
        let former = self.former.as_ref()?;
        Some(former.recognise(Actor::named(actor.name, actor.groups)))
    }

    /// Takes the place of other lists, which become the former lists if they differ.
    pub(super) fn follow(&mut self, replaced: &Arc<Self>) {
        let is_same = self.platform == replaced.platform && self.pipelines == replaced.pipelines;
        self.former = if is_same {
            replaced.former.clone()
        } else {
            Some(Arc::new(Self { former: None, ..replaced.as_ref().clone() }))
        };
    }
}

impl Pipeline {
    /// Whether a user is a session of the pipeline. A user with a reserved name never is.
    fn has(&self, actor: &Actor<'_>) -> bool {
        !actor.is_reserved()
            && matches(self.users.as_ref(), Some(actor.name))
            && self.groups.as_ref().is_none_or(|globs| actor.groups.iter().any(|group| globs.contains(group)))
    }

    fn session<'a>(&'a self, actor: &Actor<'a>) -> Session<'a> {
        let holder = match &self.holder {
            PipelineHolder::Session => SharedHolder::Session,
            PipelineHolder::Pipeline => SharedHolder::Pipeline,
            PipelineHolder::Group(globs) => only(globs, actor).map_or(SharedHolder::Session, SharedHolder::Group),
        };
        Session { pipeline: &self.name, holder }
    }
}

/// The only group of a user that matches. A user with several matching groups, or with none, shares operations with nobody.
fn only<'a>(globs: &Globs, actor: &Actor<'a>) -> Option<&'a str> {
    let mut found = actor.groups.iter().map(AsRef::as_ref).filter(|group: &&str| globs.contains(group));
    let first = found.next()?;
    found.all(|other: &str| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn globs(list: &[&str]) -> Globs {
        Globs::new(list.iter().copied()).unwrap()
    }

    fn pipeline(name: &str, users: &[&str], holder: PipelineHolder) -> Pipeline {
        Pipeline { name: name.to_owned(), users: Some(globs(users)), groups: None, holder }
    }

    fn groups(list: &[&'static str]) -> Vec<Cow<'static, str>> {
        list.iter().map(|group| Cow::Borrowed(*group)).collect()
    }

    #[test]
    fn lists_name_platforms_and_pipelines_but_no_reserved_names() {
        let lists = Accounts::new(
            globs(&["eks:*", "aksService", "system:serviceaccount:openshift-ingress:router", "system:*", "*dmin"]),
            vec![
                pipeline("deploy", &["arn:aws:sts::1:assumed-role/deploy/*"], PipelineHolder::Pipeline),
                pipeline("anybody", &["*:*"], PipelineHolder::Session),
            ],
        );
        use ActorKind::{ControlPlane, Node, Person, Pipeline, Platform, ServiceAccount};
        for (name, wanted, session) in [
            ("eks:addon-manager", Platform, None),
            ("aksService", Platform, None),
            ("aksservice", Person, None),
            ("system:serviceaccount:openshift-ingress:router", Platform, None),
            ("Admin", Platform, None),
            // Reserved names of people.
            ("system:admin", Person, None),
            ("system:anonymous", Person, None),
            ("system:node:a", Person, None),
            ("system:bootstrap:a", Person, None),
            ("system:serviceaccount:a", Person, None),
            ("arn:aws:sts::1:assumed-role/deploy/job-1", Pipeline, Some("deploy")),
            ("arn:aws:sts::2:assumed-role/deploy/job-1", Pipeline, Some("anybody")),
            ("alice", Person, None),
            ("system:serviceaccount:kube-system:namespace-controller", ControlPlane, None),
        ] {
            let actor = lists.recognise(Actor::named(name, &[]));
            assert_eq!((actor.kind, actor.session.map(|session| session.pipeline)), (wanted, session), "{name}");
        }
        let nodes = groups(&["system:nodes"]);
        assert_eq!(lists.recognise(Actor::named("system:node:a", &nodes)).kind, Node);
        let account = Actor::named("system:serviceaccount:shop:deployer", &[]);
        assert_eq!(Accounts::default().recognise(account).kind, ServiceAccount);
        let lists = Accounts::new(Globs::default(), vec![pipeline("ci", &["*:deployer"], PipelineHolder::Pipeline)]);
        let deployer = lists.recognise(account);
        assert!(deployer.kind == Pipeline && deployer.is_service_account(), "a service account is still one");
        assert_eq!(lists.recognise(Actor::named("system:x:deployer", &[])).kind, Platform);
    }

    #[test]
    fn users_and_groups_must_both_match_and_one_group_is_the_key() {
        let ci = Pipeline {
            groups: Some(globs(&["gitlab:ci_job"])),
            ..pipeline("ci", &["gitlab:ci_job:*"], PipelineHolder::Group(globs(&["gitlab:project:*"])))
        };
        let lists = Accounts::new(Globs::default(), vec![ci]);
        let session = |list: &[&'static str]| {
            let groups = groups(list);
            let actor = lists.recognise(Actor::named("gitlab:ci_job:7", &groups));
            actor.session.map(|session| session.stamp())
        };
        assert_eq!(session(&["gitlab:project:42"]), None, "not in the group");
        assert_eq!(session(&["gitlab:ci_job", "gitlab:project:42"]), Some(Some("ci/gitlab:project:42".to_owned())));
        assert_eq!(session(&["gitlab:ci_job", "gitlab:project_env:42:prod"]), Some(None), "no key");
        assert_eq!(session(&["gitlab:ci_job", "gitlab:project:42", "gitlab:project:43"]), Some(None), "two keys");
        let twice = session(&["gitlab:ci_job", "gitlab:project:42", "gitlab:project:42"]);
        assert_eq!(twice, Some(Some("ci/gitlab:project:42".to_owned())));
    }

    #[test]
    fn the_lists_before_the_last_change_are_known() {
        let of = |name| Accounts::new(Globs::default(), vec![pipeline(name, &["job-*"], PipelineHolder::Pipeline)]);
        let stamp = |actor: Option<Actor<'_>>| actor.and_then(|actor| actor.session?.stamp());
        let job = Actor::named("job-1", &[]);
        let first = Arc::new(of("a"));
        assert!(first.formerly(job).is_none());
        let mut second = of("b");
        second.follow(&first);
        assert_eq!(stamp(second.formerly(second.recognise(job))).as_deref(), Some("a"));
        // Another change of the policy does not change the lists.
        let mut same = of("b");
        same.follow(&Arc::new(second.clone()));
        assert_eq!(stamp(same.formerly(job)).as_deref(), Some("a"));
        let mut third = of("c");
        third.follow(&Arc::new(second));
        assert_eq!(stamp(third.formerly(job)).as_deref(), Some("b"), "and no older ones");
    }
}

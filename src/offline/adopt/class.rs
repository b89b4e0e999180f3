//! What an account is: by the policy, by what it is known as, and by what it did.

use interlock_engine::facts::{Actor, ActorKind};
use interlock_engine::policy::{Globs, Policies};
use interlock_engine::rule::Mode;
use interlock_engine::rules;
use serde::Serialize;

use super::account::{Account, AccountBook, Listed};
use super::machine::{Sign, is_of_pipeline, sign, stem};
use super::modes::mode_of;
use super::opening::{Entry, List};
use super::platforms::Platforms;
use super::seen::counted;

/// The fewest sessions that show that their names change from job to job.
const MIN_SESSIONS: usize = 3;

/// The rule whose cases name accounts behind which people act, and an account that no case names.
const MANUAL_EDIT: &str = "manual-edit";
const OTHER_ACCOUNT: &str = "system:serviceaccount:somewhere:something";

/// The fewest records that a restore brings back.
const MIN_RESTORES: usize = 2;

/// What an account is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Class {
    /// Somebody with a terminal.
    Person,
    /// Deploys releases, job by job.
    Pipeline,
    /// Deploys releases for others, all the time.
    Manager,
    /// Runs the cluster.
    Platform,
    /// Completes or scales the objects of releases.
    Controller,
    /// Restores records from a backup.
    Tool,
    /// A part of a release that runs during its operations.
    Hook,
}

impl Class {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Pipeline => "pipeline",
            Self::Manager => "manager",
            Self::Platform => "platform",
            Self::Controller => "controller",
            Self::Tool => "tool",
            Self::Hook => "hook",
        }
    }
}

/// What an account is, and why.
#[derive(Debug, Clone)]
pub(super) struct Classified {
    pub(super) class: Class,
    pub(super) why: String,
    /// The entry of the policy that makes it count as that, if it does not yet.
    pub(super) entry: Option<Entry>,
    /// The stem that the names of all sessions share.
    pub(super) stem: Option<String>,
}

impl Classified {
    fn known(class: Class, why: impl Into<String>) -> Self {
        Self { class, why: why.into(), entry: None, stem: None }
    }

    /// The name in the report: the sessions of a pipeline are one account.
    pub(super) fn shown(&self, name: &str) -> String {
        self.stem.as_ref().map_or_else(|| name.to_owned(), |stem| format!("{stem}*"))
    }

    fn listed_in(self, list: List, user: &str) -> Self {
        Self { entry: Entry::exact(list, user), ..self }
    }
}

/// Classifies accounts.
pub(super) struct Classifier<'a> {
    pub(super) policies: &'a Policies,
    pub(super) platforms: &'a Platforms,
    pub(super) book: &'a AccountBook,
}

impl Classifier<'_> {
    pub(super) fn of(&self, name: &str, account: &Account) -> Classified {
        let of_policy = by_policy(account);
        of_policy.or_else(|| self.by_platform(name)).unwrap_or_else(|| match account.account_name() {
            Some(own_name) => self.service_account(name, own_name, account),
            None => self.user(name, account),
        })
    }

    /// The class of an account that the policy for a platform lists.
    fn by_platform(&self, name: &str) -> Option<Classified> {
        let (list, platform) = self.platforms.list_of(name)?;
        let class = match list {
            List::Managers => Class::Manager,
            List::Tools => Class::Tool,
            List::Platform | List::Pipelines => Class::Platform,
        };
        Some(Classified::known(class, format!("an account of {platform}")).listed_in(list, name))
    }

    fn service_account(&self, name: &str, own_name: &str, account: &Account) -> Classified {
        if let Some(driver) = &account.driver {
            let mut declaration = driver.splitn(4, '/').take(3);
            let kind = declaration.next().unwrap_or_default();
            let why = format!("works for {kind} {}", declaration.collect::<Vec<_>>().join("/"));
            return Classified::known(Class::Manager, why);
        }
        // A restore also brings back records of operations, which look like starts.
        if account.restores >= MIN_RESTORES && account.restores > account.starts {
            let why =
                format!("creates {} without an operation, as a restore does", counted(account.restores, "record"));
            return Classified::known(Class::Tool, why).listed_in(List::Tools, name);
        }
        let policy = self.policies.of("");
        for (class, list, known) in
            [(Class::Manager, List::Managers, &policy.managers), (Class::Tool, List::Tools, &policy.tools)]
        {
            let Some(known) = namesake(own_name, known) else { continue };
            let why = format!("has the name of a {} of the policy ({known}) in another namespace", class.as_str());
            let namesake = Classified::known(class, why);
            // Anybody may create an account of this name at home. What it writes elsewhere, an administrator has allowed.
            let reaches_out =
                account.namespaces.named.iter().any(|namespace| Some(namespace.as_str()) != account.home());
            return if reaches_out { namesake.listed_in(list, name) } else { namesake };
        }
        if account.objects_in_operation * 2 > account.objects && account.starts == 0 && account.in_pod > 0 {
            let during = account.objects_in_operation;
            let why = format!("{} from a pod during operations of its namespace", counted(during, "write"));
            return Classified::known(Class::Hook, why);
        }
        if account.starts > 0 {
            let why = format!("starts {} on releases", counted(account.starts, "operation"));
            return Classified::known(Class::Pipeline, why);
        }
        if account.records > 0 {
            return Classified::known(
                Class::Pipeline,
                format!("writes {} of releases", counted(account.records, "record")),
            );
        }
        if self.is_singled_out(name) {
            return Classified::known(Class::Person, "the policy warns of its edits, because people act through it");
        }
        if account.entitled_deletions > 0 {
            let what = counted(account.entitled_deletions, "object");
            return Classified::known(
                Class::Manager,
                format!("deletes {what} for their owner, without breaking a rule"),
            );
        }
        if let Some(Sign::Word(word)) = account.service_account.as_deref().and_then(sign) {
            return Classified::known(Class::Pipeline, format!("has the word {word} in its name"));
        }
        Classified::known(Class::Controller, "edits objects, and starts no operation")
    }

    /// Whether a case of the policy warns of the edits of this service account, and not of those of others.
    fn is_singled_out(&self, name: &str) -> bool {
        let mode = |user: &str| {
            rules::named(MANUAL_EDIT).map(|rule| mode_of(self.policies.of(""), rule, Actor::named(user, &[])))
        };
        mode(name) == Some(Mode::Warn) && mode(OTHER_ACCOUNT) != Some(Mode::Warn)
    }

    fn user(&self, name: &str, account: &Account) -> Classified {
        if let Some(stem) = name.strip_suffix('*').or_else(|| stem(name))
            && let Some(sessions) = self.sessions(stem)
        {
            let why = format!("{sessions} names differ only in the number of a session");
            let pipeline = Classified::known(Class::Pipeline, why);
            return Classified { entry: Entry::sessions(stem), stem: Some(stem.to_owned()), ..pipeline };
        }
        let pipeline = |why: String| Classified::known(Class::Pipeline, why).listed_in(List::Pipelines, name);
        match sign(name) {
            Some(Sign::Format(why)) => pipeline(why.to_owned()),
            Some(Sign::Word(word)) if account.starts > 0 => {
                let starts = counted(account.starts, "operation");
                pipeline(format!("starts {starts} on releases, and has the word {word} in its name"))
            }
            _ => Classified::known(Class::Person, "no sign of a machine"),
        }
    }

    /// The number of names with a stem, if they are the sessions of a pipeline.
    fn sessions(&self, stem: &str) -> Option<usize> {
        let members = || {
            self.book.iter().filter(|(name, _)| name.starts_with(stem) && name[stem.len()..].find(['/', ':']).is_none())
        };
        let is_session = |name: &str| {
            let rest = &name[stem.len()..];
            rest == "*" || (self::stem(name) == Some(stem) && is_of_pipeline(stem, rest))
        };
        let (sessions, others): (Vec<_>, Vec<_>) = members().partition(|(name, _)| is_session(name));
        let deploys = sessions.iter().any(|(_, account)| account.starts > 0);
        (deploys && others.is_empty() && sessions.len() >= MIN_SESSIONS).then_some(sessions.len())
    }
}

/// The entry of a list with the same account name in another namespace.
fn namesake<'l>(own_name: &str, list: &'l Globs) -> Option<&'l str> {
    let mut exact = list.texts().iter().filter(|text| !text.contains('*'));
    exact.find(|text| text.rsplit(':').next() == Some(own_name)).map(String::as_str)
}

/// The class of an account that the policy already knows.
fn by_policy(account: &Account) -> Option<Classified> {
    let kind = match account.kind {
        ActorKind::ControlPlane => Some((Class::Platform, "a part of Kubernetes")),
        ActorKind::Node => Some((Class::Platform, "a node")),
        ActorKind::Interlock => Some((Class::Platform, "Interlock itself")),
        ActorKind::Platform if account.service_account.is_some() => Some((Class::Platform, "the policy lists it")),
        ActorKind::Platform => Some((Class::Platform, "a name that only the platform gets, or that the policy lists")),
        ActorKind::Pipeline => Some((Class::Pipeline, "the policy lists it")),
        ActorKind::ServiceAccount | ActorKind::Person => None,
    };
    let listed = account.listed.map(|listed| match listed {
        Listed::Managers => (Class::Manager, "the policy lists it"),
        Listed::Tools => (Class::Tool, "the policy lists it"),
        Listed::Controllers => (Class::Controller, "the policy lists it"),
    });
    kind.or(listed).map(|(class, why)| Classified::known(class, why))
}

//! The freeze that stops the user of a command.

use std::borrow::Cow;

use interlock_engine::evidence::question;
use interlock_engine::facts::Actor;
use interlock_engine::policy::{Freeze, Policy, Removal, Scope, in_force};
use interlock_engine::release::{ReleaseRef, Storage};
use interlock_engine::review::{Operation, UserInfo};
use interlock_engine::rule::{Mode, RuleId};
use interlock_engine::rules;
use jiff::Timestamp;
use kube::Client;
use serde::Serialize;

use crate::inspect::overrides::opens;
use crate::world::kubernetes::identity::own_user;
use crate::world::{World, ask};

/// The user who would start an operation.
#[derive(Debug)]
pub(crate) struct Starter(UserInfo<'static>);

/// The storage of a release's records, and the namespace of its objects if the records name one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Records<'r> {
    pub storage: Storage,
    pub of_objects: Option<&'r str>,
}

/// A freeze that stops a user from starting an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FreezeInForce {
    pub name: String,
    pub reason: String,
    /// `None` if the freeze has no end.
    pub until: Option<Timestamp>,
    /// The text of the refusal, with the time in the zone of the freeze.
    #[serde(skip)]
    pub sentence: String,
}

impl Starter {
    /// The user of a client, as the API server reports it.
    ///
    /// # Errors
    /// When the API server does not report the user.
    pub(crate) async fn of(client: &Client) -> kube::Result<Self> {
        let user = own_user(client).await?.unwrap_or_default();
        let groups = user.groups.unwrap_or_default().into_iter().map(Cow::Owned).collect();
        Ok(Self(UserInfo { username: Cow::Owned(user.username.unwrap_or_default()), groups, ..UserInfo::default() }))
    }

    /// A user with this name and without groups.
    pub(crate) fn named(user: &str) -> Self {
        Self(UserInfo { username: Cow::Owned(user.to_owned()), groups: Vec::new(), ..UserInfo::default() })
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.username
    }

    /// The freeze of a policy or of the release's namespace that stops this user from starting an operation of a release. `None` if
    /// no freeze does, or if a ReleaseOverride opens the freeze to the user.
    ///
    /// # Errors
    /// When the Freezes of the namespace cannot be read.
    pub(crate) async fn frozen(
        &self,
        world: &dyn World,
        policy: &Policy,
        release: &ReleaseRef,
        records: Records<'_>,
        now: Timestamp,
    ) -> Result<Option<FreezeInForce>, String> {
        let Some(rule) = rules::named("freeze") else { return Ok(None) };
        let namespace = records.storage.home(&release.namespace, records.of_objects).to_owned();
        let stored = ask(world, question::FreezesIn { namespace }).await?.unwrap_or_default();
        let freeze = self.stopped_by((policy, &stored), rule, release, records, now);
        if freeze.is_some() && opens(world, policy, rule, release, Some(self.name()), now).await {
            return Ok(None);
        }
        Ok(freeze)
    }

    fn stopped_by(
        &self,
        (policy, stored): (&Policy, &[Freeze]),
        rule: RuleId,
        release: &ReleaseRef,
        Records { storage, of_objects }: Records<'_>,
        now: Timestamp,
    ) -> Option<FreezeInForce> {
        let actor = policy.accounts.recognise(Actor::of(&self.0));
        // An operation starts with the creation of its record.
        let scope = Scope {
            actor,
            namespace: &release.namespace,
            release: Some(&release.name),
            kind: storage.kind(),
            owner: Some(storage.owner()),
            operation: Operation::Create,
            creates_record: true,
            removal: Removal::Nothing,
        };
        let home = ReleaseRef::new(storage.home(&release.namespace, of_objects), &release.name);
        let active = in_force(policy.all_freezes(stored), &home, actor, now)?;
        (policy.mode(rule, &scope) == Mode::Enforce).then(|| FreezeInForce {
            name: active.freeze.name.clone(),
            reason: active.freeze.reason.clone(),
            until: active.until,
            sentence: active.sentence(),
        })
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::policy::Policies;
    use interlock_engine::policy_files::PolicyFiles;

    use super::*;

    fn stopped(policy: &str, user: &str, groups: &[&'static str], release: &str) -> Option<FreezeInForce> {
        let files = PolicyFiles::mounted(
            [("cluster.yaml".to_owned(), format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\n{policy}"))],
            [],
        );
        let policies = Policies::of_files(&files).unwrap();
        let groups = groups.iter().map(|group| Cow::Borrowed(*group)).collect();
        let starter = Starter(UserInfo { username: Cow::Owned(user.to_owned()), groups, ..UserInfo::default() });
        let release = ReleaseRef::new("shop", release);
        let now = "2026-12-24T10:00:00Z".parse().unwrap();
        let records = Records { storage: Storage::Secret, of_objects: None };
        starter.stopped_by((policies.of("shop"), &[]), RuleId::known("freeze"), &release, records, now)
    }

    #[test]
    fn a_freeze_stops_the_users_that_the_webhook_would_refuse() {
        let freeze = "freezes: [{name: sale, reason: the sale, timeZone: UTC, from: 2026-12-20T00:00, to: 2027-01-02T00:00, releases: [web], exempt: {groups: [sre]}}]\n";
        let alice = stopped(freeze, "alice", &["devs"], "web").unwrap();
        assert_eq!(alice.until, "2027-01-02T00:00:00Z".parse().ok());
        assert_eq!(alice.sentence, "the freeze sale is in force until 2027-01-02 00:00 UTC (the sale)");
        assert_eq!(stopped(freeze, "alice", &["devs", "sre"], "web"), None);
        assert_eq!(stopped(freeze, "alice", &["devs"], "other"), None);
        // The command does not wait where the rule refuses nothing.
        let warned = format!("{freeze}rules: {{freeze: {{cases: [{{when: {{users: [bob]}}, mode: warn}}]}}}}\n");
        assert_eq!(stopped(&warned, "bob", &[], "web"), None);
        assert!(stopped(&warned, "alice", &[], "web").is_some());
    }
}

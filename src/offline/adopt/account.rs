//! The accounts that write releases or their objects, and what each of them wrote.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use interlock_engine::facts::{Actor, ActorKind, SharedHolder};
use interlock_engine::policy::Policies;
use jiff::Timestamp;

use super::act::is_about_objects;
use super::in_flight::Operations;
use super::machine::stem;
use super::seen::{Names, Times};
use crate::offline::replay::Replayed;

/// The most accounts. A broken client can use any number of names.
const MAX_ACCOUNTS: usize = 5_000;

/// The number of distinct sessions of one stem. Further sessions are counted together.
const MAX_SESSIONS: usize = 50;

/// The most distinct resources of one account.
const MAX_RESOURCES: usize = 12;

/// A list of the policy that contains an account, other than `platform` and `pipelines`, which are kinds of actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    Managers,
    Tools,
    Controllers,
}

/// An account, and what it wrote.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) kind: ActorKind,
    pub(super) listed: Option<Listed>,
    /// Whether it is a pipeline of the policy of which several sessions are holders of their own.
    pub(super) has_lone_sessions: bool,
    first_user: String,
    /// `NAMESPACE:NAME` of a service account.
    pub(super) service_account: Option<String>,
    pub(super) times: Times,
    /// The writes by operation and resource, for example `UPDATE deployments.apps`.
    pub(super) writes: BTreeMap<String, usize>,
    /// Operations on releases that it started.
    pub(super) starts: usize,
    pub(super) releases: Names,
    pub(super) namespaces: Names,
    /// Writes of objects, and those during an operation of another account in the namespace of the service account.
    pub(super) objects: usize,
    pub(super) objects_in_operation: usize,
    /// Deletions of objects, outside of an operation, that break no rule although no list exempts the account.
    pub(super) entitled_deletions: usize,
    /// Writes with a token that is bound to a pod.
    pub(super) in_pod: usize,
    /// The declaration for which it starts operations.
    pub(super) driver: Option<String>,
    /// Writes of records, and records that it created as no client of a release does.
    pub(super) records: usize,
    pub(super) restores: usize,
}

/// The accounts by name.
#[derive(Debug, Default)]
pub(super) struct AccountBook {
    accounts: HashMap<String, Account>,
    /// The number of sessions by stem.
    sessions: HashMap<String, usize>,
    /// Writes of accounts beyond the maximum.
    pub(super) further: usize,
}

/// The rule that restores of records break.
const UNUSUAL_CREATE: &str = "unusual-create";

impl AccountBook {
    /// Adds a write, and returns the name under which the account is known.
    pub(super) fn add(&mut self, replayed: &Replayed, policies: &Policies, operations: &Operations) -> Option<String> {
        let groups: Vec<_> = replayed.context.groups.names().iter().map(|name| Cow::Borrowed(name.as_str())).collect();
        let actor = policies.accounts().recognise(Actor::named(&replayed.user, &groups));
        let name = self.known_as(&actor);
        if !self.accounts.contains_key(&name) && self.accounts.len() >= MAX_ACCOUNTS {
            self.further += 1;
            return None;
        }
        let account = self.accounts.entry(name.clone()).or_insert_with(|| Account::of(&actor, policies, replayed.at));
        let is_lone = actor.session.is_some_and(|session| session.holder == SharedHolder::Session);
        account.has_lone_sessions |= is_lone && account.first_user != actor.name;
        account.add(replayed, operations);
        Some(name)
    }

    /// The sessions of a pipeline are one account. So are the sessions with one stem, once there are many.
    fn known_as(&mut self, actor: &Actor<'_>) -> String {
        if let Some(session) = actor.session {
            return format!("pipeline {}", session.pipeline);
        }
        let stem =
            stem(actor.name).filter(|_| actor.kind == ActorKind::Person && !self.accounts.contains_key(actor.name));
        let Some(stem) = stem else { return actor.name.to_owned() };
        let is_known = self.sessions.contains_key(stem);
        if !is_known && self.sessions.len() >= MAX_ACCOUNTS {
            return actor.name.to_owned();
        }
        let sessions = self.sessions.entry(stem.to_owned()).or_default();
        if *sessions >= MAX_SESSIONS {
            return format!("{stem}*");
        }
        *sessions += 1;
        actor.name.to_owned()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Account> {
        self.accounts.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Account)> {
        self.accounts.iter().map(|(name, account)| (name.as_str(), account))
    }
}

impl Account {
    fn of(actor: &Actor<'_>, policies: &Policies, at: Timestamp) -> Self {
        let policy = policies.of("");
        let lists = [
            (Listed::Managers, &policy.managers),
            (Listed::Tools, &policy.tools),
            (Listed::Controllers, &policy.controllers),
        ];
        Self {
            kind: actor.kind,
            listed: lists.into_iter().find(|(_, list)| list.contains(actor.name)).map(|(listed, _)| listed),
            has_lone_sessions: false,
            first_user: actor.name.to_owned(),
            service_account: actor.service_account().map(str::to_owned),
            times: Times::from(at),
            writes: BTreeMap::new(),
            starts: 0,
            releases: Names::default(),
            namespaces: Names::default(),
            objects: 0,
            objects_in_operation: 0,
            entitled_deletions: 0,
            in_pod: 0,
            driver: None,
            records: 0,
            restores: 0,
        }
    }

    fn add(&mut self, replayed: &Replayed, operations: &Operations) {
        let Replayed { context, operation, resource, namespace, violations, .. } = replayed;
        self.times.add(replayed.at);
        let write = format!("{operation} {resource}");
        if self.writes.contains_key(&write) || self.writes.len() < MAX_RESOURCES {
            *self.writes.entry(write).or_default() += 1;
        }
        self.namespaces.add(namespace);
        self.in_pod += usize::from(context.is_in_pod);
        replayed.release.iter().for_each(|release| self.releases.add(&release.to_string()));
        self.driver = self.driver.take().or_else(|| context.driver.clone());
        self.restores += usize::from(violations.iter().any(|violation| violation.rule == UNUSUAL_CREATE));
        self.starts += usize::from(context.transition.as_ref().is_some_and(|transition| transition.kind.is_start()));
        if context.transition.is_some() || is_record(replayed) {
            self.records += 1;
            return;
        }
        self.objects += 1;
        let is_at_home = self.home() == Some(namespace.as_str());
        let in_operation = operations.is_held_by_another(namespace, &replayed.user);
        self.objects_in_operation += usize::from(is_at_home && in_operation);
        let is_entitled = operation == "DELETE" && violations.is_empty() && !operations.is_in_flight(namespace);
        self.entitled_deletions += usize::from(is_entitled);
    }

    /// The namespace of a service account.
    pub(super) fn home(&self) -> Option<&str> {
        self.service_account.as_deref()?.split_once(':').map(|(namespace, _)| namespace)
    }

    /// The name of a service account, without its namespace.
    pub(super) fn account_name(&self) -> Option<&str> {
        self.service_account.as_deref()?.split_once(':').map(|(_, name)| name)
    }
}

/// Whether a request writes a record. Other Secrets and ConfigMaps name their release only if it is disturbed.
fn is_record(replayed: &Replayed) -> bool {
    let is_stored_so = matches!(replayed.resource.as_str(), "secrets" | "configmaps");
    let disturbs = replayed.violations.iter().any(|violation| is_about_objects(violation.rule));
    is_stored_so && replayed.release.is_some() && !disturbs
}

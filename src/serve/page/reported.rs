//! The refusals of all replicas, from the reports that the leader writes.

use std::cmp::Reverse;

use interlock_engine::decision::ObjectReference;
use kube::Client;

use super::cached::{Cached, in_time};
use crate::serve::report::openreports::{ReportEntry, ReportSettings, newest_refusals};
use crate::serve::report::refusals::{KEPT, Refusal};
use crate::world::kubernetes::api_error::reason;

/// The reports, if they are written.
pub(crate) struct Reported {
    client: Client,
    settings: Option<ReportSettings>,
    last: Cached<Result<Vec<Refusal>, String>>,
}

impl Reported {
    pub(crate) fn new(client: Client, settings: Option<ReportSettings>) -> Self {
        Self { client, settings, last: Cached::default() }
    }

    /// The newest refusals of all replicas, and of this one as it knows them. Or those of this replica, and why the others are not known.
    pub(super) async fn with(&self, own: Vec<Refusal>) -> (Vec<Refusal>, Option<String>) {
        match self.last.or_read(self.read()).await {
            Ok(reported) => (merged(own, reported), None),
            Err(why) => (own, Some(why)),
        }
    }

    async fn read(&self) -> Result<Vec<Refusal>, String> {
        let Some(settings) = &self.settings else { return Err("reports are off (--reports)".to_owned()) };
        let read = in_time("send the reports", newest_refusals(&self.client, settings, KEPT)).await?;
        let entries = read.map_err(|error| reason(&error))?.ok_or("the kind of the reports is not installed")?;
        Ok(entries.into_iter().map(refusal).collect())
    }
}

fn refusal(entry: ReportEntry) -> Refusal {
    let ReportEntry { release, check, actor, object, message, last, count, mut properties, .. } = entry;
    Refusal {
        at: last,
        user: actor.unwrap_or_default(),
        operation: properties.remove("operation").unwrap_or_default(),
        namespace: object.as_ref().map_or_else(|| release.namespace.clone(), |object| object.namespace.clone()),
        object: object.as_ref().map_or_else(|| release.to_string(), ObjectReference::to_string),
        release: Some(release),
        rules: vec![check],
        sentences: vec![message],
        commands: Vec::new(),
        times: count,
    }
}

/// Newest first. This replica knows its own refusals with their ways out, and the reports how often they were repeated.
fn merged(mut own: Vec<Refusal>, reported: Vec<Refusal>) -> Vec<Refusal> {
    let known = own.len();
    for report in reported {
        match own[..known].iter_mut().find(|own| is_reported_as(own, &report)) {
            Some(same) => same.times = same.times.max(report.times),
            None => own.push(report),
        }
    }
    own.sort_by_key(|refusal| Reverse(refusal.at));
    own.truncate(KEPT);
    own
}

/// Whether an own refusal is the one of a report, which has one rule.
fn is_reported_as(own: &Refusal, report: &Refusal) -> bool {
    own.user == report.user && own.object == report.object && own.rules.contains(&report.rules[0])
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn of(user: &str, second: i64, commands: &[&str], times: u64) -> Refusal {
        Refusal {
            at: Timestamp::from_second(second).unwrap(),
            user: user.to_owned(),
            operation: "UPDATE".to_owned(),
            namespace: "shop".to_owned(),
            release: None,
            object: "apps/v1 Deployment shop/web".to_owned(),
            rules: vec!["manual-edit".to_owned()],
            sentences: vec!["It is so.".to_owned()],
            commands: commands.iter().map(|command| (*command).to_owned()).collect(),
            times,
        }
    }

    #[test]
    fn an_own_refusal_is_shown_once_with_its_ways_out() {
        let own = vec![of("alice", 7, &["helm upgrade"], 1)];
        let shown = merged(own, vec![of("alice", 8, &[], 3), of("bob", 9, &[], 1), of("carol", 1, &[], 2)]);
        let shown: Vec<_> = shown.iter().map(|it| (&*it.user, it.commands.len(), it.times)).collect();
        assert_eq!(shown, [("bob", 0, 1), ("alice", 1, 3), ("carol", 0, 2)]);
        assert_eq!(merged(vec![], (0..80).map(|at| of(&at.to_string(), at, &[], 1)).collect()).len(), KEPT);
    }
}

//! Merges the reports of several sources about the same transitions.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use interlock_engine::decision::TransitionKind;
use jiff::{SignedDuration, Timestamp};

use super::change::{Certainty, Change, ChangeSource, ChangedRelease};
use super::covered::Covered;

/// The maximum distance between two reports of one write. The API server starts a request before its review, and gives a webhook up
/// to 30 seconds.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// One change for each transition, ordered by time. The report of the most reliable source counts, and the other reports complete
/// it.
///
/// Two reports are about one transition if their revision and kind are the same, and their times are near: an uninstalled release
/// starts again with revision 1. No source reports a transition twice, so each report completes another one only once.
///
/// A write that Interlock admitted may not have been stored if the audit log covers its time and no other source reports it.
///
/// Changes without the name of a cluster belong to the only named one. If several are named, an audit log covers none of them, because it
/// does not tell its own.
pub(crate) fn merged(changes: Vec<Change>, covered: &Covered) -> Vec<Change> {
    let names: BTreeSet<_> = changes.iter().filter_map(|change| change.cluster.clone()).collect();
    let only = names.first().filter(|_| names.len() == 1);
    let mut clusters: BTreeMap<Option<String>, Vec<Change>> = BTreeMap::new();
    for mut change in changes {
        change.cluster = change.cluster.or_else(|| only.cloned());
        clusters.entry(change.cluster.clone()).or_default().push(change);
    }
    let nothing = Covered::default();
    let mut all = Vec::new();
    for (cluster, changes) in clusters {
        let is_told = cluster.is_none() || names.len() == 1;
        all.extend(of_one_cluster(changes, if is_told { covered } else { &nothing }));
    }
    all.sort_by(|a, b| place(a).cmp(&place(b)));
    all
}

fn of_one_cluster(mut changes: Vec<Change>, covered: &Covered) -> Vec<Change> {
    drop_repeats(&mut changes);
    changes.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| (a.source, a.time).cmp(&(b.source, b.time))));
    let mut all: Vec<Change> = Vec::with_capacity(changes.len());
    let mut alike = Alike::default();
    for change in changes {
        if alike.known.first().is_some_and(|known| key(&known.change) != key(&change)) {
            all.extend(std::mem::take(&mut alike).into_changes(covered));
        }
        alike.add(change);
    }
    all.extend(alike.into_changes(covered));
    all
}

/// The transitions of one key. Their reports come source by source. Each report costs logarithmic time, because a client may try
/// the same refused operation any number of times.
#[derive(Default)]
struct Alike {
    known: Vec<Known>,
    /// The transitions that the current source has not reported yet, by time, with their indexes in `known`.
    open: BTreeSet<(Timestamp, usize)>,
    /// The source of the last report.
    source: Option<ChangeSource>,
}

struct Known {
    change: Change,
    /// Whether several sources report the transition.
    is_confirmed: bool,
}

impl Alike {
    /// Adds a report, after those of more reliable sources.
    fn add(&mut self, change: Change) {
        if self.source != Some(change.source) {
            self.source = Some(change.source);
            self.open = self.known.iter().enumerate().map(|(place, known)| (known.change.time, place)).collect();
        }
        match self.nearest(&change) {
            Some(found) => {
                self.open.remove(&found);
                let known = &mut self.known[found.1];
                known.is_confirmed = true;
                complete(&mut known.change, change);
            }
            None => self.known.push(Known { change, is_confirmed: false }),
        }
    }

    /// The open transition nearest to a change, if it is near enough. Only records have a range, and they come last.
    fn nearest(&self, change: &Change) -> Option<(Timestamp, usize)> {
        let before = self.open.range(..(change.time, 0)).next_back();
        let after = self.open.range((change.time, 0)..).next();
        let near = before.into_iter().chain(after).filter(|(time, _)| distance(change, *time) <= TOLERANCE);
        near.min_by_key(|(time, _)| time.duration_since(change.time).abs()).copied()
    }

    fn into_changes(self, covered: &Covered) -> impl Iterator<Item = Change> {
        self.known.into_iter().map(|Known { mut change, is_confirmed }| {
            // Nothing shows whether an audit log has every write of objects without records.
            let is_admission =
                change.source == ChangeSource::Log && !change.is_refused() && change.release.carrier().is_none();
            if is_admission && !is_confirmed && covered.contains(change.time, TOLERANCE) {
                change.certainty = Certainty::Inferred;
            }
            change
        })
    }
}

/// The properties that reports of one transition share. A revision starts once, even if a source does not know by which operation.
fn key(change: &Change) -> (&ChangedRelease, Option<TransitionKind>, bool) {
    let starts_revision = change.transition.is_start() && change.transition != TransitionKind::Uninstall;
    (&change.release, Some(change.transition).filter(|_| !starts_revision), change.is_refused())
}

/// The sort key of a change. Stamps and records know only seconds, so the order of an operation follows next.
fn place(change: &Change) -> (Timestamp, &ChangedRelease, TransitionKind, Reverse<bool>) {
    // A refused write precedes an admitted one.
    (change.time, &change.release, change.transition, Reverse(change.is_refused()))
}

/// The distance between a time and the range of a change.
fn distance(change: &Change, time: Timestamp) -> SignedDuration {
    let (start, end) = change.range.unwrap_or((change.time, change.time));
    start.duration_since(time).max(time.duration_since(end)).max(SignedDuration::ZERO)
}

/// Adds the details that only a less reliable report has.
fn complete(change: &mut Change, other: Change) {
    // An audit log without objects does not contain the operation.
    if change.to.is_none() && change.transition.is_start() {
        (change.transition, change.to) = (other.transition, other.to);
    }
    // Nor does it contain the status before its first event.
    let knows_more = change.from.is_none() && change.to == other.to;
    change.from = change.from.or(other.from.filter(|_| knows_more));
    if change.user.is_none() || change.user == other.user {
        let lists_fewer = change.groups.are_unknown() || other.groups.omitted() < change.groups.omitted();
        if lists_fewer && !other.groups.are_unknown() {
            change.groups = other.groups;
        }
        change.user = other.user.or(change.user.take());
    }
    change.holder = change.holder.take().or(other.holder);
    change.chart = change.chart.take().or(other.chart);
    change.seconds = change.seconds.or(other.seconds);
    change.overridden = change.overridden.take().or(other.overridden);
    change.ticket = change.ticket.take().or(other.ticket);
    change.freeze = change.freeze.take().or(other.freeze);
}

/// Drops repeated reports of one source: the API server repeats a review if another write made its object stale, and a log may be
/// given twice. Within `TOLERANCE`, a record does not reach one status twice in a row.
fn drop_repeats(changes: &mut Vec<Change>) {
    changes.sort_by(compare);
    changes.dedup_by(|again, first| is_repeat(again, first));
}

fn compare(a: &Change, b: &Change) -> Ordering {
    (a.source, &a.release)
        .cmp(&(b.source, &b.release))
        .then_with(|| (a.time, a.transition, a.outcome).cmp(&(b.time, b.transition, b.outcome)))
        .then_with(|| a.user.cmp(&b.user))
}

fn is_repeat(again: &Change, first: &Change) -> bool {
    let same_act = again.source == first.source
        && again.release == first.release
        && (again.transition, again.from, again.to) == (first.transition, first.from, first.to)
        && again.user == first.user
        && again.time.duration_since(first.time) <= TOLERANCE;
    again == first || (same_act && !again.is_refused() && !first.is_refused())
}

#[cfg(test)]
mod tests {
    use interlock_engine::decision::{Groups, TransitionOutcome};
    use interlock_engine::release::Status;

    use super::*;
    use ChangeSource::{Audit, Log, Record};
    use TransitionKind::{Deployed, Install, Rollback, Superseded, Uninstall, Uninstalled, Upgrade};

    fn change(second: i64, revision: u64, transition: TransitionKind, source: ChangeSource) -> Change {
        let release = ChangedRelease {
            namespace: "shop".into(),
            release: "web".into(),
            revision: Some(revision),
            storage: "Secret",
        };
        let certainty = if source == ChangeSource::Record { Certainty::Inferred } else { Certainty::Sure };
        Change { certainty, ..Change::new(at(second), release, transition, source) }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_795_000_000 + second).unwrap()
    }

    fn merged(changes: Vec<Change>) -> Vec<Change> {
        super::merged(changes, &Covered::default())
    }

    #[test]
    fn changes_of_two_clusters_are_never_one_and_a_nameless_one_belongs_to_the_only_cluster() {
        let of = |cluster: Option<&str>, source| Change {
            cluster: cluster.map(str::to_owned),
            ..change(0, 1, Install, source)
        };
        let clusters = |changes: Vec<Change>| -> Vec<_> { merged(changes).into_iter().map(|it| it.cluster).collect() };
        let eu = || Some("eu".to_owned());
        assert_eq!(clusters(vec![of(Some("eu"), Log), of(None, Audit)]), [eu()]);
        assert_eq!(clusters(vec![of(Some("us"), Record), of(Some("eu"), Log), of(None, Audit)]).len(), 3);
        assert_eq!(clusters(vec![of(None, Log), of(None, Audit)]), [None]);
    }

    fn lines(changes: Vec<Change>) -> Vec<String> {
        let second = |time: Timestamp| time.as_second() - 1_795_000_000;
        let line = |it: &Change| {
            format!("{} v{} {} {}", second(it.time), it.release.revision.unwrap(), it.transition, it.source.as_str())
        };
        merged(changes).iter().map(line).collect()
    }

    #[test]
    fn three_reports_of_a_transition_are_one_line() {
        let all = [Record, Audit, Log].into_iter().flat_map(|source| {
            let late = source as i64;
            [
                change(40 + late, 2, Deployed, source),
                change(10 - late, 1, Install, source),
                change(30, 2, Upgrade, source),
            ]
        });
        assert_eq!(lines(all.collect()), ["10 v1 install log", "30 v2 upgrade log", "40 v2 deployed log"]);
    }

    #[test]
    fn a_less_sure_source_completes_and_never_contradicts() {
        let log = Change { user: Some("alice".into()), seconds: Some(7), ..change(10, 1, Deployed, Log) };
        let groups = Groups::of(["devs"], 1024);
        let audit = Change { user: Some("alice".into()), groups: groups.clone(), ..change(9, 1, Deployed, Audit) };
        let record = Change { chart: Some("demo-1.0.0".into()), seconds: Some(9), ..change(11, 1, Deployed, Record) };
        let all = merged(vec![record.clone(), log.clone(), audit.clone()]);
        let wanted = Change { groups, chart: Some("demo-1.0.0".into()), ..log.clone() };
        assert_eq!(all, [wanted]);
        // The groups of another user are not used.
        let audit = Change { user: Some("bob".into()), ..audit };
        let wanted = Change { chart: Some("demo-1.0.0".into()), ..log.clone() };
        assert_eq!(merged(vec![record, log, audit]), [wanted]);
    }

    #[test]
    fn a_truncated_list_of_groups_is_replaced_by_a_complete_one() {
        let names: Vec<String> = (0..100).map(|index| format!("group-number-{index}")).collect();
        let groups = |bytes: usize| Groups::of(names.iter().map(String::as_str), bytes);
        let who = |source, groups| Change { user: Some("alice".into()), groups, ..change(9, 1, Deployed, source) };
        let all = merged(vec![who(Log, groups(1024)), who(Audit, groups(1 << 20))]);
        assert_eq!((all.len(), all[0].source), (1, Log));
        assert_eq!((all[0].groups.names(), all[0].groups.omitted()), (&*names, 0));
        let all = merged(vec![who(Log, groups(1024)), who(Audit, Groups::default())]);
        assert_eq!(all[0].groups, groups(1024));
    }

    #[test]
    fn another_life_of_a_release_is_not_a_double() {
        let life = |start: i64, source| [change(start, 1, Install, source), change(start + 5, 1, Deployed, source)];
        let gone = [change(300, 1, Uninstall, Log), change(301, 1, Uninstalled, Log)];
        let all: Vec<_> =
            life(0, Log).into_iter().chain(gone.clone()).chain(life(400, Log)).chain(life(401, Record)).collect();
        let wanted = [
            "0 v1 install log",
            "5 v1 deployed log",
            "300 v1 uninstall log",
            "301 v1 uninstalled log",
            "400 v1 install log",
            "405 v1 deployed log",
        ];
        assert_eq!(lines(all), wanted);
        // The log is incomplete: it does not know this life of the release.
        let all = life(0, Log).into_iter().chain(life(400, Record)).collect();
        let wanted = ["0 v1 install log", "5 v1 deployed log", "400 v1 install record", "405 v1 deployed record"];
        assert_eq!(lines(all), wanted);
        // In quick succession, each report finds its own transition.
        let all =
            life(0, Log).into_iter().chain(gone).chain(life(10, Log)).chain(life(11, Audit)).chain(life(1, Audit));
        let all: Vec<_> = all.collect();
        let of_life = |line: &&String| !line.contains("uninstall");
        assert_eq!(lines(all).iter().filter(of_life).count(), 4);
    }

    #[test]
    fn an_estimated_time_matches_any_time_in_its_range() {
        let guess =
            |from: i64, to: i64| Change { range: Some((at(from), at(to))), ..change(from, 1, Deployed, Record) };
        assert_eq!(lines(vec![guess(0, 9_000), change(3_600, 1, Deployed, Log)]), ["3600 v1 deployed log"]);
        assert_eq!(
            lines(vec![guess(0, 900), change(3_600, 1, Deployed, Log)]),
            ["0 v1 deployed record", "3600 v1 deployed log"]
        );
    }

    #[test]
    fn a_refusal_is_no_report_of_a_stored_write() {
        let refused = Change { outcome: TransitionOutcome::Refused, ..change(10, 2, Upgrade, Log) };
        let again = Change { time: refused.time + SignedDuration::from_secs(2), ..refused.clone() };
        let all = vec![refused.clone(), again, refused, change(12, 2, Upgrade, Record)];
        let wanted = ["10 v2 upgrade log", "12 v2 upgrade log", "12 v2 upgrade record"];
        assert_eq!(lines(all), wanted, "each attempt once, however often its log is given");
    }

    #[test]
    fn a_repeated_review_counts_once_and_a_repeated_life_does_not() {
        let all = vec![change(1, 1, Superseded, Log), change(2, 1, Superseded, Log)];
        assert_eq!(lines(all), ["1 v1 superseded log"]);
        assert_eq!(lines(vec![change(1, 1, Superseded, Log), change(61, 1, Superseded, Log)]).len(), 1);
        assert_eq!(lines(vec![change(1, 1, Superseded, Log), change(62, 1, Superseded, Log)]).len(), 2);
        let all = vec![change(1, 1, Install, Log), change(2, 1, Uninstalled, Log), change(3, 1, Install, Log)];
        assert_eq!(lines(all).len(), 3);
    }

    #[test]
    fn the_same_write_much_later_is_another_one() {
        // The first was refused by a quota, after Interlock had admitted it.
        let all = [Log, Audit].map(|source| change(3_600, 1, Install, source));
        let all: Vec<_> = all.into_iter().chain([change(0, 1, Install, Log)]).collect();
        assert_eq!(lines(all.clone()), ["0 v1 install log", "3600 v1 install log"]);
        // The audit log covers the time of the first write and lacks it. Near its ends the log may lack an event.
        let certainties = |first: i64, last: i64| {
            let mut covered = Covered::default();
            covered.add(at(first), at(last));
            super::merged(all.clone(), &covered).iter().map(|it| it.certainty.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(certainties(-61, 4_000), ["inferred", "sure"]);
        assert_eq!(certainties(-59, 4_000), ["sure", "sure"]);
        assert_eq!(certainties(-4_000, 59), ["sure", "sure"]);
    }

    #[test]
    fn a_refusal_is_sure_without_the_audit_log() {
        let mut covered = Covered::default();
        covered.add(at(-1_000), at(1_000));
        let refused = Change { outcome: TransitionOutcome::Refused, ..change(0, 2, Upgrade, Log) };
        assert_eq!(super::merged(vec![refused], &covered)[0].certainty, Certainty::Sure);
    }

    #[test]
    fn equal_revisions_in_secrets_and_config_maps_are_two_changes() {
        let mut other = change(1, 1, Install, Audit);
        other.release.storage = "ConfigMap";
        assert_eq!(lines(vec![change(0, 1, Install, Log), other]), ["0 v1 install log", "1 v1 install audit"]);
    }

    #[test]
    fn each_of_many_attempts_finds_its_own_report() {
        // If each were compared with all others, this test would take minutes.
        let attempt = |nanosecond: i64, source| {
            let time = at(0) + SignedDuration::from_nanos(nanosecond);
            Change { time, outcome: TransitionOutcome::Refused, ..change(0, 2, Upgrade, source) }
        };
        let all: Vec<_> = [Log, Audit].into_iter().flat_map(|it| (0..100_000).map(move |n| attempt(n, it))).collect();
        let found = merged(all);
        assert_eq!(found.len(), 100_000);
        assert!(found.iter().all(|it| it.source == Log));
    }

    #[test]
    fn a_record_completes_an_audit_log_without_objects() {
        let start =
            Change { certainty: Certainty::Inferred, user: Some("alice".into()), ..change(5, 3, Upgrade, Audit) };
        let record = Change { to: Some(Status::PendingRollback), ..change(5, 3, Rollback, Record) };
        let all = merged(vec![start, record]);
        assert_eq!((all.len(), all[0].transition, all[0].user.as_deref()), (1, Rollback, Some("alice")));
    }
}

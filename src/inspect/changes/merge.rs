//! Merges what several sources say of the same transitions.

use std::cmp::{Ordering, Reverse};

use jiff::{SignedDuration, Timestamp};

use super::change::{Change, ChangeSource, ChangedRelease};
use crate::engine::decision::TransitionKind;

/// The largest distance between two accounts of one write: the API server gives a webhook up to 30 seconds, and starts a request
/// before it asks.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// One line for each transition, ordered by time. The account of the surest source counts; the others complete it.
///
/// Two accounts are of one transition if they are of the same revision and kind and from about the same time: an uninstalled release
/// starts again with revision 1. No source tells the same transition twice, so each account completes another one only once.
pub(crate) fn merged(mut changes: Vec<Change>) -> Vec<Change> {
    drop_repeats(&mut changes);
    changes.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| (a.source, a.time).cmp(&(b.source, b.time))));
    let mut all: Vec<Change> = Vec::with_capacity(changes.len());
    let mut alike: Vec<Known> = Vec::new();
    for change in changes {
        if alike.first().is_some_and(|known| key(&known.change) != key(&change)) {
            all.extend(alike.drain(..).map(|known| known.change));
        }
        add(&mut alike, change);
    }
    all.extend(alike.into_iter().map(|known| known.change));
    all.sort_by(|a, b| place(a).cmp(&place(b)));
    all
}

/// A change, and the last source that told it.
struct Known {
    change: Change,
    told_by: ChangeSource,
}

/// What accounts of one transition have in common. A revision starts once, whether a source knows by which operation or not.
fn key(change: &Change) -> (&ChangedRelease, Option<TransitionKind>, bool) {
    let starts_revision = change.transition.is_start() && change.transition != TransitionKind::Uninstall;
    (&change.release, Some(change.transition).filter(|_| !starts_revision), change.is_refused())
}

/// Stamps and records know seconds, so the order of an operation counts before the rest.
fn place(change: &Change) -> (Timestamp, &ChangedRelease, TransitionKind, Reverse<bool>) {
    // What was refused came before what passed.
    (change.time, &change.release, change.transition, Reverse(change.is_refused()))
}

fn add(known: &mut Vec<Known>, change: Change) {
    let candidates = known.iter_mut().filter(|it| it.told_by != change.source);
    let near = candidates.filter(|it| distance(&it.change, &change) <= TOLERANCE);
    match near.min_by_key(|it| it.change.time.duration_since(change.time).abs()) {
        Some(nearest) => {
            nearest.told_by = change.source;
            complete(&mut nearest.change, change);
        }
        None => known.push(Known { told_by: change.source, change }),
    }
}

/// Between the times at which two changes may have taken place.
fn distance(a: &Change, b: &Change) -> SignedDuration {
    let range = |change: &Change| change.range.unwrap_or((change.time, change.time));
    let ((a_start, a_end), (b_start, b_end)) = (range(a), range(b));
    a_start.duration_since(b_end).max(b_start.duration_since(a_end)).max(SignedDuration::ZERO)
}

/// Adds what only a less sure account has.
fn complete(change: &mut Change, other: Change) {
    // An audit log without objects does not say what starts.
    if change.to.is_none() && change.transition.is_start() {
        (change.transition, change.to) = (other.transition, other.to);
    }
    // Nor what was before the log begins.
    let knows_more = change.from.is_none() && change.to == other.to;
    change.from = change.from.or(other.from.filter(|_| knows_more));
    change.user = change.user.take().or(other.user);
    if change.groups.is_empty() {
        change.groups = other.groups;
    }
    change.holder = change.holder.take().or(other.holder);
    change.chart = change.chart.take().or(other.chart);
    change.seconds = change.seconds.or(other.seconds);
    change.overridden = change.overridden.take().or(other.overridden);
    change.freeze = change.freeze.take().or(other.freeze);
}

/// Drops what one source tells twice: the API server repeats a review if another write made its object stale, and a log may be given
/// twice. A record cannot come to a status twice in a row.
fn drop_repeats(changes: &mut Vec<Change>) {
    let order = |a: &Change, b: &Change| -> Ordering {
        (a.source, &a.release, a.time, a.transition).cmp(&(b.source, &b.release, b.time, b.transition))
    };
    changes.sort_by(order);
    let is_repeat = |again: &Change, first: &Change| {
        let same_act = again.source == first.source
            && again.release == first.release
            && (again.transition, again.from, again.to) == (first.transition, first.from, first.to)
            && again.user == first.user;
        again == first || (same_act && !again.is_refused() && !first.is_refused())
    };
    changes.dedup_by(|again, first| is_repeat(again, first));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::decision::TransitionOutcome;
    use crate::engine::release::Status;
    use crate::inspect::changes::Certainty;

    fn change(second: i64, revision: u64, transition: TransitionKind, source: ChangeSource) -> Change {
        let release = ChangedRelease { namespace: "shop".into(), release: "web".into(), revision };
        let certainty = if source == ChangeSource::Record { Certainty::Inferred } else { Certainty::Sure };
        let time = Timestamp::from_second(1_795_000_000 + second).unwrap();
        Change { certainty, ..Change::new(time, release, transition, source) }
    }

    fn lines(changes: Vec<Change>) -> Vec<String> {
        let second = |time: Timestamp| time.as_second() - 1_795_000_000;
        let line = |it: &Change| {
            format!("{} v{} {} {}", second(it.time), it.release.revision, it.transition, it.source.as_str())
        };
        merged(changes).iter().map(line).collect()
    }

    use ChangeSource::{Audit, Log, Record};
    use TransitionKind::{Deployed, Install, Rollback, Superseded, Uninstall, Uninstalled, Upgrade};

    #[test]
    fn a_transition_that_three_sources_tell_is_one_line_of_the_surest_in_order_of_time() {
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
        let audit = Change { user: Some("bob".into()), groups: vec!["devs".into()], ..change(9, 1, Deployed, Audit) };
        let record = Change { chart: Some("demo-1.0.0".into()), seconds: Some(9), ..change(11, 1, Deployed, Record) };
        let all = merged(vec![record, log.clone(), audit]);
        let wanted = Change { groups: vec!["devs".into()], chart: Some("demo-1.0.0".into()), ..log };
        assert_eq!(all, [wanted]);
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
        // The log is incomplete: the record is of a life that it does not know.
        let all = life(0, Log).into_iter().chain(life(400, Record)).collect();
        let wanted = ["0 v1 install log", "5 v1 deployed log", "400 v1 install record", "405 v1 deployed record"];
        assert_eq!(lines(all), wanted);
        // In quick succession each account finds its own.
        let all =
            life(0, Log).into_iter().chain(gone).chain(life(10, Log)).chain(life(11, Audit)).chain(life(1, Audit));
        let all: Vec<_> = all.collect();
        let of_life = |line: &&String| !line.contains("uninstall");
        assert_eq!(lines(all).iter().filter(of_life).count(), 4);
    }

    #[test]
    fn a_guessed_time_matches_whatever_is_in_its_range() {
        let guess = |from: i64, to: i64| {
            let at = |second: i64| Timestamp::from_second(1_795_000_000 + second).unwrap();
            Change { range: Some((at(from), at(to))), ..change(from, 1, Deployed, Record) }
        };
        assert_eq!(lines(vec![guess(0, 9_000), change(3_600, 1, Deployed, Log)]), ["3600 v1 deployed log"]);
        assert_eq!(
            lines(vec![guess(0, 900), change(3_600, 1, Deployed, Log)]),
            ["0 v1 deployed record", "3600 v1 deployed log"]
        );
    }

    #[test]
    fn what_was_refused_is_no_account_of_what_took_place() {
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
        let all = vec![change(1, 1, Install, Log), change(2, 1, Uninstalled, Log), change(3, 1, Install, Log)];
        assert_eq!(lines(all).len(), 3);
    }

    #[test]
    fn a_record_says_what_an_audit_log_without_objects_does_not() {
        let start =
            Change { certainty: Certainty::Inferred, user: Some("alice".into()), ..change(5, 3, Upgrade, Audit) };
        let record = Change { to: Some(Status::PendingRollback), ..change(5, 3, Rollback, Record) };
        let all = merged(vec![start, record]);
        assert_eq!((all.len(), all[0].transition, all[0].user.as_deref()), (1, Rollback, Some("alice")));
    }
}

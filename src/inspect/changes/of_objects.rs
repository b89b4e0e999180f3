//! The last operation that an object carries itself: when it started and ended, by the clock of its controller. Earlier ones are gone.

use interlock_engine::decision::TransitionKind;
use interlock_engine::owners::{Carrier, OperationRun, OperationTrace};
use interlock_engine::release::ReleaseRef;
use jiff::Timestamp;

use super::change::{Certainty, Change, ChangeSource, ChangedRelease};

/// The changes that an object shows. An operation that has not begun has no time, so it is none.
pub(super) fn changes(carrier: &Carrier, place: &ReleaseRef, trace: OperationTrace) -> Vec<Change> {
    let Some(OperationRun { started, holder, end }) = trace.run else { return Vec::new() };
    let change = |time: Timestamp, kind| Change {
        certainty: Certainty::Inferred,
        holder: holder.clone(),
        ..Change::new(time, ChangedRelease::of_object(carrier, place.clone()), kind, ChangeSource::Record)
    };
    let start = started.map(|time| Change {
        certainty: if holder.is_some() { Certainty::Stamped } else { Certainty::Inferred },
        user: holder.clone(),
        ..change(time, TransitionKind::Sync)
    });
    let end = end.and_then(|end| {
        let time = end.time?;
        let seconds = started.and_then(|started| u64::try_from(time.duration_since(started).as_secs()).ok());
        Some(Change { seconds, ..change(time, TransitionKind::of_end(end)) })
    });
    start.into_iter().chain(end).collect()
}

#[cfg(test)]
mod tests {
    use interlock_engine::owners::{CARRIERS, OperationEnd};

    use super::*;

    fn at(second: i64) -> Option<Timestamp> {
        Timestamp::from_second(1_795_000_000 + second).ok()
    }

    fn lines(holder: Option<&str>, has_succeeded: Option<bool>) -> Vec<String> {
        let end = has_succeeded.map(|has_succeeded| OperationEnd { time: at(7), has_succeeded });
        let run = OperationRun { started: at(0), holder: holder.map(str::to_owned), end };
        let trace = OperationTrace { run: Some(run), ..OperationTrace::default() };
        let line = |it: &Change| {
            let second = it.time.as_second() - 1_795_000_000;
            let [user, holder] = [&it.user, &it.holder].map(|name| name.as_deref().unwrap_or("-"));
            let seconds = it.seconds.map(|seconds| format!(" {seconds}s")).unwrap_or_default();
            format!("{second} {} {user} {holder} {}{seconds}", it.transition, it.certainty.as_str())
        };
        changes(&CARRIERS[0], &ReleaseRef::new("shop", "web"), trace).iter().map(line).collect()
    }

    #[test]
    fn the_last_operation_has_its_holder_and_its_end() {
        assert_eq!(lines(Some("bob"), Some(true)), ["0 sync bob bob stamped", "7 succeeded - bob inferred 7s"]);
        assert_eq!(lines(None, Some(false)), ["0 sync - - inferred", "7 failed - - inferred 7s"]);
        assert_eq!(lines(Some("alice"), None), ["0 sync alice alice stamped"]);
        let requested = OperationTrace { is_requested: true, holder: Some("bob".to_owned()), run: None };
        assert_eq!(changes(&CARRIERS[0], &ReleaseRef::new("shop", "web"), requested), []);
    }
}

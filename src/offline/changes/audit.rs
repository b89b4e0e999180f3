//! The transitions in audit logs. An event has the object after a write; the one before is known from earlier events. So the writes
//! of records are collected from all files first, and then followed in the order of time: several API servers write a log each.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use memchr::memmem::Finder;

use super::audit_event::{Act, AuditEvent, Observation};
use super::tally::FileTally;
use crate::engine::decision::{TransitionKind, TransitionOutcome};
use crate::engine::release::Status;
use crate::inspect::changes::{Certainty, Change, ChangeSource, ChangedRelease, MAX_CHANGES, Newest};

/// What the name of every record starts with. Nearly all lines of a log are of other objects, and are not parsed.
static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("sh.helm.release.v1."));

/// Writes of records.
pub(super) struct Observations(Newest<Observation>);

/// The last known state of a record.
struct Known {
    status: Option<Status>,
    /// When it came to this status, if that was observed.
    since: Option<Timestamp>,
    chart: Option<String>,
}

impl Observations {
    pub(super) fn new() -> Self {
        Self(Newest::new(MAX_CHANGES, |observation| observation.time))
    }

    /// Reads a line: an event, or a list of events.
    pub(super) fn line(&mut self, line: &[u8], tally: &mut FileTally) -> Result<(), String> {
        // The first line tells whether the file is an audit log at all.
        if tally.lines > 1 && MARK.find(line).is_none() {
            let is_whole = line.starts_with(b"{") && line.ends_with(b"}");
            tally.known += usize::from(is_whole);
            return if is_whole { Ok(()) } else { Err("the line is not a JSON object".to_owned()) };
        }
        let event: AuditEvent<'_> =
            serde_json::from_slice(line).map_err(|error| format!("it is no audit event: {error}"))?;
        if !event.is_of_audit() {
            return Err("it is no audit event: its apiVersion is not audit.k8s.io/v1".to_owned());
        }
        tally.known += 1;
        let Some(items) = &event.items else { return self.event(&event, tally) };
        for item in items {
            let event = serde_json::from_str(item.get()).map_err(|error| format!("an event of the list: {error}"))?;
            self.event(&event, tally)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &AuditEvent<'_>, tally: &mut FileTally) -> Result<(), String> {
        for observation in event.observations()? {
            tally.without_objects += usize::from(observation.act != Act::Deleted && observation.status.is_none());
            self.0.push(observation);
        }
        Ok(())
    }

    /// The transitions, and the number of older writes that were forgotten.
    pub(super) fn changes(self) -> (Vec<Change>, usize) {
        let (observations, forgotten) = self.0.into_sorted();
        let mut records: HashMap<ChangedRelease, Known> = HashMap::new();
        let changes = observations.into_iter().filter_map(|observation| {
            let known = records.get(&observation.release);
            let change = change(&observation, known);
            if observation.is_refused {
                return change;
            }
            let Observation { release, act, status, time, chart, .. } = observation;
            if act == Act::Deleted {
                records.remove(&release);
                return change;
            }
            let known = records.entry(release).or_insert(Known { status: None, since: None, chart: None });
            if known.status != status || act == Act::Created {
                known.since = (act == Act::Created || known.status.is_some()).then_some(time);
            }
            known.status = status.or(known.status.filter(|_| act == Act::Updated));
            known.chart = chart.or(known.chart.take());
            change
        });
        (changes.collect(), forgotten)
    }
}

/// The transition that a write makes from the known state of its record.
fn change(seen: &Observation, known: Option<&Known>) -> Option<Change> {
    let before = known.and_then(|known| known.status);
    let (from, to) = match seen.act {
        // The same event is in two logs.
        Act::Created if !seen.is_refused && before.is_some() && before == seen.status => return None,
        Act::Created => (None, seen.status),
        Act::Updated => (before, Some(seen.status?)),
        Act::Deleted => (Some(before?), None),
    };
    // Without objects a creation is the start of an operation, but not of which.
    let operation = if seen.release.revision == 1 { TransitionKind::Install } else { TransitionKind::Upgrade };
    let kind = match (seen.act, to) {
        (Act::Created, None) => operation,
        _ => TransitionKind::of(from, to)?,
    };
    let is_sure = match seen.act {
        Act::Created => to.is_some(),
        Act::Updated => from.is_some(),
        Act::Deleted => true,
    };
    let ends = from.is_some_and(Status::is_in_flight);
    let since = known.and_then(|known| known.since).filter(|_| ends);
    let seconds = since.and_then(|since| u64::try_from(seen.time.duration_since(since).as_secs()).ok());
    let outcome = match seen.verdict.as_deref() {
        _ if seen.is_refused => TransitionOutcome::Refused,
        Some("warned" | "undecided") => TransitionOutcome::Warned,
        _ => TransitionOutcome::Allowed,
    };
    Some(Change {
        from,
        to,
        outcome,
        user: Some(seen.user.clone()).filter(|user| !user.is_empty()),
        groups: seen.groups.clone(),
        holder: seen.holder.clone(),
        chart: seen.chart.clone().or_else(|| known.and_then(|known| known.chart.clone())),
        seconds,
        overridden: seen.overridden.clone(),
        certainty: if is_sure { Certainty::Sure } else { Certainty::Inferred },
        ..Change::new(seen.time, seen.release.clone(), kind, ChangeSource::Audit)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// An event of alice at a second, with the record in a status as its object.
    fn event(second: i64, verb: &str, revision: u64, status: &str) -> Value {
        let name = format!("sh.helm.release.v1.web.v{revision}");
        let object = json!({
            "kind": "Secret", "apiVersion": "v1", "type": "helm.sh/release.v1",
            "metadata": {"name": name, "namespace": "shop", "annotations": {"interlock.dev/chart": "demo-1.0.0"},
                "labels": {"owner": "helm", "name": "web", "status": status, "version": revision.to_string()}},
        });
        let time = Timestamp::from_second(1_795_000_000 + second).unwrap();
        let mut event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete",
            "verb": verb, "requestURI": "/api/v1/namespaces/shop/secrets", "user": {"username": "alice", "groups": ["devs"]},
            "objectRef": {"resource": "secrets", "namespace": "shop", "name": name, "apiVersion": "v1"},
            "responseStatus": {"code": 200}, "requestReceivedTimestamp": time.to_string(),
        });
        if verb != "delete" {
            (event["requestObject"], event["responseObject"]) = (object.clone(), object);
        }
        event
    }

    fn read(events: &[Value]) -> (Vec<String>, FileTally) {
        let (mut observations, mut tally) = (Observations::new(), FileTally::default());
        for event in events {
            tally.lines += 1;
            observations.line(event.to_string().as_bytes(), &mut tally).unwrap();
        }
        let line = |it: &Change| {
            let status = |status: Option<Status>| status.map_or("-", Status::as_str);
            let second = it.time.as_second() - 1_795_000_000;
            let seconds = it.seconds.map(|seconds| format!(" {seconds}s")).unwrap_or_default();
            format!(
                "{second} v{} {} {}>{} {} {} {}{seconds}",
                it.release.revision,
                it.transition,
                status(it.from),
                status(it.to),
                it.user.as_deref().unwrap_or("-"),
                it.outcome.as_str(),
                it.certainty.as_str()
            )
        };
        (observations.changes().0.iter().map(line).collect(), tally)
    }

    #[test]
    fn writes_become_transitions_by_what_was_before_whatever_the_order_of_the_files() {
        let mut events = [
            event(0, "create", 1, "pending-install"),
            event(4, "update", 1, "deployed"),
            // A hook writes the record again.
            event(5, "update", 1, "deployed"),
            event(10, "create", 2, "pending-upgrade"),
            event(12, "update", 1, "superseded"),
            event(13, "update", 2, "deployed"),
            event(20, "update", 2, "uninstalling"),
            event(21, "delete", 2, ""),
            // Pruning.
            event(21, "delete", 1, ""),
        ];
        let wanted = [
            "0 v1 install ->pending-install alice allowed sure",
            "4 v1 deployed pending-install>deployed alice allowed sure 4s",
            "10 v2 upgrade ->pending-upgrade alice allowed sure",
            "12 v1 superseded deployed>superseded alice allowed sure",
            "13 v2 deployed pending-upgrade>deployed alice allowed sure 3s",
            "20 v2 uninstall deployed>uninstalling alice allowed sure",
            "21 v2 uninstalled uninstalling>- alice allowed sure 1s",
        ];
        assert_eq!(read(&events).0, wanted);
        events.reverse();
        assert_eq!(read(&events).0, wanted);
        let twice: Vec<_> = events.iter().chain(&events).cloned().collect();
        assert_eq!(read(&twice).0, wanted);
    }

    #[test]
    fn a_log_that_begins_in_the_middle_is_not_sure_of_its_first_lines() {
        let all = read(&[event(0, "update", 4, "superseded"), event(1, "delete", 2, "")]).0;
        assert_eq!(all, ["0 v4 superseded ->superseded alice allowed inferred"]);
    }

    #[test]
    fn without_objects_the_starts_are_known_and_the_rest_is_counted() {
        let mut events = [event(0, "create", 1, ""), event(3, "update", 1, "")];
        for event in &mut events {
            event["level"] = "Metadata".into();
            event.as_object_mut().unwrap().retain(|key, _| !key.ends_with("Object"));
        }
        let (all, tally) = read(&events);
        assert_eq!(all, ["0 v1 install ->- alice allowed inferred"]);
        assert_eq!(tally.without_objects, 2);
    }

    #[test]
    fn refusals_of_interlock_are_told_and_those_of_others_are_not() {
        let refused = |annotations: Value| {
            let mut event = event(5, "create", 2, "pending-upgrade");
            (event["responseStatus"], event["annotations"]) = (json!({"code": 403}), annotations);
            event["responseObject"] = json!({"kind": "Status", "code": 403});
            event
        };
        let ours = refused(json!({"create-delete.records.interlock.dev/verdict": "denied"}));
        let wanted = "5 v2 upgrade ->pending-upgrade alice refused sure";
        assert_eq!(read(&[ours, refused(json!({}))]).0, [wanted]);
    }

    #[test]
    fn dry_runs_reads_early_stages_and_other_objects_tell_nothing() {
        let changed = |key: &str, value: Value| {
            let mut event = event(0, "create", 1, "pending-install");
            event[key] = value;
            event
        };
        let others = [
            changed("verb", "get".into()),
            changed("stage", "RequestReceived".into()),
            changed("requestURI", "/api/v1/namespaces/shop/secrets?dryRun=All".into()),
            changed("objectRef", json!({"resource": "pods", "name": "sh.helm.release.v1.web.v1"})),
        ];
        assert_eq!(read(&others).0, Vec::<String>::new());
    }
}

//! The transitions in audit logs. An event has the object after a write, and earlier events show the object before. Several API
//! servers write a log each, so the writes of records are first collected from all files, and then followed in order of time.

use std::collections::HashMap;
use std::sync::LazyLock;

use interlock_engine::decision::{OperationChange, TransitionKind};
use interlock_engine::json::redacted;
use interlock_engine::owners::{CARRIERS, OperationTrace};
use interlock_engine::release::Status;
use interlock_engine::review::Operation;
use jiff::Timestamp;
use memchr::memmem::{Finder, FinderRev};

use super::reader::LogReader;
use super::record_write::RecordWrite;
use super::tally::FileTally;
use crate::inspect::changes::{
    Certainty, Change, ChangeSource, ChangedRelease, MAX_CHANGES, Newest, SharedGroups, Wanted,
};
use crate::offline::log::AuditEvent;

/// The prefix of every record's name, and the resources of the objects that carry their operation themselves. Nearly all lines of a log
/// concern other objects, and are not parsed.
static MARKS: LazyLock<Vec<Finder<'static>>> = LazyLock::new(|| {
    let carriers = CARRIERS.iter().map(|carrier| format!("\"{}\"", carrier.plural));
    let marks = ["sh.helm.release.v1.".to_owned()].into_iter().chain(carriers);
    marks.map(|mark| Finder::new(&mark).into_owned()).collect()
});

/// The text before the time of an event. The API server writes the time near the end of the line.
static TIME: LazyLock<FinderRev<'static>> = LazyLock::new(|| FinderRev::new(r#""requestReceivedTimestamp":""#));

/// Collects the writes of records.
pub(super) struct AuditReader<'w> {
    writes: Newest<RecordWrite>,
    wanted: &'w Wanted,
    groups: SharedGroups,
}

/// The last known state of a record, or of another object.
#[derive(Default)]
struct Known {
    status: Option<Status>,
    /// When the record reached this status, if a write showed it.
    since: Option<Timestamp>,
    chart: Option<String>,
    /// Of an object that carries its operation itself.
    trace: Option<Box<OperationTrace>>,
}

impl<'w> AuditReader<'w> {
    pub(super) fn new(wanted: &'w Wanted) -> Self {
        let writes = Newest::new(MAX_CHANGES, |write: &RecordWrite| write.time);
        Self { writes, wanted, groups: SharedGroups::default() }
    }

    fn event(&mut self, event: &AuditEvent<'_>, tally: &mut FileTally) -> Result<(), String> {
        event.request_received_timestamp.into_iter().for_each(|time| tally.saw(time));
        for mut write in event.record_writes()? {
            let is_wanted = self.wanted.concerns(&write.release, write.is_refused());
            let lacks_object = write.operation != Operation::Delete && write.status.is_none() && write.trace.is_none();
            match write.release.carrier() {
                None => tally.without_objects += usize::from(lacks_object),
                Some(_) => tally.carriers_without_objects += usize::from(lacks_object && is_wanted),
            }
            // An earlier write shows the state before, so the wanted time does not matter here.
            if is_wanted {
                write.groups = self.groups.shared(write.groups);
                self.writes.push(write);
            }
        }
        Ok(())
    }
}

impl LogReader for AuditReader<'_> {
    const EXPECTED: &'static str = "an audit event (apiVersion audit.k8s.io/v1)";

    /// Reads a line: an event, or a list of events.
    fn line(&mut self, line: &[u8], tally: &mut FileTally) -> Result<(), String> {
        let is_marked = MARKS.iter().any(|mark| mark.find(line).is_some());
        let may_be_json = line.starts_with(b"{") && line.ends_with(b"}");
        if !is_marked && !may_be_json {
            return Err("the line is not a JSON object".to_owned());
        }
        if !is_marked {
            // One event shows that the file is an audit log.
            tally.is_known =
                tally.is_known || serde_json::from_slice(line).is_ok_and(|event: AuditEvent<'_>| event.is_of_audit());
            time(line).into_iter().for_each(|time| tally.saw(time));
            return Ok(());
        }
        let event: AuditEvent<'_> =
            serde_json::from_slice(line).map_err(|error| format!("it is no audit event: {}", redacted(&error)))?;
        if !event.is_of_audit() {
            return Err("it is no audit event: its apiVersion is not audit.k8s.io/v1".to_owned());
        }
        tally.is_known = true;
        let Some(items) = &event.items else { return self.event(&event, tally) };
        for item in items {
            let event = serde_json::from_str(item.get())
                .map_err(|error| format!("an event of the list: {}", redacted(&error)))?;
            self.event(&event, tally)?;
        }
        Ok(())
    }

    /// The transitions, and the number of older writes that were not kept.
    fn into_changes(self) -> (Vec<Change>, usize) {
        let (writes, forgotten) = self.writes.into_sorted();
        let mut records: HashMap<ChangedRelease, Known> = HashMap::new();
        let changes = writes.into_iter().filter_map(|write| {
            let known = records.get(&write.release);
            let change = change(&write, known);
            if write.is_refused() {
                return change;
            }
            let RecordWrite { release, operation, status, time, chart, trace, .. } = write;
            if operation == Operation::Delete {
                records.remove(&release);
                return change;
            }
            let known = records.entry(release).or_default();
            if known.status != status || operation == Operation::Create {
                known.since = (operation == Operation::Create || known.status.is_some()).then_some(time);
            }
            known.status = status.or(known.status.filter(|_| operation == Operation::Update));
            known.chart = chart.or(known.chart.take());
            known.trace = trace.or(known.trace.take());
            change
        });
        (changes.collect(), forgotten)
    }
}

/// The time of an event in a line that is not parsed otherwise.
fn time(line: &[u8]) -> Option<Timestamp> {
    let start = TIME.rfind(line)? + TIME.needle().len();
    let length = line[start..].iter().position(|byte| *byte == b'"')?;
    str::from_utf8(&line[start..start + length]).ok()?.parse().ok()
}

/// The transition that a write makes from the known state of its record.
fn change(seen: &RecordWrite, known: Option<&Known>) -> Option<Change> {
    if seen.release.carrier().is_some() {
        return change_of_object(seen, known.and_then(|known| known.trace.as_deref()));
    }
    let before = known.and_then(|known| known.status);
    let (from, to) = match seen.operation {
        // Two logs may have the same event.
        Operation::Create if !seen.is_refused() && before.is_some() && before == seen.status => return None,
        Operation::Create => (None, seen.status),
        Operation::Update | Operation::Connect => (before, Some(seen.status?)),
        Operation::Delete => (Some(before?), None),
    };
    // Without objects, a creation starts an unknown operation.
    let start = if seen.release.revision == Some(1) { TransitionKind::Install } else { TransitionKind::Upgrade };
    let kind = match (seen.operation, to) {
        (Operation::Create, None) => start,
        _ => TransitionKind::of(from, to)?,
    };
    let is_sure = match seen.operation {
        Operation::Create => to.is_some(),
        Operation::Update | Operation::Connect => from.is_some(),
        Operation::Delete => true,
    };
    let ends = from.is_some_and(Status::is_in_flight);
    let since = known.and_then(|known| known.since).filter(|_| ends);
    let seconds = since.and_then(|since| u64::try_from(seen.time.duration_since(since).as_secs()).ok());
    Some(Change {
        from,
        to,
        holder: seen.holder.clone(),
        chart: seen.chart.clone().or_else(|| known.and_then(|known| known.chart.clone())),
        seconds,
        ..of_kind(seen, kind, is_sure)
    })
}

/// The transition that a write makes from the known operations of its object.
fn change_of_object(seen: &RecordWrite, known: Option<&OperationTrace>) -> Option<Change> {
    let nothing = OperationTrace::default();
    let after = match seen.operation {
        Operation::Delete => &nothing,
        _ => seen.trace.as_deref()?,
    };
    let found = OperationChange::between(known.unwrap_or(&nothing), after)?;
    let is_sure = known.is_some() || seen.operation == Operation::Create;
    // The log may start in the middle of an operation.
    let may_be_older = !is_sure && after.run.as_ref().is_some_and(|run| run.end.is_none());
    // The body of a refused patch shows a start only.
    if may_be_older || (seen.is_refused() && !found.kind.is_start()) {
        return None;
    }
    let holder = found.holder.map(str::to_owned);
    Some(Change { holder, seconds: found.seconds(seen.time), ..of_kind(seen, found.kind, is_sure) })
}

/// The transition of a write, without what its object says.
fn of_kind(seen: &RecordWrite, kind: TransitionKind, is_sure: bool) -> Change {
    Change {
        outcome: seen.outcome,
        user: Some(seen.user.clone()).filter(|user| !user.is_empty()),
        groups: seen.groups.clone(),
        overridden: seen.overridden.clone(),
        ticket: seen.ticket.clone(),
        certainty: if is_sure { Certainty::Sure } else { Certainty::Inferred },
        ..Change::new(seen.time, seen.release.clone(), kind, ChangeSource::Audit)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// An event of alice at a second, whose object is the record in a status.
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
        read_wanted(events, &Wanted { refused: true, ..Wanted::default() })
    }

    fn read_wanted(events: &[Value], wanted: &Wanted) -> (Vec<String>, FileTally) {
        let (mut reader, mut tally) = (AuditReader::new(wanted), FileTally::default());
        for event in events {
            tally.lines += 1;
            reader.line(event.to_string().as_bytes(), &mut tally).unwrap();
        }
        let line = |it: &Change| {
            let status = |status: Option<Status>| status.map_or("-", Status::as_str);
            let second = it.time.as_second() - 1_795_000_000;
            let seconds = it.seconds.map(|seconds| format!(" {seconds}s")).unwrap_or_default();
            format!(
                "{second} v{} {} {}>{} {} {} {}{seconds}",
                it.release.revision.unwrap(),
                it.transition,
                status(it.from),
                status(it.to),
                it.user.as_deref().unwrap_or("-"),
                it.outcome.as_str(),
                it.certainty.as_str()
            )
        };
        (reader.into_changes().0.iter().map(line).collect(), tally)
    }

    #[test]
    fn writes_become_transitions_in_any_order_of_the_files() {
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

    /// An event of a user at a second, whose object is an Application with the sync of bob in a phase.
    fn application(second: i64, user: &str, operation: Value, phase: &str) -> Value {
        let mut event = event(second, "patch", 1, "");
        let state = json!({"phase": phase, "startedAt": "2026-11-18T10:00:02Z", "operation": held()});
        let status = if phase.is_empty() { json!({}) } else { json!({"operationState": state}) };
        event["objectRef"] = json!({"resource": "applications", "namespace": "argocd", "name": "web",
            "apiGroup": "argoproj.io", "apiVersion": "v1alpha1"});
        event["user"] = json!({"username": user});
        event["responseObject"] =
            json!({"metadata": {"name": "web", "namespace": "argocd"}, "operation": operation, "status": status});
        event["requestObject"] = json!({"operation": operation});
        event
    }

    fn held() -> Value {
        json!({"sync": {}, "info": [{"name": "interlock.dev/holder", "value": "bob"}]})
    }

    fn of_applications(events: &[Value]) -> (Vec<String>, FileTally) {
        let wanted = Wanted { refused: true, carrier: CARRIERS.first(), ..Wanted::default() };
        let (mut reader, mut tally) = (AuditReader::new(&wanted), FileTally::default());
        for event in events {
            reader.line(event.to_string().as_bytes(), &mut tally).unwrap();
        }
        let line = |it: &Change| {
            let second = it.time.as_second() - 1_795_000_000;
            let [user, holder] = [&it.user, &it.holder].map(|name| name.as_deref().unwrap_or("-"));
            let (outcome, certainty) = (it.outcome.as_str(), it.certainty.as_str());
            format!(
                "{second} {}/{} {} {user} {holder} {outcome} {certainty}",
                it.release.namespace, it.release.release, it.transition
            )
        };
        (reader.into_changes().0.iter().map(line).collect(), tally)
    }

    #[test]
    fn syncs_start_and_end_in_the_writes_of_their_application() {
        let idle = application(0, "controller", Value::Null, "");
        let mut refused = application(9, "alice", json!({"sync": {}}), "");
        (refused["responseStatus"], refused["responseObject"]) = (json!({"code": 403}), json!({"kind": "Status"}));
        refused["annotations"] = json!({"applications.argo.interlock.dev/verdict": "denied"});
        let mut events = [
            idle.clone(),
            application(1, "bob", held(), ""),
            application(2, "controller", held(), "Running"),
            application(3, "controller", held(), "Running"),
            application(5, "controller", Value::Null, "Succeeded"),
            refused,
            application(20, "bob", held(), "Succeeded"),
            application(21, "bob", Value::Null, "Succeeded"),
        ];
        let wanted = [
            "1 argocd/web sync bob bob allowed sure",
            "5 argocd/web succeeded controller bob allowed sure",
            "9 argocd/web sync alice - refused sure",
            "20 argocd/web sync bob bob allowed sure",
            "21 argocd/web deleted bob bob allowed sure",
        ];
        let (found, tally) = of_applications(&events);
        assert_eq!((found, tally.carriers_without_objects), (wanted.map(str::to_owned).to_vec(), 0));
        events.reverse();
        assert_eq!(of_applications(&events).0, wanted);
        // A log that starts in the middle of a sync has its end, but not its start.
        events.reverse();
        assert_eq!(of_applications(&events[2..5]).0, wanted[1..2]);
        assert_eq!(of_applications(&events[1..2]).0, ["1 argocd/web sync bob bob allowed inferred"]);
        // Without objects, nothing is known, and the records in the log are covered nevertheless.
        let mut bare = idle;
        bare.as_object_mut().unwrap().retain(|key, _| !key.ends_with("Object"));
        let (found, tally) = of_applications(&[bare]);
        assert_eq!((found.len(), tally.without_objects, tally.carriers_without_objects), (0, 0, 1));
        // The controller patches the rest of the status again and again, which is no write of an operation.
        let mut refreshed = application(4, "controller", Value::Null, "Succeeded");
        refreshed["requestObject"] = json!({"status": {"reconciledAt": "2026-11-18T10:00:04Z"}});
        assert!(AuditEvent::record_writes(&serde_json::from_str(&refreshed.to_string()).unwrap()).unwrap().is_empty());
        // A release is wanted.
        let wanted = Wanted { release: Some("web".to_owned()), ..Wanted::default() };
        let mut reader = AuditReader::new(&wanted);
        reader.line(events[1].to_string().as_bytes(), &mut FileTally::default()).unwrap();
        assert_eq!(reader.into_changes().0, []);
    }

    #[test]
    fn a_log_that_starts_in_the_middle_has_unsure_first_lines() {
        let all = read(&[event(0, "update", 4, "superseded"), event(1, "delete", 2, "")]).0;
        assert_eq!(all, ["0 v4 superseded ->superseded alice allowed inferred"]);
    }

    #[test]
    fn without_objects_starts_are_known_and_others_counted() {
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
    fn only_refusals_of_interlock_are_listed() {
        let refused = |annotations: Value| {
            let mut event = event(5, "create", 2, "pending-upgrade");
            (event["responseStatus"], event["annotations"]) = (json!({"code": 403}), annotations);
            event["responseObject"] = json!({"kind": "Status", "code": 403});
            event
        };
        let own = refused(json!({"create-delete.records.interlock.dev/verdict": "denied"}));
        let wanted = "5 v2 upgrade ->pending-upgrade alice refused sure";
        assert_eq!(read(&[own, refused(json!({}))]).0, [wanted]);
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

    #[test]
    fn the_writes_of_other_releases_and_refusals_take_no_room() {
        let wanted = Wanted { namespace: Some("quiet".to_owned()), ..Wanted::default() };
        let mut reader = AuditReader::new(&wanted);
        reader.writes = Newest::new(2, |write: &RecordWrite| write.time);
        let mut own = event(0, "create", 1, "pending-install");
        for key in ["objectRef", "responseObject"] {
            own[key]["namespace"] = "quiet".into();
        }
        own["responseObject"]["metadata"]["namespace"] = "quiet".into();
        let mut refused = own.clone();
        refused["responseStatus"] = json!({"code": 403});
        refused["annotations"] = json!({"create-delete.records.interlock.dev/verdict": "denied"});
        let others = (1..9).map(|second| event(second, "create", 1, "pending-install"));
        let mut tally = FileTally::default();
        for event in [own].into_iter().chain(others).chain(vec![refused; 9]) {
            reader.line(event.to_string().as_bytes(), &mut tally).unwrap();
        }
        let (changes, forgotten) = reader.into_changes();
        assert_eq!((changes.len(), changes[0].release.namespace.as_str(), forgotten), (1, "quiet", 0));
        // They still count for the time range of the log.
        let seconds = |time: Timestamp| time.as_second() - 1_795_000_000;
        assert_eq!(tally.range.map(|(first, last)| (seconds(first), seconds(last))), Some((0, 8)));
    }

    #[test]
    fn only_an_audit_event_makes_a_file_an_audit_log() {
        let other = json!({"level": "INFO", "message": "decided", "target": "release_interlock"});
        let read_get = json!({"kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": "ResponseComplete", "verb": "get",
            "requestReceivedTimestamp": "2026-11-24T10:00:00.123456Z"});
        let (changes, tally) = read(&[other.clone(), other.clone()]);
        assert_eq!((changes.len(), tally.is_known, tally.range), (0, false, None));
        let time: Timestamp = "2026-11-24T10:00:00.123456Z".parse().unwrap();
        let (changes, tally) = read(&[other, read_get]);
        assert_eq!((changes.len(), tally.is_known, tally.range), (0, true, Some((time, time))));
    }

    #[test]
    fn a_change_names_the_override_and_its_ticket() {
        let mut opened = event(0, "create", 2, "pending-upgrade");
        opened["annotations"] = json!({"create-delete.records.interlock.dev/override": "shop/fix",
            "create-delete.records.interlock.dev/ticket": "OPS-7"});
        let wanted = Wanted::default();
        let mut reader = AuditReader::new(&wanted);
        reader.line(opened.to_string().as_bytes(), &mut FileTally::default()).unwrap();
        let change = &reader.into_changes().0[0];
        assert_eq!((change.overridden.as_deref(), change.ticket.as_deref()), (Some("shop/fix"), Some("OPS-7")));
        assert_eq!(change.groups.names(), ["devs"]);
    }
}

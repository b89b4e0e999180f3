//! The transitions in Interlock's own log: the lines that `serve::report::log` writes, as `docs/changes.md` describes them.

use interlock_engine::decision::{Groups, TransitionKind, TransitionOutcome};
use interlock_engine::json::redacted;
use interlock_engine::owners::KINDS_OF_OPERATIONS;
use interlock_engine::release::Status;
use interlock_engine::text::{MAX_NAME_BYTES, into_printable};
use jiff::Timestamp;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::reader::LogReader;
use super::tally::FileTally;
use crate::inspect::changes::{Change, ChangeSource, ChangedRelease, MAX_CHANGES, Newest, SharedGroups, Wanted};

/// The message of the lines.
const MESSAGE: &str = "transition";

/// The text that every such line contains, and hardly any other line.
const MARK: &[u8] = br#""transition""#;

/// The longest value of a field other than a name, in bytes: a list of overrides or tickets.
const MAX_VALUE_BYTES: usize = 1024;

/// Reads the lines of transitions. Tools that collect logs put a time or a name before each line.
pub(super) struct OwnLogReader<'w> {
    changes: Newest<Change>,
    wanted: &'w Wanted,
    groups: SharedGroups,
}

/// The fields of every line of the log.
#[derive(Deserialize)]
struct AnyLine<'a> {
    #[serde(borrow, rename = "message")]
    _message: &'a RawValue,
    #[serde(borrow, rename = "level")]
    _level: &'a RawValue,
}

#[derive(Deserialize)]
struct TransitionLine {
    #[serde(default)]
    message: String,
    #[serde(default)]
    transition: String,
    #[serde(default)]
    outcome: String,
    time: Option<Timestamp>,
    #[serde(default)]
    release: String,
    revision: Option<u64>,
    storage: Option<String>,
    #[serde(rename = "k8s.cluster.name")]
    cluster: Option<String>,
    #[serde(rename = "user.name", alias = "user")]
    user: Option<String>,
    groups: Option<String>,
    #[serde(default)]
    omitted_groups: u64,
    from: Option<String>,
    to: Option<String>,
    chart: Option<String>,
    seconds: Option<u64>,
    holder: Option<String>,
    #[serde(rename = "override")]
    overridden: Option<String>,
    ticket: Option<String>,
    freeze: Option<String>,
}

impl<'w> OwnLogReader<'w> {
    pub(super) fn new(wanted: &'w Wanted) -> Self {
        let changes = Newest::new(MAX_CHANGES, |change: &Change| change.time);
        Self { changes, wanted, groups: SharedGroups::default() }
    }
}

impl LogReader for OwnLogReader<'_> {
    const EXPECTED: &'static str =
        "a line of Interlock's log. Give the log of `interlock serve` in the format json (--log-format json)";

    fn line(&mut self, line: &[u8], tally: &mut FileTally) -> Result<(), String> {
        let json = line.iter().position(|byte| *byte == b'{').map_or(line, |start| &line[start..]);
        if memmem::find(json, MARK).is_none() {
            // One line shows that the file is a log of Interlock. A line without a transition has no change.
            tally.is_known = tally.is_known || serde_json::from_slice::<AnyLine<'_>>(json).is_ok();
            return Ok(());
        }
        let read: TransitionLine = serde_json::from_slice(json)
            .map_err(|error| format!("it is no line of Interlock's log: {}", redacted(&error)))?;
        if read.message != MESSAGE {
            return Ok(());
        }
        tally.is_known = true;
        let mut change = read.change()?;
        if self.wanted.contains(&change) {
            change.groups = self.groups.shared(change.groups);
            self.changes.push(change);
        }
        Ok(())
    }

    fn into_changes(self) -> (Vec<Change>, usize) {
        self.changes.into_sorted()
    }
}

impl TransitionLine {
    fn change(self) -> Result<Change, String> {
        let (namespace, release) = self.release.split_once('/').ok_or("the transition has no release")?;
        let release = ChangedRelease {
            namespace: namespace.to_owned(),
            release: release.to_owned(),
            revision: self.revision,
            storage: storage(self.storage.as_deref())?,
        };
        let kind: TransitionKind = self.transition.parse().map_err(|error| format!("transition: {error}"))?;
        let outcome = TransitionOutcome::ALL.into_iter().find(|outcome| outcome.as_str() == self.outcome);
        let time = self.time.ok_or("the transition has no time")?;
        let groups = self.groups.as_deref().unwrap_or("[]");
        let groups = Groups::parse(groups, self.omitted_groups).map_err(|error| format!("groups: {error}"))?;
        Ok(Change {
            from: status(self.from)?,
            to: status(self.to)?,
            cluster: truncated(self.cluster, MAX_NAME_BYTES),
            outcome: outcome.ok_or("outcome: expected allowed, warned or refused")?,
            user: truncated(self.user, MAX_NAME_BYTES),
            groups,
            holder: truncated(self.holder, MAX_NAME_BYTES),
            chart: truncated(self.chart, MAX_VALUE_BYTES),
            seconds: self.seconds,
            overridden: truncated(self.overridden, MAX_VALUE_BYTES),
            ticket: truncated(self.ticket, MAX_VALUE_BYTES),
            freeze: truncated(self.freeze, MAX_NAME_BYTES),
            ..Change::new(time, release, kind, ChangeSource::Log)
        })
    }
}

fn storage(text: Option<&str>) -> Result<&'static str, String> {
    let known = KINDS_OF_OPERATIONS.iter().find(|kind| Some(**kind) == text);
    known.copied().ok_or_else(|| format!("storage: expected one of {}", KINDS_OF_OPERATIONS.join(", ")))
}

fn status(text: Option<String>) -> Result<Option<Status>, String> {
    text.map(|text| text.parse::<Status>()).transpose().map_err(|error| error.to_string())
}

fn truncated(text: Option<String>, max_bytes: usize) -> Option<String> {
    text.map(|text| into_printable(text, max_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> (Vec<Change>, FileTally, Vec<String>) {
        let (wanted, mut tally) = (Wanted::default(), FileTally::default());
        let mut reader = OwnLogReader::new(&wanted);
        let mut bad = Vec::new();
        for line in lines {
            tally.lines += 1;
            bad.extend(reader.line(line.as_bytes(), &mut tally).err());
        }
        (reader.into_changes().0, tally, bad)
    }

    const DECIDED: &str =
        r#"{"timestamp":"2026-11-24T10:00:07.612Z","level":"INFO","message":"decided","user":"alice"}"#;

    #[test]
    fn a_quiet_log_is_a_log_and_other_files_are_none() {
        for (line, wanted) in [
            (DECIDED, true),
            (&*format!("2026-11-24T10:00:07Z pod/interlock-0 {DECIDED}"), true),
            (r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","responseStatus":{"message":"m","code":403}}"#, false),
            (r#"{"of":"another kind"}"#, false),
            ("INFO transition: decided", false),
        ] {
            let (changes, tally, bad) = read(&["thread 'main' panicked", line, "{"]);
            assert_eq!((changes.len(), tally.is_known, bad), (0, wanted, Vec::new()), "{line}");
        }
    }

    #[test]
    fn the_operation_of_an_object_has_no_revision() {
        // `user` is the key of version 0.1.
        let line = |kind: &str| {
            format!(
                r#"{{"level":"INFO","message":"transition","transition":"sync","outcome":"allowed","time":"2026-11-24T10:00:07.598Z",
                "user":"alice","release":"argocd/web","storage":"{kind}","freeze":"sale"}}"#
            )
        };
        let (changes, _, bad) = read(&[&line("Application"), &line("Pod")]);
        let ChangedRelease { release, revision, storage, .. } = &changes[0].release;
        assert_eq!((release.as_str(), *revision, *storage, changes.len()), ("web", None, "Application", 1));
        assert_eq!((changes[0].transition, changes[0].freeze.as_deref()), (TransitionKind::Sync, Some("sale")));
        assert_eq!(bad, ["storage: expected one of Secret, ConfigMap, Application"]);
    }

    #[test]
    fn groups_with_any_names_are_read_unchanged() {
        let line = |groups: &str| {
            format!(
                r#"{{"level":"INFO","message":"transition","transition":"deployed","outcome":"allowed","storage":"Secret",
                "time":"2026-11-24T10:00:07.598Z","user.name":"alice","k8s.cluster.name":"eu","release":"shop/web","revision":7,"to":"deployed",
                "override":"shop/fix","ticket":"OPS-7"{groups}}}"#
            )
        };
        let (changes, tally, bad) = read(&[&line(r#","groups":"[\"x;system:masters\",\"devs\"]","omitted_groups":3"#)]);
        assert_eq!((changes.len(), tally.is_known, bad), (1, true, Vec::new()));
        assert_eq!(
            (changes[0].groups.names(), changes[0].groups.omitted()),
            (&["x;system:masters", "devs"].map(String::from)[..], 3)
        );
        let Change { ticket, user, cluster, .. } = &changes[0];
        assert_eq!([ticket, user, cluster].map(|it| it.as_deref()), [Some("OPS-7"), Some("alice"), Some("eu")]);
        assert!(read(&[&line("")]).0[0].groups.are_unknown());
        assert_eq!(read(&[&line(r#","groups":"devs;ops""#)]).2, ["groups: expected a JSON list of texts"]);
    }
}

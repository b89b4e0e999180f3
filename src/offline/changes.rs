//! The changes that log files tell: audit logs of the API server, and Interlock's own log.
//!
//! Files are read line by line. A line that cannot be parsed is counted and named, and the rest of the file is read.

mod audit;
mod audit_event;
mod lines;
mod log;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::inspect::changes::{Change, MAX_CHANGES, Newest};
use audit::Observations;
use lines::Lines;

/// The name of standard input on a command line.
pub(crate) const STANDARD_INPUT: &str = "-";

/// Lines between two reports of progress.
const PROGRESS_LINES: usize = 1_024;

/// The most bad lines of a file that are named.
const MAX_NAMED: usize = 5;

/// What was read from some files.
#[derive(Debug, Default)]
pub(crate) struct ReadChanges {
    pub(crate) changes: Vec<Change>,
    /// What was left out, and why, one sentence each.
    pub(crate) notes: Vec<String>,
    /// Whether a file had a line that could be parsed, or no line at all.
    pub(crate) has_read: bool,
}

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogKind {
    /// Audit events of the API server.
    Audit,
    /// Interlock's log in JSON.
    Own,
}

/// What was found in one file.
#[derive(Debug, Default)]
struct FileTally {
    lines: usize,
    /// Lines of the expected kind, whether they tell a change or not.
    known: usize,
    bad: usize,
    named: Vec<String>,
    /// Writes of records whose objects the log does not contain.
    without_objects: usize,
    /// Why the rest of the file could not be read.
    failure: Option<String>,
}

impl FileTally {
    fn bad(&mut self, path: &Path, line: usize, why: &str) {
        self.bad += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(format!("{}:{line}: {why}", path.display()));
        }
    }

    /// What a reader must know of it.
    fn notes(&self, path: &Path, kind: LogKind) -> Vec<String> {
        let mut notes = self.named.clone();
        let path = path.display();
        if self.bad > self.named.len() {
            notes.push(format!("{path}: {} more lines cannot be parsed", self.bad - self.named.len()));
        }
        if self.without_objects > 0 {
            notes.push(format!(
                "{path}: {} writes of records say nothing of the record, and only the starts among them are listed: the audit \
                 policy logs Secrets below the level RequestResponse",
                self.without_objects
            ));
        }
        if self.known == 0 && self.lines > self.bad {
            let wanted = match kind {
                LogKind::Audit => "an audit event (apiVersion audit.k8s.io/v1)",
                LogKind::Own => {
                    "a transition. Give the log of `interlock serve` in the format json (--log-format json)"
                }
            };
            notes.push(format!("{path}: none of its {} lines is {wanted}", self.lines));
        }
        notes.extend(self.failure.iter().map(|why| format!("{path}: {why}")));
        notes
    }
}

/// Reads files; `progress` is told the bytes read so far.
///
/// # Errors
/// A file that cannot be opened, before anything is read.
pub(crate) fn read(
    kind: LogKind,
    files: &[PathBuf],
    wanted: impl Fn(&Change) -> bool,
    mut progress: impl FnMut(u64),
) -> Result<ReadChanges, (PathBuf, io::Error)> {
    let bytes: Arc<AtomicU64> = Arc::default();
    let mut opened = Vec::new();
    for file in files {
        opened.push(Lines::open(file, &bytes).map_err(|error| (file.clone(), error))?);
    }
    let mut changes = Newest::new(MAX_CHANGES, |change: &Change| change.time);
    let mut observations = Observations::new();
    let mut result = ReadChanges::default();
    for mut file in opened {
        let mut tally = FileTally::default();
        while let Some(line) = file.next(&mut tally) {
            if tally.lines.is_multiple_of(PROGRESS_LINES) {
                progress(bytes.load(Ordering::Relaxed));
            }
            let read = match kind {
                LogKind::Audit => observations.line(line, &mut tally),
                LogKind::Own => log::change(line, &mut tally).map(|change| {
                    change.into_iter().filter(|change| wanted(change)).for_each(|change| changes.push(change));
                }),
            };
            if let Err(why) = read {
                tally.bad(file.path(), file.number(), &why);
            }
        }
        result.has_read |= tally.known > 0 || (tally.lines == 0 && tally.failure.is_none());
        result.notes.extend(tally.notes(file.path(), kind));
    }
    let (observed, forgotten) = observations.changes();
    observed.into_iter().filter(|change| wanted(change)).for_each(|change| changes.push(change));
    let (changes, dropped) = changes.into_sorted();
    result.changes = changes;
    if dropped + forgotten > 0 {
        result.notes.push(format!(
            "{} older changes are left out, because at most {MAX_CHANGES} of each source are kept: narrow them with --since, \
             --namespace or a release",
            dropped + forgotten
        ));
    }
    Ok(result)
}

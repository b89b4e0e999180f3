//! The changes that log files tell: audit logs of the API server, and Interlock's own log.
//!
//! Files are read line by line. A line that cannot be parsed is counted and named, and the rest of the file is read.

mod audit;
mod audit_event;
mod lines;
mod log;
mod tally;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::inspect::changes::{Change, MAX_CHANGES, Newest};
use audit::Observations;
use lines::Lines;
pub(crate) use lines::STANDARD_INPUT;
use tally::FileTally;
pub(crate) use tally::LogKind;

/// Lines between two reports of progress.
const PROGRESS_LINES: usize = 1_024;

/// What was read from some files.
#[derive(Debug, Default)]
pub(crate) struct ReadChanges {
    pub(crate) changes: Vec<Change>,
    /// What was left out, and why, one sentence each.
    pub(crate) notes: Vec<String>,
    /// Whether a file had a line that could be parsed, or no line at all.
    pub(crate) has_read: bool,
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

//! The changes in log files: in audit logs of the API server, and in Interlock's own log.
//!
//! Files are read line by line. A line that cannot be parsed is counted and reported, and the rest of the file is read.

mod audit;
mod audit_event;
mod lines;
mod log;
mod reader;
mod tally;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::inspect::changes::{Change, Covered, MAX_CHANGES, Wanted};
use audit::AuditReader;
use lines::Lines;
pub(crate) use lines::STANDARD_INPUT;
use log::OwnLogReader;
use reader::LogReader;
use tally::FileTally;

/// Lines between two reports of progress.
const PROGRESS_LINES: usize = 1_024;

/// The content of some files.
#[derive(Debug, Default)]
pub(crate) struct ReadChanges {
    pub(crate) changes: Vec<Change>,
    /// The times for which an audit log has every write.
    pub(crate) covered: Covered,
    /// The omissions and their reasons, one sentence each.
    pub(crate) notes: Vec<String>,
    /// Whether a file had a line of the expected kind, or no line at all.
    pub(crate) has_read: bool,
}

/// Why a file cannot be opened.
pub(crate) type NotOpened = (PathBuf, io::Error);

/// Reads audit logs of the API server. The result includes changes before the wanted time, because they show the earlier states.
/// `progress` gets the number of bytes read so far.
///
/// # Errors
/// A file that cannot be opened, before anything is read.
pub(crate) fn read_audit_logs(
    files: &[PathBuf],
    wanted: &Wanted,
    progress: impl FnMut(u64),
) -> Result<ReadChanges, NotOpened> {
    read(AuditReader::new(wanted), files, wanted, progress)
}

/// Reads Interlock's own log in the same way.
///
/// # Errors
/// A file that cannot be opened, before anything is read.
pub(crate) fn read_own_logs(
    files: &[PathBuf],
    wanted: &Wanted,
    progress: impl FnMut(u64),
) -> Result<ReadChanges, NotOpened> {
    read(OwnLogReader::new(wanted), files, wanted, progress)
}

fn read<R: LogReader>(
    mut reader: R,
    files: &[PathBuf],
    wanted: &Wanted,
    mut progress: impl FnMut(u64),
) -> Result<ReadChanges, NotOpened> {
    let bytes: Arc<AtomicU64> = Arc::default();
    let mut opened = Vec::new();
    for file in files {
        opened.push(Lines::open(file, &bytes).map_err(|error| (file.clone(), error))?);
    }
    let mut result = ReadChanges::default();
    for mut file in opened {
        let mut tally = FileTally::default();
        while let Some(line) = file.next(&mut tally) {
            if tally.lines.is_multiple_of(PROGRESS_LINES) {
                progress(bytes.load(Ordering::Relaxed));
            }
            if let Err(why) = reader.line(line, &mut tally) {
                tally.bad(file.path(), file.number(), &why);
            }
        }
        result.has_read |= tally.is_known || (tally.lines == 0 && tally.failure.is_none());
        result.notes.extend(tally.notes(file.path(), R::EXPECTED));
        // A log without objects lacks changes.
        let range = tally.range.filter(|_| tally.without_objects == 0);
        range.into_iter().for_each(|(first, last)| result.covered.add(first, last));
    }
    let (changes, dropped) = reader.into_changes();
    let oldest = changes.iter().map(|change| change.time).min();
    if dropped > 0 {
        oldest.into_iter().for_each(|oldest| result.covered.starts_at(oldest));
    }
    if dropped > 0 && wanted.since.is_none_or(|since| oldest.is_none_or(|oldest| since < oldest)) {
        result.notes.push(format!(
            "{dropped} older changes are left out, because at most {MAX_CHANGES} of each source are kept: narrow them with --since, \
             --namespace or a release",
        ));
    }
    result.changes = changes;
    Ok(result)
}

//! The changes in log files: in audit logs of the API server, and in Interlock's own log.
//!
//! Files are read line by line. A line that cannot be parsed is counted and reported, and the rest of the file is read.

mod audit;
mod log;
mod reader;
mod record_write;
mod tally;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::inspect::changes::{Change, Covered, MAX_CHANGES, Wanted};
use crate::offline::log::{LineError, Lines};
use audit::AuditReader;
use log::OwnLogReader;
use reader::LogReader;
use tally::FileTally;

/// The name of standard input on a command line.
pub(crate) const STANDARD_INPUT: &str = "-";

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

/// Reads audit logs of the API server, and Interlock's own logs. The result includes changes before the wanted time, because they
/// show the earlier states. `progress` gets the number of bytes read so far.
///
/// # Errors
/// A file that cannot be opened, before anything is read.
pub(crate) fn read_logs(
    audit_logs: &[PathBuf],
    own_logs: &[PathBuf],
    wanted: &Wanted,
    mut progress: impl FnMut(u64),
) -> Result<ReadChanges, NotOpened> {
    let bytes: Arc<AtomicU64> = Arc::default();
    let [audit_logs, own_logs] = [open_all(audit_logs, &bytes)?, open_all(own_logs, &bytes)?];
    let mut progress = || progress(bytes.load(Ordering::Relaxed));
    let mut all = read(AuditReader::new(wanted), audit_logs, wanted, &mut progress);
    // Interlock's log has only transitions, so it covers no time.
    let ReadChanges { changes, notes, has_read, covered: _ } =
        read(OwnLogReader::new(wanted), own_logs, wanted, &mut progress);
    all.changes.extend(changes);
    all.notes.extend(notes);
    all.has_read |= has_read;
    Ok(all)
}

fn read<R: LogReader>(
    mut reader: R,
    files: Vec<(&Path, Lines)>,
    wanted: &Wanted,
    progress: &mut impl FnMut(),
) -> ReadChanges {
    let mut result = ReadChanges::default();
    for (path, lines) in files {
        let tally = read_file(&mut reader, path, lines, progress);
        result.has_read |= tally.is_known || (tally.lines == 0 && tally.failure.is_none());
        result.notes.extend(tally.notes(path, R::EXPECTED));
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
    result
}

fn open_all<'f>(files: &'f [PathBuf], bytes: &Arc<AtomicU64>) -> Result<Vec<(&'f Path, Lines)>, NotOpened> {
    files.iter().map(|file| open(file, bytes).map_err(|error| (file.clone(), error))).collect()
}

/// Opens a file or standard input, with the name that notes use.
fn open<'f>(file: &'f Path, bytes: &Arc<AtomicU64>) -> io::Result<(&'f Path, Lines)> {
    if file == Path::new(STANDARD_INPUT) {
        return Ok((Path::new("standard input"), Lines::open(Path::new("/dev/stdin"), bytes)?));
    }
    Ok((file, Lines::open(file, bytes)?))
}

fn read_file(reader: &mut impl LogReader, path: &Path, mut lines: Lines, progress: &mut impl FnMut()) -> FileTally {
    let mut tally = FileTally::default();
    loop {
        let bad = match lines.advance() {
            Ok(false) => return tally,
            Ok(true) => reader.line(lines.line().trim_ascii(), &mut tally).err(),
            Err(LineError::TooLong) => Some(LineError::TooLong.to_string()),
            Err(LineError::Read(error)) => {
                tally.failure = Some(format!("the rest after line {} cannot be read: {error}", lines.number()));
                return tally;
            }
        };
        bad.into_iter().for_each(|why| tally.bad(path, lines.number(), &why));
        tally.lines += 1;
        if tally.lines.is_multiple_of(PROGRESS_LINES) {
            progress();
        }
    }
}

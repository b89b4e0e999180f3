//! The lines of recordings and audit logs, in order of time.
//!
//! Several API servers of one cluster write a log each, and logs are rotated. So the files are merged by time, with one line of
//! each in memory. A file is closed until its turn comes. The order inside a file stays unchanged: the API server writes an event
//! when its request ends.

mod log;
mod moment;
mod order;
mod seen;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::RandomState;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, io};

use log::Log;
use moment::Moment;
use seen::SeenEvents;

/// Files, merged by time.
pub struct Source {
    logs: Vec<Log>,
    /// The logs with a further line, by the time of this line. A line without a time follows the line before it, or comes first of
    /// all.
    waiting: BinaryHeap<Reverse<(Option<Moment>, usize)>>,
    /// The log with the last line.
    current: Option<usize>,
    /// Events that several logs have.
    seen: SeenEvents,
    read: Arc<AtomicU64>,
    size: u64,
}

/// A line that is not empty, or one event of a list.
pub struct SourceLine<'s> {
    pub file: &'s Path,
    /// From 1, in its file.
    pub number: usize,
    /// Including its line break.
    pub text: &'s str,
    /// Whether the file ends without a line break.
    pub is_cut_off: bool,
}

/// A file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file cannot be opened or decompressed.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not valid.
    #[error("{}: line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        why: String,
    },
}

/// Notes about the files and their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceNotes(Vec<String>);

impl Source {
    /// Opens files. All files must exist at the start, because reading a log can take a while.
    ///
    /// # Errors
    /// Names the missing or unreadable file.
    pub fn new(files: Vec<PathBuf>) -> Result<Self, SourceError> {
        let read: Arc<AtomicU64> = Arc::default();
        let (mut logs, mut waiting, mut size) = (Vec::new(), BinaryHeap::new(), 0);
        let key = (files.len() > 1).then(RandomState::new);
        for (index, path) in files.into_iter().enumerate() {
            let so_far = read.load(Ordering::Relaxed);
            let (mut log, bytes) = Log::open(path, key.clone(), &read)?;
            size += bytes;
            if log.advance()? {
                waiting.push(Reverse((log.moment(), index)));
                if key.is_some() && log.rest() {
                    read.store(so_far, Ordering::Relaxed);
                }
            }
            logs.push(log);
        }
        Ok(Self { logs, waiting, current: None, seen: SeenEvents::default(), read, size })
    }

    /// The size of all files on disk, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The bytes read so far, on disk.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The next line; `None` after the last one.
    ///
    /// # Errors
    /// When a file cannot be read or decompressed, a line is longer than 64 MiB or not UTF-8, or time runs back inside a file.
    pub fn line(&mut self) -> Result<Option<SourceLine<'_>>, SourceError> {
        loop {
            if let Some(current) = self.current.take()
                && self.logs[current].advance()?
            {
                self.waiting.push(Reverse((self.logs[current].moment(), current)));
            }
            let Some(Reverse((_, next))) = self.waiting.pop() else { return Ok(None) };
            self.logs[next].wake()?;
            self.current = Some(next);
            if !self.seen.is_in_another_log(self.logs[next].event(), next) {
                break;
            }
        }
        Ok(self.current.map(|current| self.logs[current].line()))
    }

    /// The notes so far.
    #[must_use]
    pub fn notes(&self) -> SourceNotes {
        let mut notes: Vec<_> = self.logs.iter().flat_map(Log::notes).collect();
        if self.seen.repeated() > 0 {
            notes.push(format!("{} events are in several of the files, and were judged once.", self.seen.repeated()));
        }
        SourceNotes(notes)
    }
}

/// One paragraph each.
impl fmt::Display for SourceNotes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|note| writeln!(out, "{note}"))
    }
}

impl SourceLine<'_> {
    /// The probable reason why a line cannot be read, and the fix.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        let text = self.text.trim();
        let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        match text {
            "{" | "[" => Some("Each line must be one JSON object: write the file anew with `jq -c .`"),
            _ if text.starts_with('[') && is_json() => {
                Some("Each line must be one JSON object: write the items of the list with `jq -c '.[]'`")
            }
            _ if is_json() => None,
            _ if self.is_cut_off => Some(
                "The file ends in the middle of this line, because it was truncated or copied while it was written. \
                 Replay it without this line",
            ),
            // The line has only the end of an object.
            _ if self.number == 1 && text.ends_with('}') && !text.starts_with('{') => Some(
                "The file starts in the middle of this line, because its start was cut off. Replay it without this \
                 line: `tail -n +2`",
            ),
            _ if self.number == 1 => {
                Some("The file is neither a recording nor an audit log: these have one JSON object in each line")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

//! One file, and the time of its current line.

use std::collections::VecDeque;
use std::hash::RandomState;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::moment::{LineHead, Moment};
use super::order::Order;
use super::{SourceError, SourceLine};
use crate::offline::log::{LineError, Lines};

/// A file, and its current line.
pub(super) struct Log {
    path: PathBuf,
    /// Whether the file can be opened twice. A pipe cannot.
    is_file: bool,
    /// The key of the hashes that identify events which several logs have.
    key: Option<RandomState>,
    read: Arc<AtomicU64>,
    moment: Option<Moment>,
    event: Option<u64>,
    progress: Progress,
}

/// The state of a file, from its first line on.
#[derive(Default)]
struct Progress {
    /// `None` before the turn of the file, and after its end.
    lines: Option<Lines>,
    /// The current event of a list, and the following events of the list.
    items: VecDeque<String>,
    order: Order,
    /// Events of writes that had not ended, and of those that had.
    begun: usize,
    ended: usize,
}

impl Log {
    /// Opens a file, and returns its size on disk too.
    pub(super) fn open(
        path: PathBuf,
        key: Option<RandomState>,
        read: &Arc<AtomicU64>,
    ) -> Result<(Self, u64), SourceError> {
        let metadata = path.metadata().map_err(|error| unread(&path, error))?;
        let (is_file, read, progress) = (metadata.is_file(), Arc::clone(read), Progress::default());
        let mut log = Self { path, is_file, key, read, moment: None, event: None, progress };
        log.start()?;
        Ok((log, metadata.len()))
    }

    fn start(&mut self) -> Result<(), SourceError> {
        self.progress.lines = Some(Lines::open(&self.path, &self.read).map_err(|error| unread(&self.path, error))?);
        Ok(())
    }

    /// Closes the file until its turn comes, and returns whether it is closed. The first line is read again later.
    pub(super) fn rest(&mut self) -> bool {
        // Lines without a time come at once, and a pipe cannot be opened again.
        let rests = self.is_file && self.moment.is_some();
        if rests {
            self.progress = Progress::default();
        }
        rests
    }

    /// Opens the file if it was closed before its turn.
    pub(super) fn wake(&mut self) -> Result<(), SourceError> {
        if self.progress.lines.is_some() {
            return Ok(());
        }
        self.start()?;
        if self.advance()? {
            return Ok(());
        }
        let gone = io::Error::new(io::ErrorKind::UnexpectedEof, "it became empty while it was replayed");
        Err(unread(&self.path, gone))
    }

    /// Goes to the next line, or to the next event of a list; false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, SourceError> {
        let Progress { lines: Some(lines), items, .. } = &mut self.progress else { return Ok(false) };
        items.pop_front();
        while items.is_empty() {
            match lines.advance() {
                Ok(true) => {}
                Ok(false) => {
                    self.progress.lines = None;
                    return Ok(false);
                }
                Err(LineError::Read(source)) => return Err(unread(&self.path, source)),
                Err(LineError::TooLong) => {
                    return Err(bad_line(&self.path, lines.number(), LineError::TooLong.to_string()));
                }
            }
            let text = text_of(lines.line()).map_err(|why| bad_line(&self.path, lines.number(), why))?;
            let head = LineHead::of(text, self.key.as_ref());
            match head.items {
                Some(events) => *items = events.into(),
                None => return self.place(&head).map(|()| true),
            }
        }
        let head = items.front().map(|text| LineHead::of(text, self.key.as_ref())).unwrap_or_default();
        self.place(&head).map(|()| true)
    }

    /// The current line.
    pub(super) fn line(&self) -> SourceLine<'_> {
        let line = self.progress.lines.as_ref().map_or(&[][..], Lines::line);
        SourceLine {
            file: &self.path,
            number: self.number(),
            text: match self.progress.items.front() {
                Some(item) => item,
                None => text_of(line).unwrap_or_default(),
            },
            is_cut_off: !line.ends_with(b"\n"),
        }
    }

    fn number(&self) -> usize {
        self.progress.lines.as_ref().map_or(0, Lines::number)
    }

    /// The time of the current line, or of the lines before it.
    pub(super) fn moment(&self) -> Option<Moment> {
        self.moment
    }

    /// The hash of the current event.
    pub(super) fn event(&self) -> Option<u64> {
        self.event
    }

    /// Notes about the lines.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let Progress { begun, ended, order, .. } = &self.progress;
        let unfinished = (*begun > 0 && *ended == 0).then(|| {
            "its writes have no stage ResponseComplete, so that they could not be checked. Take that stage out of \
             omitStages in the audit policy."
                .to_owned()
        });
        let notes = unfinished.into_iter().chain(order.disorder());
        notes.map(|note| format!("{}: {note}", self.path.display()))
    }

    fn place(&mut self, head: &LineHead) -> Result<(), SourceError> {
        self.event = head.event;
        match head.has_ended {
            Some(true) => self.progress.ended += 1,
            Some(false) => self.progress.begun += 1,
            None => {}
        }
        let number = self.number();
        let followed = self.progress.order.follow(head.moment, number);
        self.moment = followed.map_err(|why| bad_line(&self.path, number, why))?;
        Ok(())
    }
}

fn unread(path: &Path, source: io::Error) -> SourceError {
    SourceError::Read { path: path.to_owned(), source }
}

fn bad_line(path: &Path, line: usize, why: String) -> SourceError {
    SourceError::Line { path: path.to_owned(), line, why }
}

fn text_of(line: &[u8]) -> Result<&str, String> {
    str::from_utf8(line).map_err(|error| {
        let at = error.valid_up_to();
        let byte = line.get(at).copied().unwrap_or_default();
        format!("it is not UTF-8: byte {at} of the line is 0x{byte:02x}. Files may be plain text, gzip or zstd")
    })
}

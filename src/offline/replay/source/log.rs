//! One file, compressed or not.

use std::collections::VecDeque;
use std::fs::File;
use std::hash::RandomState;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::moment::{LineHead, Moment};
use super::order::Order;
use super::{SourceError, SourceLine};
use crate::offline::replay::zstd::{Frames, is_zstd};

/// The longest line. It has at most two objects of 3 MiB each, escaped, with their metadata. A longer line is an error.
const MAX_LINE_BYTES: u64 = 64 << 20;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// A file, and its current line.
pub(super) struct Log {
    path: PathBuf,
    /// `None` before its turn, and after its end.
    reader: Option<Box<dyn BufRead>>,
    /// Whether the file can be opened twice. A pipe cannot.
    is_file: bool,
    number: usize,
    line: Vec<u8>,
    /// The current event of a list, and the following events of the list.
    items: VecDeque<String>,
    moment: Option<Moment>,
    event: Option<u64>,
    /// The key of the hashes that identify events which several logs have.
    key: Option<RandomState>,
    order: Order,
    /// Events of writes that had not ended, and of those that had.
    begun: usize,
    ended: usize,
    read: Arc<AtomicU64>,
}

impl Log {
    /// Opens a file, and returns its size on disk too.
    pub(super) fn open(
        path: PathBuf,
        key: Option<RandomState>,
        read: &Arc<AtomicU64>,
    ) -> Result<(Self, u64), SourceError> {
        let metadata = path.metadata().map_err(|error| unread(&path, error))?;
        let reader = opened(&path, read).map_err(|error| unread(&path, error))?;
        let log = Self {
            path,
            reader: Some(reader),
            is_file: metadata.is_file(),
            number: 0,
            line: Vec::new(),
            items: VecDeque::new(),
            moment: None,
            event: None,
            key,
            order: Order::default(),
            begun: 0,
            ended: 0,
            read: Arc::clone(read),
        };
        Ok((log, metadata.len()))
    }

    /// Closes the file until its turn comes, and returns whether it is closed. The first line is read again later.
    pub(super) fn rest(&mut self) -> bool {
        // Lines without a time come at once, and a pipe cannot be opened again.
        let rests = self.is_file && self.moment.is_some();
        if rests {
            self.reader = None;
            (self.number, self.line, self.order) = (0, Vec::new(), Order::default());
            (self.begun, self.ended) = (0, 0);
            self.items.clear();
        }
        rests
    }

    /// Opens the file if it was closed before its turn.
    pub(super) fn wake(&mut self) -> Result<(), SourceError> {
        if self.number > 0 {
            return Ok(());
        }
        let reader = opened(&self.path, &self.read);
        self.reader = Some(reader.map_err(|source| unread(&self.path, source))?);
        if self.advance()? {
            return Ok(());
        }
        let gone = io::Error::new(io::ErrorKind::UnexpectedEof, "it became empty while it was replayed");
        Err(unread(&self.path, gone))
    }

    /// Goes to the next line, or to the next event of a list; false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, SourceError> {
        self.items.pop_front();
        while self.items.is_empty() {
            if !self.fill()? {
                return Ok(false);
            }
            let text = text_of(&self.line).map_err(|why| self.error(why))?;
            if text.trim().is_empty() {
                continue;
            }
            let mut head = LineHead::of(text, self.key.as_ref());
            match head.items.take() {
                Some(items) => self.items = items.into(),
                None => return self.place(&head).map(|()| true),
            }
        }
        let head = self.items.front().map(|text| LineHead::of(text, self.key.as_ref())).unwrap_or_default();
        self.place(&head).map(|()| true)
    }

    /// The current line.
    pub(super) fn line(&self) -> SourceLine<'_> {
        SourceLine {
            file: &self.path,
            number: self.number,
            text: match self.items.front() {
                Some(item) => item,
                None => text_of(&self.line).unwrap_or_default(),
            },
            is_cut_off: !self.line.ends_with(b"\n"),
        }
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
        let unfinished = (self.begun > 0 && self.ended == 0).then(|| {
            "its writes have no stage ResponseComplete, so that they could not be checked. Take that stage out of \
             omitStages in the audit policy."
                .to_owned()
        });
        let notes = unfinished.into_iter().chain(self.order.disorder());
        notes.map(|note| format!("{}: {note}", self.path.display()))
    }

    fn place(&mut self, head: &LineHead) -> Result<(), SourceError> {
        self.event = head.event;
        match head.has_ended {
            Some(true) => self.ended += 1,
            Some(false) => self.begun += 1,
            None => {}
        }
        self.moment = self.order.follow(head.moment, self.number).map_err(|why| self.error(why))?;
        Ok(())
    }

    /// Reads the next line; false at the end of the file.
    fn fill(&mut self) -> Result<bool, SourceError> {
        let Some(reader) = &mut self.reader else { return Ok(false) };
        self.line.clear();
        self.number += 1;
        let read = reader.take(MAX_LINE_BYTES).read_until(b'\n', &mut self.line);
        match read.map_err(|source| unread(&self.path, explained(source)))? {
            0 => self.reader = None,
            _ if self.line.len() as u64 == MAX_LINE_BYTES => return Err(self.error("it is longer than 64 MiB".into())),
            _ => return Ok(true),
        }
        Ok(false)
    }

    fn error(&self, why: String) -> SourceError {
        SourceError::Line { path: self.path.clone(), line: self.number, why }
    }
}

fn unread(path: &Path, source: io::Error) -> SourceError {
    SourceError::Read { path: path.to_owned(), source }
}

fn text_of(line: &[u8]) -> Result<&str, String> {
    str::from_utf8(line).map_err(|error| {
        let at = error.valid_up_to();
        let byte = line.get(at).copied().unwrap_or_default();
        format!("it is not UTF-8: byte {at} of the line is 0x{byte:02x}. Files may be plain text, gzip or zstd")
    })
}

/// Explains the error of a decompressor.
fn explained(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            let why = "the compressed file ends too early, because it was truncated or copied while it was written";
            io::Error::new(error.kind(), why)
        }
        _ => error,
    }
}

/// Opens a file, and decompresses gzip and zstd.
pub(in crate::offline) fn opened(path: &Path, read: &Arc<AtomicU64>) -> io::Result<Box<dyn BufRead>> {
    let mut file =
        BufReader::with_capacity(1 << 18, CountingReader { file: File::open(path)?, read: Arc::clone(read) });
    let start = file.fill_buf()?;
    if start.starts_with(GZIP_MAGIC) {
        return Ok(Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(file))));
    }
    if is_zstd(start) {
        return Ok(Box::new(BufReader::with_capacity(1 << 18, Frames::new(file))));
    }
    Ok(Box::new(file))
}

/// A file that counts the bytes read.
struct CountingReader {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

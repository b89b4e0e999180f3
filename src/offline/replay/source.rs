//! The lines of recordings and audit logs, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::zstd::{Frames, is_zstd};

/// A line has at most two objects of 3 MiB each, escaped, with their metadata; a longer line is an error.
const MAX_LINE_BYTES: u64 = 64 << 20;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// A sequence of files.
pub struct Source {
    waiting: std::vec::IntoIter<PathBuf>,
    open: Option<(PathBuf, Box<dyn BufRead>)>,
    number: usize,
    line: Vec<u8>,
    read: Arc<AtomicU64>,
    size: u64,
}

/// A line that is not empty.
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

impl Source {
    /// Opens files. All must exist at the start, because a log can take a while.
    ///
    /// # Errors
    /// Names the missing file.
    pub fn new(files: Vec<PathBuf>) -> Result<Self, SourceError> {
        let mut size = 0;
        for path in &files {
            size += path.metadata().map_err(|source| SourceError::Read { path: path.clone(), source })?.len();
        }
        let read = Arc::default();
        Ok(Self { waiting: files.into_iter(), open: None, number: 0, line: Vec::new(), read, size })
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
    /// When a file cannot be read or decompressed, or a line is longer than 64 MiB or not UTF-8.
    pub fn line(&mut self) -> Result<Option<SourceLine<'_>>, SourceError> {
        while self.fill()? {
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let Some((file, _)) = &self.open else { return Ok(None) };
        let (number, is_cut_off) = (self.number, !self.line.ends_with(b"\n"));
        match str::from_utf8(&self.line) {
            Ok(text) => Ok(Some(SourceLine { file, number, text, is_cut_off })),
            Err(error) => Err(SourceError::Line { path: file.clone(), line: number, why: error.to_string() }),
        }
    }

    /// Reads the next line; false at the end of the last file.
    fn fill(&mut self) -> Result<bool, SourceError> {
        loop {
            let Some((path, reader)) = &mut self.open else {
                let Some(path) = self.waiting.next() else { return Ok(false) };
                let reader = open(&path, &self.read).map_err(|source| SourceError::Read { path: path.clone(), source });
                self.open = Some((path, reader?));
                self.number = 0;
                continue;
            };
            self.line.clear();
            self.number += 1;
            let read = reader.take(MAX_LINE_BYTES).read_until(b'\n', &mut self.line);
            match read.map_err(|source| SourceError::Read { path: path.clone(), source })? {
                0 => self.open = None,
                _ if self.line.len() as u64 == MAX_LINE_BYTES => {
                    let why = "it is longer than 64 MiB".to_owned();
                    return Err(SourceError::Line { path: path.clone(), line: self.number, why });
                }
                _ => return Ok(true),
            }
        }
    }
}

/// Opens a file, and decompresses gzip and zstd.
fn open(path: &Path, read: &Arc<AtomicU64>) -> io::Result<Box<dyn BufRead>> {
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

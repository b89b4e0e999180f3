//! The lines of a file, plain or compressed with gzip or zstd.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::zstd::{Frames, is_zstd};

/// The longest line. It has at most two objects of 3 MiB each, escaped, with their metadata.
const MAX_LINE_BYTES: usize = 64 << 20;

/// The capacity of the buffer that is kept after a long line.
const BUFFER_BYTES: usize = 1 << 20;

/// The capacity of the buffers of files and decompressors.
const READ_BYTES: usize = 1 << 18;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// A file, line by line.
pub(in crate::offline) struct Lines {
    reader: Box<dyn BufRead>,
    number: usize,
    line: Vec<u8>,
}

/// Why a line cannot be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::offline) enum LineError {
    /// The following lines can be read.
    #[error("it is longer than 64 MiB")]
    TooLong,
    /// The rest of the file cannot be read or decompressed.
    #[error(transparent)]
    Read(#[from] io::Error),
}

impl Lines {
    /// Opens a file. `read` counts the bytes that are read from disk.
    pub(in crate::offline) fn open(path: &Path, read: &Arc<AtomicU64>) -> io::Result<Self> {
        let file = CountingReader { file: File::open(path)?, read: Arc::clone(read) };
        let mut file = BufReader::with_capacity(READ_BYTES, file);
        let start = file.fill_buf()?;
        let reader: Box<dyn BufRead> = if start.starts_with(GZIP_MAGIC) {
            Box::new(BufReader::with_capacity(READ_BYTES, MultiGzDecoder::new(file)))
        } else if is_zstd(start) {
            Box::new(BufReader::with_capacity(READ_BYTES, Frames::new(file)))
        } else {
            Box::new(file)
        };
        Ok(Self { reader, number: 0, line: Vec::new() })
    }

    /// Goes to the next line that is not empty. Returns false at the end of the file.
    pub(in crate::offline) fn advance(&mut self) -> Result<bool, LineError> {
        loop {
            self.line.clear();
            self.line.shrink_to(BUFFER_BYTES);
            let part = (&mut self.reader).take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut self.line);
            if part.map_err(explained)? == 0 {
                return Ok(false);
            }
            self.number += 1;
            if self.line.len() == MAX_LINE_BYTES && !self.line.ends_with(b"\n") {
                self.reader.skip_until(b'\n').map_err(explained)?;
                return Err(LineError::TooLong);
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The current line, with its line break.
    pub(in crate::offline) fn line(&self) -> &[u8] {
        &self.line
    }

    /// The number of the current line, from 1.
    pub(in crate::offline) fn number(&self) -> usize {
        self.number
    }
}

/// Explains the error of a decompressor.
fn explained(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::UnexpectedEof {
        return error;
    }
    let why = "the compressed file ends too early, because it was truncated or copied while it was written";
    io::Error::new(error.kind(), why)
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

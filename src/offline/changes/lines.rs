//! The lines of a file, compressed or not.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::tally::FileTally;
use crate::offline::replay::opened;

/// The name of standard input on a command line.
pub(crate) const STANDARD_INPUT: &str = "-";

/// The longest line. It has at most two objects of 3 MiB each, escaped, with their metadata. A longer line is skipped and counted
/// as bad.
const MAX_LINE_BYTES: usize = 64 << 20;

/// The capacity of the buffer that is kept after a long line.
const BUFFER_BYTES: usize = 1 << 20;

/// A file, line by line.
pub(super) struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    number: usize,
    line: Vec<u8>,
}

impl Lines {
    /// Opens a file, or standard input.
    pub(super) fn open(path: &Path, read: &Arc<AtomicU64>) -> io::Result<Self> {
        let is_input = path == Path::new(STANDARD_INPUT);
        let reader = opened(if is_input { Path::new("/dev/stdin") } else { path }, read)?;
        let path = if is_input { PathBuf::from("standard input") } else { path.to_owned() };
        Ok(Self { path, reader, number: 0, line: Vec::new() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the last line, from 1.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// The next line that is not empty, without its line break. `None` at the end, or if the rest of the file cannot be read.
    pub(super) fn next(&mut self, tally: &mut FileTally) -> Option<&[u8]> {
        loop {
            self.line.clear();
            self.line.shrink_to(BUFFER_BYTES);
            match (&mut self.reader).take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut self.line) {
                Ok(0) => return None,
                Ok(_) => self.number += 1,
                Err(error) => {
                    tally.failure = Some(format!("the rest after line {} cannot be read: {error}", self.number));
                    return None;
                }
            }
            if self.line.len() == MAX_LINE_BYTES && !self.line.ends_with(b"\n") {
                tally.lines += 1;
                tally.bad(&self.path, self.number, "the line is longer than 64 MiB");
                if let Err(error) = self.reader.skip_until(b'\n') {
                    tally.failure = Some(format!("the rest after line {} cannot be read: {error}", self.number));
                    return None;
                }
                continue;
            }
            if !self.line.trim_ascii().is_empty() {
                tally.lines += 1;
                break;
            }
        }
        Some(self.line.trim_ascii())
    }
}

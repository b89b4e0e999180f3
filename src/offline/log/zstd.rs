//! zstd files with one or more frames: logs are appended to, or compressed in parallel.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Whether bytes start with a zstd frame, or with a skippable frame, such as pzstd writes.
pub(super) fn is_zstd(start: &[u8]) -> bool {
    matches!(start, [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The content of all frames, one after the other.
pub(super) struct Frames<R> {
    packed: R,
    frame: FrameDecoder,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(packed: R) -> Self {
        Self { packed, frame: FrameDecoder::new() }
    }

    /// Starts the next frame, and returns false at the end. Skippable frames are skipped.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.packed.fill_buf()?.is_empty() {
            match self.frame.init(&mut self.packed) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut (&mut self.packed).take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.frame.can_collect() == 0 {
            if !self.frame.is_finished() {
                let decoded = self.frame.decode_blocks(&mut self.packed, BlockDecodingStrategy::UptoBlocks(1));
                decoded.map_err(io::Error::other)?;
            } else if !self.begin()? {
                return Ok(0);
            }
        }
        self.frame.read(into)
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn frame(text: &str) -> Vec<u8> {
        compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
    }

    fn unpacked(packed: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        Frames::new(packed).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn every_frame_is_read_and_skippable_frames_are_skipped() {
        let note = [0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4];
        let long = "line\n".repeat(100_000);
        let packed = [note.to_vec(), frame("one\n"), frame(""), note.to_vec(), frame(&long), note.to_vec()].concat();
        assert!(is_zstd(&packed) && is_zstd(&frame("")) && !is_zstd(b"{\"kind\"") && !is_zstd(b""));
        assert_eq!(unpacked(&packed).unwrap(), format!("one\n{long}"));
        assert_eq!(unpacked(b"").unwrap(), "");
    }

    #[test]
    fn truncated_files_and_trailing_data_are_errors() {
        let complete = frame(&"line\n".repeat(1000));
        assert!(unpacked(&complete[..complete.len() - 3]).is_err());
        assert!(unpacked(&[complete, b"{\"mark\": 1}".to_vec()].concat()).is_err());
    }
}

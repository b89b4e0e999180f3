//! Decodes the text in `data` to the JSON of the record. Every size is bounded.

use std::borrow::Cow;
use std::io::Read;

use base64::Engine;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use flate2::bufread::GzDecoder;
use serde::de::IgnoredAny;

use crate::effort::{Effort, OverBudget};
use crate::json::redacted;
use crate::release::storage::{RecordData, Storage};

/// The maximum size of a record's JSON, in bytes. The gzip of a record has at most about 768 KiB, because a Secret is limited to
/// 1 MiB. Usually it inflates to 5 to 10 times that size, but a hostile client can reach any size. The budget of a review is
/// enough for its two records.
pub const INFLATE_LIMIT: usize = 32 * 1024 * 1024;

/// The steps to inflate a byte.
const INFLATE_STEPS: u64 = 2;

/// The most extra chunks of a record. OLM writes at most 11.
const MAX_EXTRA_CHUNKS: usize = 16;

/// The first bytes of gzip with deflate. Helm checks them too.
/// Base64 as Go's clients read it: bits after the last byte are ignored.
const GO: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// The most bytes that a byte of deflate can stand for.
const DEFLATE_RATIO: usize = 1032;

const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

/// Why the body of a record cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No `data.release` (`data.chunk` with OLM).
    #[error("the object has no payload")]
    Missing,
    /// The object has no data at all, as in an audit log.
    #[error("the object has no data")]
    NoData,
    /// One of the base64 layers is damaged.
    #[error("the payload is not base64: {0}")]
    Base64(String),
    /// The gzip is truncated or damaged.
    #[error("the payload is not a complete gzip member: {0}")]
    Gzip(String),
    /// It inflates to more than it claims, or another member follows. Inflating stopped there.
    #[error("the payload inflates to more than the {0} bytes that it claims")]
    Understated(usize),
    /// Data follows the gzip member. Readers disagree about its meaning.
    #[error("{0} bytes follow the gzip member")]
    Trailing(usize),
    /// The JSON is larger than [`INFLATE_LIMIT`].
    #[error("the payload claims to inflate to more than {} MiB", INFLATE_LIMIT / 1024 / 1024)]
    TooLarge,
    /// The payload is no JSON object. Go cannot parse it either.
    #[error("the payload is not the JSON of a release: {0}")]
    NotJson(String),
    /// A field of its head cannot be parsed, or is there twice.
    #[error("the payload is not the JSON of a release: {0}")]
    Json(String),
    /// Other Secrets contain further chunks, which are written after this one.
    #[error("the payload continues in other Secrets")]
    Chunked,
    /// The review has no steps left.
    #[error("the payload cannot be read: {0}")]
    OverBudget(#[from] OverBudget),
    /// Some of the Secrets with further chunks do not exist.
    #[error("{}", missing(.0))]
    MissingChunks(Vec<String>),
}

impl DecodeError {
    /// Whether every client fails to read the record, so that Helm and OLM go on as if it did not exist, or not at all. Where
    /// only Interlock is stricter, or has no budget left, it cannot tell.
    #[must_use]
    pub fn stops_every_client(&self) -> bool {
        match self {
            Self::Missing | Self::Base64(_) | Self::Gzip(_) | Self::NotJson(_) | Self::MissingChunks(_) => true,
            Self::NoData
            | Self::Understated(_)
            | Self::Trailing(_)
            | Self::TooLarge
            | Self::Json(_)
            | Self::Chunked
            | Self::OverBudget(_) => false,
        }
    }

    /// The error for JSON that cannot be parsed as a record.
    pub(super) fn of_json(json: &[u8], error: &serde_json::Error) -> Self {
        let starts_object = json.trim_ascii_start().first() == Some(&b'{');
        let is_json = starts_object && serde_json::from_slice::<IgnoredAny>(json).is_ok();
        if is_json { Self::Json(redacted(error)) } else { Self::NotJson(redacted(error)) }
    }
}

/// A payload without its base64 layers: gzip, or JSON.
#[derive(Debug, PartialEq, Eq)]
pub struct Payload(Vec<u8>);

impl Payload {
    /// Removes the base64 layers: two for a Helm Secret, one for a ConfigMap, one for OLM's Secret.
    ///
    /// # Errors
    /// [`DecodeError::Missing`], [`DecodeError::NoData`], [`DecodeError::Base64`], or [`DecodeError::Chunked`] for a record in several Secrets.
    pub fn decode(storage: Storage, data: &RecordData<'_>) -> Result<Self, DecodeError> {
        let text = match storage {
            Storage::Secret | Storage::ConfigMap => data.release.as_deref(),
            Storage::Index => data.chunk.as_deref(),
        };
        let missing = if data.is_there { DecodeError::Missing } else { DecodeError::NoData };
        let outer = decode_base64(text.ok_or(missing)?.as_bytes())?;
        match storage {
            Storage::Secret => Ok(Self(decode_base64(&outer)?)),
            Storage::ConfigMap => Ok(Self(outer)),
            Storage::Index if extra_chunks(data)?.is_empty() => Ok(Self(outer)),
            Storage::Index => Err(DecodeError::Chunked),
        }
    }

    /// Joins the chunks of a record of OLM, given as the text of each Secret's `data.chunk`.
    ///
    /// # Errors
    /// [`DecodeError::Base64`].
    pub fn join<'t>(chunks: impl Iterator<Item = &'t str>) -> Result<Self, DecodeError> {
        let mut joined = Vec::new();
        for chunk in chunks {
            joined.append(&mut decode_base64(chunk.as_bytes())?);
        }
        Ok(Self(joined))
    }

    /// The maximum memory that the body of the record takes, in bytes: the JSON, and the texts parsed from it. The caller
    /// reserves this memory first.
    #[must_use]
    pub fn memory(&self) -> usize {
        2 * self.inflated_size()
    }

    /// The maximum number of bytes of JSON that [`Self::inflate`] returns.
    #[must_use]
    pub fn inflated_size(&self) -> usize {
        self.claimed_size().unwrap_or(self.0.len()).min(INFLATE_LIMIT)
    }

    /// The JSON of the record.
    ///
    /// The gzip trailer states the length, which may be wrong. A member that inflates to more than the stated length is
    /// damaged. Inflating stops there, so that the reservation of [`Self::inflated_size`] is kept.
    ///
    /// # Errors
    /// [`DecodeError::Gzip`], [`DecodeError::Understated`], [`DecodeError::Trailing`], [`DecodeError::TooLarge`], or [`DecodeError::OverBudget`].
    pub fn inflate(&self, effort: &Effort) -> Result<Vec<u8>, DecodeError> {
        let Some(claimed) = self.claimed_size() else {
            return if self.0.len() <= INFLATE_LIMIT { Ok(self.0.clone()) } else { Err(DecodeError::TooLarge) };
        };
        // What is cut off ends with any four bytes.
        if claimed > self.0.len().saturating_mul(DEFLATE_RATIO) {
            return Err(DecodeError::Gzip(format!("it claims {claimed} bytes, which it is too short for")));
        }
        if claimed > INFLATE_LIMIT {
            return Err(DecodeError::TooLarge);
        }
        effort.take(claimed as u64 * INFLATE_STEPS)?;
        let mut json = Vec::with_capacity(claimed + 1);
        let mut member = GzDecoder::new(self.0.as_slice());
        let read = (&mut member).take(claimed as u64 + 1).read_to_end(&mut json);
        read.map_err(|error| DecodeError::Gzip(error.to_string()))?;
        if json.len() > claimed {
            return Err(DecodeError::Understated(claimed));
        }
        match member.into_inner().len() {
            0 => Ok(json),
            trailing => Err(DecodeError::Trailing(trailing)),
        }
    }

    /// ISIZE, the last four bytes of gzip; `None` if the payload is not gzip.
    fn claimed_size(&self) -> Option<usize> {
        let tail = self.0.last_chunk::<4>().copied().unwrap_or_default();
        self.0.starts_with(&GZIP_MAGIC).then_some(u32::from_le_bytes(tail) as usize)
    }
}

/// The names of the Secrets with the further chunks of an OLM record.
///
/// # Errors
/// [`DecodeError::Base64`] or [`DecodeError::NotJson`].
pub fn extra_chunks(data: &RecordData<'_>) -> Result<Vec<String>, DecodeError> {
    let Some(text) = data.extra_chunks.as_deref() else {
        return Ok(Vec::new());
    };
    let names = decode_base64(text.as_bytes())?;
    let names: Vec<String> = serde_json::from_slice(&names).map_err(|error| DecodeError::NotJson(redacted(&error)))?;
    if names.len() > MAX_EXTRA_CHUNKS { Err(DecodeError::TooLarge) } else { Ok(names) }
}

/// `its part web-1 is missing`.
fn missing(chunks: &[String]) -> String {
    match chunks {
        [chunk] => format!("its part {chunk} is missing"),
        chunks => format!("its parts {} are missing", chunks.join(", ")),
    }
}

/// Decodes base64 as Go does, which skips line breaks.
fn decode_base64(text: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let text = if text.iter().any(is_break) {
        Cow::Owned(text.iter().copied().filter(|byte| !is_break(byte)).collect())
    } else {
        Cow::Borrowed(text)
    };
    GO.decode(text.as_ref()).map_err(|error| DecodeError::Base64(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use base64::engine::general_purpose::STANDARD;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn decode(storage: Storage, text: String) -> Result<Vec<u8>, DecodeError> {
        let data = match storage {
            Storage::Index => RecordData { chunk: Some(Cow::Owned(text)), ..RecordData::default() },
            _ => RecordData { release: Some(Cow::Owned(text)), ..RecordData::default() },
        };
        Payload::decode(storage, &data)?.inflate(&Effort::of_review())
    }

    fn twice(bytes: &[u8]) -> String {
        STANDARD.encode(STANDARD.encode(bytes))
    }

    #[test]
    fn each_storage_has_its_own_layers() {
        let member = gzip(b"{}");
        assert_eq!(decode(Storage::Secret, twice(&member)).unwrap(), b"{}");
        assert_eq!(decode(Storage::ConfigMap, STANDARD.encode(&member)).unwrap(), b"{}");
        assert_eq!(decode(Storage::Index, STANDARD.encode(&member)).unwrap(), b"{}");
        assert_eq!(Payload::decode(Storage::Secret, &RecordData::default()), Err(DecodeError::NoData));
        let other = RecordData { is_there: true, ..RecordData::default() };
        assert_eq!(Payload::decode(Storage::Secret, &other), Err(DecodeError::Missing));
    }

    #[test]
    fn plain_json_without_gzip_is_accepted_as_helm_does() {
        assert_eq!(decode(Storage::Secret, twice(b"{\"name\":1}")).unwrap(), b"{\"name\":1}");
    }

    #[test]
    fn base64_is_read_as_go_reads_it() {
        let member = gzip(b"{}");
        let wrapped: Vec<u8> = STANDARD.encode(&member).into_bytes();
        let wrapped = wrapped.chunks(8).map(|line| String::from_utf8_lossy(line) + "\r\n").collect::<String>();
        assert_eq!(decode(Storage::ConfigMap, wrapped.clone()).unwrap(), b"{}");
        assert_eq!(decode(Storage::Secret, STANDARD.encode(wrapped)).unwrap(), b"{}");
        assert_eq!(decode_base64(b"e30=").unwrap(), decode_base64(b"e31=").unwrap(), "bits that are left over");
        for wrong in ["e30", "e3*=", "e30==", "e30= e30=", "="] {
            assert!(matches!(decode_base64(wrong.as_bytes()), Err(DecodeError::Base64(_))), "{wrong}");
        }
    }

    #[test]
    fn what_no_client_can_read_is_told_apart() {
        let read = |bytes: &[u8]| {
            let body = decode(Storage::Secret, twice(bytes))?;
            crate::release::Record::read(&body, &Effort::of_review()).map(drop)
        };
        let head = r#"{"name":"web","version":1,"info":{"status":"deployed"}"#;
        for lost in ["", "x", "[]", "7", head, &format!("{head}}}}}"), &format!("{head}}}x")] {
            assert!(read(lost.as_bytes()).is_err_and(|error| error.stops_every_client()), "{lost}");
            assert!(read(&gzip(lost.as_bytes())).is_err_and(|error| error.stops_every_client()), "{lost}");
        }
        let member = gzip(format!("{head}}}").as_bytes());
        assert_eq!(read(&member), Ok(()));
        assert!(read(&member[..member.len() - 9]).is_err_and(|error| error.stops_every_client()));
        assert!(DecodeError::Missing.stops_every_client());
        // Go keeps the last of two keys, and reads what follows a member.
        for odd in [format!("{head},\"name\":\"web\"}}"), format!("{head},\"x\":\"\\ud800\"}}")] {
            assert!(read(odd.as_bytes()).map_or_else(|error| !error.stops_every_client(), |()| true), "{odd}");
        }
        let two = [member.clone(), gzip(b" ")].concat();
        assert!(read(&two).is_err_and(|error| !error.stops_every_client()));
    }

    #[test]
    fn data_after_the_gzip_member_is_refused() {
        let mut two = gzip(b"{}");
        two.extend(gzip(b"{}"));
        assert!(matches!(decode(Storage::Secret, twice(&two)), Err(DecodeError::Trailing(_))));
    }

    #[test]
    fn a_bomb_with_a_true_size_is_refused_before_inflating() {
        let bomb = gzip(&vec![b' '; INFLATE_LIMIT + 1]);
        assert!(bomb.len() < 100_000);
        assert_eq!(decode(Storage::Secret, twice(&bomb)), Err(DecodeError::TooLarge));
    }

    #[test]
    fn a_bomb_that_lies_about_its_size_stops_at_the_stated_size() {
        let mut bomb = gzip(&vec![b' '; 1024 * 1024]);
        let at = bomb.len() - 4;
        bomb[at..].copy_from_slice(&10_u32.to_le_bytes());
        assert_eq!(decode(Storage::Secret, twice(&bomb)), Err(DecodeError::Understated(10)));
    }

    #[test]
    fn gzip_truncated_anywhere_is_refused() {
        let member = gzip(br#"{"name":"web"}"#);
        for end in 3..member.len() {
            assert!(decode(Storage::Secret, twice(&member[..end])).is_err(), "{end} of {} bytes", member.len());
        }
    }

    #[test]
    fn a_record_in_several_secrets_is_not_a_broken_one() {
        let names = STANDARD.encode(r#"["a-1"]"#);
        let data = RecordData { chunk: Some("AAAA".into()), extra_chunks: Some(names.into()), ..RecordData::default() };
        assert_eq!(Payload::decode(Storage::Index, &data), Err(DecodeError::Chunked));
        assert_eq!(Payload::join(["AQI=", "Aw=="].into_iter()), Ok(Payload(vec![1, 2, 3])));
    }

    proptest! {
        #[test]
        fn no_bytes_make_decoding_panic_or_exceed_its_reservation(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut dressed = GZIP_MAGIC.to_vec();
            dressed.extend(&bytes);
            for payload in [bytes, dressed] {
                let data = RecordData { release: Some(Cow::Owned(twice(&payload))), ..RecordData::default() };
                let opened = Payload::decode(Storage::Secret, &data).unwrap();
                let granted = opened.inflated_size();
                if let Ok(json) = opened.inflate(&Effort::of_review()) {
                    prop_assert!(json.len() <= granted);
                    let _ = crate::release::Record::read(&json, &Effort::of_review());
                }
            }
        }

        #[test]
        fn decoding_returns_what_was_encoded(bytes in proptest::collection::vec(any::<u8>(), 0..4000)) {
            prop_assert_eq!(decode(Storage::Secret, twice(&gzip(&bytes))).unwrap(), bytes);
        }
    }
}

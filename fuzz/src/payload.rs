//! The payload of a record: base64, gzip, JSON, and what is read out of it.
//!
//! Input: the payload without its base64 layers, or the text with them.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::bufread::GzDecoder;
use interlock_engine::effort::Effort;
use interlock_engine::release::manifest::{objects, workloads};
use interlock_engine::release::record::{INFLATE_LIMIT, Payload, chart_at_start};
use interlock_engine::release::{DecodeError, Record, Storage, Stored};
use serde_json::value::{RawValue, to_raw_value};

use super::Input;

const STORAGES: [Storage; 3] = [Storage::Secret, Storage::ConfigMap, Storage::Index];

pub fn run(input: &[u8]) -> Input {
    if let Ok(text) = std::str::from_utf8(input) {
        for storage in STORAGES {
            if let Ok(payload) = decoded(storage, text) {
                let _read = payload.inflate(&Effort::of_review());
            }
        }
    }
    let once = STANDARD.encode(input);
    let payload = decoded(Storage::ConfigMap, &once).expect("base64");
    assert_eq!(decoded(Storage::Secret, &STANDARD.encode(&once)).as_ref(), Ok(&payload));
    assert_eq!(decoded(Storage::Index, &once).as_ref(), Ok(&payload));
    let (start, end) = input.split_at(input.len() / 2);
    let halves = [STANDARD.encode(start), STANDARD.encode(end)];
    assert_eq!(Payload::join(halves.iter().map(String::as_str)).as_ref(), Ok(&payload));

    let effort = Effort::of_review();
    let inflated = payload.inflate(&effort);
    assert_eq!(inflated.as_ref().ok(), reference(input).as_ref(), "{:?}", inflated.as_ref().err());
    let Ok(json) = inflated else { return Input::Own };
    assert!(json.len() <= payload.inflated_size() && json.len() <= payload.memory());
    if let Ok(record) = Record::read(&json, &effort) {
        let _read = (record.chart(), record.hooks(&effort), record.hooks_of_kind("Job", &effort));
        let manifest = record.manifest();
        let _read = (objects(&manifest, &effort), workloads(&manifest, &record.namespace, &effort));
    }
    Input::Own
}

/// Decodes a text in an object of a storage, as the webhook does.
fn decoded(storage: Storage, text: &str) -> Result<Payload, DecodeError> {
    let key = if storage == Storage::Index { "chunk" } else { "release" };
    let object: Box<RawValue> =
        to_raw_value(&serde_json::json!({"metadata": {}, "data": {key: text}})).expect("JSON of strings");
    let stored = Stored::read(object.as_ref().into()).expect("a Secret");
    let _chart = chart_at_start(storage, &stored.data);
    Payload::decode(storage, &stored.data)
}

/// The JSON in a payload: gzip of one member, which is complete and claims its own length, or anything that is not gzip.
fn reference(payload: &[u8]) -> Option<Vec<u8>> {
    if !payload.starts_with(&[0x1f, 0x8b, 0x08]) {
        return Some(payload.to_vec());
    }
    let claimed = payload.last_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length) as usize);
    let (mut member, mut json) = (GzDecoder::new(payload), Vec::new());
    (&mut member).take(INFLATE_LIMIT as u64 + 1).read_to_end(&mut json).ok()?;
    (json.len() == claimed && claimed <= INFLATE_LIMIT && member.into_inner().is_empty()).then_some(json)
}

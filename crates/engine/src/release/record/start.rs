//! The start of a record whose end is in other Secrets, or not worth inflating.
//!
//! OLM creates the first chunk of a record before the others, so rules judge an operation by the first chunk alone. Go
//! writes the metadata of the chart before the templates, and the templates before the manifest.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::bufread::GzDecoder;

use super::ChartId;
use crate::json::first_at;
use crate::release::storage::{RecordData, Storage};

/// The maximum size of the inflated JSON, in bytes. The metadata of a chart may contain an icon.
const MAX_START_BYTES: u64 = 256 * 1024;

/// `name-version` of the chart of a record, from its first chunk or its start; `None` if the start does not contain it.
#[must_use]
pub fn chart_at_start(storage: Storage, data: &RecordData<'_>) -> Option<String> {
    let text = if storage == Storage::Index { &data.chunk } else { &data.release };
    let mut chunk = STANDARD.decode(text.as_deref()?).ok()?;
    if storage == Storage::Secret {
        chunk = STANDARD.decode(chunk).ok()?;
    }
    let mut json = Vec::new();
    // The stream ends in the middle. Everything before is complete.
    let _ = GzDecoder::new(chunk.as_slice()).take(MAX_START_BYTES).read_to_end(&mut json);
    let start = json.utf8_chunks().next()?.valid();
    let chart: Option<ChartId<'_>> = first_at(start, &["chart", "metadata"]).ok()?;
    chart?.display()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn chunk(json: &str, bytes: usize) -> RecordData<'static> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
        gzip.write_all(json.as_bytes()).unwrap();
        let compressed = gzip.finish().unwrap();
        RecordData {
            chunk: Some(STANDARD.encode(&compressed[..bytes.min(compressed.len())]).into()),
            ..RecordData::default()
        }
    }

    #[test]
    fn the_first_chunk_contains_the_chart() {
        let head =
            r#"{"name":"web","info":{"chart":{}},"chart":{"metadata":{"name":"shop","version":"2.0.0"},"templates":""#;
        let json = format!("{head}{}", "x".repeat(9_000));
        assert_eq!(chart_at_start(Storage::Index, &chunk(&json, 5_000)).as_deref(), Some("shop-2.0.0"));
        assert_eq!(chart_at_start(Storage::Index, &chunk(&json, 40)), None);
        assert_eq!(chart_at_start(Storage::Index, &chunk(r#"{"chart":7}"#, 5_000)), None);
        assert_eq!(chart_at_start(Storage::Index, &chunk(r#"{"chart":{"metadata":{"annotations":{}}}}"#, 5_000)), None);
        assert_eq!(chart_at_start(Storage::Index, &chunk("[]", 5_000)), None);
        assert_eq!(
            chart_at_start(Storage::Index, &RecordData { chunk: Some("?".into()), ..RecordData::default() }),
            None
        );
        assert_eq!(chart_at_start(Storage::Index, &RecordData::default()), None);
        let release = chunk(&json, 5_000).chunk;
        let data = RecordData { release, ..RecordData::default() };
        assert_eq!(chart_at_start(Storage::ConfigMap, &data).as_deref(), Some("shop-2.0.0"));
        let data = RecordData {
            release: Some(STANDARD.encode(data.release.unwrap().as_bytes()).into()),
            ..RecordData::default()
        };
        assert_eq!(chart_at_start(Storage::Secret, &data).as_deref(), Some("shop-2.0.0"));
    }
}

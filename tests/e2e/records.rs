//! Release records as they are stored, label and body side by side.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::clients::{Driver, Kubectl};

/// One stored revision.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// The name of its Secret or ConfigMap.
    pub(crate) object: String,
    /// In the body.
    pub(crate) revision: u32,
    pub(crate) label_status: String,
    pub(crate) body_status: String,
    /// `name-version` of its chart.
    pub(crate) chart: String,
    pub(crate) annotations: BTreeMap<String, String>,
    /// The whole body.
    pub(crate) body: Value,
}

/// The records of a release, by revision.
#[track_caller]
pub(crate) fn read(kubectl: &Kubectl, driver: Driver, release: &str) -> Vec<Record> {
    let list = kubectl.get(&[driver.resource(), "-l", &format!("owner=helm,name={release}")]);
    let objects = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut records: Vec<Record> = objects.iter().map(|object| record(object, driver)).collect();
    records.sort_by_key(|record| record.revision);
    records
}

/// How many of them say `deployed` in their bodies. Two is what the webhook is there to prevent.
pub(crate) fn deployed(records: &[Record]) -> usize {
    with_status(records, "deployed").len()
}

/// The revisions whose bodies have this status.
pub(crate) fn with_status(records: &[Record], status: &str) -> Vec<u32> {
    records.iter().filter(|record| record.body_status == status).map(|record| record.revision).collect()
}

/// `1 superseded, 2 deployed`; a label that disagrees with its body is shown.
pub(crate) fn summary(records: &[Record]) -> String {
    let one = |record: &Record| {
        let Record { revision, body_status, label_status, .. } = record;
        if body_status == label_status {
            format!("{revision} {body_status}")
        } else {
            format!("{revision} {body_status} (label {label_status})")
        }
    };
    records.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The body as it is stored: for a Secret the API's base64 comes off first.
pub(crate) fn decode(object: &Value, driver: Driver) -> Value {
    let stored = object["data"]["release"].as_str().unwrap_or_default().as_bytes().to_vec();
    let inner = match driver {
        Driver::Secret => STANDARD.decode(stored).expect("a Secret's data is base64"),
        Driver::ConfigMap => stored,
    };
    let packed = STANDARD.decode(inner).expect("helm stores base64");
    let mut json = Vec::new();
    GzDecoder::new(packed.as_slice()).read_to_end(&mut json).expect("helm stores gzip");
    serde_json::from_slice(&json).expect("helm stores JSON")
}

/// The body as a value of `data.release`, for a test that writes a record by itself.
pub(crate) fn encode(body: &Value, driver: Driver) -> String {
    use flate2::{Compression, write::GzEncoder};
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    serde_json::to_writer(&mut gzip, body).expect("a value is JSON");
    let inner = STANDARD.encode(gzip.finish().expect("memory is writable"));
    match driver {
        Driver::Secret => STANDARD.encode(inner),
        Driver::ConfigMap => inner,
    }
}

fn record(object: &Value, driver: Driver) -> Record {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let body = decode(object, driver);
    let (metadata, chart) = (&object["metadata"], &body["chart"]["metadata"]);
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    Record {
        object: text(&metadata["name"]),
        revision: body["version"].as_u64().and_then(|version| version.try_into().ok()).unwrap_or_default(),
        label_status: text(&metadata["labels"]["status"]),
        body_status: text(&body["info"]["status"]),
        chart: format!("{}-{}", text(&chart["name"]), text(&chart["version"])),
        annotations: annotations.map(|(key, value)| (key.clone(), text(value))).collect(),
        body,
    }
}

//! Release records as they are stored, with labels and bodies.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::harness::clients::{Driver, Kubectl};

/// The names of the first two records of a release `demo`.
pub(crate) const V1: &str = "sh.helm.release.v1.demo.v1";
pub(crate) const V2: &str = "sh.helm.release.v1.demo.v2";

/// One stored revision.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// The name of its Secret or ConfigMap.
    pub(crate) object: String,
    /// From the body.
    pub(crate) revision: u32,
    pub(crate) label_status: String,
    pub(crate) body_status: String,
    /// `name-version` of its chart.
    pub(crate) chart: String,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// The records of a release, by revision.
#[track_caller]
pub(crate) fn read(kubectl: &Kubectl, driver: Driver, release: &str) -> Vec<Record> {
    let list = kubectl.get(&[driver.resource(), "-l", &format!("owner=helm,name={release}")]);
    let objects = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut records: Vec<Record> = objects.iter().map(|object| record(object, decode(object, driver))).collect();
    records.sort_by_key(|record| record.revision);
    records
}

/// The records of a ClusterExtension as OLM stores them, by revision: an index Secret with the first bytes of the body,
/// and Secrets with the rest.
#[track_caller]
pub(crate) fn read_chunked(kubectl: &Kubectl, extension: &str) -> Vec<Record> {
    let list = kubectl.get(&["secret", "-l", "owner=operator-controller"]);
    let parts = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let bytes = |part: &Value, key: &str| {
        STANDARD.decode(part["data"][key].as_str().unwrap_or_default()).expect("a Secret's data is base64")
    };
    let index = |part: &&Value| {
        let labels = &part["metadata"]["labels"];
        labels["type"] == "index" && labels["name"] == extension
    };
    let put_together = |index: &Value| {
        let names: Vec<String> = serde_json::from_slice(&bytes(index, "extraChunks")).expect("a list of names");
        let named = |name: &String| {
            let found = parts.iter().find(|part| part["metadata"]["name"] == **name);
            bytes(found.unwrap_or_else(|| panic!("{name} is listed and not there")), "chunk")
        };
        let packed: Vec<u8> = bytes(index, "chunk").into_iter().chain(names.iter().flat_map(named)).collect();
        record(index, inflate(&packed))
    };
    let mut records: Vec<Record> = parts.iter().filter(index).map(put_together).collect();
    records.sort_by_key(|record| record.revision);
    records
}

/// How many records say `deployed` in their bodies. The webhook exists to prevent two.
pub(crate) fn deployed(records: &[Record]) -> usize {
    with_status(records, "deployed").len()
}

/// The revisions whose bodies have this status.
pub(crate) fn with_status(records: &[Record], status: &str) -> Vec<u32> {
    records.iter().filter(|record| record.body_status == status).map(|record| record.revision).collect()
}

/// For example `1 superseded, 2 deployed`. A label that differs from its body is shown.
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

/// Decodes the body. For a Secret, the API's own base64 is removed first.
pub(crate) fn decode(object: &Value, driver: Driver) -> Value {
    let stored = object["data"]["release"].as_str().unwrap_or_default().as_bytes().to_vec();
    let inner = match driver {
        Driver::Secret => STANDARD.decode(stored).expect("a Secret's data is base64"),
        Driver::ConfigMap => stored,
    };
    inflate(&STANDARD.decode(inner).expect("helm stores base64"))
}

/// Encodes a body as a value of `data.release`.
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

fn inflate(packed: &[u8]) -> Value {
    let mut json = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut json).expect("a body is stored as gzip");
    serde_json::from_slice(&json).expect("a body is stored as JSON")
}

fn record(object: &Value, body: Value) -> Record {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
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

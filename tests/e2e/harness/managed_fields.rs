//! The times in `metadata.managedFields`.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::harness::clients::Kubectl;

/// Makes the last write of every manager so long ago.
#[track_caller]
pub(crate) fn set_times_of_fields(kubectl: &Kubectl, object: &str, ago: SignedDuration) {
    let time = (Timestamp::now() - ago).round(jiff::Unit::Second).unwrap().to_string();
    let fields = kubectl.get(&[object, "--show-managed-fields"])["metadata"]["managedFields"].clone();
    let replaced = |at| json!({"op": "replace", "path": format!("/metadata/managedFields/{at}/time"), "value": time});
    // The API server keeps the times where nothing else changes.
    let label = json!({"op": "add", "path": "/metadata/labels", "value": {"aged": "true"}});
    let patch: Vec<_> = (0..fields.as_array().unwrap().len()).map(replaced).chain([label]).collect();
    kubectl.ok(&["patch", object, "--type=json", "-p", &json!(patch).to_string()]);
    let written = kubectl.get(&[object, "--show-managed-fields"]);
    assert!(written["metadata"]["managedFields"].to_string().contains(&time), "{written}");
}

//! Records written by hand, as an attacker with kubectl would write them.

use serde_json::Value;

use crate::harness::clients::Driver;
use crate::harness::records;

/// Turns a stored record into a new one with another revision and status, ready to be created.
pub(crate) fn copy(object: &mut Value, driver: Driver, revision: u64, status: &str) {
    edit(object, driver, |body| {
        body["version"] = revision.into();
        body["info"]["status"] = status.into();
    });
    let metadata = &mut object["metadata"];
    let release = metadata["labels"]["name"].as_str().unwrap_or_default().to_owned();
    metadata["name"] = format!("sh.helm.release.v1.{release}.v{revision}").into();
    metadata["labels"]["version"] = revision.to_string().into();
    metadata["labels"]["status"] = status.into();
    if let Some(metadata) = metadata.as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "annotations"] {
            metadata.remove(field);
        }
    }
}

/// Changes the body of a stored record in place.
pub(crate) fn edit(object: &mut Value, driver: Driver, change: impl FnOnce(&mut Value)) {
    let mut body = records::decode(object, driver);
    change(&mut body);
    object["data"]["release"] = records::encode(&body, driver).into();
}

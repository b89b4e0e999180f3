//! Converts a record to a copy that no tool mistakes for a record, and back.
//!
//! The copy is a Secret of its own type, without the labels with which Helm, Flux, OLM and Interlock find records. The data stays
//! unchanged, and annotations keep the metadata.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use interlock_engine::managed::MANAGED_BY_LABEL;
use interlock_engine::release::{ReleaseRef, Revision, Storage};
use serde_json::{Map, Value, json};

use crate::inspect::diagnosis::VALUES;

/// The type of a copy.
pub(super) const COPY_TYPE: &str = "interlock.dev/record-copy";
/// The label of a copy and its value.
pub(super) const COPY_LABEL: (&str, &str) = ("interlock.dev/copy", "record");

/// The release.
pub(super) const RELEASE: &str = "interlock.dev/release";
/// Its revision.
pub(super) const REVISION: &str = "interlock.dev/revision";
/// The storage of the record.
pub(super) const STORAGE: &str = "interlock.dev/storage";
/// The record, on the copy of a further part.
pub(super) const PART_OF: &str = "interlock.dev/part-of";
/// The copies of further parts, on the copy of the record: a JSON array.
pub(super) const PARTS: &str = "interlock.dev/parts";
/// The record without its data: a JSON object.
pub(super) const ORIGINAL: &str = "interlock.dev/original";

/// The metadata fields that a copy keeps.
const COPIED_METADATA: [&str; 6] = ["name", "labels", "annotations", "ownerReferences", "uid", "resourceVersion"];
/// Fields that the API server assigns; a new object must not have them.
const SERVER_ASSIGNED: [&str; 2] = ["uid", "resourceVersion"];

/// The release and revision of a record.
pub(super) struct CopyOrigin<'a> {
    pub(super) release: &'a ReleaseRef,
    pub(super) storage: Storage,
    pub(super) revision: Revision,
}

/// The copy of one object of a record. The API server generates its name, so that concurrent commands never share a copy, and each
/// command deletes only its own.
///
/// # Errors
/// When the object has no metadata.
pub(super) fn copy_of(
    object: &Value,
    origin: &CopyOrigin<'_>,
    part_of: Option<&str>,
    parts: &[String],
    values: Option<&str>,
) -> Result<Value, String> {
    let metadata = object["metadata"].as_object().ok_or("it has no metadata")?;
    let kept: Map<_, _> =
        COPIED_METADATA.iter().filter_map(|key| Some(((*key).to_owned(), metadata.get(*key)?.clone()))).collect();
    let is_config_map = origin.storage == Storage::ConfigMap;
    let mut original = json!({"apiVersion": "v1", "kind": origin.storage.kind(), "metadata": kept});
    for key in ["type", "immutable"] {
        if let Some(value) = object.get(key) {
            original[key] = value.clone();
        }
    }
    let mut data = object["data"].as_object().cloned().unwrap_or_default();
    if is_config_map {
        data.values_mut().for_each(|value| *value = STANDARD.encode(value.as_str().unwrap_or_default()).into());
        let binary = object["binaryData"].as_object().cloned().unwrap_or_default();
        original["binary"] = binary.keys().cloned().collect();
        data.extend(binary);
    }
    if let Some(values) = values {
        data.insert(VALUES.to_owned(), STANDARD.encode(values).into());
    }
    let ReleaseRef { namespace, name: release } = origin.release;
    let mut annotations = json!({
        RELEASE: release,
        REVISION: origin.revision.to_string(),
        STORAGE: origin.storage.name(),
        ORIGINAL: original.to_string(),
    });
    if let Some(part_of) = part_of {
        annotations[PART_OF] = part_of.into();
    }
    if !parts.is_empty() {
        annotations[PARTS] = json!(parts).to_string().into();
    }
    let (label, value) = COPY_LABEL;
    let labels = json!({MANAGED_BY_LABEL: "interlock", label: value});
    let begins = format!("interlock-copy-{release}-v{}-", origin.revision);
    let metadata =
        json!({"generateName": begins, "namespace": namespace, "labels": labels, "annotations": annotations});
    Ok(json!({"apiVersion": "v1", "kind": "Secret", "type": COPY_TYPE, "metadata": metadata, "data": data}))
}

/// The original object of a copy, ready to be created.
///
/// # Errors
/// When the Secret is not a copy.
pub(super) fn original_of(copy: &Value) -> Result<Value, String> {
    let original =
        copy["metadata"]["annotations"][ORIGINAL].as_str().ok_or("it has no annotation with the original")?;
    let mut original: Value = serde_json::from_str(original).map_err(|error| error.to_string())?;
    let mut data = copy["data"].as_object().cloned().unwrap_or_default();
    data.remove(VALUES);
    let object = original.as_object_mut().ok_or("its original is not an object")?;
    if let Some(binary) = object.remove("binary") {
        let keys: Vec<_> = binary.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let binary: Map<_, _> = keys.iter().filter_map(|key| Some(((*key).to_owned(), data.remove(*key)?))).collect();
        if !binary.is_empty() {
            object.insert("binaryData".to_owned(), binary.into());
        }
        for value in data.values_mut() {
            let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).map_err(|error| error.to_string())?;
            *value = String::from_utf8(bytes).map_err(|error| error.to_string())?.into();
        }
    }
    object.insert("data".to_owned(), data.into());
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut).ok_or("its original has no metadata")?;
    SERVER_ASSIGNED.iter().for_each(|key| _ = metadata.remove(*key));
    Ok(original)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(release: &ReleaseRef, storage: Storage) -> CopyOrigin<'_> {
        CopyOrigin { release, storage, revision: Revision(2) }
    }

    fn record(kind: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": kind, "type": "helm.sh/release.v1", "immutable": false,
            "metadata": {
                "name": "sh.helm.release.v1.web.v2", "namespace": "shop", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-11-21T10:00:00Z", "managedFields": [{"manager": "helm"}],
                "labels": {"owner": "helm", "name": "web", "version": "2", "status": "pending-upgrade"},
                "annotations": {"interlock.dev/holder": "alice"},
            },
            "data": {"release": "SDRzSUFBQUE="},
        })
    }

    #[test]
    fn a_restored_record_differs_only_in_server_assigned_fields() {
        let release = ReleaseRef::new("shop", "web");
        for (kind, storage) in
            [("Secret", Storage::Secret), ("ConfigMap", Storage::ConfigMap), ("Secret", Storage::Index)]
        {
            let mut record = record(kind);
            if kind == "ConfigMap" {
                record.as_object_mut().unwrap().remove("type");
                record["binaryData"] = json!({"more": "AAE="});
            }
            let copy = copy_of(&record, &origin(&release, storage), None, &[], Some("{}")).unwrap();
            let mut wanted = record.clone();
            for given in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace"] {
                wanted["metadata"].as_object_mut().unwrap().remove(given);
            }
            assert_eq!(original_of(&copy).unwrap(), wanted, "{kind}");
        }
    }

    #[test]
    fn no_tool_finds_a_copy_as_a_record() {
        use interlock_engine::release::Stored;
        let release = ReleaseRef::new("shop", "web");
        let copy = copy_of(&record("Secret"), &origin(&release, Storage::Secret), None, &[], None).unwrap();
        let raw = serde_json::value::to_raw_value(&copy).unwrap();
        let stored = Stored::read(raw.as_ref().into()).unwrap();
        assert_eq!(stored.storage("Secret"), None);
        assert_eq!((stored.metadata.label("owner"), stored.secret_type.as_deref()), (None, Some(COPY_TYPE)));
        assert_eq!(copy["data"], record("Secret")["data"], "the data are unchanged");
    }

    #[test]
    fn parts_refer_to_their_record_and_back() {
        let release = ReleaseRef::new("olm", "web");
        let origin = origin(&release, Storage::Index);
        let part = copy_of(&record("Secret"), &origin, Some("sh.helm.release.v1.web.v2"), &[], None).unwrap();
        assert_eq!(part["metadata"]["annotations"][PART_OF], "sh.helm.release.v1.web.v2");
        let index = copy_of(&record("Secret"), &origin, None, &["part".to_owned()], None).unwrap();
        assert_eq!(index["metadata"]["annotations"][PARTS], "[\"part\"]");
    }

    #[test]
    fn other_objects_are_not_copies() {
        assert!(original_of(&json!({"metadata": {"annotations": {}}})).is_err());
        assert!(original_of(&json!({"metadata": {"annotations": {ORIGINAL: "7"}}})).is_err());
        assert!(copy_of(&json!([]), &origin(&ReleaseRef::new("a", "b"), Storage::Secret), None, &[], None).is_err());
    }
}

//! Release records in a readable form, without base64 and gzip.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use interlock_engine::effort::Effort;
use interlock_engine::release::record::Payload;
use interlock_engine::release::stamps::{CHART, HOLDER, STARTED, TARGET_NAMESPACE};
use interlock_engine::release::storage::HELM_SECRET_TYPE;
use interlock_engine::release::{ReleaseRef, Status, Storage, Stored};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::duration::duration;

/// `record` of a suite.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RecordFile {
    /// `namespace/name`.
    release: String,
    revision: u64,
    status: Option<String>,
    /// `name-version`.
    chart: Option<String>,
    manifest: Option<String>,
    #[serde(default)]
    storage: StorageName,
    /// The user who started the operation. Only used in `given`, because steps are stamped.
    holder: Option<String>,
    /// The age of the record.
    age: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StorageName {
    #[default]
    Secret,
    ConfigMap,
}

impl RecordFile {
    /// The object that Helm would write at a time. Unset fields keep their values from the object before.
    pub(super) fn object(&self, before: Option<&Value>, now: Timestamp) -> Result<Value, String> {
        let ReleaseRef { namespace, name } = self.release()?;
        let storage = self.storage();
        let mut body = match before {
            Some(before) => decode_body(storage, before)?,
            None => json!({
                "name": name, "namespace": namespace, "version": self.revision, "config": {}, "hooks": [], "manifest": "",
                "info": {"status": "deployed"}, "chart": {"metadata": {"name": name, "version": "1.0.0"}},
            }),
        };
        if let Some(status) = &self.status {
            let _: Status = status.parse().map_err(|_| format!("{status:?} is not a status of a record"))?;
            body["info"]["status"] = status.as_str().into();
        }
        if let Some(chart) = &self.chart {
            let (chart, version) = split_chart(chart)?;
            body["chart"]["metadata"] = json!({"name": chart, "version": version});
        }
        if let Some(manifest) = &self.manifest {
            body["manifest"] = manifest.as_str().into();
        }
        let age = self.age.as_deref().map(duration).transpose()?.unwrap_or_default();
        let created = before.and_then(|before| before.pointer("/metadata/creationTimestamp").cloned());
        let begun = now.checked_sub(age).map_err(|error| format!("age: {error}"))?;
        let created = created.unwrap_or_else(|| begun.to_string().into());
        let mut metadata = json!({
            "name": self.object_name()?, "namespace": namespace, "creationTimestamp": created,
            "labels": {
                "owner": "helm", "name": name, "version": self.revision.to_string(), "status": body["info"]["status"],
            },
        });
        if let Some(holder) = &self.holder {
            let chart = &body["chart"]["metadata"];
            let [chart, version] = ["name", "version"].map(|key| chart[key].as_str().unwrap_or_default());
            metadata["annotations"] = json!({
                HOLDER: holder, STARTED: created, CHART: format!("{chart}-{version}"), TARGET_NAMESPACE: namespace,
            });
        }
        let encode_body = encode_body(&body)?;
        Ok(match storage {
            Storage::ConfigMap => json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"release": encode_body},
            }),
            _ => json!({
                "apiVersion": "v1", "kind": "Secret", "type": HELM_SECRET_TYPE, "metadata": metadata,
                "data": {"release": STANDARD.encode(encode_body)},
            }),
        })
    }

    /// An object with kind and name only.
    pub(super) fn named(&self) -> Result<Value, String> {
        let kind = self.storage().kind();
        let metadata = json!({"name": self.object_name()?, "namespace": self.release()?.namespace});
        Ok(json!({"apiVersion": "v1", "kind": kind, "metadata": metadata}))
    }

    fn object_name(&self) -> Result<String, String> {
        Ok(format!("sh.helm.release.v1.{}.v{}", self.release()?.name, self.revision))
    }

    fn release(&self) -> Result<ReleaseRef, String> {
        let named = self.release.split_once('/').map(|(namespace, name)| ReleaseRef::new(namespace, name));
        named.ok_or_else(|| format!("release: {:?} is not a namespace and a name like shop/web", self.release))
    }

    fn storage(&self) -> Storage {
        match self.storage {
            StorageName::Secret => Storage::Secret,
            StorageName::ConfigMap => Storage::ConfigMap,
        }
    }
}

fn split_chart(chart: &str) -> Result<(&str, &str), String> {
    // The version starts at the first dash that precedes a digit: 1.0.0-rc.1 contains a dash.
    let dash = chart.match_indices('-').find(|(at, _)| chart[at + 1..].starts_with(|it: char| it.is_ascii_digit()));
    let (at, _) = dash.ok_or_else(|| format!("chart: {chart:?} is not a name and a version like web-1.2.3"))?;
    Ok((&chart[..at], &chart[at + 1..]))
}

/// JSON, gzip, base64.
fn encode_body(body: &Value) -> Result<String, String> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    let gzip = gzip.write_all(body.to_string().as_bytes()).and_then(|()| gzip.finish());
    gzip.map(|gzip| STANDARD.encode(gzip)).map_err(|error| error.to_string())
}

fn decode_body(storage: Storage, object: &Value) -> Result<Value, String> {
    let text = object.to_string();
    let stored: Stored<'_> = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let json = Payload::decode(storage, &stored.data).and_then(|payload| payload.inflate(&Effort::of_review()));
    let json = json.map_err(|error| error.to_string())?;
    serde_json::from_slice(&json).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_that_is_too_long_is_an_error() {
        let record = "{release: shop/web, revision: 1, status: deployed, age: 999999999h}";
        let record = serde_saphyr::from_str::<RecordFile>(record).unwrap();
        assert!(record.object(None, Timestamp::UNIX_EPOCH).unwrap_err().starts_with("age: "));
    }

    #[test]
    fn an_update_keeps_unset_fields() {
        let record = |yaml: &str| serde_saphyr::from_str::<RecordFile>(yaml).unwrap();
        let now = "2026-11-21T10:00:00Z".parse().unwrap();
        for storage in ["secret", "configmap"] {
            let pending = format!(
                "{{release: shop/web, revision: 3, status: pending-upgrade, chart: web-2.0.0-rc.1, storage: {storage}, age: 5m}}"
            );
            let pending = record(&pending).object(None, now).unwrap();
            assert_eq!(pending["metadata"]["creationTimestamp"], "2026-11-21T09:55:00Z");
            let deployed = record(&format!("{{release: shop/web, revision: 3, status: deployed, storage: {storage}}}"));
            let object = deployed.object(Some(&pending), now).unwrap();
            assert_eq!(object["metadata"]["creationTimestamp"], "2026-11-21T09:55:00Z");
            let body = decode_body(deployed.storage(), &object).unwrap();
            assert_eq!(body["chart"]["metadata"], json!({"name": "web", "version": "2.0.0-rc.1"}));
            assert_eq!((&body["info"]["status"], &body["version"]), (&json!("deployed"), &json!(3)));
        }
    }
}

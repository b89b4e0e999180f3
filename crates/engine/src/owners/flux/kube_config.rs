//! `spec.kubeConfig` of a HelmRelease: the cluster of its release.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// The default key in the Secret of a kubeconfig.
const DEFAULT_KEY: &str = "value";

/// The cluster of a release, with Flux's defaults filled in, so that different spellings of one reference are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeConfig(Value);

/// The maximum length of a text that is parsed, in bytes. The value takes many times the memory of its text, and needs to name
/// only two objects.
const MAX_TEXT_BYTES: usize = 4 << 10;

impl<'de> Deserialize<'de> for KubeConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        if text.get().len() > MAX_TEXT_BYTES {
            // A longer text equals only an identical text.
            let digest = Sha256::digest(text.get()).iter().map(|byte| Value::from(*byte)).collect();
            return Ok(Self(Value::Array(digest)));
        }
        let mut written: Value = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let references = written.as_object_mut().into_iter().flat_map(|members| {
            members.retain(|_, reference| !reference.is_null());
            members.values_mut()
        });
        for reference in references.filter_map(Value::as_object_mut) {
            reference.retain(|_, value| !value.is_null() && value != "");
            reference.entry("key").or_insert_with(|| DEFAULT_KEY.into());
        }
        Ok(Self(written))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn two_spellings_of_one_cluster_are_equal() {
        let read = |written: Value| serde_json::from_value::<KubeConfig>(written).unwrap();
        let short = || read(json!({"secretRef": {"name": "prod"}}));
        for same in [
            json!({"secretRef": {"name": "prod", "key": "value"}}),
            json!({"secretRef": {"key": "", "name": "prod"}}),
            json!({"secretRef": {"name": "prod", "key": null}, "configMapRef": null}),
        ] {
            assert_eq!(read(same.clone()), short(), "{same}");
        }
        for other in [
            json!({"secretRef": {"name": "prod", "key": "value.yaml"}}),
            json!({"secretRef": {"name": "test"}}),
            json!({"configMapRef": {"name": "prod"}}),
            json!({"secretRef": {"name": "prod"}, "future": {"a": 1}}),
            json!({}),
        ] {
            assert_ne!(read(other.clone()), short(), "{other}");
        }
        assert_eq!(
            read(json!({"configMapRef": {"name": "a"}})),
            read(json!({"configMapRef": {"name": "a", "key": "value"}}))
        );
        let _ = (read(json!("of another shape")), read(json!([null])));
        let long = |name: &str| read(json!({"secretRef": {"name": name.repeat(MAX_TEXT_BYTES)}}));
        assert_eq!(long("a"), long("a"));
        assert_ne!(long("a"), long("b"));
    }
}

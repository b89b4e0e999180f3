//! `spec.kubeConfig` of a HelmRelease: the cluster of its release.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The key that Flux reads in the Secret of a kubeconfig if none is named.
const DEFAULT_KEY: &str = "value";

/// The cluster of a release as written, with Flux's defaults for what is left out: two spellings of one reference are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeConfig(Value);

impl<'de> Deserialize<'de> for KubeConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut written = Value::deserialize(deserializer)?;
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
    }
}

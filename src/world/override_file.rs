//! Overrides from a file, for a server without a cluster.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use interlock_engine::answers::read::release_override;
use interlock_engine::object::ObjectKey;
use interlock_engine::release_override::{GROUP, KIND};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DynamicObject;
use serde_json::Value;
use tokio::time::sleep;

use super::memory::Memory;
use crate::regular_file;

/// The time between two reads of the file. It limits how long an override takes to work in an incident.
const READ_INTERVAL: Duration = Duration::from_secs(2);

/// The size of a mounted ConfigMap, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A file of ReleaseOverrides. Its content is kept in a world.
pub struct OverrideFile {
    path: PathBuf,
    memory: Arc<Memory>,
    loaded: Vec<ObjectKey>,
}

impl OverrideFile {
    /// Adds the overrides of a file, one YAML document each, to a world. An override without a creation time is as old as
    /// the file.
    ///
    /// # Errors
    /// When the file cannot be read, or contains another kind of object.
    pub fn open(path: PathBuf, memory: Arc<Memory>) -> anyhow::Result<Self> {
        let mut file = Self { path, memory, loaded: Vec::new() };
        file.read()?;
        Ok(file)
    }

    /// Reads the file repeatedly, forever. While the file is invalid, the overrides of its last valid content remain.
    pub async fn follow(mut self) {
        let mut reported = String::new();
        loop {
            sleep(READ_INTERVAL).await;
            match self.read() {
                Ok(()) => reported.clear(),
                Err(error) => {
                    let error = format!("{error:#}");
                    if error != reported {
                        tracing::warn!(error, "the overrides cannot be read; the previous ones stay in force");
                        reported = error;
                    }
                }
            }
        }
    }

    fn read(&mut self) -> anyhow::Result<()> {
        let name = self.path.display().to_string();
        let text = regular_file::read_text(&self.path, MAX_FILE_BYTES);
        let text = text.with_context(|| format!("failed to read the overrides {name}"))?;
        let written = fs::metadata(&self.path)?.modified()?;
        let unreadable = |error: String| anyhow::anyhow!("the overrides {name} cannot be parsed: {error}");
        let objects = serde_saphyr::from_multiple::<Value>(&text).map_err(|error| unreadable(error.to_string()))?;
        let mut loaded = Vec::new();
        for object in objects {
            let object = serde_json::from_value::<DynamicObject>(object);
            let mut object = object.map_err(|error| unreadable(error.to_string()))?;
            object.metadata.creation_timestamp.get_or_insert(Time(Timestamp::try_from(written)?));
            let is_override = object
                .types
                .as_ref()
                .is_some_and(|types| types.kind == KIND && types.api_version.split('/').next() == Some(GROUP));
            let text = serde_json::to_string(&object)?;
            let read = release_override(&text).filter(|_| is_override);
            let read = read.with_context(|| {
                format!("the overrides {name} contain something else than ReleaseOverrides with a name and a namespace")
            })?;
            loaded.push((ObjectKey::new(GROUP, KIND, &read.namespace, &read.name), text));
        }
        for gone in self.loaded.iter().filter(|key| loaded.iter().all(|(key_in_file, _)| key_in_file != *key)) {
            self.memory.remove(gone);
        }
        self.loaded = loaded.iter().map(|(key, _)| key.clone()).collect();
        for (key, object) in loaded {
            self.memory.put(key, object);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::evidence::{Freshness, question};

    use super::*;
    use crate::world::ask;

    fn document(name: &str) -> String {
        format!(
            "---\napiVersion: interlock.dev/v1alpha1\nkind: ReleaseOverride\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  \
             release: web\n  rules: [manual-edit]\n  reason: incident\n  expiresAt: 2026-11-21T11:00:00Z\n"
        )
    }

    async fn known(memory: &Memory) -> Vec<String> {
        let [namespace, release] = ["shop", "web"].map(str::to_owned);
        let overrides = question::Overrides { namespace, release, freshness: Freshness::Live };
        let found = ask(memory, overrides).await.unwrap().unwrap();
        assert!(found.iter().all(|it| it.created.is_some()));
        let mut names: Vec<_> = found.into_iter().map(|it| it.name).collect();
        names.sort_unstable();
        names
    }

    #[tokio::test]
    async fn the_world_has_the_last_valid_content_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("overrides.yaml");
        let memory = Arc::new(Memory::new(1 << 20));
        assert!(OverrideFile::open(path.clone(), memory.clone()).is_err(), "there is none");
        fs::write(&path, document("one") + &document("two")).unwrap();
        let mut file = OverrideFile::open(path.clone(), memory.clone()).unwrap();
        assert_eq!(known(&memory).await, ["one", "two"]);
        fs::write(&path, document("two")).unwrap();
        file.read().unwrap();
        assert_eq!(known(&memory).await, ["two"]);
        for wrong in [document("two").replace("manual-edit", "manual-edits"), "kind: Secret\n".into(), ": [".into()] {
            fs::write(&path, wrong).unwrap();
            assert!(file.read().is_err());
            assert_eq!(known(&memory).await, ["two"]);
        }
        fs::write(&path, "").unwrap();
        file.read().unwrap();
        assert!(known(&memory).await.is_empty());
    }
}

//! The blobs of a layout, named by their content.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub(crate) struct Blobs(PathBuf);

impl Blobs {
    /// The blobs of a layout that has none yet.
    pub(crate) fn create(layout: &Path) -> anyhow::Result<Self> {
        let dir = layout.join("blobs/sha256");
        fs::create_dir_all(&dir).with_context(|| format!("failed to create {}", dir.display()))?;
        Ok(Self(dir))
    }

    /// Returns the descriptor: the words of OCI for a reference to a blob.
    pub(crate) fn add(&self, media_type: &str, content: &[u8]) -> anyhow::Result<Value> {
        let hex = sha256(content);
        let file = self.0.join(&hex);
        fs::write(&file, content).with_context(|| format!("failed to write {}", file.display()))?;
        Ok(json!({"mediaType": media_type, "digest": format!("sha256:{hex}"), "size": content.len()}))
    }

    pub(crate) fn add_json(&self, media_type: &str, document: &Value) -> anyhow::Result<Value> {
        self.add(media_type, document.to_string().as_bytes())
    }
}

pub(crate) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

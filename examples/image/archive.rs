//! The image as one file, in the format of `docker save`: `docker load`, `podman load` and containerd read it, and so does
//! `kind load image-archive`, which gives it to containerd.
//!
//! Not the OCI layout in a tar: containerd would name the image after the day on which it is loaded.

use std::fs;
use std::path::Path;

use anyhow::bail;
use serde_json::json;

use super::blobs::sha256;
use super::pack::{Source, compressed, configuration, layer, tar_of};
use super::program::static_architecture;

/// Writes the archive of an image with a name.
pub(crate) fn archive(source: &Source<'_>, name: &str, file: &Path) -> anyhow::Result<()> {
    // Without a tag, engines would call it `latest`, which Kubernetes always pulls.
    let has_tag =
        name.rsplit('/').next().is_some_and(|last| last.split_once(':').is_some_and(|(_, tag)| !tag.is_empty()));
    if !has_tag {
        bail!("{name} has no tag: name the image REGISTRY/interlock:TAG");
    }
    let layer = layer(source)?;
    let configuration = configuration(source, static_architecture(source.program)?, &layer).to_string().into_bytes();
    let layer = compressed(&layer)?;
    let [config_name, layer_name] = [format!("{}.json", sha256(&configuration)), format!("{}.tar.gz", sha256(&layer))];
    let manifest = json!([{"Config": config_name, "RepoTags": [name], "Layers": [layer_name]}]).to_string();
    let files: [(&str, u32, &[u8]); 3] = [
        (&config_name, 0o644, &configuration),
        (&layer_name, 0o644, &layer),
        ("manifest.json", 0o644, manifest.as_bytes()),
    ];
    Ok(fs::write(file, tar_of(source, &files)?)?)
}

//! The image: one layer with one file, its configuration, and the SBOM that refers to it.
//!
//! The documents are those of the OCI image specification 1.1. serde_json sorts the keys of an object, so equal documents have
//! equal bytes.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde_json::{Value, json};
use tar::{EntryType, Header};

use super::blobs::{Blobs, sha256};
use super::program::static_architecture;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The configuration of a manifest that is no image.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// CycloneDX in JSON, as registered with IANA.
const CYCLONEDX: &str = "application/vnd.cyclonedx+json";

/// Everything that decides the bytes of the image, apart from the version in `Cargo.toml`.
pub(crate) struct Source<'a> {
    pub(crate) program: &'a [u8],
    pub(crate) revision: &'a str,
    pub(crate) created: Timestamp,
}

/// Writes the layout into a new directory, and returns the digest of the image.
pub(crate) fn pack(source: &Source<'_>, sbom: &[u8], layout: &Path) -> anyhow::Result<String> {
    let architecture = static_architecture(source.program)?;
    // A layout that exists may hold another image.
    fs::create_dir(layout).context("failed to create the directory")?;
    let blobs = Blobs::create(layout)?;
    let mut image = add_image(&blobs, source, architecture)?;
    let mut sbom = add_sbom(&blobs, source, sbom, &image)?;
    let digest = image["digest"].as_str().context("a descriptor without a digest")?.to_owned();
    image["platform"] = json!({"architecture": architecture, "os": "linux"});
    image["annotations"] = json!({"org.opencontainers.image.ref.name": env!("CARGO_PKG_VERSION")});
    sbom["artifactType"] = CYCLONEDX.into();
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [image, sbom]});
    fs::write(layout.join("index.json"), index.to_string())?;
    fs::write(layout.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string())?;
    Ok(digest)
}

fn add_image(blobs: &Blobs, source: &Source<'_>, architecture: &str) -> anyhow::Result<Value> {
    let layer = layer(source)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blobs.add_json(CONFIG, &configuration(source, architecture, &layer))?,
        "layers": [blobs.add(LAYER, &compressed(&layer)?)?],
        "annotations": labels(source),
    });
    blobs.add_json(MANIFEST, &manifest)
}

/// A manifest with the image as its subject: how OCI attaches a document to an image. Registries list it as a referrer.
fn add_sbom(blobs: &Blobs, source: &Source<'_>, sbom: &[u8], image: &Value) -> anyhow::Result<Value> {
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": CYCLONEDX,
        "config": blobs.add(EMPTY, b"{}")?,
        "layers": [blobs.add(CYCLONEDX, sbom)?],
        "subject": image,
        "annotations": {"org.opencontainers.image.created": source.created.to_string()},
    });
    blobs.add_json(MANIFEST, &manifest)
}

pub(crate) fn compressed(layer: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(layer)?;
    Ok(gzip.finish()?)
}

/// The Dockerfile says the same.
pub(crate) fn configuration(source: &Source<'_>, architecture: &str, layer: &[u8]) -> Value {
    json!({
        "created": source.created.to_string(),
        "architecture": architecture,
        "os": "linux",
        "config": {
            // An unprivileged user without a name. The manifests name the same one.
            "User": "65532:65532",
            // Reviews; probes and metrics.
            "ExposedPorts": {"8443/tcp": {}, "8081/tcp": {}},
            "Entrypoint": ["/interlock"],
            "Cmd": ["serve"],
            "WorkingDir": "/",
            "Labels": labels(source),
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(layer))]},
        "history": [{"created": source.created.to_string(), "created_by": "examples/image"}],
    })
}

fn labels(source: &Source<'_>) -> Value {
    json!({
        "org.opencontainers.image.title": "Interlock",
        "org.opencontainers.image.description": env!("CARGO_PKG_DESCRIPTION"),
        "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
        "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
        "org.opencontainers.image.revision": source.revision,
        "org.opencontainers.image.created": source.created.to_string(),
    })
}

/// A tar file with the program alone. No directories: the runtime creates those of the mounts.
pub(crate) fn layer(source: &Source<'_>) -> anyhow::Result<Vec<u8>> {
    // Nobody needs to write it, and the user who runs it does not own it.
    tar_of(source, &[("interlock", 0o555, source.program)])
}

/// A tar file of files with their modes. Their time is that of the source.
pub(crate) fn tar_of(source: &Source<'_>, files: &[(&str, u32, &[u8])]) -> anyhow::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, mode, content) in files {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(u64::try_from(content.len())?);
        header.set_mode(*mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(u64::try_from(source.created.as_second())?);
        tar.append_data(&mut header, name, *content)?;
    }
    Ok(tar.into_inner()?)
}

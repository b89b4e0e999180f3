//! Packs a static `interlock` into an image on nothing: as a directory in the OCI layout, with its SBOM as a referrer
//! (`scripts/release`), or as one file that container engines and `kind load` read (`scripts/image`). Needs no container engine and
//! no network. The same input gives the same bytes.

mod archive;
mod blobs;
mod pack;
mod program;

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use jiff::Timestamp;

use archive::archive;
use pack::{Source, pack};

/// Packs a static program into an image, and prints the digest of the layout's image
#[derive(Parser)]
struct Arguments {
    /// The static program
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Its SBOM, CycloneDX in JSON, for the layout
    #[arg(long, value_name = "FILE")]
    sbom: Option<PathBuf>,
    /// The commit that the program was built from
    #[arg(long)]
    revision: String,
    /// The time of that commit, in seconds since 1970: the only time in the image
    #[arg(long, value_name = "SECONDS")]
    created: i64,
    /// The OCI layout to write: a directory, which must not exist
    #[arg(long, value_name = "DIRECTORY", required_unless_present = "archive", requires = "sbom")]
    out: Option<PathBuf>,
    /// The archive to write, in the format of `docker save`
    #[arg(long, value_name = "FILE", requires = "name")]
    archive: Option<PathBuf>,
    /// The name of the image in the archive: REGISTRY/interlock:TAG
    #[arg(long, value_name = "NAME", requires = "archive")]
    name: Option<String>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let read = |path: &PathBuf| fs::read(path).with_context(|| format!("failed to read {}", path.display()));
    let source = Source {
        program: &read(&arguments.program)?,
        revision: &arguments.revision,
        created: Timestamp::from_second(arguments.created).context("--created is not a time")?,
    };
    if let (Some(file), Some(name)) = (&arguments.archive, &arguments.name) {
        archive(&source, name, file).with_context(|| format!("no image in {}", file.display()))?;
    }
    if let (Some(layout), Some(sbom)) = (&arguments.out, &arguments.sbom) {
        let digest =
            pack(&source, &read(sbom)?, layout).with_context(|| format!("no image in {}", layout.display()))?;
        println!("{digest}");
    }
    Ok(())
}

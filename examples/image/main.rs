//! Packs a static `interlock` into an image on nothing, as a directory in the OCI layout, with its SBOM as a referrer. Needs no
//! container engine and no network: `scripts/release` runs it. The same input gives the same bytes.

mod blobs;
mod pack;
mod program;

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use jiff::Timestamp;

use pack::{Source, pack};

/// Packs a static program into an image in the OCI layout, and prints the image's digest
#[derive(Parser)]
struct Arguments {
    /// The static program
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Its SBOM, CycloneDX in JSON
    #[arg(long, value_name = "FILE")]
    sbom: PathBuf,
    /// The commit that the program was built from
    #[arg(long)]
    revision: String,
    /// The time of that commit, in seconds since 1970: the only time in the image
    #[arg(long, value_name = "SECONDS")]
    created: i64,
    /// The directory to write, which must not exist
    #[arg(long, value_name = "DIRECTORY")]
    out: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let read = |path: &PathBuf| fs::read(path).with_context(|| format!("failed to read {}", path.display()));
    let source = Source {
        program: &read(&arguments.program)?,
        sbom: &read(&arguments.sbom)?,
        revision: &arguments.revision,
        created: Timestamp::from_second(arguments.created).context("--created is not a time")?,
    };
    let digest = pack(&source, &arguments.out).with_context(|| format!("no image in {}", arguments.out.display()))?;
    println!("{digest}");
    Ok(())
}

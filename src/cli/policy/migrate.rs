//! `interlock policy migrate`: rewrites a cluster policy from the time before the shipped policy was its base.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use crate::cli::examples::examples;
use crate::cli::exit_status::ExitStatus;
use crate::cli::output;
use crate::world::policy_directory;

/// Print the cluster policy that means what cluster.yaml meant before a file stated differences from the shipped policy: its lists and
/// cases are marked with `only`, comments stay
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock policy migrate policies",
    "interlock policy migrate policies > policies/cluster.yaml.new",
]))]
pub(super) struct Arguments {
    /// Directory with cluster.yaml
    directory: PathBuf,
    /// Write cluster.yaml instead of printing it
    #[arg(long)]
    write: bool,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitStatus> {
        let files = policy_directory::read(&self.directory);
        let (path, text) = files.migrated()?;
        match text {
            None => {
                output::complain(&format!("{} means what it meant before; there is nothing to change", path.display()))
            }
            Some(text) if self.write => {
                fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
                output::complain(&format!("wrote {}", path.display()));
            }
            Some(text) => output::print(&text)?,
        }
        Ok(ExitStatus::Success)
    }
}

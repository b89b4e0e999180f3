//! `interlock man`: manual pages, generated from the command line.

use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::Context;

use super::examples::examples;
use super::exit_status::ExitStatus;

/// Write the manual pages
///
/// `interlock man | man -l -` shows the first page.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["interlock man man", "interlock man /usr/local/share/man/man1"]))]
pub(super) struct Arguments {
    /// Directory for all pages, one per subcommand [default: print the first page]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, command: clap::Command) -> anyhow::Result<ExitStatus> {
    if let Some(directory) = &arguments.directory {
        fs::create_dir_all(directory).with_context(|| format!("failed to create {}", directory.display()))?;
        let written = clap_mangen::generate_to(command, directory);
        written.with_context(|| format!("failed to write the pages to {}", directory.display()))?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        stdout().write_all(&page)?;
    }
    Ok(ExitStatus::Success)
}

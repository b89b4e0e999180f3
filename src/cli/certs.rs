//! `interlock certs`: the certificates of the webhook.

use std::io::{Write, stdout};
use std::path::PathBuf;

use clap::Subcommand;
use jiff::Timestamp;

use super::Finding;
use crate::pki::dev;

/// Make certificates
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Dev(Dev),
}

/// Write a development CA and a certificate for localhost and the service, or keep those that are good
#[derive(Debug, clap::Args)]
struct Dev {
    /// Where they go
    #[arg(long, value_name = "DIR", default_value = "certs")]
    certs: PathBuf,
    /// Make a new CA even if there is one; whoever trusts the old one must be told
    #[arg(long)]
    force: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Finding> {
    let Command::Dev(Dev { certs, force }) = &arguments.command;
    let make = if *force { dev::replace } else { dev::ensure };
    let made = make(certs, Timestamp::now())?;
    writeln!(stdout(), "CA           {}", made.ca_path.display())?;
    writeln!(stdout(), "certificate  {}", made.certificate_path.display())?;
    writeln!(stdout(), "key          {}", made.key_path.display())?;
    Ok(Finding::Nothing)
}

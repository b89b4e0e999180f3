//! `interlock certs`: the certificates of the webhook.

mod installation;
mod rotate;
mod status;

use std::io::{Write, stdout};
use std::path::PathBuf;

use clap::Subcommand;
use jiff::Timestamp;

use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output;
use crate::serve::pki::dev;

/// Show the certificates, rotate the CA, or create certificates for development
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Dev(Dev),
    Status(status::Arguments),
    Rotate(rotate::Arguments),
}

/// Create a development CA and a certificate for localhost and the Service, or keep valid ones
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["interlock certs dev", "interlock certs dev --certs target/certs --force"]))]
struct Dev {
    /// Directory for the files
    #[arg(long, value_name = "DIR", default_value = "certs")]
    certs: PathBuf,
    /// Create a new CA even if one exists; clients that trust the old CA need the new one
    #[arg(long)]
    force: bool,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    match &arguments.command {
        Command::Dev(arguments) => dev(arguments),
        Command::Status(arguments) => status::run(arguments).await,
        Command::Rotate(arguments) => rotate::run(arguments).await,
    }
}

fn dev(Dev { certs, force }: &Dev) -> anyhow::Result<ExitStatus> {
    let make = if *force { dev::replace } else { dev::ensure };
    let made = make(certs, Timestamp::now())?;
    for key in &made.exposed_keys {
        let key = key.display();
        output::complain(&format!("interlock: others than its owner can read the private key {key}; use chmod 600"));
    }
    writeln!(stdout(), "CA           {}", made.ca_path.display())?;
    writeln!(stdout(), "certificate  {}", made.certificate_path.display())?;
    writeln!(stdout(), "key          {}", made.key_path.display())?;
    Ok(ExitStatus::Success)
}

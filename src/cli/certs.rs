//! `interlock certs`: the certificates of the webhook.

mod rotate;
mod status;

use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use super::Finding;
use super::cluster::ClusterArguments;
use crate::serve::pki::dev;

/// Look at the certificates, have the CA rotated, or make certificates for development
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

/// The installation that is asked about.
#[derive(Debug, clap::Args)]
struct Installation {
    /// Interlock's own namespace
    #[arg(short, long, value_name = "NAMESPACE", env = "INTERLOCK_NAMESPACE", default_value = "interlock-system")]
    namespace: String,
    #[command(flatten)]
    cluster: ClusterArguments,
}

impl Installation {
    async fn client(&self) -> anyhow::Result<Client> {
        let config = self.cluster.found().await?;
        Client::try_from(config).context("failed to make a client for the cluster")
    }

    fn secrets(&self, client: &Client) -> Api<Secret> {
        Api::namespaced(client.clone(), &self.namespace)
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Finding> {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    match &arguments.command {
        Command::Dev(arguments) => dev(arguments),
        Command::Status(arguments) => runtime()?.block_on(status::run(arguments)),
        Command::Rotate(arguments) => runtime()?.block_on(rotate::run(arguments)),
    }
}

fn dev(Dev { certs, force }: &Dev) -> anyhow::Result<Finding> {
    let make = if *force { dev::replace } else { dev::ensure };
    let made = make(certs, Timestamp::now())?;
    writeln!(stdout(), "CA           {}", made.ca_path.display())?;
    writeln!(stdout(), "certificate  {}", made.certificate_path.display())?;
    writeln!(stdout(), "key          {}", made.key_path.display())?;
    Ok(Finding::Nothing)
}

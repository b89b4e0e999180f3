//! `status` of several clusters.

use super::found::Found;
use super::{Arguments, Printer};
use crate::cli::cluster::{self, NamedCluster};
use crate::cli::exit_status::ExitStatus;
use crate::cli::{failure, output};
use crate::inspect::view::View;
use crate::world::kubernetes::clock::ServerClock;

/// One table of several clusters. A cluster that cannot be read is an error after the table.
pub(super) async fn of_several(arguments: &Arguments, clusters: &[NamedCluster]) -> anyhow::Result<ExitStatus> {
    anyhow::ensure!(!arguments.watch, "--watch follows one cluster: give one --context");
    let (mut all, mut clock, mut failed) = (Found::default(), None, None);
    for cluster in clusters {
        match found_in(arguments, cluster).await {
            Ok((found, at)) => {
                all.extend(found);
                clock = clock.or(Some(at));
            }
            Err(error) => {
                // The last one ends the command.
                if let Some(earlier) = failed.replace(cluster.complete(error)) {
                    output::complain(&format!("interlock: {}", failure::message(&earlier)));
                }
            }
        }
    }
    let exit =
        clock.map_or(Ok(ExitStatus::Success), |clock| Printer::new(arguments.output, &clock).all(&all, false))?;
    failed.map_or(Ok(exit), Err)
}

/// What one of several clusters has, under its name, and its clock.
async fn found_in(arguments: &Arguments, cluster: &NamedCluster) -> anyhow::Result<(Found, ServerClock)> {
    let config = cluster.config().await?;
    let (options, only) = arguments.which(&config.default_namespace)?;
    let client = cluster::client(config)?;
    let clock = ServerClock::read(&client).await?;
    let policies = arguments.policies.read(&client).await?.policies;
    let view = View::open(&client, &policies).await;
    let found = Found::read(&view, &options, only.as_ref(), clock.now()).await?;
    Ok((found.of_cluster(cluster), clock))
}

//! `interlock unprotect`: ends the protection of a release whose annotated object is gone.

use std::sync::Arc;

use interlock_engine::release::ReleaseRef;
use serde::Serialize;

use super::cluster::ClusterArguments;
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output::Output;
use super::release_argument::ReleaseArgument;
use super::table::printable;
use crate::budget::Budget;
use crate::inspect::scan::DECODE_BYTES;
use crate::inspect::unprotect::{Stamped, UnprotectError};
use crate::world::kubernetes::Cluster;

/// End the protection of a release whose annotated object was deleted
///
/// The annotation interlock.dev/protected of a HelmRelease or ClusterExtension protects the release after that object is deleted, because
/// the records name it. This command removes its name from the records. While the object exists with its annotation, remove the
/// annotation instead. The webhook admits managers of the policy, and users with a ReleaseOverride of protected-release. Requires the
/// rights to list and patch the records' Secrets or ConfigMaps, and to get the objects that they name. Exits with 1 if the protection
/// does not end, and with 2 if this cannot be determined.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["interlock unprotect shop/web --dry-run", "interlock unprotect -n shop web"]))]
pub(super) struct Arguments {
    #[command(flatten)]
    release: ReleaseArgument,
    /// Let the API server check the writes, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// The result of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum UnprotectResult {
    /// The object still protects the release, or a webhook refused.
    Refused,
    Unprotected,
    /// A dry run would have ended the protection.
    WouldUnprotect,
    /// No record names an object.
    NothingToDo,
}

/// The report for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UnprotectReport {
    namespace: String,
    release: String,
    /// The deleted objects that protected the release.
    protected_by: Vec<String>,
    /// The records whose annotation was removed.
    records: Vec<String>,
    outcome: UnprotectResult,
    /// Why the protection does not end.
    why: Option<String>,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let client = arguments.cluster.client().await?;
    let release = arguments.release.within(client.default_namespace())?;
    let cluster = Cluster::new(client.clone(), Arc::new(Budget::new(DECODE_BYTES)));
    let mut report = UnprotectReport::of(&release);
    match Stamped::read(&cluster, &release).await {
        Ok(stamped) => {
            report.protected_by = stamped.protectors.iter().cloned().collect();
            let removed = stamped.remove(&client, &release.namespace, arguments.dry_run).await;
            report.finish(removed, arguments.dry_run)?;
        }
        Err(error) => report.finish(Err(error), arguments.dry_run)?,
    }
    arguments.output.print(&report, || report.text())?;
    Ok(if report.outcome == UnprotectResult::Refused { ExitStatus::Findings } else { ExitStatus::Success })
}

impl UnprotectReport {
    fn of(release: &ReleaseRef) -> Self {
        Self {
            namespace: release.namespace.clone(),
            release: release.name.clone(),
            protected_by: Vec::new(),
            records: Vec::new(),
            outcome: UnprotectResult::NothingToDo,
            why: None,
        }
    }

    /// Takes the result; an error if the command could not run.
    fn finish(&mut self, removed: Result<Vec<String>, UnprotectError>, dry_run: bool) -> Result<(), UnprotectError> {
        match removed {
            Ok(records) => {
                self.outcome = match (records.is_empty(), dry_run) {
                    (true, _) => UnprotectResult::NothingToDo,
                    (false, true) => UnprotectResult::WouldUnprotect,
                    (false, false) => UnprotectResult::Unprotected,
                };
                self.records = records;
            }
            Err(error @ UnprotectError::Failed { .. }) => return Err(error),
            Err(answer) => {
                self.outcome = UnprotectResult::Refused;
                self.why = Some(answer.to_string());
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        let Self { namespace, release, .. } = self;
        let objects = self.protected_by.join(", ");
        match self.outcome {
            UnprotectResult::Refused => {
                let why = printable(self.why.as_deref().unwrap_or_default());
                format!(
                    "The protection of release {namespace}/{release} does not end: {}.\n",
                    why.trim_end_matches('.')
                )
            }
            UnprotectResult::Unprotected => {
                format!("Release {namespace}/{release} is no longer protected by {} (deleted).\n", printable(&objects))
            }
            UnprotectResult::WouldUnprotect => format!(
                "Without --dry-run the protection of release {namespace}/{release} by {} (deleted) would end.\n",
                printable(&objects)
            ),
            UnprotectResult::NothingToDo => {
                format!("Nothing to do: no record of release {namespace}/{release} names an object that protects it.\n")
            }
        }
    }
}

//! `interlock changes`: who changed which release, when, and with which override.

mod csv;
mod rows;

use std::path::PathBuf;

use anyhow::Context;
use clap::ValueEnum;
use jiff::Timestamp;
use serde::Serialize;

use super::cluster::{self, ClustersArguments, NamedCluster};
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::failure;
use super::output;
use super::progress::{Progress, Unit};
use super::release_argument;
use super::runtime::block_on;
use super::since::since;
use crate::inspect::changes::{Change, Wanted, merged, of_cluster};
use crate::offline::changes::{ReadChanges, STANDARD_INPUT, read_logs};

/// List who changed which release, when, from what to what, and by which override
///
/// Reads the release records of the cluster, audit logs of the API server, and Interlock's own log, and merges them: a
/// change that several sources know is one line, of the surest of them (log, then audit, then record). Without files,
/// reads the cluster, or each cluster of several --context, which keeps the last revisions of each release and nothing of uninstalled ones, and the last sync of
/// each Application of Argo CD. Lines that cannot be parsed are reported and skipped. Exits with 2 if nothing could be read.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock changes -n shop --since 24h",
    "interlock changes -n argocd app/web --log interlock.log --records",
    "interlock changes --audit-log audit.log --refused -o csv",
    "interlock changes --context eu --context us --since 24h",
]))]
pub(super) struct Arguments {
    /// Show only this release, as RELEASE or NAMESPACE/RELEASE, or one object, as -n NAMESPACE app/NAME. Before the files
    #[arg(value_name = "RELEASE")]
    release: Option<String>,
    /// Show only this namespace [default: all namespaces]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// All namespaces, as without --namespace
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "release"])]
    all_namespaces: bool,
    /// Show only changes since this time: a duration before now (24h, 90d) or a time (2026-11-20T10:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = |text: &str| since(text, Timestamp::now()))]
    since: Option<Timestamp>,
    /// Audit logs of the API servers; plain, gzip or zstd, `-` for standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    audit_log: Vec<PathBuf>,
    /// Logs of Interlock's replicas in the format json; plain, gzip or zstd, `-` for standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    log: Vec<PathBuf>,
    /// Read the records of the cluster too [default: only if no file is given]
    #[arg(long)]
    records: bool,
    /// Also show what Interlock refused, which changed nothing
    #[arg(long)]
    refused: bool,
    #[command(flatten)]
    clusters: ClustersArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// For spreadsheets (RFC 4180), with a heading.
    Csv,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
}

/// The output for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChangesOutput<'a> {
    changes: &'a [Change],
    /// The inputs that could not be read, and why.
    not_read: &'a [String],
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let wanted = arguments.wanted().map_err(anyhow::Error::msg)?;
    let mut found = arguments.of_files(&wanted)?;
    if arguments.reads_records() {
        block_on(arguments.of_clusters(&wanted, &mut found))?;
    }
    complain(&found.notes);
    anyhow::ensure!(found.has_read, "nothing could be read");
    let mut changes = merged(found.changes, &found.covered);
    changes.retain(|change| wanted.contains(change));
    match arguments.output {
        Format::Table if changes.is_empty() => output::complain("interlock: no changes found"),
        Format::Table => output::print(&rows::table(&changes))?,
        Format::Csv => csv::print(&changes)?,
        Format::Json => output::print_json(&ChangesOutput { changes: &changes, not_read: &found.notes })?,
        Format::Yaml => output::print_yaml(&ChangesOutput { changes: &changes, not_read: &found.notes })?,
    }
    Ok(ExitStatus::Success)
}

/// The changes in the records of a cluster, and what could not be read.
async fn of_named(cluster: &NamedCluster, wanted: &Wanted) -> anyhow::Result<(Vec<Change>, Vec<String>)> {
    let client = cluster::client(cluster.config().await?).context("the records cannot be read")?;
    let (mut changes, gaps) = of_cluster(&client, wanted).await.map_err(anyhow::Error::msg)?;
    changes.iter_mut().for_each(|change| change.cluster.clone_from(&cluster.name));
    let gaps = gaps.into_iter().map(|gap| cluster.named(gap));
    Ok((changes, gaps.map(|gap| format!("not read: {}: {}", gap.what, gap.why)).collect()))
}

fn complain(notes: &[String]) {
    notes.iter().for_each(|note| output::complain(&format!("interlock: {note}")));
}

impl Arguments {
    fn wanted(&self) -> Result<Wanted, String> {
        let wanted = Wanted { since: self.since, refused: self.refused, ..Wanted::default() };
        let namespace = self.namespace.clone().filter(|_| !self.all_namespaces);
        let Some(named) = self.release.as_deref() else { return Ok(Wanted { namespace, ..wanted }) };
        if let Some((carrier, object)) = release_argument::carrier(named, namespace.as_deref(), "default")? {
            return Ok(Wanted { namespace, release: Some(object.name), carrier: Some(carrier), ..wanted });
        }
        // Without a namespace, releases of this name in any namespace are wanted.
        let release = release_argument::named(named, namespace.as_deref(), "default")?;
        let namespace = namespace.or_else(|| named.contains('/').then_some(release.namespace));
        Ok(Wanted { namespace, release: Some(release.name), ..wanted })
    }

    fn reads_records(&self) -> bool {
        self.records || (self.audit_log.is_empty() && self.log.is_empty())
    }

    fn of_files(&self, wanted: &Wanted) -> anyhow::Result<ReadChanges> {
        let files = || self.audit_log.iter().chain(&self.log);
        let inputs = files().filter(|file| file.as_os_str() == STANDARD_INPUT).count();
        anyhow::ensure!(inputs <= 1, "standard input (-) can be read once only");
        let size = files().filter_map(|file| Some(file.metadata().ok()?.len())).sum::<u64>();
        let bar = Progress::new("reading", size, Unit::Bytes, false);
        let read = read_logs(&self.audit_log, &self.log, wanted, |bytes| bar.at(bytes));
        read.map_err(|(path, error)| anyhow::Error::new(error).context(format!("failed to read {}", path.display())))
    }

    /// Adds what the records of the clusters tell. The changes in the files, or of the other clusters, are better than none.
    async fn of_clusters(&self, wanted: &Wanted, found: &mut ReadChanges) -> anyhow::Result<()> {
        let mut failed = None;
        for cluster in self.clusters.each() {
            match of_named(&cluster, wanted).await {
                Ok((changes, notes)) => {
                    found.changes.extend(changes);
                    found.notes.extend(notes);
                    found.has_read = true;
                }
                Err(error) => {
                    let error = cluster.complete(error);
                    found.notes.push(format!("the records of the cluster: {}", failure::message(&error)));
                    failed = Some(error);
                }
            }
        }
        match failed.filter(|_| !found.has_read) {
            None => Ok(()),
            Some(error) => {
                found.notes.pop();
                complain(&found.notes);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parsed(line: &[&str]) -> Arguments {
        Line::try_parse_from(["changes"].iter().chain(line)).unwrap().arguments
    }

    #[test]
    fn a_release_is_named_with_or_without_its_namespace() {
        let (shop, web) = (Some("shop".to_owned()), Some("web".to_owned()));
        for (line, wanted) in [
            (&[][..], (None, None)),
            (&["-n", "shop"], (shop.clone(), None)),
            (&["web"], (None, web.clone())),
            (&["web", "-n", "shop"], (shop.clone(), web.clone())),
            (&["shop/web"], (shop.clone(), web.clone())),
            (&["shop/web", "-n", "shop"], (shop, web)),
        ] {
            let found = parsed(line).wanted().unwrap();
            assert_eq!(
                (found.namespace, found.release, found.carrier.is_some()),
                (wanted.0, wanted.1, false),
                "{line:?}"
            );
        }
        let found = parsed(&["app/web", "-n", "argocd"]).wanted().unwrap();
        let kind = found.carrier.map(|carrier| carrier.kind);
        assert_eq!(
            (found.namespace.as_deref(), found.release.as_deref(), kind),
            (Some("argocd"), Some("web"), Some("Application"))
        );
        assert!(parsed(&["app/web"]).wanted().unwrap().carrier.is_none(), "release web of namespace app");
        for (line, wanted) in
            [(&["shop/web", "-n", "other"][..], "name the namespace once"), (&["Web"], "is not a name")]
        {
            let error = parsed(line).wanted().unwrap_err();
            assert!(error.contains(wanted), "{line:?}: {error}");
        }
    }

    #[test]
    fn the_cluster_is_read_without_files_or_on_request() {
        for (line, wanted) in [
            (&[][..], true),
            (&["--log", "a"], false),
            (&["--audit-log", "a", "b"], false),
            (&["--log", "a", "--records"], true),
        ] {
            assert_eq!(parsed(line).reads_records(), wanted, "{line:?}");
        }
    }
}

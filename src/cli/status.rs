//! `interlock status`: the status of releases, and the next step for each.

mod found;
mod lines;
mod several;

use std::io::{Write, stdout};

use clap::ValueEnum;
use interlock_engine::release::ReleaseRef;
use jiff::Timestamp;
use serde::Serialize;

use super::cluster::{self, ClustersArguments, NamedCluster, WATCH_READ_TIMEOUT};
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output;
use super::policies_in_force::PoliciesInForce;
use super::release_argument;
use super::table::printable;
use crate::inspect::diagnosis::Stuck;
use crate::inspect::scan::Gap;
use crate::inspect::status::{
    OperationSummary, ReleaseDescription, ReleaseSummary, StatusError, StatusOptions, describe, follow,
};
use crate::inspect::view::View;
use crate::world::kubernetes::clock::ServerClock;
use found::Found;
use lines::ReleaseTable;
use several::of_several;

/// Show the status of releases: who holds them, whether they are stuck, and the next step
///
/// Prints one line per release with records or objects in the namespace, and one per sync of an Application of Argo CD that has not ended. For one release, prints its history, the runbook's checks, overrides and HelmReleases.
/// Requires the rights to list Secrets and ConfigMaps in the namespace, and to get those whose chart is not stamped; to
/// list HelmReleases; and for one release to read its workloads and the Jobs of its hooks. Missing rights are reported.
/// Several --context give one table. Exits with 1 if a release is stuck, and with 2 if the status cannot be determined.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock status -A --stuck",
    "interlock status -n shop web",
    "interlock status shop/web -o yaml",
    "interlock status -A --context eu --context us",
]))]
pub(super) struct Arguments {
    /// Show only this release, as RELEASE or NAMESPACE/RELEASE
    #[arg(value_name = "RELEASE")]
    release: Option<String>,
    /// Namespace of the release records [default: the namespace of the kubeconfig]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// All namespaces
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "release"])]
    all_namespaces: bool,
    /// Show only releases that are, or may be, stuck
    #[arg(long)]
    stuck: bool,
    /// After listing, watch for changes and print each; stop with Ctrl-C
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    clusters: ClustersArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Format,
    #[command(flatten)]
    policies: PoliciesInForce,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One line per release.
    Table,
    /// Like table, with the storage and the object of the newest record.
    Wide,
    /// For programs; with --watch one line per release.
    Json,
    /// For programs and people.
    Yaml,
    /// NAMESPACE/NAME, one line per release.
    Name,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    match report(arguments).await {
        // The reader has closed the output, for example `head`.
        Err(error) if matches!(error.downcast_ref::<StatusError>(), Some(StatusError::Unread)) => {
            Ok(ExitStatus::Success)
        }
        report => report,
    }
}

async fn report(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    match &*arguments.clusters.each() {
        [cluster] => of_one(arguments, cluster).await,
        several => of_several(arguments, several).await,
    }
}

async fn of_one(arguments: &Arguments, cluster: &NamedCluster) -> anyhow::Result<ExitStatus> {
    let mut config = cluster.config().await?;
    if arguments.watch {
        config.read_timeout = Some(WATCH_READ_TIMEOUT);
    }
    let (options, only) = arguments.which(&config.default_namespace)?;
    let client = cluster::client(config)?;
    let clock = ServerClock::read(&client).await?;
    let policies = arguments.policies.read(&client).await?.policies;
    let mut view = View::open(&client, &policies).await;
    if let Some(release) = only.as_ref().filter(|_| !arguments.watch) {
        return describe_one(&view, release, arguments.output, clock.now()).await;
    }
    let mut printer = Printer::new(arguments.output, &clock);
    if !arguments.watch {
        let found = Found::read(&view, &options, only.as_ref(), clock.now()).await?;
        return printer.all(&found, false);
    }
    // A watch also needs the other releases, to notice when they become stuck.
    let every = StatusOptions { stuck: false, ..options.clone() };
    let known = Found::read(&view, &every, only.as_ref(), clock.now()).await?;
    let mut shown = Found { carried: Vec::new(), ..known.clone() };
    shown.rows.retain(|row| !options.stuck || row.stuck != Stuck::No);
    let exit = printer.all(&shown, true)?;
    follow(&mut view, &options, only.as_ref(), known.rows, &clock, |row| printer.one(row)).await?;
    Ok(exit)
}

impl Arguments {
    /// The selected releases, and the named release if there is one.
    fn which(&self, default_namespace: &str) -> anyhow::Result<(StatusOptions, Option<ReleaseRef>)> {
        let own = self.namespace.clone().unwrap_or_else(|| default_namespace.to_owned());
        let release =
            self.release.as_deref().map(|named| release_argument::named(named, self.namespace.as_deref(), &own));
        let release = release.transpose().map_err(anyhow::Error::msg)?;
        let namespace = release.as_ref().map_or(own, |release| release.namespace.clone());
        let namespace = (!self.all_namespaces).then_some(namespace);
        Ok((StatusOptions { namespace, stuck: self.stuck }, release))
    }
}

async fn describe_one(
    view: &View<'_>,
    release: &ReleaseRef,
    format: Format,
    now: Timestamp,
) -> anyhow::Result<ExitStatus> {
    let described = describe(view, release, now).await?;
    if described.is_empty() {
        anyhow::bail!(
            "there is no release {release}: namespace {0} has no record of it in a Secret or ConfigMap, and no release of this name \
             with records elsewhere has objects in {0}",
            release.namespace
        );
    }
    let document = StatusOutput { time: now, releases: &described, operations: &[], not_looked_at: &[] };
    match format {
        Format::Table | Format::Wide => {
            output::print(&described.iter().map(|it| lines::description(it, now)).collect::<Vec<_>>().join("\n"))?;
        }
        Format::Json => output::print_json(&document)?,
        Format::Yaml => output::print_yaml(&document)?,
        Format::Name => output::print(&format!("{release}\n"))?,
    }
    let stuck = described.iter().any(|ReleaseDescription { row, .. }| row.stuck == Stuck::Yes);
    Ok(if stuck { ExitStatus::Findings } else { ExitStatus::Success })
}

/// The output for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusOutput<'a, T> {
    time: Timestamp,
    releases: &'a [T],
    /// Of objects that carry their operation themselves.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    operations: &'a [OperationSummary],
    not_looked_at: &'a [Gap],
}

struct Printer<'c> {
    format: Format,
    clock: &'c ServerClock,
    lines: ReleaseTable,
}

impl<'c> Printer<'c> {
    fn new(format: Format, clock: &'c ServerClock) -> Self {
        Self { format, clock, lines: ReleaseTable::new(format == Format::Wide) }
    }

    /// Prints all releases, the operations of other objects, and what could not be read.
    fn all(&mut self, Found { rows, carried, gaps }: &Found, streams: bool) -> anyhow::Result<ExitStatus> {
        gaps.iter().for_each(report_gap);
        let now = self.clock.now();
        let document = StatusOutput { time: now, releases: rows, operations: carried, not_looked_at: gaps };
        match self.format {
            Format::Table | Format::Wide => {
                if rows.is_empty() && !streams {
                    output::complain("interlock: no releases found");
                } else {
                    output::print(&self.lines.all(rows, now))?;
                }
                if !carried.is_empty() {
                    output::print(&format!("\n{}", lines::operations(carried, now)))?;
                }
            }
            Format::Json | Format::Yaml if streams => rows.iter().try_for_each(|row| self.one(row))?,
            Format::Json => output::print_json(&document)?,
            Format::Yaml => output::print_yaml(&document)?,
            Format::Name => rows.iter().try_for_each(|row| self.one(row))?,
        }
        let mut stuck = rows.iter().map(|row| row.stuck).chain(carried.iter().map(|operation| operation.stuck));
        Ok(if stuck.any(|stuck| stuck == Stuck::Yes) { ExitStatus::Findings } else { ExitStatus::Success })
    }

    /// Prints a changed release.
    fn one(&mut self, row: &ReleaseSummary) -> std::io::Result<()> {
        match self.format {
            Format::Table | Format::Wide => output::print(&self.lines.one(row, self.clock.now()))?,
            Format::Json => writeln!(stdout(), "{}", output::json(row)?)?,
            Format::Yaml => write!(stdout(), "---\n{}", output::yaml(row).map_err(std::io::Error::other)?)?,
            Format::Name => output::print(&format!("{}\n", row.release_ref()))?,
        }
        stdout().flush()
    }
}

/// Reports an object that could not be read on standard error.
fn report_gap(gap: &Gap) {
    output::complain(&format!("interlock: not read: {}: {}", gap.what, printable(&gap.why)));
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

    fn which(line: &[&str]) -> Result<(Option<String>, Option<String>), String> {
        let line = Line::try_parse_from(["status"].iter().chain(line)).map_err(|error| error.to_string())?;
        let (options, release) = line.arguments.which("mine").map_err(|error| error.to_string())?;
        Ok((options.namespace, release.map(|release| release.to_string())))
    }

    #[test]
    fn releases_are_named_as_in_kubectl_and_in_refusals() {
        let (mine, shop) = (Some("mine".to_owned()), Some("shop".to_owned()));
        for (line, wanted) in [
            (&[][..], (mine.clone(), None)),
            (&["-A"], (None, None)),
            (&["-n", "shop"], (shop.clone(), None)),
            (&["web"], (mine, Some("mine/web".to_owned()))),
            (&["web", "-n", "shop"], (shop.clone(), Some("shop/web".to_owned()))),
            (&["shop/web"], (shop.clone(), Some("shop/web".to_owned()))),
            (&["shop/web", "-n", "shop"], (shop, Some("shop/web".to_owned()))),
        ] {
            assert_eq!(which(line), Ok(wanted), "{line:?}");
        }
        for (line, wanted) in [
            (&["shop/web", "-n", "other"][..], "name the namespace once"),
            (&["-A", "web"], "cannot be used with"),
            (&["-A", "-n", "shop"], "cannot be used with"),
            (&["Web"], "is not a name"),
        ] {
            let error = which(line).unwrap_err();
            assert!(error.contains(wanted), "{line:?}: {error}");
        }
    }
}

//! `interlock scan`: finds problems with the releases of a cluster.

use std::collections::HashSet;
use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use clap::builder::TypedValueParser;
use comfy_table::{Cell, Color};
use interlock_engine::severity::Severity;
use tokio::time::sleep;

use super::cluster::{self, ClusterArguments, server_time};
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::named_values::named_values;
use super::output;
use super::policies_in_force::{FoundPolicies, PoliciesInForce};
use super::progress::{Progress, Unit};
use super::table::{self, printable};
use crate::inspect::scan::{BodySelection, Finding, Gap, ScanOptions, ScanProgress, ScanReport, page, scan};
use crate::world::kubernetes::Reach;

/// The interval at which the progress bar shows activity.
const PROGRESS_TICK: Duration = Duration::from_millis(250);

/// Find existing problems with the releases of a cluster, without writing anything
///
/// Finds releases with several deployed records; stuck, failed or interrupted operations; records that cannot be
/// decoded or are inconsistent; colliding HelmReleases; ConfigurationGroups that name missing bundles; with --drift,
/// objects that differ from the manifest of their release. Requires the rights to list Secrets and ConfigMaps, and to
/// get Secrets. Other objects that cannot be read are reported and skipped. Exits with 1 on findings at or above
/// --fail-on, and with 2 if the records cannot be listed.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock scan",
    "interlock scan -n shop --drift",
    "interlock scan -o html --output-file scan.html",
]))]
pub(super) struct Arguments {
    /// Scan only this namespace [default: all namespaces]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// All namespaces, as without --namespace
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Also compare the objects of deployed releases with their manifests, at one read per object
    #[arg(long)]
    drift: bool,
    /// Records whose bodies are read; the metadata of all records are read
    #[arg(long, default_value = "acted-on", value_parser = bodies())]
    bodies: BodySelection,
    /// Exit with 1 on findings of this severity or higher
    #[arg(long, value_name = "SEVERITY", default_value = "high", value_parser = severities())]
    fail_on: Severity,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Format,
    /// Write the report to a file, and only the counts to standard output
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    #[command(flatten)]
    policies: PoliciesInForce,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
    /// A self-contained page for a browser.
    Html,
    /// NAMESPACE/NAME, one line per release or other object with a finding.
    Name,
}

fn bodies() -> impl TypedValueParser<Value = BodySelection> {
    let questioned = "The newest and the deployed records of releases with a finding in their metadata";
    let acted_on = "The newest and the deployed records of every release, which helm uses";
    named_values([
        ("questioned", Some(questioned), BodySelection::Questioned),
        ("acted-on", Some(acted_on), BodySelection::ActedOn),
        ("all", Some("All records"), BodySelection::All),
    ])
}

fn severities() -> impl TypedValueParser<Value = Severity> {
    named_values(Severity::ALL.into_iter().rev().map(|severity| (severity.as_str(), None, severity)))
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let report = report(arguments).await?;
    let text = match arguments.output {
        Format::Table => text_of(&report),
        Format::Json => output::pretty_json(&report)? + "\n",
        Format::Yaml => output::yaml(&report)?,
        Format::Html => page::page(&report),
        Format::Name => {
            report.not_looked_at.iter().for_each(|gap| output::complain(&format!("interlock: {}", not_scanned(gap))));
            names(&report.findings)
        }
    };
    match &arguments.output_file {
        Some(file) => {
            fs::write(file, text).with_context(|| format!("failed to write {}", file.display()))?;
            output::print(&format!("{}: {}\n", file.display(), counts(&report)))?;
        }
        None if matches!(arguments.output, Format::Table | Format::Name) => output::print(&text)?,
        // These formats are already escaped.
        None => stdout().write_all(text.as_bytes())?,
    }
    let fails = report.worst().is_some_and(|worst| worst >= arguments.fail_on);
    Ok(if fails { ExitStatus::Findings } else { ExitStatus::Success })
}

async fn report(arguments: &Arguments) -> anyhow::Result<ScanReport> {
    let config = arguments.cluster.infer().await?;
    let cluster = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let client = cluster::client(config)?;
    let now = server_time(&client).await?;
    let FoundPolicies { policies, origin, .. } = arguments.policies.read(&client).await?;
    let options = ScanOptions {
        cluster,
        policy: origin,
        namespace: arguments.namespace.clone().filter(|_| !arguments.all_namespaces),
        reach: Reach::default(),
        bodies: arguments.bodies,
        drift: arguments.drift,
    };
    let bar = Progress::new("listing releases", None, Unit::Things, false);
    let on_progress = |ScanProgress { done, total }| {
        bar.of("examining releases", total as u64);
        bar.at(done as u64);
    };
    // A list can take long and reports no progress.
    let ticking = async {
        loop {
            sleep(PROGRESS_TICK).await;
            bar.tick();
        }
    };
    tokio::select! {
        report = scan(&client, &policies, &options, now, &on_progress) => Ok(report?),
        never = ticking => never,
    }
}

fn text_of(report: &ScanReport) -> String {
    let mut text = String::new();
    if !report.findings.is_empty() {
        let mut table = table::table(&["severity", "release", "check", "problem and fix"]);
        for finding in &report.findings {
            let Finding { kind, message, way_out, .. } = finding;
            let what = format!("{}\n{}", printable(message), printable(way_out));
            table.add_row([
                severity(finding.severity()),
                printable(&place(finding)).into(),
                kind.as_str().into(),
                what.into(),
            ]);
        }
        text = format!("{table}\n");
    }
    text.extend(report.not_looked_at.iter().map(|gap| not_scanned(gap) + "\n"));
    let ScanReport { releases, records, calls, took_seconds, policy, .. } = report;
    text.push_str(&format!("{releases} releases, {records} records: {}", counts(report)));
    text.push_str(&format!(" ({calls} API server calls, {took_seconds:.1} s), by {}\n", printable(policy)));
    text
}

fn not_scanned(Gap { what, times, why }: &Gap) -> String {
    let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
    format!("not scanned: {what}{times}: {}", printable(why))
}

/// The releases and objects with findings, each once, in the order of the report: the worst first.
fn names(findings: &[Finding]) -> String {
    let mut listed = HashSet::new();
    let names = findings.iter().map(|finding| printable(&place(finding)));
    names.filter(|name| listed.insert(name.clone())).map(|name| name + "\n").collect()
}

/// `shop/web`.
fn place(finding: &Finding) -> String {
    format!("{}/{}", finding.namespace(), finding.name())
}

/// `2 high, 1 info`.
fn counts(report: &ScanReport) -> String {
    let counted = Severity::ALL.map(|severity| (report.count(severity), severity));
    let counted: Vec<_> =
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, severity)| format!("{count} {severity}")).collect();
    if counted.is_empty() { "no findings".to_owned() } else { counted.join(", ") }
}

fn severity(severity: Severity) -> Cell {
    let cell = Cell::new(severity.as_str());
    match severity {
        Severity::High => cell.fg(Color::Red),
        Severity::Medium => cell.fg(Color::Yellow),
        Severity::Low | Severity::Info => cell,
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::object::ObjectKey;
    use interlock_engine::release::ReleaseRef;

    use super::*;
    use crate::inspect::scan::FindingKind;

    #[test]
    fn names_are_listed_once_and_the_worst_first() {
        let finding = |release: Option<&str>, object: &str| Finding {
            kind: FindingKind::StuckOperation,
            release: release.map(|name| ReleaseRef::new("shop", name)),
            object: Some(ObjectKey::new("", "Secret", "shop", object)),
            message: String::new(),
            way_out: String::new(),
        };
        let findings =
            [finding(Some("web"), "a"), finding(None, "lost"), finding(Some("api"), "b"), finding(Some("web"), "c")];
        assert_eq!(names(&findings), "shop/web\nshop/lost\nshop/api\n");
    }
}

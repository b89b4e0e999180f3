//! `interlock scan`: what is wrong with the releases of a cluster.

use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use comfy_table::{Cell, Color};
use jiff::Timestamp;
use tokio::time::sleep;

use super::cluster::{self, ClusterArguments};
use super::exit_status::ExitStatus;
use super::policy_dir::PolicyDir;
use super::progress::{self, Unit};
use super::table::{self, printable};
use crate::engine::severity::Severity;
use crate::inspect::scan::{BodySelection, Finding, Gap, ScanOptions, ScanProgress, ScanReport, page, scan};
use crate::world::kubernetes::Reach;

/// How often the bar moves by itself.
const PROGRESS_TICK: Duration = Duration::from_millis(250);

/// Find what is wrong with the releases of a cluster already, without a write
///
/// Several deployed records, operations that are stuck, failed or interrupted, records that do not decode or whose labels
/// disagree, HelmReleases that collide, ConfigurationGroups over bundles that are gone; with --drift objects that differ
/// from what their release declares. Needs to list Secrets and ConfigMaps, and to get Secrets; what else it may not read it
/// says and leaves out. Exits with 1 on findings at or above --fail-on, and with 2 where the records cannot be listed.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only this namespace; all of them without it
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Compare the objects of deployed releases with their manifests too: one read an object
    #[arg(long)]
    drift: bool,
    /// Whose bodies are read, beside the metadata of all
    #[arg(long, value_enum, default_value = "acted-on")]
    bodies: WhichBodies,
    /// Exit with 1 on findings of this severity or a worse one
    #[arg(long, value_enum, value_name = "SEVERITY", default_value = "high")]
    fail_on: FailOn,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// How to print
    #[arg(short, long, value_enum, default_value = "table")]
    output: Format,
    /// Write it to a file, and only the counts to standard output
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    #[command(flatten)]
    policies: PolicyDir,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// One page for a browser, which needs nothing else.
    Html,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum WhichBodies {
    /// Of releases with a finding in their metadata: the newest record and the deployed ones.
    Questioned,
    /// Of every release: the newest record and the deployed ones, which helm acts on.
    ActedOn,
    /// All.
    All,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailOn {
    Info,
    Low,
    Medium,
    High,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let policies = arguments.policies.load()?;
    let report = tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let config = arguments.cluster.infer().await?;
        let options = ScanOptions {
            cluster: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
            namespace: arguments.namespace.clone(),
            reach: Reach::default(),
            bodies: arguments.bodies.into(),
            drift: arguments.drift,
        };
        let client = cluster::client(config)?;
        let bar = Mutex::new(progress::Progress::new("listing releases", None, Unit::Things, false));
        let bar = || bar.lock().unwrap_or_else(PoisonError::into_inner);
        let progress = |ScanProgress { done, total }| {
            let mut bar = bar();
            bar.of("looking into releases", total as u64);
            bar.at(done as u64);
        };
        // Lists may take long, and say nothing until they are whole.
        let ticking = async {
            loop {
                sleep(PROGRESS_TICK).await;
                bar().tick();
            }
        };
        tokio::select! {
            report = scan(&client, &policies, &options, Timestamp::now(), &progress) => anyhow::Ok(report?),
            never = ticking => never,
        }
    })?;
    let text = match arguments.output {
        Format::Table => text_of(&report),
        Format::Json => serde_json::to_string_pretty(&report)? + "\n",
        Format::Html => page::page(&report),
    };
    match &arguments.output_file {
        Some(file) => {
            fs::write(file, text).with_context(|| format!("failed to write {}", file.display()))?;
            writeln!(stdout(), "{}: {}", file.display(), counts(&report))?;
        }
        None => stdout().write_all(text.as_bytes())?,
    }
    let fails = report.worst().is_some_and(|worst| worst >= arguments.fail_on.into());
    Ok(if fails { ExitStatus::Findings } else { ExitStatus::Success })
}

fn text_of(report: &ScanReport) -> String {
    let mut text = String::new();
    if !report.findings.is_empty() {
        let mut table = table::table(&["severity", "release", "check", "what, and what to do"]);
        for finding in &report.findings {
            let Finding { kind, message, way_out, .. } = finding;
            let release = format!("{}/{}", finding.namespace(), finding.name());
            let what = format!("{}\n{}", printable(message), printable(way_out));
            table.add_row([
                severity(finding.severity()),
                printable(&release).into(),
                kind.as_str().into(),
                what.into(),
            ]);
        }
        text = format!("{table}\n");
    }
    for Gap { what, times, why } in &report.not_looked_at {
        let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
        text.push_str(&format!("not looked at: {what}{times}: {}\n", printable(why)));
    }
    let ScanReport { releases, records, calls, took_seconds, .. } = report;
    text.push_str(&format!("{releases} releases, {records} records: {}", counts(report)));
    text.push_str(&format!(" ({calls} calls of the API server, {took_seconds:.1} s)\n"));
    text
}

/// `2 high, 1 info`.
fn counts(report: &ScanReport) -> String {
    let counted = Severity::ALL.map(|severity| (report.count(severity), severity));
    let counted: Vec<_> =
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, severity)| format!("{count} {severity}")).collect();
    if counted.is_empty() { "nothing found".to_owned() } else { counted.join(", ") }
}

fn severity(severity: Severity) -> Cell {
    let cell = Cell::new(severity.as_str());
    match severity {
        Severity::High => cell.fg(Color::Red),
        Severity::Medium => cell.fg(Color::Yellow),
        Severity::Low | Severity::Info => cell,
    }
}

impl From<WhichBodies> for BodySelection {
    fn from(which: WhichBodies) -> Self {
        match which {
            WhichBodies::Questioned => Self::Questioned,
            WhichBodies::ActedOn => Self::ActedOn,
            WhichBodies::All => Self::All,
        }
    }
}

impl From<FailOn> for Severity {
    fn from(fail_on: FailOn) -> Self {
        match fail_on {
            FailOn::Info => Self::Info,
            FailOn::Low => Self::Low,
            FailOn::Medium => Self::Medium,
            FailOn::High => Self::High,
        }
    }
}

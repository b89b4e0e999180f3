//! `interlock adopt`: whom would Interlock refuse in a cluster? From its audit logs.

mod adopted;
mod cluster;
mod metrics;
mod page;
mod text;
mod wording;

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::ValueEnum;
use interlock_engine::policy::Policies;
use jiff::Timestamp;

use super::cluster::ClusterArguments;
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output;
use super::policy_dir::PolicyDir;
use super::progress::{Progress, Unit};
use super::registration_file::RegistrationFile;
use super::replay;
use super::runtime::block_on;
use super::since::since;
use crate::offline::adopt::{AdoptReport, Adoption};
use crate::offline::replay::{Replay, ReplayGaps, Source, SourceNotes};
use adopted::Adopted;
use cluster::ClusterState;

/// The argument that stands for standard input, and the file that is.
const STANDARD_INPUT: (&str, &str) = ("-", "/dev/stdin");

/// The file of the cluster policy.
const CLUSTER_FILE: &str = "cluster.yaml";

/// Say whom Interlock would refuse in a cluster, from its audit logs, and write the policy that follows
///
/// Classifies each account that writes releases or their objects, with the evidence: person, pipeline, manager, platform,
/// controller, tool, hook. Says for each rule what would have been refused: incidents, and honest work, with the line of
/// policy that opens it. What is neither is a question, and opens nothing. The log is judged as if no cap were set. Run
/// it again later with --policies: it names the next rule that can be enforced, and the change of cluster.yaml.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock adopt audit*.log.gz --write policies",
    "interlock adopt audit.log --policies policies -o html > adopt.html",
    "interlock adopt audit.log --context prod --metrics replica-*.txt",
]))]
pub(super) struct Arguments {
    /// Audit logs of all API servers of the cluster, rotated or not, and recordings, as for `interlock replay`; plain,
    /// gzip or zstd, `-` for standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Count only requests since this time: a duration before now (24h, 7d) or a time (2026-11-20T10:00:00Z). Older
    /// requests are still judged and applied
    #[arg(long, value_name = "TIME", value_parser = |text: &str| since(text, Timestamp::now()))]
    since: Option<Timestamp>,
    /// Write the policy that follows to cluster.yaml in this directory. An existing file is replaced if --policies names
    /// the same directory
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Metrics of the replicas of Interlock in the cluster, a file for each: they count what it found since it started
    #[arg(long, value_name = "FILE", num_args = 1..)]
    metrics: Vec<PathBuf>,
    #[command(flatten)]
    registration: RegistrationFile,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Format,
    #[command(flatten)]
    policies: PolicyDir,
    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
    /// A self-contained page for a browser, to send around.
    Html,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let target = arguments.target()?;
    let files = arguments.files()?;
    let mut adoption = Adoption::new(arguments.policies.load()?)?;
    let text =
        arguments.policies.policies.as_deref().map(|directory| read(&directory.join(CLUSTER_FILE))).transpose()?;
    let counted = metrics::read(&arguments.metrics)?;
    let registration = Arc::new(arguments.registration.load()?);
    let source = Source::new(files)?;
    // Read first: a cluster that cannot be reached is an error before a log that takes long.
    let cluster = block_on(arguments.cluster_state(&adoption.judging()))?;
    let replay = Replay::new(adoption.judging(), true).registered(registration);
    let (gaps, notes) = block_on(judge(source, replay, &mut adoption, arguments.since))?;
    let report = Adopted { report: adoption.report(text.as_deref()), cluster, counted };
    let is_empty = arguments.since.filter(|_| report.report.reviews == 0);
    let notes = replay::notes(&gaps, &notes, is_empty);
    if gaps.nothing_judged().is_none_or(|nothing| !nothing.is_failure) {
        arguments.print(&report, &notes)?;
    }
    replay::report(&gaps, &notes)?;
    if let Some(target) = target {
        write(&target, &report.report)?;
    }
    Ok(ExitStatus::Success)
}

/// Judges every line, as recorded.
async fn judge(
    mut source: Source,
    mut replay: Replay,
    adoption: &mut Adoption,
    since: Option<Timestamp>,
) -> anyhow::Result<(ReplayGaps, SourceNotes)> {
    let progress = Progress::new("reading", source.size(), Unit::Bytes, false);
    loop {
        progress.at(source.read());
        let Some(line) = source.line()? else { break };
        let judged = replay.source_line(&line).await?;
        judged.iter().filter(|replayed| since.is_none_or(|since| replayed.at >= since)).for_each(|it| adoption.add(it));
    }
    adoption.add_owners(replay.appliers());
    Ok((replay.gaps(), source.notes()))
}

impl Arguments {
    /// The files to read, with that of standard input.
    fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let (argument, file) = STANDARD_INPUT;
        let inputs = self.files.iter().filter(|path| path.as_os_str() == argument).count();
        anyhow::ensure!(inputs <= 1, "standard input (-) can be read once only");
        let opened =
            self.files.iter().map(|path| if path.as_os_str() == argument { file.into() } else { path.clone() });
        Ok(opened.collect())
    }

    /// The file to write. Checked at the start, because reading a log takes a while.
    fn target(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(directory) = &self.write else { return Ok(None) };
        let target = directory.join(CLUSTER_FILE);
        let in_force = self.policies.policies.as_ref().map(|policies| policies.join(CLUSTER_FILE));
        let is_same = in_force.is_some_and(|in_force| is_same_file(&in_force, &target));
        anyhow::ensure!(
            is_same || !target.exists(),
            "{} exists, and would be replaced. To change it, name its directory with --policies too; otherwise write to another \
             directory",
            target.display()
        );
        Ok(Some(target))
    }

    /// The state of the cluster, if one is named.
    async fn cluster_state(&self, policies: &Policies) -> anyhow::Result<Option<ClusterState>> {
        if !self.cluster.is_named() {
            return Ok(None);
        }
        ClusterState::read(&self.cluster, policies).await.map(Some)
    }

    fn print(&self, report: &Adopted, notes: &str) -> anyhow::Result<()> {
        let policy = self.policies.policies.as_deref().map(|directory| directory.join(CLUSTER_FILE));
        let by = policy.map_or_else(|| "the shipped policy".to_owned(), |path| path.display().to_string());
        match self.output {
            Format::Table => Ok(output::print(&text::text(report, &by))?),
            Format::Json => output::print_json(report),
            Format::Yaml => output::print_yaml(report),
            Format::Html => Ok(stdout().write_all(page::page(report, &by, notes).as_bytes())?),
        }
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

/// Writes the policy, or says why there is nothing to write.
fn write(path: &Path, report: &AdoptReport) -> anyhow::Result<()> {
    let Some(text) = &report.policy else {
        output::complain(&format!("interlock: {} is not written: there is nothing to change in it", path.display()));
        return Ok(());
    };
    let failed = || format!("failed to write {}", path.display());
    path.parent().map_or(Ok(()), fs::create_dir_all).with_context(failed)?;
    fs::write(path, text).with_context(failed)?;
    output::complain(&format!("interlock: wrote {}", path.display()));
    Ok(())
}

#[cfg(test)]
mod tests;

//! `interlock replay`: judges recordings and audit logs, line by line.

mod compare;
mod effect;
mod overview;
mod page;
mod results;
mod tally;

use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use jiff::Timestamp;

use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output::{self, Output};
use super::policy_dir::PolicyDir;
use super::progress::{Progress, Unit};
use super::registration_file::RegistrationFile;
use super::runtime::block_on;
use super::since::since;
use crate::offline::replay::{Replay, ReplayGaps, Replayed, Source, SourceNotes};
use crate::world::policy_directory;
use results::Results;

/// Judge recordings or audit logs, and report what would have been denied
///
/// Requests that the registration does not send to Interlock are counted and not judged.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock replay audit.log --since 24h",
    "interlock replay audit.log.gz --policies policies --compare policies/examples/gitops-only",
]))]
pub(super) struct Arguments {
    /// JSON lines: AdmissionReviews, {"review","t"}, {"object"}, {"remove"}, {"mark"}, or audit events; plain, gzip or
    /// zstd. Several files are merged by the times of their lines: audit logs of all API servers of a cluster, rotated or
    /// not. Lines without a time at the start of a file come first, in the given order: the state before the logs
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Apply refused writes too, for a recording that was made without Interlock
    #[arg(long)]
    as_recorded: bool,
    /// Report only reviews since this time: a duration before now (24h, 7d) or a time (2026-11-20T10:00:00Z). Older
    /// reviews are still judged and applied
    #[arg(long, value_name = "TIME", value_parser = |text: &str| since(text, Timestamp::now()))]
    since: Option<Timestamp>,
    /// Also judge with the policies of this directory, and report only different verdicts
    #[arg(long, value_name = "DIR")]
    compare: Option<PathBuf>,
    #[command(flatten)]
    registration: RegistrationFile,
    /// Output format; html cannot show a comparison
    #[arg(short, long, value_enum, default_value = "table")]
    output: Format,
    #[command(flatten)]
    policies: PolicyDir,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
    /// A self-contained page for a browser: by rule, by namespace and by account, with examples.
    Html,
}

impl Format {
    /// The output that prints each review at once. `None` for formats that print at the end.
    fn streamed(self) -> Option<Output> {
        match self {
            Self::Json => Some(Output::Json),
            Self::Yaml => Some(Output::Yaml),
            Self::Table | Self::Html => None,
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    anyhow::ensure!(
        arguments.compare.is_none() || arguments.output != Format::Html,
        "--compare has no page: use the output table, json or yaml"
    );
    let registration = Arc::new(arguments.registration.load()?);
    let source = Source::new(arguments.files.clone())?;
    let replay = |policies| Replay::new(policies, arguments.as_recorded).registered(Arc::clone(&registration));
    let here = replay(arguments.policies.load()?);
    let there = arguments.compare.as_deref().map(policy_directory::load).transpose()?.map(replay);
    let mut out = BufWriter::new(stdout().lock());
    let found = block_on(judge(arguments, source, here, there, &mut out))?;
    out.flush()?;
    Ok(found)
}

/// Judges every line, prints the results, and reports lines that could not be judged.
async fn judge(
    arguments: &Arguments,
    mut source: Source,
    mut here: Replay,
    mut there: Option<Replay>,
    out: &mut impl Write,
) -> anyhow::Result<ExitStatus> {
    let mut results = Results::new(arguments.output, there.is_some());
    let is_wanted = |replayed: &Replayed| arguments.since.is_none_or(|since| replayed.at >= since);
    let streams = arguments.output.streamed().is_some();
    let progress = Progress::new("replaying", source.size(), Unit::Bytes, streams);
    loop {
        progress.at(source.read());
        let Some(line) = source.line()? else { break };
        let judged = here.source_line(&line).await?;
        match &mut there {
            None => {
                for replayed in judged.iter().filter(|it| is_wanted(it)) {
                    results.add(replayed, out)?;
                }
            }
            Some(there) => {
                let other = there.source_line(&line).await?;
                for (here, there) in judged.iter().zip(&other).filter(|(here, _)| is_wanted(here)) {
                    results.compare(here, there, out)?;
                }
            }
        }
    }
    drop(progress);
    let gaps = here.gaps();
    let notes = notes(&gaps, &source.notes(), arguments.since.filter(|_| results.is_empty()));
    results.print(&gaps, &notes, out)?;
    out.flush()?;
    report(&gaps, &notes)?;
    if gaps.writes > 0 && results.denied() > 0 && !arguments.as_recorded {
        eprintln!(
            "The denied writes took place according to the input. Use --as-recorded to judge later writes in the \
            recorded state."
        );
    }
    Ok(if results.found() > 0 { ExitStatus::Findings } else { ExitStatus::Success })
}

/// The gaps of the input, one per line. `none_since` is set if no review is since then.
pub(super) fn notes(gaps: &ReplayGaps, notes: &SourceNotes, none_since: Option<Timestamp>) -> String {
    let mut notes = format!("{notes}{gaps}");
    if let Some(since) = none_since.filter(|_| gaps.reviews > 0) {
        notes += &format!("All {} reviews are before {since:.0}, so that none is reported.\n", gaps.reviews);
    }
    if let Some(nothing) = gaps.nothing_judged().filter(|nothing| !nothing.is_failure) {
        notes += &nothing.why;
    }
    notes
}

/// Prints the notes.
///
/// # Errors
/// If nothing was judged although the input may contain reviews.
pub(super) fn report(gaps: &ReplayGaps, notes: &str) -> anyhow::Result<()> {
    if !notes.is_empty() {
        output::complain(notes.trim_end());
    }
    match gaps.nothing_judged().filter(|nothing| nothing.is_failure) {
        Some(nothing) => Err(anyhow::anyhow!(nothing.why)),
        None => Ok(()),
    }
}

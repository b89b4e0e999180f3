//! `interlock replay`: judges recordings and audit logs, line by line.

mod compare;
mod tally;

use std::io::{BufWriter, IsTerminal, Write, stdout};
use std::path::PathBuf;

use anyhow::Context;
use jiff::Timestamp;

use super::exit_status::ExitStatus;
use super::output::{self, Output, screened};
use super::policy_dir::PolicyDir;
use super::progress::{Progress, Unit};
use super::runtime::block_on;
use super::since::since;
use crate::engine::policy::Policies;
use crate::offline::replay::{Replay, ReplayGaps, Replayed, Source, SourceLine, SourceNotes};
use compare::PolicyComparison;
use tally::Tally;

/// Judge recordings or audit logs, and report what would have been denied
#[derive(Debug, clap::Args)]
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
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    #[command(flatten)]
    policies: PolicyDir,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let source = Source::new(arguments.files.clone())?;
    let replay = |policies| Replay::new(policies, arguments.as_recorded);
    let here = replay(arguments.policies.load()?);
    let there = arguments.compare.as_deref().map(Policies::load).transpose()?.map(replay);
    let mut out = BufWriter::new(stdout().lock());
    let found = block_on(judge(arguments, source, here, there, &mut out))?;
    out.flush()?;
    Ok(found)
}

/// Judges every line, prints the results, and reports what could not be judged.
async fn judge(
    arguments: &Arguments,
    mut source: Source,
    mut here: Replay,
    mut there: Option<Replay>,
    out: &mut impl Write,
) -> anyhow::Result<ExitStatus> {
    let streams = arguments.output != Output::Table;
    let (mut tally, mut comparison, mut reported) = (Tally::default(), PolicyComparison::default(), 0);
    let is_wanted = |replayed: &&Replayed| arguments.since.is_none_or(|since| replayed.at >= since);
    let mut progress = Progress::new("replaying", source.size(), Unit::Bytes, streams);
    loop {
        progress.at(source.read());
        let Some(line) = source.line()? else { break };
        let judged = replayed(&mut here, &line).await?;
        reported += judged.iter().filter(is_wanted).count();
        let Some(there) = &mut there else {
            for replayed in judged.iter().filter(is_wanted) {
                tally.add(replayed);
                arguments.output.print_next(out, replayed)?;
            }
            continue;
        };
        let other = replayed(there, &line).await?;
        for (here, there) in judged.iter().zip(&other).filter(|(here, _)| is_wanted(here)) {
            let differing = comparison.add(here, there);
            if let Some(differing) = differing {
                arguments.output.print_next(out, &differing)?;
            }
        }
    }
    drop(progress);
    let gaps = here.gaps();
    let is_terminal = stdout().is_terminal();
    let found = if there.is_some() { comparison.differing() } else { tally.denied() };
    match arguments.output {
        Output::Json | Output::Yaml => {}
        Output::Table if there.is_some() => writeln!(out, "{}", screened(&comparison.to_string(), is_terminal))?,
        Output::Table => writeln!(out, "{}", screened(&tally.to_string(), is_terminal))?,
    }
    out.flush()?;
    report(&gaps, &source.notes(), arguments.since.filter(|_| reported == 0))?;
    if gaps.writes > 0 && tally.denied() > 0 && !arguments.as_recorded {
        eprintln!(
            "The denied writes took place according to the input. Use --as-recorded to judge later writes in the \
            recorded state."
        );
    }
    Ok(if found > 0 { ExitStatus::Findings } else { ExitStatus::Success })
}

/// Reports what the input does not contain; `none_since` is set if no review is since then.
///
/// # Errors
/// If there may have been something to judge, and nothing was judged.
fn report(gaps: &ReplayGaps, notes: &SourceNotes, none_since: Option<Timestamp>) -> anyhow::Result<()> {
    let mut notes = format!("{notes}{gaps}");
    if let Some(since) = none_since.filter(|_| gaps.reviews > 0) {
        notes += &format!("All {} reviews are before {since:.0}, so that none is reported.\n", gaps.reviews);
    }
    let nothing = gaps.nothing_judged();
    if let Some(nothing) = nothing.as_ref().filter(|nothing| !nothing.is_failure) {
        notes += &nothing.why;
    }
    if !notes.is_empty() {
        output::complain(notes.trim_end());
    }
    match nothing.filter(|nothing| nothing.is_failure) {
        Some(nothing) => Err(anyhow::anyhow!(nothing.why)),
        None => Ok(()),
    }
}

async fn replayed(replay: &mut Replay, line: &SourceLine<'_>) -> anyhow::Result<Vec<Replayed>> {
    let replayed = replay.line(line.number, line.text).await;
    let hint = || line.hint().map(|hint| format!(". {hint}")).unwrap_or_default();
    replayed.map_err(|error| anyhow::anyhow!("{error}{}", hint())).with_context(|| line.file.display().to_string())
}

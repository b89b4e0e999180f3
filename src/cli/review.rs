//! `interlock review`: judges one review from a file.

use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output::Output;
use super::policy_dir::PolicyDir;
use super::table;
use crate::offline::replay::{Replay, Replayed};
use crate::regular_file;

/// The largest file, in bytes. Equals the longest line of a recording.
const MAX_REVIEW_BYTES: u64 = 64 << 20;

/// Judge one AdmissionReview from a file, against an empty cluster
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock review review.json",
    "interlock review - --policies policies -o yaml < review.json",
]))]
pub(super) struct Arguments {
    /// File with an AdmissionReview, or - for standard input
    file: PathBuf,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    #[command(flatten)]
    policies: PolicyDir,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let text = read(&arguments.file).with_context(|| format!("failed to read {}", arguments.file.display()))?;
    let mut replay = Replay::new(arguments.policies.load()?, false);
    let replayed = replay.line(1, &text).await?;
    let Some(replayed) = replayed.first() else { anyhow::bail!("{} contains no review", arguments.file.display()) };
    arguments.output.print(replayed, || text_of(replayed))?;
    Ok(if replayed.allowed { ExitStatus::Success } else { ExitStatus::Findings })
}

fn text_of(replayed: &Replayed) -> String {
    let mut table = table::table(&["verdict", "rule", "why"]);
    if replayed.violations.is_empty() {
        table.add_row([table::verdict(true)]);
    }
    for violation in &replayed.violations {
        table.add_row([
            table::verdict(replayed.allowed),
            violation.rule.into(),
            table::printable(&violation.message).into(),
        ]);
    }
    format!("{table}\n")
}

fn read(file: &Path) -> std::io::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    regular_file::read_text(file, MAX_REVIEW_BYTES)
}

//! `interlock replay`: judges a recording, line by line.

use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::PathBuf;

use anyhow::Context;
use flate2::bufread::MultiGzDecoder;

use super::{Finding, Output, PolicyDir, block_on, table};
use crate::replay::{Replay, Replayed};

/// Judge a recording of reviews or an audit log, as a cluster would have seen it
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// JSON lines: AdmissionReviews, {"review","t"}, {"object"}, {"remove"}, {"mark"}, or audit events; may be gzipped
    file: PathBuf,
    /// Apply refused writes too: what would have been denied in a recording made without Interlock
    #[arg(long)]
    as_recorded: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    #[command(flatten)]
    policies: PolicyDir,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Finding> {
    let name = arguments.file.display();
    let lines = lines(&arguments.file).with_context(|| format!("failed to read {name}"))?;
    let mut replay = Replay::new(arguments.policies.load()?, arguments.as_recorded);
    let mut summary = Summary::default();
    block_on(async {
        for (index, line) in lines.enumerate() {
            let line = line.with_context(|| format!("failed to read {name}, line {}", index + 1))?;
            if line.trim().is_empty() {
                continue;
            }
            for replayed in replay.line(index + 1, &line).await.with_context(|| name.to_string())? {
                match arguments.output {
                    Output::Json => writeln!(stdout(), "{}", serde_json::to_string(&replayed)?)?,
                    Output::Table => {}
                }
                summary.add(replayed);
            }
        }
        Ok(())
    })?;
    if arguments.output == Output::Table {
        writeln!(stdout(), "{summary}")?;
    }
    Ok(if summary.denied > 0 { Finding::Something } else { Finding::Nothing })
}

/// The lines of a file, unpacked where it is gzip.
fn lines(path: &PathBuf) -> std::io::Result<Box<dyn Iterator<Item = std::io::Result<String>>>> {
    let mut file = BufReader::new(File::open(path)?);
    let packed = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(if packed { Box::new(BufReader::new(MultiGzDecoder::new(file)).lines()) } else { Box::new(file.lines()) })
}

/// What people want to know: which reviews were not plainly admitted, and how many there were.
#[derive(Default)]
struct Summary {
    reviews: usize,
    denied: usize,
    notable: Vec<Replayed>,
}

impl Summary {
    fn add(&mut self, replayed: Replayed) {
        self.reviews += 1;
        self.denied += usize::from(!replayed.allowed);
        if !replayed.violations.is_empty() {
            self.notable.push(replayed);
        }
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.notable.is_empty() {
            let mut table = table::table(&["line", "verdict", "request", "why"]);
            for replayed in &self.notable {
                let Replayed { operation, resource, namespace, name, user, .. } = replayed;
                let why: Vec<_> = replayed.violations.iter().map(|violation| violation.message.as_str()).collect();
                table.add_row([
                    replayed.line.to_string().into(),
                    table::verdict(replayed.allowed),
                    format!("{operation} {resource} {namespace}/{name} by {user}").into(),
                    why.join("\n").into(),
                ]);
            }
            writeln!(out, "{table}")?;
        }
        write!(out, "{} reviews, {} denied", self.reviews, self.denied)
    }
}

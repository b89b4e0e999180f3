//! The results of a replay, as far as its output needs them.

use std::io::{IsTerminal, Write, stdout};

use super::Format;
use super::compare::PolicyComparison;
use super::overview::Overview;
use super::page;
use super::tally::Tally;
use crate::cli::output::screened;
use crate::offline::replay::{ReplayGaps, Replayed};

/// The counts while lines are judged. JSON and YAML are printed at once.
pub(super) struct Results {
    format: Format,
    tally: Tally,
    /// Used for the format html.
    overview: Overview,
    /// Used with a second policy.
    comparison: Option<PolicyComparison>,
    reported: usize,
}

impl Results {
    pub(super) fn new(format: Format, compares: bool) -> Self {
        let comparison = compares.then(PolicyComparison::default);
        Self { format, tally: Tally::default(), overview: Overview::default(), comparison, reported: 0 }
    }

    /// Adds a review.
    pub(super) fn add(&mut self, replayed: &Replayed, out: &mut impl Write) -> anyhow::Result<()> {
        self.reported += 1;
        self.tally.add(replayed);
        if self.format == Format::Html {
            self.overview.add(replayed);
        }
        self.format.streamed().map_or(Ok(()), |output| output.print_next(out, replayed))
    }

    /// Adds a review that two policies judged.
    pub(super) fn compare(&mut self, here: &Replayed, there: &Replayed, out: &mut impl Write) -> anyhow::Result<()> {
        self.reported += 1;
        let differing = self.comparison.as_mut().and_then(|comparison| comparison.add(here, there));
        match (self.format.streamed(), differing) {
            (Some(output), Some(differing)) => output.print_next(out, &differing),
            _ => Ok(()),
        }
    }

    /// Prints the results at the end. `notes` are the lines about input that could not be judged.
    pub(super) fn print(&self, gaps: &ReplayGaps, notes: &str, out: &mut impl Write) -> std::io::Result<()> {
        let text = match (self.format, &self.comparison) {
            (Format::Json | Format::Yaml, _) => return Ok(()),
            (Format::Html, _) => return out.write_all(page::page(&self.overview, notes).as_bytes()),
            (Format::Table, Some(comparison)) => comparison.to_string(),
            (Format::Table, None) => match gaps.all_not_sent() {
                0 => self.tally.to_string(),
                not_sent => format!("{}, {not_sent} not sent to Interlock", self.tally),
            },
        };
        writeln!(out, "{}", screened(&text, stdout().is_terminal()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reported == 0
    }

    /// The number of refused reviews.
    pub(super) fn denied(&self) -> usize {
        self.tally.denied()
    }

    /// The number of reviews that change the exit code.
    pub(super) fn found(&self) -> usize {
        self.comparison.as_ref().map_or(self.tally.denied(), PolicyComparison::differing)
    }
}

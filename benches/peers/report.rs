//! What was measured: a line for each series as it ends, and one table for `docs/performance.md`.

use std::fs;
use std::process::Command;

use crate::direct;
use crate::load::Round;
use crate::peer::Peer;
use crate::selection::{LABEL, WRITES};
use crate::writes;

/// Characters of each end of an error that a cell of the table shows.
const SHOWN: usize = 150;

/// The rounds of some traffic at some rate, for each peer by its name. The first is the floor of the others.
pub(crate) struct Series {
    pub(crate) traffic: &'static str,
    /// In requests a second; `None`: as fast as it goes.
    pub(crate) rate: Option<f64>,
    pub(crate) rounds: Vec<(String, Vec<Round>)>,
}

#[derive(Default)]
pub(crate) struct Report {
    series: Vec<Series>,
    /// Peers that could not take part, and why.
    pub(crate) missing: Vec<(&'static str, anyhow::Error)>,
}

impl Report {
    pub(crate) fn add(&mut self, series: Series) {
        if self.series.is_empty() {
            println!(
                "{:<44}{:>10}{:>8}{:>9}{:>9}{:>8}{:>12}{:>8}{:>12}",
                "medians of rounds",
                "a second",
                "ratio",
                "p50 ms",
                "p99 ms",
                "ratio",
                "CPU s/1,000",
                "ratio",
                "API server"
            );
        }
        series.print();
        self.series.push(series);
    }

    fn series(&self, traffic: &str, rate: Option<f64>, peer: &str) -> Option<&[Round]> {
        let series = self.series.iter().find(|it| it.traffic == traffic && it.rate == rate)?;
        series.rounds.iter().find(|(name, _)| name == peer).map(|(_, rounds)| rounds.as_slice())
    }

    /// The table in Markdown: a row for each peer, also for those that could not take part.
    pub(crate) fn print_table(&self, names: &[String], peers: &[Peer], kubernetes: &str) {
        println!("\n{}\n", machine(kubernetes));
        println!(
            "| | ready after | RSS at rest, under load | reviews/s | p50, p99 at {}/s | CPU s/1,000 | writes/s | p50, p99 at {}/s \
             | CPU s/1,000: webhook, API server |\n|---|---|---|---|---|---|---|---|---|",
            direct::STEADY,
            writes::STEADY
        );
        for name in names {
            let peer = peers.iter().find(|peer| peer.name == *name);
            let memory = peer.map(|peer| format!("{:.0}, {:.0} MiB", peer.at_rest, self.most(peer)));
            let cells = [
                peer.map(|peer| format!("{:.2} s", peer.ready.as_secs_f64())),
                memory,
                self.series(LABEL, None, name).map(|rounds| format!("{:.0}", median(rounds, |round| round.rate))),
                self.series(LABEL, Some(direct::STEADY), name).map(times),
                self.series(LABEL, None, name).map(|rounds| format!("{:.2}", median(rounds, |round| round.webhook))),
                self.series(WRITES, None, name).map(|rounds| format!("{:.0}", median(rounds, |round| round.rate))),
                self.series(WRITES, Some(writes::STEADY), name).map(times),
                self.series(WRITES, None, name).map(|rounds| {
                    let (own, server) = (median(rounds, |it| it.webhook), median(rounds, |it| it.api_server));
                    if peer.is_some() { format!("{own:.2}, {server:.2}") } else { format!("-, {server:.2}") }
                }),
            ];
            if cells.iter().any(Option::is_some) {
                println!("| {name} | {} |", cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned())).join(" | "));
            }
        }
        for (name, error) in &self.missing {
            println!("| {name} | did not take part: {} | | | | | | | |", cell(error));
        }
    }

    /// The most memory at the end of a round, in MiB.
    fn most(&self, peer: &Peer) -> f64 {
        let rounds = self.series.iter().flat_map(|series| &series.rounds).filter(|(name, _)| *name == peer.name);
        rounds.flat_map(|(_, rounds)| rounds).map(|round| round.memory).fold(peer.at_rest, f64::max)
    }
}

impl Series {
    fn print(&self) {
        let pace = self.rate.map_or_else(|| "as fast as it goes".to_owned(), |rate| format!("{rate} a second"));
        println!("{}, {pace}", self.traffic);
        let Some((_, floor)) = self.rounds.first() else { return };
        for (name, own) in &self.rounds {
            // The median of the ratios, round by round: what else the machine did then fell on both.
            let ratio = |of: fn(&Round) -> f64| {
                let mut ratios: Vec<_> = own.iter().zip(floor).map(|(own, floor)| of(own) / of(floor)).collect();
                middle(&mut ratios)
            };
            println!(
                "    {name:<40}{:>10.0}{:>8.2}{:>9.3}{:>9.3}{:>8.2}{:>12.3}{:>8.2}{:>12.3}",
                median(own, |round| round.rate),
                ratio(|round| round.rate),
                median(own, |round| round.p50) * 1e3,
                median(own, |round| round.p99) * 1e3,
                ratio(|round| round.p99),
                median(own, |round| round.webhook),
                ratio(|round| round.webhook + round.api_server),
                median(own, |round| round.api_server),
            );
        }
    }
}

/// An error in one line, without the middle if it is long: compilers print what counts last.
fn cell(error: &anyhow::Error) -> String {
    let line = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "/");
    let characters: Vec<_> = line.chars().collect();
    if characters.len() <= 2 * SHOWN {
        return line;
    }
    let (start, end) = (&characters[..SHOWN], &characters[characters.len() - SHOWN..]);
    format!("{} ... {}", start.iter().collect::<String>(), end.iter().collect::<String>())
}

fn times(rounds: &[Round]) -> String {
    format!("{:.1}, {:.1} ms", median(rounds, |round| round.p50) * 1e3, median(rounds, |round| round.p99) * 1e3)
}

pub(crate) fn median(rounds: &[Round], of: fn(&Round) -> f64) -> f64 {
    middle(&mut rounds.iter().map(of).collect::<Vec<_>>())
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The machine and the versions that are not in the rows.
fn machine(kubernetes: &str) -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let go = Command::new("go").args(["env", "GOVERSION"]).output().map(|output| output.stdout).unwrap_or_default();
    let model = model.trim_start_matches([' ', '\t', ':']);
    format!("{cores} cores ({model}), Kubernetes {kubernetes}, {}", String::from_utf8_lossy(&go).trim())
}

//! `interlock doctor`: whether an installation works.

use std::io::{Write, stdout};

use anyhow::Context;
use comfy_table::{Cell, Color};
use kube::Client;

use super::cluster::ClusterArguments;
use super::exit_status::ExitStatus;
use super::output::Output;
use super::table::{self, printable};
use crate::engine::policy::DEFAULT_NAMESPACE;
use crate::engine::severity::Severity;
use crate::inspect::doctor::{Report, State, examine, registration};

/// Examine an installation: what is wrong with it, and the command that mends it
///
/// Reads, questions about rights, and two dry runs of a record's creation, which write nothing. What may not be read is told
/// as skipped. Exits with 1 where something is wrong.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Interlock's own namespace
    #[arg(short, long, value_name = "NAMESPACE", env = "INTERLOCK_NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// Print the registration as it should be, for kubectl apply, and examine nothing
    #[arg(long)]
    registration: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// How to print
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(doctor(arguments))
}

async fn doctor(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let config = arguments.cluster.found().await?;
    let client = Client::try_from(config).context("failed to make a client for the cluster")?;
    if arguments.registration {
        let whole = registration(&client, &arguments.namespace).await.context("failed to read the registration")?;
        writeln!(stdout(), "{}", serde_json::to_string_pretty(&whole)?)?;
        return Ok(ExitStatus::Success);
    }
    let report = examine(&client, &arguments.namespace).await.context("failed to reach the API server")?;
    match arguments.output {
        Output::Json => writeln!(stdout(), "{}", serde_json::to_string_pretty(&report)?)?,
        Output::Table => stdout().write_all(told(&report).as_bytes())?,
    }
    Ok(if report.has_findings() { ExitStatus::Findings } else { ExitStatus::Success })
}

/// A table of all checks, then how to mend what is wrong: commands are to be copied, so they stand by themselves.
fn told(report: &Report) -> String {
    let mut checks = table::table(&["", "check", "what was seen"]);
    for check in &report.checks {
        checks.add_row([state(check.state), check.check.into(), printable(&check.evidence).into()]);
    }
    let mut text = format!("{checks}\n");
    let mut shown: Vec<&str> = Vec::new();
    for check in &report.checks {
        let Some(fix) = check.fix.as_deref() else { continue };
        // One way out often mends several findings.
        if !shown.contains(&fix) {
            shown.push(fix);
            let fix: Vec<_> = fix.lines().map(|line| format!("    {}", printable(line))).collect();
            text.push_str(&format!("\n{}: {}\n{}\n", check.check, printable(&check.evidence), fix.join("\n")));
        }
    }
    let count = |wanted: fn(State) -> bool| report.checks.iter().filter(|check| wanted(check.state)).count();
    let findings = count(|state| matches!(state, State::Finding(_)));
    let skipped = count(|state| state == State::Skipped);
    let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    let found = if findings == 0 { "nothing is wrong".to_owned() } else { format!("{findings} findings") };
    text.push_str(&format!(
        "\n{} checks of the installation in {}: {found}{skipped}\n",
        report.checks.len(),
        report.namespace
    ));
    text
}

fn state(state: State) -> Cell {
    let cell = Cell::new(state.as_str());
    match state {
        State::Finding(Severity::High) => cell.fg(Color::Red),
        State::Finding(_) => cell.fg(Color::Yellow),
        State::Ok => cell.fg(Color::Green),
        State::Note | State::Skipped => cell,
    }
}

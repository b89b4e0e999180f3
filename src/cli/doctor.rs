//! `interlock doctor`: checks an installation.

use anyhow::Context;
use comfy_table::{Cell, Color};
use interlock_engine::policy::DEFAULT_NAMESPACE;
use interlock_engine::severity::Severity;

use super::cluster::ClusterArguments;
use super::examples::examples;
use super::exit_status::ExitStatus;
use super::output::{self, Output};
use super::table::{self, printable};
use crate::inspect::doctor::{Diagnosis, DiagnosisState, DoctorReport, examine, registration};

/// Check an installation, and print the commands that fix each finding
///
/// Reads objects, reviews access rights, and creates two records and two ReleaseOverrides as dry runs, which write nothing.
/// If Interlock is not installed, checks what an installation needs, and prints the command to install. Checks without the
/// necessary rights are reported as skipped. Exits with 1 if there is a finding.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["interlock doctor", "interlock doctor --pre", "interlock doctor -n guard -o json"]))]
pub(super) struct Arguments {
    /// Interlock's own namespace
    #[arg(short, long, value_name = "NAMESPACE", env = "INTERLOCK_NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// Check what an installation needs, before one
    #[arg(long)]
    pre: bool,
    /// Print the complete registration for kubectl apply, without any checks; unless a replica answers now, every entry
    /// fails open until the leader has proved that the API server reaches a replica
    #[arg(long, conflicts_with = "pre")]
    registration: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let client = arguments.cluster.client().await?;
    if arguments.registration {
        let objects = registration(&client, &arguments.namespace).await.context("failed to read the registration")?;
        output::print_json(&objects)?;
        return Ok(ExitStatus::Success);
    }
    let report =
        examine(&client, &arguments.namespace, arguments.pre).await.context("failed to reach the API server")?;
    arguments.output.print(&report, || text_of(&report, arguments.pre || !report.installed))?;
    Ok(if report.has_findings() { ExitStatus::Findings } else { ExitStatus::Success })
}

/// A table of all checks, then the fixes. Each command has its own line, so that users can copy it.
fn text_of(report: &DoctorReport, before: bool) -> String {
    let mut checks = table::table(&["", "check", "evidence"]);
    for check in &report.checks {
        let Diagnosis { state, evidence, .. } = &check.diagnosis;
        checks.add_row([state_cell(*state), check.topic.into(), printable(evidence).into()]);
    }
    let mut text = format!("{checks}\n");
    let mut shown: Vec<&str> = Vec::new();
    for check in &report.checks {
        let Diagnosis { evidence, fix: Some(fix), .. } = &check.diagnosis else { continue };
        // One fix often covers several findings.
        if !shown.contains(&fix.as_str()) {
            shown.push(fix);
            let fix: Vec<_> = fix.lines().map(|line| format!("    {}", printable(line))).collect();
            text.push_str(&format!("\n{}: {}\n{}\n", check.topic, printable(evidence), fix.join("\n")));
        }
    }
    let count =
        |wanted: fn(DiagnosisState) -> bool| report.checks.iter().filter(|check| wanted(check.diagnosis.state)).count();
    let findings = count(|state| matches!(state, DiagnosisState::Finding(_)));
    let skipped = count(|state| state == DiagnosisState::Skipped);
    let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    let found = match findings {
        0 => "nothing is wrong".to_owned(),
        1 => "1 finding".to_owned(),
        more => format!("{more} findings"),
    };
    let of = if before { "before an installation" } else { "of the installation" };
    text.push_str(&format!("\n{} checks {of} in {}: {found}{skipped}\n", report.checks.len(), report.namespace));
    text
}

fn state_cell(state: DiagnosisState) -> Cell {
    let cell = Cell::new(state.as_str());
    match state {
        DiagnosisState::Finding(Severity::High) => cell.fg(Color::Red),
        DiagnosisState::Finding(_) => cell.fg(Color::Yellow),
        DiagnosisState::Ok => cell.fg(Color::Green),
        DiagnosisState::Note | DiagnosisState::Skipped => cell,
    }
}

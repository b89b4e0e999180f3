//! `interlock policy`: policy files.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::excerpt::{excerpts, warning_excerpts};
use super::exit_status::ExitStatus;
use super::freezes;
use super::output::{self, Output};
use crate::engine::policy::Policies;
use crate::engine::policy_files::{LoadedPolicies, PolicyError, PolicyFiles, Problem, schema};

/// Check policy files, and print their JSON Schema for editors
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(CheckArguments),
    /// Print the JSON Schema of policy files
    Schema,
}

/// Check a directory of policies and print every error and warning. Exits with 1 on errors, and with 2 if a file cannot
/// be read. An error keeps the policy from being used; a warning is about a setting that is probably not what was meant
#[derive(Debug, clap::Args)]
struct CheckArguments {
    /// Directory with cluster.yaml and namespaces/
    directory: PathBuf,
    /// Exit with 1 on warnings too
    #[arg(long)]
    strict: bool,
    /// Also print which freezes are in force at this time, for example 2026-12-24T18:00[Europe/Berlin]
    #[arg(long, value_name = "TIME", value_parser = freezes::moment)]
    at: Option<Timestamp>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    match &arguments.command {
        Command::Check(check) => check.run(),
        Command::Schema => {
            writeln!(stdout(), "{}", serde_json::to_string_pretty(&schema())?)?;
            Ok(ExitStatus::Success)
        }
    }
}

impl CheckArguments {
    fn run(&self) -> anyhow::Result<ExitStatus> {
        let files = PolicyFiles::read(&self.directory);
        let LoadedPolicies { policies, problems, warnings } = LoadedPolicies::of(&files);
        match self.output {
            Output::Json => print_lines(&files, &problems, &warnings)?,
            Output::Table => {
                for path in files.paths().filter(|path| problems.iter().all(|problem| problem.file != **path)) {
                    output::print(&format!("{} is valid\n", path.display()))?;
                }
                if !warnings.is_empty() {
                    output::complain(&format!("{}\n", warning_excerpts(&warnings)));
                }
            }
        }
        if let (Some(policies), Some(at)) = (&policies, self.at) {
            self.print_freezes(policies, at)?;
        }
        if problems.iter().any(|problem| problem.location.is_none()) {
            return Err(PolicyError { problems }.into());
        }
        if !problems.is_empty() && self.output == Output::Table {
            output::complain(&excerpts(&PolicyError { problems: problems.clone() }));
        }
        let is_fine = problems.is_empty() && (warnings.is_empty() || !self.strict);
        Ok(if is_fine { ExitStatus::Success } else { ExitStatus::Findings })
    }
}

impl CheckArguments {
    /// One line for each freeze of the cluster, and of a namespace.
    fn print_freezes(&self, policies: &Policies, at: Timestamp) -> anyhow::Result<()> {
        for (namespace, freeze) in policies.freezes() {
            let state = freezes::state(freeze, at);
            let of = namespace.map(|name| format!(" of namespace {name}")).unwrap_or_default();
            match self.output {
                Output::Table => output::print(&format!("freeze {}{of}: {state}\n", freeze.name))?,
                Output::Json => {
                    let mut line = freezes::state_json(freeze, at);
                    line["namespace"] = namespace.into();
                    writeln!(stdout(), "{}", output::json(&line)?)?;
                }
            }
        }
        Ok(())
    }
}

/// One line for each file.
fn print_lines(files: &PolicyFiles, problems: &[Problem], warnings: &[Problem]) -> anyhow::Result<()> {
    let of = |file: &Path, all: &[Problem]| -> Vec<Value> {
        all.iter().filter(|problem| problem.file == file).map(json_of).collect()
    };
    let unread = problems.iter().filter(|problem| problem.location.is_none());
    let mut paths: Vec<_> = files.paths().chain(unread.map(|problem| problem.file.as_path())).collect();
    paths.dedup();
    for path in paths {
        let (problems, warnings) = (of(path, problems), of(path, warnings));
        let line = json!({"file": path, "good": problems.is_empty(), "problems": problems, "warnings": warnings});
        writeln!(stdout(), "{}", output::json(&line)?)?;
    }
    Ok(())
}

fn json_of(problem: &Problem) -> Value {
    let location = problem.location.as_ref();
    json!({
        "line": location.map(|location| location.line),
        "column": location.map(|location| location.column),
        "message": problem.message,
    })
}

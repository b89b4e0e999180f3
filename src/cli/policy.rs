//! `interlock policy`: policy files.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};

use super::excerpt::excerpts;
use super::exit_status::ExitStatus;
use super::output::{self, Output};
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

/// Check a directory of policies and print every error. Exits with 1 on errors, and with 2 if a file cannot be read
#[derive(Debug, clap::Args)]
struct CheckArguments {
    /// Directory with cluster.yaml and namespaces/
    directory: PathBuf,
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
        let LoadedPolicies { problems, .. } = LoadedPolicies::of(&files);
        match self.output {
            Output::Json => {
                let of = |file: &Path| problems.iter().filter(|problem| problem.file == file).map(json_of).collect();
                let unread = problems.iter().filter(|problem| problem.location.is_none());
                let mut paths: Vec<_> = files.paths().chain(unread.map(|problem| problem.file.as_path())).collect();
                paths.dedup();
                for path in paths {
                    let problems: Vec<Value> = of(path);
                    let line = json!({"file": path, "good": problems.is_empty(), "problems": problems});
                    writeln!(stdout(), "{}", output::json(&line)?)?;
                }
            }
            Output::Table => {
                for path in files.paths().filter(|path| problems.iter().all(|problem| problem.file != **path)) {
                    output::print(&format!("{} is valid\n", path.display()))?;
                }
            }
        }
        if problems.iter().any(|problem| problem.location.is_none()) {
            return Err(PolicyError { problems }.into());
        }
        if problems.is_empty() {
            return Ok(ExitStatus::Success);
        }
        if self.output == Output::Table {
            output::complain(&excerpts(&PolicyError { problems }));
        }
        Ok(ExitStatus::Findings)
    }
}

fn json_of(problem: &Problem) -> Value {
    let location = problem.location.as_ref();
    json!({
        "line": location.map(|location| location.line),
        "column": location.map(|location| location.column),
        "message": problem.message,
    })
}

//! `interlock policy`: policy files.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};

use super::excerpt::excerpts;
use super::{Finding, Output};
use crate::engine::policy::{LoadedPolicies, PolicyError, PolicyFiles, Problem, schema};

/// Check policy files, and describe them to editors
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(Check),
    /// Print the JSON Schema of policy files
    Schema,
}

/// Tell every error of a directory of policies: exit code 1 where there is one, 2 where a file cannot be read
#[derive(Debug, clap::Args)]
struct Check {
    /// Directory with cluster.yaml and namespaces/
    directory: PathBuf,
    /// How to print
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Finding> {
    match &arguments.command {
        Command::Check(check) => check.run(),
        Command::Schema => {
            writeln!(stdout(), "{}", serde_json::to_string_pretty(&schema())?)?;
            Ok(Finding::Nothing)
        }
    }
}

impl Check {
    fn run(&self) -> anyhow::Result<Finding> {
        let files = PolicyFiles::read(&self.directory);
        let LoadedPolicies { problems, .. } = LoadedPolicies::of(&files);
        match self.output {
            Output::Json => {
                let of = |file: &Path| problems.iter().filter(|problem| problem.file == file).map(told).collect();
                let unread = problems.iter().filter(|problem| problem.location.is_none());
                let mut paths: Vec<_> = files.paths().chain(unread.map(|problem| problem.file.as_path())).collect();
                paths.dedup();
                for path in paths {
                    let problems: Vec<Value> = of(path);
                    writeln!(stdout(), "{}", json!({"file": path, "good": problems.is_empty(), "problems": problems}))?;
                }
            }
            Output::Table => {
                for path in files.paths().filter(|path| problems.iter().all(|problem| problem.file != **path)) {
                    writeln!(stdout(), "{} is good", path.display())?;
                }
            }
        }
        if problems.iter().any(|problem| problem.location.is_none()) {
            return Err(PolicyError { problems }.into());
        }
        if problems.is_empty() {
            return Ok(Finding::Nothing);
        }
        if self.output == Output::Table {
            eprintln!("{}", excerpts(&PolicyError { problems }));
        }
        Ok(Finding::Something)
    }
}

fn told(problem: &Problem) -> Value {
    let location = problem.location.as_ref();
    json!({
        "line": location.map(|location| location.line),
        "column": location.map(|location| location.column),
        "message": problem.message,
    })
}

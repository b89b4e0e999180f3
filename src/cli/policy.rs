//! `interlock policy`: policy files.

mod migrate;
mod show;

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use interlock_engine::policy::{LimitedFreeze, Policies};
use interlock_engine::policy_files::{ChangedMeaning, LoadedPolicies, PolicyError, PolicyFiles, Problem, schema};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::examples::examples;
use super::excerpt::{excerpts, warning_excerpts};
use super::exit_status::ExitStatus;
use super::freezes;
use super::output::{self, Output};
use crate::world::policy_directory;

/// Check policy files, print the whole policy with the shipped part, and print the JSON Schema for editors
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(CheckArguments),
    Show(show::Arguments),
    Migrate(migrate::Arguments),
    /// Print the JSON Schema of policy files
    #[command(after_help = examples(&["interlock policy schema", "interlock policy schema > policies/schema.json"]))]
    Schema,
}

/// Check a directory of policies and print every error and warning. Exits with 1 on errors, and with 2 if a file cannot
/// be read. An error keeps the policy from being used; a warning is about a setting that is probably not what was meant
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock policy check policies",
    "interlock policy check policies --strict --at 2026-12-24",
]))]
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
        Command::Show(show) => show.run(),
        Command::Migrate(migrate) => migrate.run(),
        Command::Schema => {
            writeln!(stdout(), "{}", serde_json::to_string_pretty(&schema())?)?;
            Ok(ExitStatus::Success)
        }
    }
}

impl CheckArguments {
    fn run(&self) -> anyhow::Result<ExitStatus> {
        let files = policy_directory::read(&self.directory);
        let LoadedPolicies { policies, problems, mut warnings } = LoadedPolicies::of(&files);
        warnings.extend(files.past_freezes(self.at.unwrap_or_else(Timestamp::now)));
        let changed = files.changed_meanings();
        match self.output {
            Output::Json | Output::Yaml => {
                let value = self.json(&files, &problems, &warnings, &changed, policies.as_ref());
                self.output.print(&value, String::new)?;
            }
            Output::Table => {
                for path in files.paths().filter(|path| problems.iter().all(|problem| problem.file != **path)) {
                    output::print(&format!("{} is valid\n", path.display()))?;
                }
                if !warnings.is_empty() {
                    output::complain(&format!("{}\n", warning_excerpts(&warnings)));
                }
                if !changed.is_empty() {
                    output::complain(&self.notice(&changed));
                }
                for (it, at) in self.freezes(policies.as_ref()) {
                    let LimitedFreeze { freeze, .. } = it;
                    let namespace = freeze.home.as_deref();
                    let of = namespace.map(|name| format!(" of namespace {name}")).unwrap_or_default();
                    output::print(&format!("freeze {}{of}: {}\n", freeze.name, freezes::state(it, at)))?;
                }
            }
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

    /// The notice about settings whose meaning changed when the shipped policy became the base of every file.
    fn notice(&self, changed: &[ChangedMeaning]) -> String {
        let lines = changed
            .iter()
            .map(|ChangedMeaning { path, before, now }| format!("  {path}\n    before: {before}\n    now:    {now}\n"));
        format!(
            "note: a file states differences from the shipped policy. Up to 0.1, a list that it left out was empty, so that this means \
             something else now:\n{}If that is not meant: interlock policy migrate {}\n",
            lines.collect::<String>(),
            self.directory.display()
        )
    }

    /// The freezes of the cluster and of namespaces, if a time was given.
    fn freezes<'p>(&self, policies: Option<&'p Policies>) -> Vec<(LimitedFreeze<'p>, Timestamp)> {
        let all = self.at.zip(policies);
        all.into_iter().flat_map(|(at, policies)| policies.freezes(&[]).map(move |it| (it, at))).collect()
    }

    fn json(
        &self,
        files: &PolicyFiles,
        problems: &[Problem],
        warnings: &[Problem],
        changed: &[ChangedMeaning],
        policies: Option<&Policies>,
    ) -> Value {
        let unread = problems.iter().filter(|problem| problem.location.is_none());
        let mut paths: Vec<_> = files.paths().chain(unread.map(|problem| problem.file.as_path())).collect();
        paths.dedup();
        let files = paths.into_iter().map(|path| {
            let (problems, warnings) = (of_file(path, problems), of_file(path, warnings));
            json!({"file": path, "good": problems.is_empty(), "problems": problems, "warnings": warnings})
        });
        let changed = changed.iter().map(|it| json!({"path": it.path, "before": it.before, "now": it.now}));
        let freezes = self.freezes(policies).into_iter().map(|(it, at)| {
            let mut state = freezes::state_json(it, at);
            state["namespace"] = it.freeze.home.as_deref().into();
            state
        });
        json!({
            "files": files.collect::<Vec<_>>(), "changed": changed.collect::<Vec<_>>(), "freezes": freezes.collect::<Vec<_>>(),
        })
    }
}

fn of_file(file: &Path, all: &[Problem]) -> Vec<Value> {
    all.iter().filter(|problem| problem.file == file).map(json_of).collect()
}

fn json_of(problem: &Problem) -> Value {
    let location = problem.location.as_ref();
    json!({
        "line": location.map(|location| location.line),
        "column": location.map(|location| location.column),
        "text": location.map(|location| &location.text),
        "marked": location.and_then(|location| location.text.get(location.range.clone())),
        "message": problem.message,
    })
}

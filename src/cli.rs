//! The command line: one file per subcommand.
//!
//! Exit codes: 0 success, 1 a finding (a refused review, an invalid policy file), 2 the command could not run. Only for `wait`: 3 timeout,
//! 4 a freeze is in force.

mod adopt;
mod break_glass;
mod certs;
mod changes;
mod cluster;
mod completions;
mod demo;
mod doctor;
mod duration;
mod examples;
mod excerpt;
mod exit_status;
mod explain;
mod failure;
mod freeze;
mod freezes;
mod helm;
mod man;
mod named_values;
mod output;
mod own_kinds;
mod plugin;
mod policies_in_force;
mod policy;
mod policy_dir;
mod progress;
mod registration;
mod registration_file;
mod release_argument;
mod replay;
mod review;
mod runbook_checks;
mod runtime;
mod scan;
mod serve;
mod since;
mod status;
mod table;
mod telemetry;
mod test;
mod unprotect;
mod unstick;
mod version;
mod wait;

use std::env;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use interlock_engine::policy_files::PolicyError;

use exit_status::ExitStatus;
use output::complain;
use runtime::{block_on, block_on_all_cores};

/// Enforces safe release transitions: a Kubernetes admission webhook for Helm, Flux, Sveltos and OLM.
#[derive(Debug, Parser)]
#[command(name = "interlock", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    // Boxed, because it is by far the largest.
    Serve(Box<serve::Arguments>),
    Demo(demo::Arguments),
    Review(review::Arguments),
    Replay(replay::Arguments),
    Adopt(adopt::Arguments),
    Explain(explain::Arguments),
    Policy(policy::Arguments),
    Scan(scan::Arguments),
    Status(status::Arguments),
    Changes(changes::Arguments),
    Unstick(unstick::Arguments),
    Unprotect(unprotect::Arguments),
    Wait(wait::Arguments),
    Doctor(doctor::Arguments),
    Test(test::Arguments),
    Certs(certs::Arguments),
    Registration(registration::Arguments),
    Override(break_glass::Arguments),
    Version(version::Arguments),
    Freeze(freeze::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Runs the command line and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let line: Vec<_> = env::args_os().collect();
    let invocation = plugin::Invocation::by(line.first().map(AsRef::as_ref), helm::HelmFlags::of_plugin().is_some());
    if let Some(words) = invocation.to_complete(&line) {
        return plugin::complete(&invocation.command(Cli::command()), words);
    }
    // clap exits with 2 on an invalid command line, and with 0 after --help.
    let matches = invocation.command(Cli::command()).get_matches();
    let command = match Cli::from_arg_matches(&matches) {
        Ok(line) => line.command,
        Err(error) => error.format(&mut invocation.command(Cli::command())).exit(),
    };
    let result = match command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Demo(arguments) => block_on_all_cores(demo::run(&arguments)),
        Command::Review(arguments) => block_on(review::run(&arguments)),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Adopt(arguments) => adopt::run(&arguments),
        Command::Explain(arguments) => block_on(explain::run(&arguments)),
        Command::Policy(arguments) => policy::run(&arguments),
        Command::Scan(arguments) => block_on_all_cores(scan::run(&arguments)),
        Command::Status(arguments) => block_on_all_cores(status::run(&arguments)),
        Command::Changes(arguments) => changes::run(&arguments),
        Command::Unstick(arguments) => block_on(unstick::run(&arguments)),
        Command::Unprotect(arguments) => block_on(unprotect::run(&arguments)),
        Command::Wait(arguments) => block_on(wait::run(&arguments)),
        Command::Doctor(arguments) => block_on(doctor::run(&arguments)),
        Command::Test(arguments) => test::run(&arguments),
        Command::Certs(arguments) => block_on(certs::run(&arguments)),
        Command::Registration(arguments) => block_on(registration::run(&arguments)),
        Command::Override(arguments) => block_on(break_glass::run(&arguments)),
        Command::Version(arguments) => block_on(version::run(&arguments)),
        Command::Freeze(arguments) => block_on(freeze::run(&arguments)),
        Command::Completions(arguments) => {
            completions::run(&arguments, plugin::Invocation::ByItself.command(Cli::command()))
        }
        Command::Man(arguments) => man::run(&arguments, plugin::Invocation::ByItself.command(Cli::command())),
    };
    match result {
        Ok(ExitStatus::Success) => ExitCode::SUCCESS,
        Ok(ExitStatus::Findings) => ExitCode::from(1),
        Ok(ExitStatus::TimedOut) => ExitCode::from(3),
        Ok(ExitStatus::Frozen) => ExitCode::from(4),
        // The reader of the output has closed it, for example `head`.
        Err(error) if output::is_unread(&error) => ExitCode::SUCCESS,
        Err(error) => {
            match error.downcast_ref::<PolicyError>() {
                Some(error) => {
                    complain(&format!("interlock: the policies cannot be used\n\n{}", excerpt::excerpts(error)))
                }
                None => complain(&format!("interlock: {}", failure::message(&error))),
            }
            ExitCode::from(2)
        }
    }
}

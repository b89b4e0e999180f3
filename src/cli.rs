//! The command line: one file a subcommand.
//!
//! Exit codes: 0 fine, 1 a finding (a review refused, a policy file wrong), 2 could not run.

mod break_glass;
mod certs;
mod cluster;
mod completions;
mod doctor;
mod excerpt;
mod explain;
mod man;
mod plugin;
mod policies_in_force;
mod policy;
mod progress;
mod registration;
mod replay;
mod review;
mod scan;
mod serve;
mod status;
mod table;
mod telemetry;
mod test;
mod unstick;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::engine::policy::{Policies, PolicyError, PolicyFiles};

/// Enforces safe release transitions: a Kubernetes admission webhook for Helm, Flux, Sveltos and OLM.
#[derive(Debug, Parser)]
#[command(name = "interlock", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    // The largest by far.
    Serve(Box<serve::Arguments>),
    Review(review::Arguments),
    Replay(replay::Arguments),
    Explain(explain::Arguments),
    Policy(policy::Arguments),
    Scan(scan::Arguments),
    Status(status::Arguments),
    Unstick(unstick::Arguments),
    Doctor(doctor::Arguments),
    Test(test::Arguments),
    Certs(certs::Arguments),
    Registration(registration::Arguments),
    Override(break_glass::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Which policy to judge by.
#[derive(Debug, Args)]
struct PolicyDir {
    /// Directory with cluster.yaml; without it the policy that is shipped with this binary
    #[arg(long, value_name = "DIR", env = "INTERLOCK_POLICIES")]
    policies: Option<PathBuf>,
}

impl PolicyDir {
    fn load(&self) -> anyhow::Result<Policies> {
        Ok(Policies::load_or_shipped(self.policies.as_deref())?)
    }

    fn files(&self) -> PolicyFiles {
        self.policies.as_deref().map_or_else(PolicyFiles::shipped, PolicyFiles::read)
    }
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// What a command found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    Nothing,
    Something,
}

/// Runs the command line and tells the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let mut line = env::args_os();
    let called = plugin::Called::by(line.next().as_deref());
    if called == plugin::Called::ToComplete {
        return plugin::complete(&called.command(), &line.collect::<Vec<_>>());
    }
    // clap exits by itself with 2 on a wrong command line, and with 0 after --help.
    let matches = called.command().get_matches();
    let command = match Cli::from_arg_matches(&matches) {
        Ok(line) => line.command,
        Err(error) => error.format(&mut called.command()).exit(),
    };
    let result = match command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Review(arguments) => review::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Policy(arguments) => policy::run(&arguments),
        Command::Scan(arguments) => scan::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Unstick(arguments) => unstick::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Certs(arguments) => certs::run(&arguments),
        Command::Registration(arguments) => registration::run(&arguments),
        Command::Override(arguments) => break_glass::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    };
    match result {
        Ok(Finding::Nothing) => ExitCode::SUCCESS,
        Ok(Finding::Something) => ExitCode::from(1),
        Err(error) => {
            match error.downcast_ref::<PolicyError>() {
                Some(error) => eprintln!("interlock: the policies cannot be used\n\n{}", excerpt::excerpts(error)),
                None => eprintln!("interlock: {error:#}"),
            }
            ExitCode::from(2)
        }
    }
}

/// A runtime for commands that only await what is ready.
fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(future)
}

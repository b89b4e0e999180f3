//! `interlock completions`: shell completions.

use std::io::stdout;

use clap_complete::Shell;

use super::examples::examples;
use super::exit_status::ExitStatus;

/// Print the completion script of a shell
///
/// For example `interlock completions bash > /etc/bash_completion.d/interlock`. For `kubectl interlock`, link
/// kubectl_complete-interlock to this binary in PATH, next to kubectl-interlock.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "interlock completions bash > /etc/bash_completion.d/interlock",
    "interlock completions zsh",
]))]
pub(super) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments, mut command: clap::Command) -> anyhow::Result<ExitStatus> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "interlock", &mut script);
    std::io::Write::write_all(&mut stdout(), &script)?;
    Ok(ExitStatus::Success)
}

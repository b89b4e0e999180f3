//! `interlock completions`: what a shell needs to complete the command line.

use std::io::stdout;

use clap_complete::Shell;

use super::exit_status::ExitStatus;

/// Print the completions for a shell
///
/// For example `interlock completions bash > /etc/bash_completion.d/interlock`. For `kubectl interlock`, put a link called
/// kubectl_complete-interlock to this binary into PATH, beside kubectl-interlock.
#[derive(Debug, clap::Args)]
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

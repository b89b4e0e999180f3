//! The kubectl plugin: a link `kubectl-interlock` to the binary provides `kubectl interlock`, and a link
//! `kubectl_complete-interlock` its completions.

use std::ffi::{OsStr, OsString};
use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use clap::Command;

/// How the binary was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Invocation {
    /// Under its own name, or any other.
    ByItself,
    /// As a kubectl plugin.
    ByKubectl,
    /// By kubectl, for completions.
    ToComplete,
}

impl Invocation {
    pub(super) fn by(name: Option<&OsStr>) -> Self {
        let name = name.and_then(|name| Path::new(name).file_stem()).unwrap_or_default();
        match name.to_str() {
            Some("kubectl-interlock") => Self::ByKubectl,
            Some("kubectl_complete-interlock") => Self::ToComplete,
            _ => Self::ByItself,
        }
    }

    /// The command line, with the usage that matches the call.
    pub(super) fn command(self, own: Command) -> Command {
        match self {
            Self::ByItself => own,
            Self::ByKubectl | Self::ToComplete => own.bin_name("kubectl interlock").display_name("kubectl interlock"),
        }
    }
}

/// Prints the candidates for the last word, one per line, as kubectl expects.
pub(super) fn complete(command: &Command, words: &[OsString]) -> ExitCode {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    let lines: String = candidates(command, &words).into_iter().map(|word| word + "\n").collect();
    if stdout().write_all(lines.as_bytes()).is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) }
}

/// Subcommands, flags and values that start with the last word.
fn candidates(root: &Command, words: &[&str]) -> Vec<String> {
    let Some((last, before)) = words.split_last() else { return Vec::new() };
    let mut command = root;
    for word in before {
        command = command.find_subcommand(word).unwrap_or(command);
    }
    let flag = before.last().and_then(|word| {
        let is_it = |argument: &&clap::Arg| {
            let long = word.strip_prefix("--");
            let short = word.strip_prefix('-').filter(|it| it.len() == 1).and_then(|it| it.chars().next());
            (long.is_some() && argument.get_long() == long) || (short.is_some() && argument.get_short() == short)
        };
        command.get_arguments().find(is_it).filter(|argument| argument.get_action().takes_values())
    });
    let mut all: Vec<String> = Vec::new();
    if let Some(argument) = flag {
        all.extend(argument.get_possible_values().iter().map(|value| value.get_name().to_owned()));
    } else if last.starts_with('-') {
        all.extend(command.get_arguments().filter_map(|argument| Some(format!("--{}", argument.get_long()?))));
    } else {
        all.extend(command.get_subcommands().map(|it| it.get_name().to_owned()));
        let positional = command.get_positionals().flat_map(clap::Arg::get_possible_values);
        all.extend(positional.map(|value| value.get_name().to_owned()));
    }
    all.retain(|word| word.starts_with(last));
    all
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn the_name_of_the_binary_shows_the_caller() {
        let invocation = |name: &str| Invocation::by(Some(OsStr::new(name)));
        assert_eq!(invocation("/usr/bin/kubectl-interlock"), Invocation::ByKubectl);
        assert_eq!(invocation("kubectl_complete-interlock"), Invocation::ToComplete);
        assert_eq!(invocation("./interlock"), Invocation::ByItself);
        assert_eq!(Invocation::by(None), Invocation::ByItself);
        let help = Invocation::ByKubectl.command(Cli::command()).render_help().to_string();
        assert!(help.contains("Usage: kubectl interlock <COMMAND>"), "{help}");
        assert!(
            Invocation::ByItself
                .command(Cli::command())
                .render_help()
                .to_string()
                .contains("Usage: interlock <COMMAND>")
        );
    }

    #[test]
    fn words_are_completed_from_the_command_line() {
        let command = Invocation::ToComplete.command(Cli::command());
        let of = |words: &[&str]| candidates(&command, words);
        assert_eq!(of(&["doc"]), ["doctor"]);
        assert!(of(&[""]).len() > 10);
        assert_eq!(of(&["policy", "ch"]), ["check"]);
        assert!(of(&["doctor", "--na"]).contains(&"--namespace".to_owned()));
        assert_eq!(of(&["doctor", "-o", ""]), ["table", "json"]);
        assert_eq!(of(&["completions", "fi"]), ["fish"]);
        assert!(of(&["override", "shop/web", "--rule", "manual-e"]).contains(&"manual-edit".to_owned()));
        assert!(of(&[]).is_empty());
    }
}

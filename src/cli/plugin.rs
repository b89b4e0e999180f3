//! The plugins.
//!
//! - kubectl: a link `kubectl-interlock` to the binary provides `kubectl interlock`. A link `kubectl_complete-interlock` provides its
//!   completions.
//! - helm: `packaging/helm-plugin` provides `helm interlock` and its completions.

use std::ffi::{OsStr, OsString};
use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use clap::Command;

use super::examples::with_examples;

/// The first word of the command line with which the helm plugin requests completions.
const COMPLETE: &str = "__complete";

/// How the binary was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Invocation {
    /// By its own name, or any other name.
    ByItself,
    /// As a kubectl plugin.
    ByKubectl,
    /// By kubectl, for completions.
    ToComplete,
    /// As a helm plugin.
    ByHelm,
}

impl Invocation {
    /// By the name of the binary, and by whether helm runs the binary.
    pub(super) fn by(name: Option<&OsStr>, is_of_helm: bool) -> Self {
        let name = name.and_then(|name| Path::new(name).file_stem()).unwrap_or_default();
        match name.to_str() {
            Some("kubectl-interlock") => Self::ByKubectl,
            Some("kubectl_complete-interlock") => Self::ToComplete,
            _ if is_of_helm => Self::ByHelm,
            _ => Self::ByItself,
        }
    }

    /// The words to complete, if the command line requests completions.
    pub(super) fn to_complete(self, line: &[OsString]) -> Option<&[OsString]> {
        let words = line.get(1..).unwrap_or_default();
        match self {
            Self::ToComplete => Some(words),
            Self::ByHelm => words.split_first().filter(|(first, _)| *first == COMPLETE).map(|(_, words)| words),
            Self::ByItself | Self::ByKubectl => None,
        }
    }

    /// The command line, with the usage for this invocation.
    pub(super) fn command(self, own: Command) -> Command {
        match self {
            Self::ByItself => with_examples(own, "interlock"),
            Self::ByKubectl | Self::ToComplete => called(own, "kubectl interlock"),
            Self::ByHelm => called(with_flags_of_helm(own), "helm interlock"),
        }
    }
}

fn called(command: Command, name: &'static str) -> Command {
    with_examples(command, name).bin_name(name).display_name(name)
}

/// helm does not pass `-n`, `--namespace`, `--kubeconfig` and its other flags to plugins. So a flag of ours with such a name is renamed: to
/// helm's flag with the same meaning, or to another name.
fn with_flags_of_helm(command: Command) -> Command {
    command.mut_subcommands(|subcommand| {
        let namespace = match subcommand.get_name() {
            // helm's namespace is the namespace of the release.
            "status" | "unstick" | "unprotect" | "wait" | "override" => None,
            "scan" | "changes" => Some("only-namespace"),
            _ => Some("interlock-namespace"),
        };
        renamed(subcommand, namespace)
    })
}

/// `namespace` is the new name of this flag.
fn renamed(command: Command, namespace: Option<&'static str>) -> Command {
    let renamed_here = command.mut_args(|argument| match (argument.get_id().as_str(), namespace) {
        ("context", _) => argument.long("kube-context"),
        ("as_user", _) => argument.long("kube-as-user"),
        ("as_groups", _) => argument.long("kube-as-group"),
        // helm's --kubeconfig is in KUBECONFIG, and must take precedence.
        ("kubeconfig", _) => argument.env(None::<&str>),
        ("namespace", Some(name)) => argument.long(name).short(None),
        _ => argument,
    });
    renamed_here.mut_subcommands(|subcommand| renamed(subcommand, namespace))
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
    let flag = before.last().and_then(|word| command.get_arguments().find(|argument| is_flag(argument, word)));
    let flag = flag.filter(|argument| argument.get_action().takes_values());
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

fn is_flag(argument: &clap::Arg, word: &str) -> bool {
    let long = word.strip_prefix("--");
    let short = word.strip_prefix('-').filter(|it| it.len() == 1).and_then(|it| it.chars().next());
    (long.is_some() && argument.get_long() == long) || (short.is_some() && argument.get_short() == short)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn the_name_of_the_binary_shows_the_caller() {
        let invocation = |name: &str| Invocation::by(Some(OsStr::new(name)), false);
        assert_eq!(invocation("/usr/bin/kubectl-interlock"), Invocation::ByKubectl);
        assert_eq!(invocation("kubectl_complete-interlock"), Invocation::ToComplete);
        assert_eq!(invocation("./interlock"), Invocation::ByItself);
        assert_eq!(Invocation::by(None, false), Invocation::ByItself);
        assert_eq!(Invocation::by(Some(OsStr::new("/plugins/interlock")), true), Invocation::ByHelm);
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
    fn no_flag_of_ours_has_the_name_of_a_helm_flag() {
        let mut command = Invocation::ByHelm.command(Cli::command());
        command.clone().debug_assert();
        let help = command.render_help().to_string();
        assert!(help.contains("Usage: helm interlock <COMMAND>"), "{help}");
        let flags =
            |command: &[&str]| candidates(&Invocation::ByHelm.command(Cli::command()), &[command, &["--"]].concat());
        for command in
            [&["status"][..], &["unstick"], &["wait"], &["doctor"], &["scan"], &["certs", "status"], &["override"]]
        {
            let flags = flags(command);
            assert!(flags.contains(&"--kube-context".to_owned()), "{command:?} {flags:?}");
            assert!(!flags.contains(&"--context".to_owned()), "{command:?} {flags:?}");
            // helm's namespace is the namespace of the release.
            let names_releases = ["status", "unstick", "wait", "override"].contains(&command[0]);
            assert_eq!(flags.contains(&"--namespace".to_owned()), names_releases, "{command:?} {flags:?}");
        }
        assert!(flags(&["doctor"]).contains(&"--interlock-namespace".to_owned()));
    }

    #[test]
    fn only_a_helm_plugin_completes_after_a_first_word() {
        let line = ["interlock", "__complete", "doc"].map(OsString::from);
        assert_eq!(Invocation::ByHelm.to_complete(&line), Some(&line[2..]));
        assert_eq!(Invocation::ByHelm.to_complete(&line[1..]), None);
        assert_eq!(Invocation::ByItself.to_complete(&line), None);
        assert_eq!(Invocation::ToComplete.to_complete(&line), Some(&line[1..]));
        assert_eq!(Invocation::ToComplete.to_complete(&[]), Some(&[][..]));
    }

    #[test]
    fn words_are_completed_from_the_command_line() {
        let command = Invocation::ToComplete.command(Cli::command());
        let of = |words: &[&str]| candidates(&command, words);
        assert_eq!(of(&["doc"]), ["doctor"]);
        assert!(of(&[""]).len() > 10);
        assert_eq!(of(&["policy", "ch"]), ["check"]);
        assert!(of(&["doctor", "--na"]).contains(&"--namespace".to_owned()));
        assert_eq!(of(&["doctor", "-o", ""]), ["table", "json", "yaml"]);
        assert_eq!(of(&["completions", "fi"]), ["fish"]);
        assert!(of(&["override", "shop/web", "--rule", "manual-e"]).contains(&"manual-edit".to_owned()));
        assert!(of(&[]).is_empty());
    }
}

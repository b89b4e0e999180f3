//! The examples at the end of `--help`.

use clap::Command;

/// The examples of a command, as its `--help` ends. Each names the program `interlock`.
pub(super) fn examples(lines: &[&str]) -> String {
    let lines = lines.iter().map(|line| format!("\n  {line}"));
    format!("Examples:{}", lines.collect::<String>())
}

/// The command line with the examples of this program, for example `kubectl interlock`.
pub(super) fn with_examples(command: Command, program: &str) -> Command {
    let shown = command.get_after_help().map(|examples| {
        let examples = examples.to_string();
        // helm does not pass `-n` to plugins.
        let shown = examples.lines().filter(|line| !program.starts_with("helm") || !line.contains(" -n "));
        shown.map(|line| line.replacen("interlock", program, 1)).collect::<Vec<_>>().join("\n")
    });
    let command = if let Some(shown) = shown { command.after_help(shown) } else { command };
    command.mut_subcommands(|subcommand| with_examples(subcommand, program))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::plugin::Invocation;

    /// The commands without subcommands, with their words.
    fn leaves<'c>(command: &'c Command, words: &str, found: &mut Vec<(String, &'c Command)>) {
        let mut below = command.get_subcommands().filter(|it| it.get_name() != "help").peekable();
        if below.peek().is_none() {
            found.push((words.to_owned(), command));
        }
        below.for_each(|it| leaves(it, &format!("{words} {}", it.get_name()), found));
    }

    #[test]
    fn every_command_has_two_examples_that_it_understands() {
        let (line, mut commands) = (Cli::command(), Vec::new());
        leaves(&line, "interlock", &mut commands);
        assert!(commands.len() > 20, "{commands:?}");
        for (words, command) in commands {
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<_> = examples.lines().filter_map(|line| line.strip_prefix("  ")).collect();
            assert!(examples.starts_with("Examples:\n") && lines.len() >= 2, "{words} needs two examples: {examples}");
            for line in lines {
                let command = line.split(['<', '>']).next().unwrap();
                let parsed = Cli::command().try_get_matches_from(shlex::split(command).unwrap());
                assert!(line.starts_with(&words) && parsed.is_ok(), "{line}: {parsed:?}");
            }
        }
    }

    #[test]
    fn a_plugin_shows_its_own_name() {
        for (invocation, wanted) in [
            (Invocation::ByItself, "\n  interlock wait shop/web"),
            (Invocation::ByKubectl, "\n  kubectl interlock wait -n shop web"),
            (Invocation::ByHelm, "\n  helm interlock wait shop/web"),
        ] {
            let mut command = invocation.command(Cli::command());
            let help = command.find_subcommand_mut("wait").unwrap().render_help().to_string();
            assert!(help.contains("Examples:") && help.contains(wanted), "{help}");
            assert_eq!(help.contains(" -n shop web"), invocation != Invocation::ByHelm, "{help}");
        }
    }
}

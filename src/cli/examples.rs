//! The examples at the end of `--help`.

use clap::Command;

/// The examples of each command, by the words of the command.
const EXAMPLES: [(&str, &[&str]); 24] = [
    ("serve", &["interlock serve", "interlock serve --policies policies --page"]),
    ("review", &["interlock review review.json", "interlock review - --policies policies -o yaml < review.json"]),
    (
        "replay",
        &[
            "interlock replay audit.log --since 24h",
            "interlock replay audit.log.gz --policies policies --compare policies/examples/gitops-only",
        ],
    ),
    (
        "explain",
        &[
            "interlock explain manual-edit",
            "interlock explain shop --at 2026-12-24T18:00[Europe/Berlin]",
            "interlock explain --user system:serviceaccount:ci:deploy --group system:serviceaccounts",
        ],
    ),
    ("policy check", &["interlock policy check policies", "interlock policy check policies --strict --at 2026-12-24"]),
    ("policy show", &["interlock policy show", "interlock policy show policies -o yaml"]),
    (
        "policy migrate",
        &["interlock policy migrate policies", "interlock policy migrate policies > policies/cluster.yaml.new"],
    ),
    ("policy schema", &["interlock policy schema", "interlock policy schema > policies/schema.json"]),
    ("scan", &["interlock scan", "interlock scan -n shop --drift", "interlock scan -o html --output-file scan.html"]),
    ("status", &["interlock status -A --stuck", "interlock status -n shop web", "interlock status shop/web -o yaml"]),
    ("changes", &["interlock changes -n shop --since 24h", "interlock changes --audit-log audit.log --refused -o csv"]),
    ("unstick", &["interlock unstick shop/web --dry-run", "interlock unstick -n shop web --yes"]),
    ("wait", &["interlock wait shop/web --until deployed", "interlock wait -n shop web --until 1.2.3 --timeout 10m"]),
    ("doctor", &["interlock doctor", "interlock doctor --pre", "interlock doctor -n guard -o json"]),
    ("test", &["interlock test policies", "interlock test policies --run '*roll back*' --junit junit.xml"]),
    ("certs dev", &["interlock certs dev", "interlock certs dev --certs target/certs --force"]),
    ("certs status", &["interlock certs status", "interlock certs status -o json"]),
    ("certs rotate", &["interlock certs rotate", "interlock certs rotate -n guard"]),
    ("registration remove", &["interlock registration remove --dry-run", "interlock registration remove --purge"]),
    (
        "override",
        &[
            "interlock override shop/web --rule manual-edit --for 30m --reason 'INC-7: raise the memory limit'",
            "interlock override -n shop web --rule freeze --for 1h --reason 'INC-7: security fix' --dry-run",
        ],
    ),
    (
        "freeze",
        &[
            "interlock freeze shop --until 18:00 --reason 'INC-7: the database is being restored'",
            "interlock freeze shop billing --for 2h --release 'api-*' --reason INC-7",
            "interlock freeze --end shop -o name",
        ],
    ),
    ("version", &["interlock version", "interlock version --client"]),
    ("completions", &["interlock completions bash > /etc/bash_completion.d/interlock", "interlock completions zsh"]),
    ("man", &["interlock man man", "interlock man /usr/local/share/man/man1"]),
];

/// The command line with its examples. `program` is the name in the examples, for example `kubectl interlock`.
pub(super) fn with_examples(command: Command, program: &str) -> Command {
    EXAMPLES.iter().fold(command, |command, (words, lines)| {
        let words: Vec<_> = words.split(' ').collect();
        // helm does not pass `-n` to plugins.
        let shown = lines.iter().filter(|line| !program.starts_with("helm") || !line.contains(" -n "));
        let shown: String =
            shown.map(|line| line.replacen("interlock", program, 1)).map(|line| format!("\n  {line}")).collect();
        at(command, &words, &shown)
    })
}

fn at(command: Command, words: &[&str], shown: &str) -> Command {
    match words.split_first() {
        None => command.after_help(format!("Examples:{shown}")),
        Some((word, rest)) => command.mut_subcommand(word, |command| at(command, rest, shown)),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::plugin::Invocation;

    /// The commands without subcommands, by their words.
    fn leaves(command: &Command, words: &str, found: &mut Vec<String>) {
        let mut below = command.get_subcommands().filter(|it| it.get_name() != "help").peekable();
        if below.peek().is_none() {
            found.push(words.trim_start().to_owned());
        }
        below.for_each(|it| leaves(it, &format!("{words} {}", it.get_name()), found));
    }

    #[test]
    fn every_command_has_two_examples_that_it_understands() {
        let mut commands = Vec::new();
        leaves(&Cli::command(), "", &mut commands);
        let mut with_examples = EXAMPLES.map(|(words, _)| words.to_owned()).to_vec();
        commands.sort();
        with_examples.sort();
        assert_eq!(commands, with_examples);
        for (words, lines) in EXAMPLES {
            assert!(lines.len() >= 2, "{words}");
            for line in lines {
                let command = line.split(['<', '>']).next().unwrap();
                let parsed = Cli::command().try_get_matches_from(shlex::split(command).unwrap());
                assert!(line.starts_with(&format!("interlock {words}")) && parsed.is_ok(), "{line}: {parsed:?}");
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

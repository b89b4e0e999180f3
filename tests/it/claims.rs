//! Sentences of the documents that a test can check: numbers, lists and defaults that the code or another document decides.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::harness::binary::{interlock, repository, stdout};

fn text(file: &str) -> String {
    fs::read_to_string(repository(file)).unwrap()
}

fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&text(file)).unwrap()
}

/// The standard output of a command.
fn printed(args: &[&str]) -> String {
    stdout(&interlock(args)).to_owned()
}

fn help(command: &str) -> String {
    printed(&[command, "--help"])
}

/// Whether a line of a help begins with a flag. One with `- ` describes a value.
fn is_flag(line: &str) -> bool {
    line.starts_with('-') && !line.starts_with("- ")
}

/// A text on one line, as its sentences are.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_of_metrics_counts_the_alert_rules() {
    let groups = yaml("manifests/chart/files/alerts.yaml")["groups"].as_array().unwrap().clone();
    let rules: usize = groups.iter().map(|group| group["rules"].as_array().unwrap().len()).sum();
    assert!(text("docs/monitoring.md").contains(&format!(" {rules} alert rules ")), "there are {rules}");
}

#[test]
fn the_figures_of_the_readme_are_those_of_the_page_of_performance() {
    let (readme, performance) = (text("README.md"), unwrapped(&text("docs/performance.md")));
    for (row, source) in [
        ("| 8 s |", "(8 s from nothing to a guarded cluster)"),
        ("| 23 MiB / 53 MiB |", "a replica uses 23 MiB in front of an empty cluster"),
        ("| 23 MiB / 53 MiB |", "With 10,000 releases besides, it uses 43 MiB, and 53 with the scan."),
        ("| 10,076 |", "over 10,000 releases of three records takes 10,076 API calls"),
        ("| 8 of 555 calls failed, 1 wrong decision |", "| 8 of 555, all in flight to the killed replica | 1,"),
    ] {
        assert!(readme.contains(row), "the README has no figure {row}");
        assert!(performance.contains(source), "docs/performance.md does not say: {source}");
    }
    // The rows of the rotations, of the restart and of the reload.
    assert!(readme.contains("| 0 of 1,502 calls failed, 0 wrong decisions |"));
    let calls = [659, 684, 159].map(|calls: u32| {
        assert!(performance.contains(&format!("| 0 of {calls} | 0 |")), "{calls}");
        calls
    });
    assert_eq!(calls.iter().sum::<u32>(), 1502);
}

#[test]
fn every_flag_of_serve_but_those_of_a_kubeconfig_has_a_variable() {
    let help = help("serve");
    let flags = help.lines().enumerate().filter(|(_, line)| is_flag(line.trim_start()));
    let starts: Vec<_> = flags.map(|(at, line)| (at, line.trim().to_owned())).collect();
    let lines: Vec<_> = help.lines().collect();
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([lines.len()]);
    let without: BTreeSet<_> = starts
        .iter()
        .zip(ends)
        .filter(|((start, _), end)| !lines[*start..*end].iter().any(|line| line.contains("[env: ")))
        .map(|((_, flag), _)| flag.as_str())
        .collect();
    assert!(starts.len() > 15, "{help}");
    assert_eq!(without, BTreeSet::from(["--as <USER>", "--as-group <GROUP>", "--context <NAME>", "-h, --help"]));
    assert!(text("docs/install.md").contains(
        "Every flag of `interlock serve` except `--context`, `--as` and `--as-group` has an environment variable."
    ));
}

#[test]
fn the_help_says_which_policies_a_command_reads() {
    let serve = unwrapped(&help("serve"));
    let default =
        "[default: policies/ in the working directory, or the policy shipped with this binary if there is none]";
    assert!(serve.contains(default), "{serve}");
    for (command, default) in [
        ("review", "the policy shipped with this binary"),
        ("replay", "the policy shipped with this binary"),
        ("scan", "the policy in force in the cluster"),
        ("explain", "the policy in force in the cluster"),
    ] {
        let help = unwrapped(&help(command));
        assert!(help.contains(&format!("[default: {default}]")), "{command}: {help}");
    }
    let shipped = printed(&["explain", "shop"]);
    assert!(shipped.starts_with("In force in namespace shop, by the policy shipped with this binary:"), "{shipped}");
}

#[test]
fn the_page_of_policies_lists_every_example() {
    let page = text("docs/policies.md");
    let rows: BTreeSet<_> = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | ")).collect();
    let rows: BTreeSet<_> = rows.into_iter().map(|(name, _)| name.to_owned()).collect();
    let entries = fs::read_dir(repository("policies/examples")).unwrap();
    let examples: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(examples.len() > 5, "{examples:?}");
    let missing: Vec<_> = examples.iter().filter(|example| !rows.contains(*example)).collect();
    assert!(missing.is_empty(), "docs/policies.md does not list {missing:?}");
}

#[test]
fn audit_first_is_a_cap_and_nothing_else() {
    let policy = yaml("policies/examples/audit-first/cluster.yaml");
    let stated: Vec<_> = policy.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((stated, &policy["cap"]), (vec!["apiVersion", "cap", "kind"], &"audit".into()));
}

/// A copy of a policy finds its schema where `interlock policy schema > schema.json` writes it.
#[test]
fn a_shipped_policy_names_a_schema_beside_it_or_none() {
    let mut named = Vec::new();
    let mut directories = vec![repository("policies")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            if let Some(schema) = text.lines().find_map(|line| line.strip_prefix("# yaml-language-server: $schema=")) {
                assert!(schema == "schema.json" && directory.join(schema).exists(), "{}: {schema}", path.display());
                named.push(path);
            }
        }
    }
    assert_eq!(named, [repository("policies/cluster.yaml")]);
    assert_eq!(printed(&["policy", "schema"]), text("policies/schema.json"));
}

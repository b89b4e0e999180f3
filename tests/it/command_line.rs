//! The command line: completions and manual pages name every subcommand, and the plugin's name works.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use crate::harness::binary::interlock;

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The subcommands in the output of `--help`.
fn subcommands() -> Vec<String> {
    let help = text(&interlock(&["--help"]));
    let (_, listed) = help.split_once("Commands:\n").unwrap();
    let names = listed
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<_> =
        names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
    assert!(names.contains(&"doctor") && names.len() > 10, "{help}");
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn completions_and_manual_pages_know_every_subcommand() {
    let names = subcommands();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = text(&interlock(&["completions", shell]));
        for name in &names {
            assert!(script.contains(name.as_str()), "{shell} does not complete {name}");
        }
    }
    let pages = tempfile::tempdir().unwrap();
    text(&interlock(&["man", pages.path().to_str().unwrap()]));
    let first = text(&interlock(&["man"]));
    assert!(first.contains(".TH interlock 1"), "{first}");
    for name in &names {
        assert!(first.replace('\\', "").contains(&format!("interlock-{name}")), "{name}: {first}");
        let page = fs::read_to_string(pages.path().join(format!("interlock-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
}

#[test]
fn a_link_makes_a_plugin_of_the_binary() {
    let links = tempfile::tempdir().unwrap();
    let link = |name: &str| {
        let link = links.path().join(name);
        symlink(env!("CARGO_BIN_EXE_interlock"), &link).unwrap();
        move |args: &[&str]| Command::new(&link).args(args).output().unwrap()
    };
    let plugin = link("kubectl-interlock");
    assert!(text(&plugin(&["--help"])).contains("Usage: kubectl interlock <COMMAND>"));
    assert!(text(&plugin(&["doctor", "--help"])).contains("Usage: kubectl interlock doctor"));
    let wrong = plugin(&["doctr"]);
    let told = String::from_utf8(wrong.stderr).unwrap();
    assert!(
        wrong.status.code() == Some(2) && told.contains("'doctor'") && told.contains("kubectl interlock"),
        "{told}"
    );
    assert_eq!(text(&link("kubectl_complete-interlock")(&["doc"])), "doctor\n");
}

//! A new machine needs what the README names, and nothing else: `.ci/run` runs `cargo test` with no other programs in its PATH.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::harness::binary::{repository, stdout};

const README: &str = include_str!("../../README.md");
const CONTRIBUTING: &str = include_str!("../../CONTRIBUTING.md");
const CHECKS: &str = include_str!("../../.ci/run");

/// Programs that tests needed once, or might need next.
const ELSEWHERE: [&str; 22] = [
    "apt-get",
    "awk",
    "curl",
    "docker",
    "find",
    "grep",
    "jq",
    "kill",
    "less",
    "mount",
    "newuidmap",
    "node",
    "npm",
    "openssl",
    "perl",
    "ps",
    "python3",
    "script",
    "sed",
    "skopeo",
    "umoci",
    "unshare",
];

/// `scripts/fresh-path`, with this PATH.
fn fresh_path(directory: &Path, path: &str) -> Output {
    Command::new(repository("scripts/fresh-path")).arg(directory).env("PATH", path).output().unwrap()
}

fn names(directory: &Path) -> BTreeSet<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The programs in backticks between two texts of a document.
fn named<'t>(document: &'t str, from: &str, to: &str) -> Vec<&'t str> {
    let (_, after) = document.split_once(from).unwrap_or_else(|| panic!("expected {from:?}"));
    let (part, _) = after.split_once(to).unwrap_or_else(|| panic!("expected {to:?} after {from:?}"));
    part.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_tests_find_what_the_readme_names_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (made, again) = (dir.path().join("made"), dir.path().join("again"));
    let output = fresh_path(&made, &std::env::var("PATH").unwrap());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(stdout(&output).trim_end(), made.to_str().unwrap());
    let found = names(&made);

    let of_every_linux = named(README, "on any Linux with these and with ", ";");
    assert!(of_every_linux.len() > 3, "{of_every_linux:?}");
    assert_eq!(named(CONTRIBUTING, "`cargo test` needs nothing else but ", "distribution"), of_every_linux);
    let of_toolchains = ["cargo", "rustc", "rustdoc", "go", "cc", "ar", "as", "ld", "getconf"];
    // Some of coreutils, whose other programs are in the script only.
    let of_coreutils = ["cat", "chroot", "cp", "ln", "mktemp", "sha256sum", "sort", "tail"];
    for program in of_every_linux.iter().chain(&of_toolchains).chain(&of_coreutils) {
        assert!(found.contains(*program), "{program} is not there");
    }
    let foreign: Vec<_> = ELSEWHERE.iter().filter(|program| found.contains(**program)).collect();
    assert!(foreign.is_empty(), "{foreign:?}");

    // What is found there is enough to find it again, and not when one of them is missing.
    assert!(fresh_path(&again, made.to_str().unwrap()).status.success());
    assert_eq!(names(&again), found);
    fs::remove_file(again.join("tar")).unwrap();
    let missing = fresh_path(&dir.path().join("missing"), again.to_str().unwrap());
    let error = String::from_utf8_lossy(&missing.stderr);
    assert!(!missing.status.success() && error.contains("there is no tar"), "{missing:?}");
}

#[test]
fn the_checks_run_the_tests_as_on_a_fresh_machine_and_install_nothing_on_it() {
    let tests: Vec<_> = CHECKS.lines().filter(|line| line.contains(" cargo test")).collect();
    assert!(tests.contains(&"PATH=$fresh step cargo test"), "{tests:?}");
    assert!(tests.iter().all(|line| line.starts_with("PATH=$fresh ") || line.starts_with('#')), "{tests:?}");
    for installer in ["apt", "dnf", "sudo", "rustup", "npm install"] {
        assert!(!CHECKS.contains(installer), "{installer}");
    }
}

#[test]
fn the_documents_name_the_versions_that_the_sources_ask_for() {
    let (rust, go) = (env!("CARGO_PKG_RUST_VERSION"), "1.26");
    let install = format!("Install Rust {rust}, Go {go} and a C compiler.");
    assert!(README.contains(&install) && CONTRIBUTING.contains(&install), "{install}");
    for module in ["alerts", "argo", "controllers", "controlplane", "images"] {
        let file = fs::read_to_string(repository(&format!("tests/{module}/go.mod"))).unwrap();
        let version = file.lines().find_map(|line| line.strip_prefix("go ")).unwrap();
        assert!(version == go || version.starts_with(&format!("{go}.")), "tests/{module} asks for Go {version}");
    }
}

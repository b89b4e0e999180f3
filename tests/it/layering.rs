//! The core stays pure: no async runtime, clock, environment, logging, HTTP or Kubernetes client in it, and nothing of the
//! shell.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules of the core.
const PURE: [&str; 12] = [
    "facts",
    "flux",
    "managed",
    "mode",
    "olm",
    "overrides",
    "policy",
    "release",
    "review",
    "rules",
    "stamp",
    "sveltos",
];

/// Files of the core in modules of the shell: what comes next in a rotation of the CA, what a scan judges, and the questions
/// and answers that rules are made of.
const PURE_FILES: [&str; 9] = [
    "src/pki/rotation.rs",
    "src/pki/rotation/times.rs",
    "src/scan/check.rs",
    "src/scan/declarations.rs",
    "src/scan/drift.rs",
    "src/scan/finding.rs",
    "src/scan/history.rs",
    "src/scan/integrity.rs",
    "src/world/query.rs",
];

/// What none of them may name.
const FORBIDDEN: [&str; 22] = [
    "tokio",
    "axum",
    "hyper",
    "kube::",
    "k8s_openapi",
    "tracing",
    "rustls",
    "rcgen",
    "prometheus_client",
    "std::env",
    "std::net",
    "std::thread",
    "Instant",
    "SystemTime",
    "Timestamp::now",
    "println!",
    "crate::cli",
    "crate::server",
    "crate::judge",
    "crate::leader",
    "crate::ourselves",
    "crate::report",
];

/// Reading its files is what the policy loader is for; nothing else in the core touches the disk.
const READS_FILES: &str = "src/policy/directory.rs";

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            sources(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        found.push(path.to_path_buf());
    }
}

/// The code of a file: without its tests and comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn offences(path: &Path) -> Vec<String> {
    let code = code(path);
    let mut forbidden: Vec<_> = FORBIDDEN.to_vec();
    if !path.ends_with(READS_FILES) {
        forbidden.push("std::fs");
    }
    let found = forbidden.into_iter().filter(|word| code.contains(word));
    found.map(|word| format!("{} names {word}", path.display())).collect()
}

#[test]
fn the_core_names_nothing_of_the_shell() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = PURE_FILES.iter().map(|file| root.join(file)).collect();
    for module in PURE {
        for path in [root.join(format!("src/{module}.rs")), root.join(format!("src/{module}"))] {
            if path.exists() && !path.ends_with("rules/tests") {
                sources(&path, &mut files);
            }
        }
    }
    files.retain(|file| !file.to_string_lossy().contains("/rules/tests"));
    assert!(files.len() > 30, "found only {} files of the core", files.len());
    let offences: Vec<_> = files.iter().flat_map(|file| offences(file)).collect();
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

#[test]
fn a_forbidden_word_is_found() {
    let shell = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/judge.rs");
    assert!(offences(&shell).iter().any(|offence| offence.contains("tokio")));
}

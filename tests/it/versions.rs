//! The supported versions of Kubernetes and helm: one place says them, and the chart, the documents and the harness agree.

use std::fs;

use release_interlock::supported::{NEWEST_TESTED_MINOR, OLDEST_MINOR};

use crate::harness::binary::{interlock, repository};
use crate::programs::assets::versions::{DEFAULT_KUBERNETES, HELM, KUBERNETES, Versions};

fn text(file: &str) -> String {
    fs::read_to_string(repository(file)).unwrap()
}

/// The second number of a release.
fn minor(release: &str) -> u64 {
    release.split('.').nth(1).unwrap().parse().unwrap()
}

#[track_caller]
fn chosen(kubernetes: &str, helm: &str) -> [String; 3] {
    let Versions { kubernetes, helm3, helm4 } = Versions::chosen(kubernetes, helm).unwrap();
    [kubernetes, helm3, helm4]
}

#[test]
fn the_e2e_tests_know_a_release_of_every_supported_minor_version() {
    let minors: Vec<_> = KUBERNETES.into_iter().map(minor).collect();
    assert_eq!(minors, (OLDEST_MINOR..=NEWEST_TESTED_MINOR).collect::<Vec<_>>());
    let pinned = format!("k8s.io/kubernetes v{DEFAULT_KUBERNETES}\n");
    assert!(
        text("tests/controlplane/go.mod").contains(&pinned),
        "go.mod pins another version than {DEFAULT_KUBERNETES}"
    );
}

#[test]
fn variables_choose_the_oldest_the_newest_a_minor_version_or_a_release() {
    let [[old3, new3], [old4, new4]] = HELM;
    let [oldest, .., newest] = KUBERNETES;
    assert_eq!(chosen("", ""), [DEFAULT_KUBERNETES, new3, new4]);
    assert_eq!(chosen("oldest", "oldest"), [oldest, old3, old4]);
    assert_eq!(chosen("newest", "newest"), [newest, new3, new4]);
    assert_eq!(chosen(&format!("1.{OLDEST_MINOR}"), "3.9.4"), [oldest, "3.9.4", new4]);
    assert_eq!(chosen("1.33.1", "4.1.0, 3.9.4"), ["1.33.1", "3.9.4", "4.1.0"]);
}

#[test]
fn a_version_that_is_not_one_is_an_error_and_not_the_default() {
    for (kubernetes, helm) in [
        ("latest", ""),
        ("1.12", ""),
        ("v1.36.3", ""),
        ("2.0.0", ""),
        ("", "latest"),
        ("", "3.22"),
        ("", "v3.22.0"),
        ("", "2.17.0"),
        ("", "3.22.0,"),
    ] {
        let error = Versions::chosen(kubernetes, helm).unwrap_err();
        assert!(error.contains("expected oldest, newest"), "{error}");
    }
}

#[test]
fn the_chart_and_the_documents_name_the_supported_versions() {
    let constraint = format!("kubeVersion: \">=1.{OLDEST_MINOR}.0-0\"\n");
    assert!(text("manifests/chart/Chart.yaml").contains(&constraint), "the chart needs {constraint}");
    let [[old3, new3], [old4, new4]] = HELM;
    let kubernetes = format!("Kubernetes 1.{OLDEST_MINOR} to 1.{NEWEST_TESTED_MINOR}");
    let helm3 = format!("helm 3.{} to 3.{}", minor(old3), minor(new3));
    let helm4 = format!("4.{} to 4.{}", minor(old4), minor(new4));
    for page in ["README.md", "docs/upgrade.md"] {
        let text = text(page);
        for said in [&kubernetes, &helm3, &helm4] {
            assert!(text.contains(said), "{page} does not say {said:?}");
        }
    }
}

/// The build script sets the variable for the program and for this test, in release builds.
#[test]
fn a_release_build_names_the_commit_of_its_clone() {
    let commit = option_env!("INTERLOCK_COMMIT").filter(|commit| !commit.is_empty());
    let output = interlock(&["version", "--client", "-o", "json"]);
    let versions: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(versions["commit"].as_str(), commit, "{versions}");
    let names_it = !cfg!(debug_assertions) && repository(".git").exists();
    let is_named = commit.is_some_and(|it| it.len() >= 40 && it.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(!names_it || is_named, "{commit:?}");
}

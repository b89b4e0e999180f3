//! The workflows, which cannot run here: they parse, their actions are pinned, their rights are few, and what they build comes from
//! the scripts that the tests and developers run. Also the chart that is published.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::harness::binary::{repository, stdout};

const CI: &str = ".github/workflows/ci.yaml";
const RELEASE: &str = ".github/workflows/release.yml";

/// A step that uses an action: its name, its commit, and its version for people.
static PINNED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^uses: ([\w.-]+(?:/[\w.-]+)+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+$").unwrap());

fn text(file: &str) -> String {
    fs::read_to_string(repository(file)).unwrap()
}

fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&text(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn jobs(workflow: &str) -> BTreeMap<String, Value> {
    serde_json::from_value(yaml(workflow)["jobs"].clone()).unwrap()
}

/// All commands of a job.
fn commands(job: &Value) -> String {
    let steps = job["steps"].as_array().unwrap().iter();
    steps.filter_map(|step| step["run"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_action_is_pinned_to_one_commit() {
    let mut commits = BTreeMap::new();
    for workflow in [CI, RELEASE] {
        let jobs = jobs(workflow);
        let steps = jobs.values().flat_map(|job| job["steps"].as_array().unwrap());
        let used = steps.filter(|step| step.get("uses").is_some()).count();
        let lines: Vec<_> = text(workflow)
            .lines()
            .map(|line| line.trim_start().trim_start_matches("- ").to_owned())
            .filter(|line| line.starts_with("uses: "))
            .collect();
        assert!(used > 1 && lines.len() == used, "{workflow}: {used} steps and {lines:?}");
        for line in lines {
            let pinned =
                PINNED.captures(&line).unwrap_or_else(|| panic!("{workflow}: {line} names no commit and version"));
            let before = commits.insert(pinned[1].to_owned(), pinned[2].to_owned());
            assert!(before.is_none_or(|before| before == pinned[2]), "{workflow}: another commit of {}", &pinned[1]);
        }
    }
    assert!(!PINNED.is_match("uses: actions/checkout@v5 # v5.0.0"));
}

#[test]
fn only_the_job_that_publishes_may_write() {
    assert_eq!(yaml(RELEASE)["permissions"], json!({}), "what a job does not name, it must not have");
    let jobs = jobs(RELEASE);
    assert_eq!(jobs.keys().collect::<Vec<_>>(), ["build", "check", "publish"]);
    for name in ["build", "check"] {
        assert_eq!(jobs[name]["permissions"], json!({"contents": "read"}), "{name}");
    }
    let publish = &jobs["publish"];
    assert_eq!(publish["permissions"], json!({"contents": "write", "id-token": "write", "attestations": "write"}));
    assert_eq!(publish["needs"], json!(["check", "build"]));
    // A value of GitHub in the text of a script would be read as a part of it.
    for (name, job) in &jobs {
        assert!(!commands(job).contains("${{"), "{name} has an expression in a script");
    }
}

#[test]
fn the_workflow_calls_the_scripts_and_repeats_none_of_their_commands() {
    let jobs = jobs(RELEASE);
    for (job, called) in [
        ("check", &[".ci/run"][..]),
        ("build", &["scripts/release --checked"]),
        ("publish", &["packaging/krew/manifest ", "packaging/chart "]),
    ] {
        let commands = commands(&jobs[job]);
        for call in called {
            assert!(commands.contains(call), "{job} does not call {call}:\n{commands}");
            let mode = fs::metadata(repository(call.split(' ').next().unwrap())).unwrap().permissions().mode();
            assert_eq!(mode & 0o111, 0o111, "{call}");
        }
        for own in ["cargo ", "tar -", "gzip", "docker build ", "buildx build"] {
            assert!(!commands.contains(own), "{job} has its own {own}:\n{commands}");
        }
    }
    assert!(commands(&self::jobs(CI)["run"]).contains(".ci/run"));
    let script = text("scripts/release");
    for call in [".ci/run", "scripts/program", "packaging/archive ", "--example image "] {
        assert!(script.contains(call), "scripts/release does not call {call}");
    }
    assert!(text("scripts/image").contains("scripts/program") && text("Dockerfile").contains("scripts/program"));
}

/// Two scripts once wrote the same file name with different contents.
#[test]
fn one_script_makes_archives() {
    let makes = |file: &Path| {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.lines()
            .any(|line| !line.trim_start().starts_with('#') && (line.contains("tar -") || line.contains("gzip -")))
    };
    let mut made: Vec<PathBuf> = Vec::new();
    let mut directories =
        vec![repository("scripts"), repository("packaging"), repository(".github"), repository(".ci")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if makes(&path) {
                made.push(path.strip_prefix(repository("")).unwrap().to_owned());
            }
        }
    }
    assert_eq!(made, [Path::new("packaging/archive")]);
}

#[test]
fn the_workflow_publishes_the_files_that_the_script_makes() {
    let workflow = text(RELEASE);
    // `packaging/archive` names the archive: see `packaging.rs`. The SBOM has the name of the archive.
    assert!(text("scripts/release").contains("sbom=${archive%.tar.gz}.cdx.json"));
    for architecture in ["amd64", "arm64"] {
        assert!(workflow.contains(&format!("{{architecture: {architecture}, runner: ubuntu-24.04")), "{architecture}");
        let sbom = format!("sbom-path: page/interlock-${{{{ env.VERSION }}}}-linux-{architecture}.cdx.json");
        assert!(workflow.contains(&sbom), "no step has {sbom}");
    }
    let used = commands(&jobs(RELEASE)["publish"]);
    for file in ["image.digest", "/image:$VERSION", "SHA256SUMS", ".cdx.json", ".tar.gz"] {
        assert!(used.contains(file), "{file} is not published");
    }
    for signed in [
        "cosign sign-blob ",
        "cosign sign --yes --recursive \"$IMAGE@$digest\"",
        "cosign sign --yes \"$REGISTRY/charts/",
    ] {
        assert!(used.contains(signed), "no {signed}");
    }
}

#[test]
fn a_release_is_asked_for_with_a_known_flag() {
    let asked = Command::new(repository("scripts/release")).arg("--quick").output().unwrap();
    assert_eq!(asked.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&asked.stderr), "usage: scripts/release [--checked | --draft]\n");
}

#[test]
fn the_published_chart_names_its_image_and_is_else_the_chart() {
    let directory = tempfile::tempdir().unwrap();
    let digest = format!("sha256:{}", "5".repeat(64));
    let run = |registry: &str, digest: &str| {
        Command::new(repository("packaging/chart")).args([registry, digest]).arg(directory.path()).output().unwrap()
    };
    let made = run("registry.example.com:5000/platform", &digest);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let chart = PathBuf::from(stdout(&made).trim_end());
    assert_eq!(chart, directory.path().join("interlock"));
    let values = |file: PathBuf| -> Value { serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap() };
    let mut wanted = values(repository("manifests/chart/values.yaml"));
    wanted["image"]["registry"] = "registry.example.com:5000/platform".into();
    wanted["image"]["digest"] = digest.as_str().into();
    assert_eq!(values(chart.join("values.yaml")), wanted);
    for (file, source) in
        [("Chart.yaml", "manifests/chart/Chart.yaml"), ("files/cluster.yaml", "policies/cluster.yaml")]
    {
        // Published charts have no links out of themselves.
        assert!(!fs::symlink_metadata(chart.join(file)).unwrap().is_symlink(), "{file}");
        assert_eq!(fs::read(chart.join(file)).unwrap(), fs::read(repository(source)).unwrap(), "{file}");
    }

    for (registry, digest, printed) in [
        ("registry.example.com", "latest", "expected sha256: and 64 hexadecimal digits"),
        ("https://#", digest.as_str(), "expected the host and the path of a registry"),
    ] {
        let refused = run(registry, digest);
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && stderr.contains(printed), "{stderr}");
    }
}

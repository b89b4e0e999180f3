//! What is published beside the image: the archive with its completions and manual pages, the plugin of helm, the manifest for krew,
//! the commands for k9s, and the chart's annotations for Artifact Hub. No program of others runs here: real helm and kubectl run
//! these files in `tests/e2e/on_call/plugins.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use regex::Regex;
use release_interlock::world::kubernetes::freeze_definition::Freeze;
use release_interlock::world::kubernetes::override_definition::ReleaseOverride;
use serde_json::Value;

use crate::harness::binary::{interlock, repository, stdout};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROGRAM: &str = env!("CARGO_BIN_EXE_interlock");

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn yaml_file(name: &str) -> Value {
    yaml(&fs::read_to_string(repository(name)).unwrap())
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no text at {pointer} in {value:#}"))
}

/// Runs a command that must succeed, and returns its standard output.
#[track_caller]
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    stdout(&output).trim_end().to_owned()
}

/// The archive of a small file in place of the program, which would take seconds to compress.
fn archive(platform: &str, directory: &Path) -> PathBuf {
    let program = directory.join("program");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    let made =
        output(Command::new(repository("packaging/archive")).arg(&program).arg(platform).arg(directory).arg(PROGRAM));
    assert_eq!(made, directory.join(format!("interlock-{VERSION}-{platform}.tar.gz")).to_str().unwrap());
    made.into()
}

#[test]
fn the_archive_has_the_program_its_completions_its_manual_pages_and_the_plugins() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive("linux-amd64", dir.path());
    let unpacked = dir.path().join("unpacked");
    fs::create_dir(&unpacked).unwrap();
    output(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&unpacked));
    let read = |file: &str| fs::read_to_string(unpacked.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!(read("interlock"), "#!/bin/sh\n");
    for executable in ["interlock", "plugin.complete"] {
        let mode = fs::metadata(unpacked.join(executable)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755, "{executable}");
    }
    for (file, shell) in [
        ("interlock", "bash"),
        ("_interlock", "zsh"),
        ("interlock.fish", "fish"),
        ("_interlock.ps1", "powershell"),
        ("interlock.elv", "elvish"),
    ] {
        assert_eq!(read(&format!("completions/{file}")), stdout(&interlock(&["completions", shell])), "{shell}");
    }
    let pages = tempfile::tempdir().unwrap();
    assert!(interlock(&["man", pages.path().to_str().unwrap()]).status.success());
    let names = |directory: &Path| -> BTreeSet<_> {
        fs::read_dir(directory).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names(&unpacked.join("man")), names(pages.path()));
    assert_eq!(read("man/interlock-unstick.1"), fs::read_to_string(pages.path().join("interlock-unstick.1")).unwrap());
    for (file, source) in [
        ("LICENSE", "LICENSE"),
        ("NOTICE", "NOTICE"),
        ("plugin.yaml", "packaging/helm-plugin/plugin.yaml"),
        ("k9s/plugins.yaml", "packaging/k9s/plugins.yaml"),
    ] {
        assert_eq!(read(file), fs::read_to_string(repository(source)).unwrap(), "{file}");
    }
}

#[test]
fn the_same_files_make_the_same_archive() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [one, two] = dirs.each_ref().map(|dir| fs::read(archive("linux-arm64", dir.path())).unwrap());
    assert!(one == two, "two archives of the same files differ");
}

#[test]
fn the_program_the_chart_and_the_plugin_have_one_version() {
    let plugin = yaml_file("packaging/helm-plugin/plugin.yaml");
    let chart = yaml_file("manifests/chart/Chart.yaml");
    assert_eq!(
        [text(&plugin, "/version"), text(&chart, "/version"), text(&chart, "/appVersion")],
        [VERSION; 3],
        "the plugin, the chart and its program"
    );
}

/// The checks of krew before it installs a plugin, and of its index before it accepts one: `ValidatePlugin` in krew's
/// `internal/index/validation`. They are restated here, because no registry has krew's code.
#[test]
fn krew_would_accept_the_manifest() {
    let dir = tempfile::tempdir().unwrap();
    let platforms = ["linux-amd64", "linux-arm64", "darwin-arm64"];
    let archives = platforms.map(|platform| archive(platform, dir.path()));
    let url = "https://example.com/releases/v1";
    let manifest = yaml(&output(
        Command::new(repository("packaging/krew/manifest")).args(["https://example.com", url]).args(&archives),
    ));
    assert_eq!(text(&manifest, "/apiVersion"), "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!(text(&manifest, "/kind"), "Plugin");
    assert_eq!(text(&manifest, "/metadata/name"), "interlock");
    assert_eq!(text(&manifest, "/spec/version"), format!("v{VERSION}"));
    let short = text(&manifest, "/spec/shortDescription");
    // krew's index asks for at most 50 characters.
    assert!(!short.is_empty() && short.len() <= 50 && !short.contains('\n'), "{short}");
    for (platform, (name, archive)) in
        manifest["spec"]["platforms"].as_array().unwrap().iter().zip(platforms.iter().zip(&archives))
    {
        let labels = &platform["selector"]["matchLabels"];
        assert_eq!(format!("{}-{}", text(labels, "/os"), text(labels, "/arch")), **name);
        assert_eq!(labels.as_object().unwrap().len(), 2, "krew knows only os and arch");
        assert_eq!(text(platform, "/uri"), format!("{url}/interlock-{VERSION}-{name}.tar.gz"));
        let sum = output(Command::new("sha256sum").arg(archive));
        assert_eq!(text(platform, "/sha256"), sum.split(' ').next().unwrap());
        assert_eq!(text(platform, "/bin"), "interlock");
        let files = platform["files"].as_array().unwrap();
        assert!(
            !files.is_empty() && files.iter().all(|file| !text(file, "/from").is_empty() && text(file, "/to") == ".")
        );
    }
    assert_eq!(manifest["spec"]["platforms"].as_array().unwrap().len(), platforms.len());
}

#[test]
fn a_manifest_for_krew_of_another_file_or_of_two_versions_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        fs::write(dir.path().join(name), "").unwrap();
        dir.path().join(name)
    };
    for (archives, printed) in [
        (vec![file("interlock.tar.gz")], "expected interlock-VERSION-OS-ARCH.tar.gz"),
        (
            vec![file("interlock-1.0.0-linux-amd64.tar.gz"), file("interlock-1.0.1-linux-arm64.tar.gz")],
            "expected version 1.0.0",
        ),
    ] {
        let mut manifest = Command::new(repository("packaging/krew/manifest"));
        let refused = manifest.args(["https://example.com", "https://example.com"]).args(archives).output().unwrap();
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && stderr.contains(printed), "{stderr}");
        assert!(refused.stdout.is_empty(), "half a manifest");
    }
}

/// What k9s replaces in arguments: `Substitute` in its `internal/view/env.go`.
static VARIABLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\$(!?[\w|\-]+)").unwrap());

/// The schema by which k9s validates the file (`internal/config/json/schemas/plugins.json`), and its rules for arguments. They are
/// restated here, because no registry has k9s's code.
#[test]
fn k9s_would_load_the_plugins_and_replace_every_variable() {
    let file = yaml_file("packaging/k9s/plugins.yaml");
    assert_eq!(file.as_object().unwrap().keys().collect::<Vec<_>>(), ["plugins"]);
    let known = ["CONTEXT", "NAMESPACE", "NAME", "RESOURCE_NAME"];
    let mut shortcuts = BTreeSet::new();
    for (name, plugin) in file["plugins"].as_object().unwrap() {
        for key in plugin.as_object().unwrap().keys() {
            let keys = ["shortCut", "description", "scopes", "command", "args", "confirm", "dangerous", "background"];
            assert!(keys.contains(&key.as_str()), "{name} has {key}");
        }
        for key in ["confirm", "dangerous", "background"] {
            assert!(plugin.get(key).is_none_or(Value::is_boolean), "{name}: {key} is no boolean");
        }
        let shortcut = text(plugin, "/shortCut");
        // Beside k9s's own in the views of Secrets, custom resources and Helm: the sorts by name, age, namespace and status.
        let taken = ["Shift-N", "Shift-A", "Shift-P", "Shift-S"];
        assert!(
            shortcut.len() == 7 && shortcut.starts_with("Shift-") && !taken.contains(&shortcut),
            "{name}: {shortcut}"
        );
        assert!(shortcuts.insert(shortcut.to_owned()), "two plugins have {shortcut}");
        assert!(!text(plugin, "/description").is_empty());
        assert_eq!(text(plugin, "/command"), "sh");
        for scope in plugin["scopes"].as_array().unwrap() {
            assert!(["secrets", "helmreleases", "helm"].contains(&scope.as_str().unwrap()), "{name}: {scope}");
        }
        for argument in plugin["args"].as_array().unwrap() {
            let argument = argument.as_str().unwrap_or_else(|| panic!("{name} has an argument that is no text"));
            for found in VARIABLE.captures_iter(argument) {
                assert!(known.contains(&&found[1]), "k9s would not run {name}: it does not know {}", &found[0]);
                // As an argument of its own, a name is never read as a part of a command.
                assert_eq!(&found[0], argument, "{name}");
            }
        }
    }
    assert_eq!(shortcuts.len(), 3, "status, unstick and explain");
}

/// Artifact Hub reads these annotations of the chart, and ignores a value that it cannot parse.
#[test]
fn the_annotations_of_the_chart_are_those_of_artifact_hub() {
    let chart = yaml_file("manifests/chart/Chart.yaml");
    let annotations = chart["annotations"].as_object().unwrap();
    let of_hub = |key: &str| text(&chart["annotations"], &format!("/artifacthub.io~1{key}")).to_owned();
    for (key, value) in annotations {
        let key = key.strip_prefix("artifacthub.io/").unwrap_or_else(|| panic!("{key} is no key of Artifact Hub"));
        assert!(["category", "license", "operator", "prerelease", "crds", "crdsExamples"].contains(&key), "{key}");
        assert!(value.is_string(), "{key}: annotations are text");
    }
    assert_eq!(of_hub("category"), "integration-delivery");
    assert_eq!(of_hub("license"), "Apache-2.0");
    assert!(fs::read_to_string(repository("LICENSE")).unwrap().contains("Apache License"));
    assert_eq!(of_hub("operator"), "false");
    assert_eq!(of_hub("prerelease"), VERSION.contains('-').to_string());

    let (crds, examples) = (yaml(&of_hub("crds")), yaml(&of_hub("crdsExamples")));
    let [of_overrides, of_freezes] = crds.as_array().unwrap().as_slice() else { panic!("{crds}") };
    let [an_override, a_freeze] = examples.as_array().unwrap().as_slice() else { panic!("{examples}") };
    for (file, crd, example) in [("releaseoverrides", of_overrides, an_override), ("freezes", of_freezes, a_freeze)] {
        let definition = yaml_file(&format!("manifests/base/{file}.yaml"));
        for (key, wanted) in
            [("kind", "/spec/names/kind"), ("version", "/spec/versions/0/name"), ("name", "/metadata/name")]
        {
            assert_eq!(crd[key], *definition.pointer(wanted).unwrap(), "{key}");
        }
        assert!(!text(crd, "/displayName").is_empty() && !text(crd, "/description").is_empty());
        assert_eq!(text(example, "/kind"), text(crd, "/kind"));
        let group = text(&definition, "/spec/group");
        assert_eq!(text(example, "/apiVersion"), format!("{group}/{}", text(crd, "/version")));
    }
    let of_override: ReleaseOverride = serde_json::from_value(an_override.clone()).unwrap();
    let of_freeze: Freeze = serde_json::from_value(a_freeze.clone()).unwrap();
    for (read, example) in
        [(serde_json::to_value(&of_override), an_override), (serde_json::to_value(&of_freeze), a_freeze)]
    {
        assert_eq!(read.unwrap()["spec"], example["spec"], "a field of the example is not known");
    }
}

/// The rows of the chart's README: each value with its default, and the comment above it.
fn values_table(values: &str) -> String {
    let mut rows = String::new();
    let mut parents: Vec<&str> = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    for line in values.lines() {
        let content = line.trim_start();
        if let Some(text) = content.strip_prefix('#') {
            // Examples are indented.
            comment.extend(Some(text.trim()).filter(|_| !text.starts_with("  ")));
            continue;
        }
        let (Some((key, default)), false) = (content.split_once(':'), content.starts_with("- ")) else {
            comment.clear();
            continue;
        };
        parents.truncate((line.len() - content.len()) / 2);
        parents.push(key);
        let (path, default, about) = (parents.join("."), default.trim(), comment.join(" ").replace('|', "\\|"));
        comment.clear();
        let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
        if !default.is_empty() || !about.is_empty() {
            rows += &format!("| `{path}` | {default} | {about} |\n");
        }
    }
    rows
}

#[test]
fn the_readme_of_the_chart_lists_its_values() {
    const README: &str = "manifests/chart/README.md";
    let chart = yaml_file("manifests/chart/Chart.yaml");
    let values = fs::read_to_string(repository("manifests/chart/values.yaml")).unwrap();
    let (_, values) = values.split_once("\n\n").unwrap();
    let made = format!(
        "# Interlock\n\n{}\n\n```sh\nhelm install interlock manifests/chart -n interlock-system --create-namespace --wait \\\n    \
         --set image.registry=registry.example.com\n```\n\nWith `--set mode=audit-first`, nothing is refused, and what would be refused is \
         reported. Examples of values are in values.yaml, and values for platforms in `platforms/`.\n\nThis page is generated from \
         values.yaml: `INTERLOCK_WRITE_DOCS=1 cargo test --test it packaging`.\n\n| value | default | meaning |\n|---|---|---|\n{}",
        text(&chart, "/description"),
        values_table(values),
    );
    if std::env::var_os("INTERLOCK_WRITE_DOCS").is_some() {
        fs::write(repository(README), &made).unwrap();
    }
    assert!(made.contains("| `image.registry` | `\"\"` | Required: "), "{made}");
    let committed = fs::read_to_string(repository(README)).unwrap_or_default();
    assert!(committed == made, "{README} is old; INTERLOCK_WRITE_DOCS=1 cargo test --test it packaging writes it");
}

/// The tool `reuse` reads these files.
#[test]
fn every_file_has_a_licence_whose_text_is_here() {
    let annotations = fs::read_to_string(repository("REUSE.toml")).unwrap();
    assert!(annotations.contains("path = \"**\"\n"), "{annotations}");
    let named = annotations.lines().filter_map(|line| line.strip_prefix("SPDX-License-Identifier = "));
    let named: BTreeSet<_> = named.flat_map(|licences| licences.trim_matches('"').split(" AND ")).collect();
    for licence in &named {
        let text = fs::read_to_string(repository(&format!("LICENSES/{licence}.txt"))).unwrap();
        assert!(text.len() > 500, "{licence}");
    }
    assert_eq!(named, BTreeSet::from(["Apache-2.0", "MIT"]));
}

//! Builds of Go modules in other versions than the pinned ones: the dependencies of a release are those of its own `go.mod`.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Modules that their authors moved after the release of an old helm. The old name has no server any more.
const MOVED: [(&str, &str); 1] = [("vbom.ml/util", "github.com/fvbommel/util@v0.0.0-20160121211510-db5cfe13f5cc")];

/// A module in the module cache.
pub(super) struct Module {
    pub(super) dir: PathBuf,
    go_mod: PathBuf,
}

impl Module {
    /// Downloads a module, if the module cache does not have it.
    pub(super) fn fetched(path: &str, version: &str) -> Result<Self, String> {
        let known = json(Command::new("go").args(["mod", "download", "-json"]).arg(format!("{path}@{version}")))?;
        let file =
            |name: &str| known[name].as_str().map(PathBuf::from).ok_or(format!("go does not know {path}@{version}"));
        Ok(Self { dir: file("Dir")?, go_mod: file("GoMod")? })
    }

    /// Writes a copy of this module's `go.mod` and `go.sum` to a directory, and returns the former. With it as `-modfile`,
    /// the module is the main module of a build, replacements included, and the module cache stays as it is.
    pub(super) fn as_main(&self, dir: &Path) -> Result<PathBuf, String> {
        let text = fs::read_to_string(&self.go_mod).map_err(|e| format!("{}: {e}", self.go_mod.display()))?;
        let sums = fs::read_to_string(self.dir.join("go.sum")).map_err(|e| format!("{}: {e}", self.dir.display()))?;
        let moved = MOVED.map(|(from, to)| format!("replace {from} => {}\n", to.replace('@', " ")));
        written(dir, &format!("{text}\n{}", moved.concat()), &sums)
    }
}

/// A module that is published with a Kubernetes, in the version that belongs to it.
pub(super) fn published(path: &str, kubernetes: &str) -> Result<Module, String> {
    Module::fetched(path, &format!("v{}", published_version(kubernetes)))
}

fn published_version(kubernetes: &str) -> String {
    format!("0.{}", kubernetes.trim_start_matches("1."))
}

/// Writes a `go.mod` for `tests/controlplane` on another Kubernetes to a directory: the requirements of that release, and
/// its settings of Go's own compatibility (`godebug`).
pub(super) fn controlplane_on(kubernetes: &str, dir: &Path) -> Result<PathBuf, String> {
    let module = Module::fetched("k8s.io/kubernetes", &format!("v{kubernetes}"))?;
    let known = json(Command::new("go").args(["mod", "edit", "-json"]).arg(&module.go_mod))?;
    written(dir, &requirements(kubernetes, &known), "")
}

/// `known`: the `go.mod` of Kubernetes as `go mod edit -json` prints it.
fn requirements(kubernetes: &str, known: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |name: &str| known[name].as_array().cloned().unwrap_or_default();
    let published = format!("v{}", published_version(kubernetes));
    let go = text(&known["Go"]);
    let behaviour = list("GoDebug").iter().find(|setting| setting["Key"] == "default").map_or_else(
        || format!("go{}", go.split('.').take(2).collect::<Vec<_>>().join(".")),
        |setting| text(&setting["Value"]),
    );
    let mut made = format!(
        "module controlplane\n\ngo 1.26.0\n\ngodebug default={behaviour}\n\nrequire k8s.io/kubernetes v{kubernetes}\n"
    );
    for required in list("Require") {
        let (path, version) = (text(&required["Path"]), text(&required["Version"]));
        // Kubernetes requires the modules that are published with it as v0.0.0, and finds them in its own repository.
        if version == "v0.0.0" {
            let _ = writeln!(made, "require {path} {published}\nreplace {path} => {path} {published}");
        } else {
            let _ = writeln!(made, "require {path} {version}");
        }
    }
    for replaced in list("Replace") {
        let (old, new) = (text(&replaced["Old"]["Path"]), text(&replaced["New"]["Path"]));
        if let Some(version) = replaced["New"]["Version"].as_str() {
            let _ = writeln!(made, "replace {old} => {new} {version}");
        }
    }
    made
}

fn written(dir: &Path, modules: &str, sums: &str) -> Result<PathBuf, String> {
    let file = dir.join("go.mod");
    fs::create_dir_all(dir)
        .and_then(|()| fs::write(&file, modules))
        .and_then(|()| fs::write(dir.join("go.sum"), sums))
        .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    Ok(file)
}

fn json(command: &mut Command) -> Result<Value, String> {
    let output = command.output().map_err(|e| format!("cannot start go: {e}"))?;
    let message = [output.stdout.as_slice(), output.stderr.as_slice()].map(String::from_utf8_lossy).concat();
    if !output.status.success() {
        return Err(format!("{command:?} failed; it needs the Go module proxy or a filled module cache:\n{message}"));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("{command:?} printed no JSON ({e}):\n{message}"))
}

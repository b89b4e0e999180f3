//! The peers that are written in Go: built on first use into `target/peers/`, each with the dependencies of its own release.

#[path = "../../tests/e2e/harness/assets/build.rs"]
mod build;
#[path = "../../tests/e2e/harness/assets/modules.rs"]
#[allow(dead_code, reason = "the e2e tests build other versions of the control plane too")]
mod modules;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Error, Result};

use build::{built, go};
use modules::Module;

/// A program of a Go module.
pub(crate) struct Program {
    name: &'static str,
    module: &'static str,
    pub(crate) version: &'static str,
    package: &'static str,
    /// Of the first build, on two cores.
    minutes: u32,
}

pub(crate) const OPA: Program =
    Program { name: "opa", module: "github.com/open-policy-agent/opa", version: "1.22.4", package: ".", minutes: 2 };

pub(crate) const GATEKEEPER: Program = Program {
    name: "gatekeeper",
    module: "github.com/open-policy-agent/gatekeeper/v3",
    version: "3.23.1",
    package: ".",
    minutes: 4,
};

pub(crate) const KYVERNO: Program = Program {
    name: "kyverno",
    module: "github.com/kyverno/kyverno",
    version: "1.19.1",
    package: "./cmd/kyverno",
    minutes: 6,
};

/// A built program, and the directory of its sources, where its custom resource definitions are.
pub(crate) struct Built {
    pub(crate) program: PathBuf,
    pub(crate) sources: PathBuf,
}

impl Program {
    pub(crate) fn built(&self) -> Result<Built> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers");
        fs::create_dir_all(&dir)?;
        // Two benchmarks at the same time build one after the other.
        let lock = File::create(dir.join("lock"))?;
        lock.lock()?;
        self.built_in(&dir).map_err(Error::msg)
    }

    fn built_in(&self, dir: &Path) -> Result<Built, String> {
        let Self { name, module, version, package, minutes } = self;
        let source = Module::fetched(module, &format!("v{version}"))?;
        let flags = "-s -w";
        let program = built(dir, name, &format!("{module}@v{version} {package} {flags}"), || {
            let mut build = go(name, dir)?;
            progress(&format!("building {name} {version} ({minutes} minutes on two cores the first time)"));
            let modules = source.as_main(&dir.join(format!("{name}.modules")))?;
            let out = dir.join(format!("{name}.new"));
            build.current_dir(&source.dir).args(["build", "-trimpath", "-ldflags", flags, "-mod=mod", "-modfile"]);
            build.arg(modules).arg("-o").arg(&out).arg(package);
            Ok((build, out))
        })?;
        Ok(Built { program, sources: source.dir })
    }
}

fn progress(line: &str) {
    eprintln!("peers: {line}");
}

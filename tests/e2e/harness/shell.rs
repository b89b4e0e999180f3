//! A shell with the clients under the names that people use, for commands as they are printed.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::harness::assets::{assets, interlock};
use crate::harness::clients::{Identity, client_environment};
use crate::harness::plane::Plane;
use crate::harness::process::{Output, run};

/// `flux reconcile KIND NAME [--with-source] -n NAMESPACE`: the real command sets this annotation too, and waits.
const FLUX: &str = "#!/bin/sh
kind=\"$2\" name=\"$3\"
shift 3
[ \"$1\" != --with-source ] || shift
exec kubectl annotate \"$kind\" \"$name\" --overwrite reconcile.fluxcd.io/requestedAt=now \"$@\"
";

/// `argocd app sync NAMESPACE/NAME`: the real command has its server write this, and waits.
const ARGOCD: &str = "#!/bin/sh\nexec kubectl patch applications.argoproj.io \"${3#*/}\" -n \"${3%/*}\" --type merge -p '{\"operation\":{\"sync\":{}},\"status\":{\"operationState\":null}}'\n";

/// Runs a command line as a person would who has pasted it.
#[track_caller]
pub(crate) fn shell(plane: &Plane, who: &Identity, line: &str, patience: Duration) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]);
    client_environment(&mut shell, who, plane.dir());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs(plane)).chain(std::env::split_paths(&path));
    shell.env("PATH", std::env::join_paths(paths).expect("directories of programs have plain names"));
    for (variable, dir) in [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")] {
        shell.env(variable, plane.dir().join("helm").join(dir));
    }
    run(shell, patience)
}

/// A directory with the clients under the names that people use.
fn programs(plane: &Plane) -> PathBuf {
    static WRITING: Mutex<()> = Mutex::new(());
    let dir = plane.dir().join("bin");
    let _one_at_a_time = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    if !dir.exists() {
        let assets = assets();
        let interlock = interlock().unwrap_or_else(|error| panic!("{error}"));
        std::fs::create_dir_all(&dir).expect("a temporary directory is writable");
        for (name, program) in [("helm", &assets.helm4), ("kubectl", &assets.kubectl), ("interlock", &interlock)] {
            symlink(program, dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        for (name, script) in [("flux", FLUX), ("argocd", ARGOCD)] {
            std::fs::write(dir.join(name), script).expect("a temporary directory is writable");
            std::fs::set_permissions(dir.join(name), Permissions::from_mode(0o755)).expect("it is ours");
        }
    }
    dir
}

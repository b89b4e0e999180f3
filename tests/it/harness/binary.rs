//! The built `interlock`, run to its end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A path in the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs `interlock ARGS` in the root of the repository.
pub(crate) fn interlock(args: &[&str]) -> Output {
    interlock_in("").args(args).output().unwrap()
}

/// `interlock` in a directory of the repository. A policy in the environment of the tests does not count.
pub(crate) fn interlock_in(directory: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_interlock"));
    command.current_dir(repository(directory)).env_remove("INTERLOCK_POLICIES");
    command
}

pub(crate) fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

pub(crate) fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

//! Builds programs with Go, and keeps them until their sources change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::progress;

/// `DIR/NAME` if its stamp is current; otherwise runs the build, moves its product there and writes the stamp.
pub(super) fn built(
    dir: &Path,
    name: &str,
    stamp: &str,
    build: impl FnOnce() -> Result<(Command, PathBuf), String>,
) -> Result<PathBuf, String> {
    let program = dir.join(name);
    let stamp_file = dir.join(format!("{name}.stamp"));
    if program.exists() && fs::read_to_string(&stamp_file).is_ok_and(|current| current == stamp) {
        return Ok(program);
    }
    let (mut command, product) = build()?;
    let start = Instant::now();
    let output = command.output().map_err(|e| format!("cannot start the build of {name}: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "the build of {name} failed ({}); it needs the Go module proxy or a filled module cache:\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    // The stamp is removed first and written last: a program without a stamp is built again.
    let _ = fs::remove_file(&stamp_file);
    fs::rename(&product, &program).map_err(|e| format!("cannot move {} into place: {e}", product.display()))?;
    fs::write(&stamp_file, stamp).map_err(|e| format!("cannot write {}: {e}", stamp_file.display()))?;
    progress(&format!("{name} built in {:.0?}", start.elapsed()));
    Ok(program)
}

/// Go for a build whose product belongs into `dir`.
pub(super) fn go(what: &str, dir: &Path) -> Result<Command, String> {
    let found = Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return Err(format!(
            "there is no Go to build {what}: install Go 1.26 or newer (https://go.dev/dl), \
             or copy the programs with their .stamp files from this directory on another machine: {}",
            dir.display()
        ));
    }
    let mut go = Command::new("go");
    // Needs no C compiler, and the program runs on any Linux.
    go.env("CGO_ENABLED", "0");
    Ok(go)
}

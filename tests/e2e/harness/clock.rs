//! A wrong clock for a replica: a library that is loaded before all others, and shifts the time of day.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The built library.
pub(crate) struct WrongClock {
    library: PathBuf,
}

impl WrongClock {
    /// Builds the library in a directory, with the C compiler that Interlock's build needs too.
    pub(crate) fn build(dir: &Path) -> Result<Self, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/harness/clock.c");
        let library = dir.join("clock.so");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).args([&library, &source]).output();
        match built {
            Ok(output) if output.status.success() => Ok(Self { library }),
            Ok(output) => {
                Err(format!("cannot build {}: {}", source.display(), String::from_utf8_lossy(&output.stderr)))
            }
            Err(error) => Err(format!("cannot run cc, the C compiler: {error}")),
        }
    }

    /// The variables under which a process has a clock that is so many seconds ahead.
    pub(crate) fn ahead(&self, seconds: i64) -> [(&'static str, String); 2] {
        [("LD_PRELOAD", self.library.display().to_string()), ("CLOCK_SECONDS", seconds.to_string())]
    }
}

//! The alert rules as Prometheus reads and evaluates them. promtool is built on first use into `target/promtool/` and reused
//! until its pins in `tests/alerts` change.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::alerts::ALERTS;
use crate::documentation::path;

const MODULE: &str = "tests/alerts";
const PACKAGE: &str = "github.com/prometheus/prometheus/cmd/promtool";

#[test]
fn prometheus_reads_the_alerts_and_evaluates_them_as_their_tests_expect() {
    let promtool = promtool();
    for arguments in [["check", "rules", ALERTS], ["test", "rules", "tests/alerts/alerts.test.yaml"]] {
        let run = Command::new(&promtool).current_dir(path("")).args(arguments).output().unwrap();
        assert!(run.status.success(), "promtool {}\n{}", arguments.join(" "), output(&run));
    }
}

fn promtool() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("tmp is in the target directory").join("promtool");
    let (program, stamp) = (dir.join("promtool"), dir.join("promtool.stamp"));
    let pins = fs::read_to_string(path(MODULE).join("go.sum")).unwrap();
    if program.exists() && fs::read_to_string(&stamp).is_ok_and(|built| built == pins) {
        return program;
    }
    // Past libtest, which would keep the line until the test has ended.
    let _ = writeln!(std::io::stderr(), "it: building promtool (3 minutes on two cores the first time)");
    fs::create_dir_all(&dir).unwrap();
    let new = dir.join("promtool.new");
    // Without the clients of two dozen clouds, which only service discovery needs. No C compiler.
    let build = ["build", "-tags", "remove_all_sd", "-trimpath", "-ldflags", "-s -w", "-o"];
    let built = Command::new("go")
        .current_dir(path(MODULE))
        .env("CGO_ENABLED", "0")
        .args(build)
        .arg(&new)
        .arg(PACKAGE)
        .output()
        .unwrap_or_else(|error| {
            panic!("there is no Go to build promtool: install Go 1.26 (https://go.dev/dl): {error}")
        });
    assert!(
        built.status.success(),
        "the build of promtool failed; it needs the Go module proxy or a filled module cache:\n{}",
        output(&built)
    );
    fs::rename(new, &program).unwrap();
    fs::write(stamp, pins).unwrap();
    program
}

fn output(run: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr))
}

//! `cargo run --example playground`: the printed commands work, and nothing is left behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::harness::eventually::eventually;
use crate::harness::process::{Output, run};

/// Long enough for an upgrade that waits for pods on a busy machine.
const DEADLINE: Duration = Duration::from_secs(180);

#[test]
fn the_commands_of_the_playground_work_and_it_ends_with_its_input() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--example", "playground"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let mut playground = Playground(cargo.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let printed = playground.instructions();
    let [exports, install, rollback, label, scale] =
        ["\nBecome ", "\n1. ", "\n2. ", "\n3. ", "\n4. "].map(|start| commands(&printed, start));
    let shell = |commands: &str| {
        let mut sh = Command::new("sh");
        sh.arg("-c").arg(format!("{exports}{commands}"));
        run(sh, DEADLINE)
    };

    let output = shell(&install).expect_success();
    assert!(output.stdout.contains(r#""interlock.dev/holder":"alice""#), "expected alice's name\n{output}");
    expect_refusal(&shell(&rollback), "pending-recovery");
    expect_refusal(&shell(&label), "record-tampering");
    let scaled = shell(&scale);
    expect_refusal(&scaled, "manual-scale");
    assert!(scaled.stdout.contains("restarted"), "{scaled}");
    let history = shell("helm4 history demo -o json\n").expect_success().json();
    let statuses: Vec<_> = history.as_array().unwrap().iter().map(|record| &record["status"]).collect();
    assert_eq!(statuses, ["superseded", "deployed"]);

    let dir = Path::new(exports.split('"').nth(1).unwrap()).ancestors().nth(2).unwrap().to_owned();
    assert!(dir.exists() && !processes_of(&dir).is_empty(), "expected everything in {}", dir.display());
    drop(playground.0.stdin.take());
    assert!(playground.0.wait().unwrap().success());
    assert!(!dir.exists(), "expected {} to be gone", dir.display());
    eventually(Duration::from_secs(5), "no process is left", || match processes_of(&dir) {
        left if left.is_empty() => Ok(()),
        left => Err(left.join("\n")),
    });
}

/// The process of cargo, replaced by the playground. Its input closes when this is dropped.
struct Playground(Child);

impl Playground {
    /// The output up to its last line.
    fn instructions(&mut self) -> String {
        let mut text = String::new();
        let mut stdout = BufReader::new(self.0.stdout.take().unwrap());
        while !text.contains("Ctrl-C") {
            let read = stdout.read_line(&mut text).unwrap();
            assert!(read > 0, "the playground ended; its reason is on standard error above. It printed:\n{text}");
        }
        text
    }
}

/// The indented lines of the part that starts with `start`.
fn commands(printed: &str, start: &str) -> String {
    let (_, part) = printed.split_once(start).unwrap_or_else(|| panic!("expected {start:?} in\n{printed}"));
    let indented = |line: &&str| line.starts_with("    ") || line.is_empty();
    let lines = part.lines().skip(1).take_while(indented);
    lines.map(|line| line.trim_start().to_owned() + "\n").collect()
}

#[track_caller]
fn expect_refusal(output: &Output, rule: &str) {
    assert!(output.stderr.contains("denied the request"), "expected a refusal\n{output}");
    assert!(output.stderr.contains(rule), "expected {rule} to refuse\n{output}");
}

/// The command lines with this directory in them.
fn processes_of(dir: &Path) -> Vec<String> {
    let lines =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&*dir.to_string_lossy())).collect()
}

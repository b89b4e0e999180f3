#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark has no callers to report an error to")]

//! What a replay of an audit log costs, and the list of the changes in it, in a log of Interlock, and in both, against `jq -c .` over
//! the audit log in the same run: jq reads and prints every event and judges none.
//!
//! They take turns, so that a machine that slows down slows all; the figures to keep are the ratios. A list of changes is not to be
//! slower than the replay.

use std::fs::{self, File};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[path = "fixtures/log.rs"]
mod log;
#[path = "fixtures/transitions.rs"]
mod transitions;

const EVENTS: usize = 100_000;
const TRANSITIONS: usize = 100_000;
const ROUNDS: usize = 3;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    log::write(File::create(&path).unwrap(), EVENTS).unwrap();
    let size = fs::metadata(&path).unwrap().len();
    let own = dir.path().join("interlock.log");
    transitions::write(File::create(&own).unwrap(), TRANSITIONS).unwrap();
    println!("{EVENTS} events, {:.0} MiB", size as f64 / 1_048_576.0);

    let mut replay = Command::new(env!("CARGO_BIN_EXE_interlock"));
    replay.args(["replay", "--as-recorded"]).arg(&path);
    let changes = || {
        let mut changes = Command::new(env!("CARGO_BIN_EXE_interlock"));
        changes.args(["changes", "-o", "csv"]);
        changes
    };
    let (mut of_audit, mut of_log, mut of_both) = (changes(), changes(), changes());
    of_audit.arg("--audit-log").arg(&path);
    of_log.arg("--log").arg(&own);
    of_both.arg("--audit-log").arg(&path).arg("--log").arg(&own);
    let mut lists = [
        ("changes of audit", EVENTS, of_audit, Vec::new()),
        ("changes of log", TRANSITIONS, of_log, Vec::new()),
        ("changes of both", EVENTS + TRANSITIONS, of_both, Vec::new()),
    ];
    let mut jq = Command::new("jq");
    jq.args(["-c", "."]).arg(&path);
    let has_jq =
        Command::new("jq").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(measured(&mut replay));
        lists.iter_mut().for_each(|(_, _, command, runs)| runs.push(measured(command)));
        if has_jq {
            theirs.push(measured(&mut jq));
        }
    }
    let ours = median(ours);
    report("interlock replay", EVENTS, &ours);
    for (name, lines, _, runs) in lists {
        let listed = median(runs);
        report(name, lines, &listed);
        println!("replay takes {:.2} times as long", ours.took.as_secs_f64() / listed.took.as_secs_f64());
    }
    if has_jq {
        let theirs = median(theirs);
        report("jq -c .", EVENTS, &theirs);
        println!("jq takes {:.2} times as long", theirs.took.as_secs_f64() / ours.took.as_secs_f64());
    } else {
        println!("jq is not on PATH: nothing to compare with");
    }
}

struct Run {
    took: Duration,
    /// The most resident memory, in KiB.
    peak: u64,
    /// The end of what it printed.
    said: String,
}

/// Runs a command to its end, with its output read as fast as it comes.
fn measured(command: &mut Command) -> Run {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let (mut buffer, mut last) = (vec![0; 1 << 20], String::new());
        loop {
            match stdout.read(&mut buffer).unwrap() {
                0 => return last,
                read => last = String::from_utf8_lossy(&buffer[read.saturating_sub(200)..read]).into_owned(),
            }
        }
    });
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    // The kernel keeps the peak for as long as the process runs.
    while child.try_wait().unwrap().is_none() {
        let known = fs::read_to_string(&status).unwrap_or_default();
        let known =
            known.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = known.unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = start.elapsed();
    // 1: something would have been denied, which is so.
    assert!(child.wait().unwrap().code().is_some_and(|code| code < 2));
    Run { took, peak, said: reader.join().unwrap() }
}

fn median(mut runs: Vec<Run>) -> Run {
    runs.sort_by_key(|run| run.took);
    runs.swap_remove(runs.len() / 2)
}

fn report(name: &str, lines: usize, Run { took, peak, said }: &Run) {
    let rate = lines as f64 / took.as_secs_f64();
    let last = said.lines().last().filter(|line| line.len() < 100).unwrap_or_default();
    println!("{name:<18}{took:>9.2?}{rate:>10.0} lines/s, peak {:>4} MiB  {last}", peak / 1024);
}

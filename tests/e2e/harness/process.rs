//! Child processes with a deadline, and child processes that end with this one.

use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

use crate::harness::profile::{Reason, took};

/// What a client printed and how it ended.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// The command line, shown when a test fails.
    pub(crate) command: String,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
    /// Killed at the deadline.
    pub(crate) timed_out: bool,
}

impl Output {
    pub(crate) fn success(&self) -> bool {
        self.status.success() && !self.timed_out
    }

    /// The output of a command that must succeed.
    #[track_caller]
    pub(crate) fn expect_success(self) -> Self {
        assert!(self.success(), "expected success\n{self}");
        self
    }

    /// The output of a command that must fail with all of these texts on its standard error.
    #[track_caller]
    pub(crate) fn expect_failure(self, texts: &[&str]) -> Self {
        assert!(!self.timed_out, "expected a failure, not a time-out\n{self}");
        assert!(!self.status.success(), "expected a failure with {texts:?}\n{self}");
        for text in texts {
            assert!(self.stderr.contains(text), "expected {text:?} in the error\n{self}");
        }
        self
    }

    /// For conditions in `eventually`.
    pub(crate) fn into_result(self) -> Result<Self, String> {
        if self.success() { Ok(self) } else { Err(self.to_string()) }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("expected JSON: {error}\n{self}"),
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, status, stdout, stderr, took, timed_out } = self;
        let killed = if *timed_out { ", killed at its deadline" } else { "" };
        write!(f, "$ {command}\n{status} after {took:.1?}{killed}\nstdout:\n{stdout}\nstderr:\n{stderr}")
    }
}

/// A client that runs while the test goes on. Killed when dropped.
pub(crate) struct Running {
    command: String,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
    started: Instant,
}

impl Running {
    /// Starts the command with its output collected in the background.
    #[track_caller]
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let line = display(&command);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("expected to start `{line}`: {error}"),
        };
        Self {
            stdout: child.stdout.take().map(collect),
            stderr: child.stderr.take().map(collect),
            command: line,
            child,
            started: Instant::now(),
        }
    }

    /// Starts the command on a terminal on which somebody has typed these keys already. What the terminal shows is its output.
    #[track_caller]
    pub(crate) fn on_terminal(mut command: Command, keys: &str) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let person = openpt(flags).expect("a terminal");
        unlockpt(&person).expect("a terminal of our own");
        let [stdin, stdout, stderr] = [(); 3].map(|()| ioctl_tiocgptpeer(&person, flags).expect("its other end"));
        let mut person = File::from(person);
        person.write_all(keys.as_bytes()).expect("a terminal takes some keys");
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        let line = display(&command);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("expected to start `{line}`: {error}"),
        };
        // Reading ends when the last process has closed its end, and this one has three in `command`.
        drop(command);
        Self { stdout: Some(collect(person)), stderr: None, command: line, child, started: Instant::now() }
    }

    /// SIGKILL: the client cannot clean up. Returns once it has ended.
    pub(crate) fn kill(mut self) -> Output {
        let _ = self.child.kill();
        self.collect_output(false)
    }

    /// SIGINT, like Ctrl-C on a terminal: the client cleans up. Returns at once.
    pub(crate) fn interrupt(&self) {
        signal("INT", self.child.id());
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the end, and kills at the deadline.
    pub(crate) fn wait(mut self, deadline: Duration) -> Output {
        let mut timed_out = false;
        while self.is_running() {
            if self.started.elapsed() > deadline {
                timed_out = true;
                let _ = self.child.kill();
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.collect_output(timed_out)
    }

    fn collect_output(&mut self, timed_out: bool) -> Output {
        let status = self.child.wait().expect("a started child can be waited for");
        let text =
            |handle: Option<JoinHandle<String>>| handle.and_then(|handle| handle.join().ok()).unwrap_or_default();
        took(|| Reason::Program(program(&self.command)), self.started.elapsed());
        Output {
            command: self.command.clone(),
            status,
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
            took: self.started.elapsed(),
            timed_out,
        }
    }
}

/// The program of a command line, and its subcommand: `kubectl get`.
fn program(line: &str) -> String {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let subcommand = words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
    [name.rsplit('/').next(), subcommand].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end, and kills it at the deadline.
#[track_caller]
pub(crate) fn run(command: Command, deadline: Duration) -> Output {
    Running::spawn(command).wait(deadline)
}

/// Sends a signal by name. The standard library knows only SIGKILL.
pub(crate) fn signal(name: &str, pid: u32) {
    let _ = Command::new("sh").arg("-c").arg(format!("kill -s {name} {pid}")).stderr(Stdio::null()).status();
}

/// A shell that runs the rest of its arguments, prints their process id as its first line, and sends SIGTERM when its
/// own standard input closes: what is kept in a static of the test process is never dropped, but its pipes close.
pub(crate) fn leash() -> Command {
    let mut command = Command::new("sh");
    // Ctrl-C on a terminal must reach only the process at the other end of the pipe.
    command.process_group(0).arg("-c").arg(
        r#"exec 3<&0
        sh -c 'echo $$; exec "$@"' leashed "$@" 3<&- </dev/null & pid=$!
        { cat <&3 >/dev/null; kill -s TERM "$pid"; } 2>/dev/null >&2 & watch=$!
        exec 3<&-
        wait "$pid"; status=$?
        kill "$watch" 2>/dev/null
        exit "$status""#,
    );
    command.arg("leash");
    command
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn display(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    command.get_args().fold(name, |line, arg| line + " " + &arg.to_string_lossy())
}

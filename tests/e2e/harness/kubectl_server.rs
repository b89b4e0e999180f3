//! kubectl's commands in one process at a time. The tests run ten thousand, and most of the time of each would be the start of a process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::harness::clients::hide_configuration;
use crate::harness::process::Output;
use crate::harness::profile::{Reason, took};

/// How many commands a process runs: each leaves about 1 MiB in kubectl's own tables.
const COMMANDS: usize = 100;

/// The process that takes the next command.
static CURRENT: Mutex<Option<Arc<Server>>> = Mutex::new(None);

/// What is to be run.
#[derive(Serialize)]
pub(crate) struct Request<'a> {
    pub(crate) kubeconfig: &'a Path,
    /// Where discovery is kept.
    pub(crate) cache: &'a Path,
    pub(crate) arguments: &'a [&'a str],
}

#[derive(Serialize)]
struct Line<'a> {
    id: usize,
    #[serde(flatten)]
    request: &'a Request<'a>,
}

#[derive(Deserialize)]
struct Response {
    id: usize,
    code: i32,
    stdout: String,
    stderr: String,
}

/// A process of the built kubectl. It ends when its standard input closes.
struct Server {
    child: Child,
    stdin: Mutex<Option<ChildStdin>>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    /// How many commands were begun.
    begun: usize,
    by_id: HashMap<usize, Sender<Response>>,
}

/// Runs a command to its end, or until the deadline. Then it is left alone.
pub(crate) fn run(kubectl: &Path, request: &Request<'_>, deadline: Duration) -> Output {
    let (started, server, (sender, receiver)) = (Instant::now(), current(kubectl), channel());
    server.send(&Line { id: server.begin(sender), request });
    let response = receiver.recv_timeout(deadline);
    let verb = request.arguments.first().copied().unwrap_or_default();
    took(|| Reason::Program(format!("kubectl {verb}")), started.elapsed());
    let timed_out = response.is_err();
    let (code, stdout, stderr) = match response {
        Ok(Response { code, stdout, stderr, .. }) => (code, stdout, stderr),
        Err(error) => (1, String::new(), format!("kubectl said nothing: {error}")),
    };
    Output {
        command: format!("kubectl {}", request.arguments.join(" ")),
        status: ExitStatus::from_raw(code << 8),
        stdout,
        stderr,
        took: started.elapsed(),
        timed_out,
    }
}

/// A process that may take another command. One that was replaced ends with its last command.
fn current(kubectl: &Path) -> Arc<Server> {
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    match &*current {
        Some(server) if server.waiting().begun < COMMANDS => Arc::clone(server),
        _ => Arc::clone(current.insert(Arc::new(Server::start(kubectl)))),
    }
}

impl Server {
    fn start(kubectl: &Path) -> Self {
        let mut command = Command::new(kubectl);
        hide_configuration(&mut command, Path::new("/nonexistent"));
        // Each command would search these directories for plugins.
        command.env("PATH", "/nonexistent");
        // Unlike short processes, this one has garbage.
        command.env("GOGC", "300");
        // Ctrl-C on a terminal must reach only this process.
        command.arg("serve-commands").stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {}: {error}", kubectl.display()));
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let waiting = Arc::<Mutex<Waiting>>::default();
        let answered = Arc::clone(&waiting);
        std::thread::spawn(move || hand_out(stdout, &answered));
        Self { child, stdin: Mutex::new(stdin), waiting }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, sender: Sender<Response>) -> usize {
        let mut waiting = self.waiting();
        waiting.begun += 1;
        let id = waiting.begun;
        waiting.by_id.insert(id, sender);
        id
    }

    /// A process that has died answers nothing.
    fn send(&self, line: &Line<'_>) {
        let text = serde_json::to_string(line).expect("a request is JSON") + "\n";
        let mut stdin = self.stdin.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = stdin.as_mut().map(|stdin| stdin.write_all(text.as_bytes()));
        if !matches!(sent, Some(Ok(()))) {
            self.waiting().by_id.remove(&line.id);
        }
    }
}

/// Gives each response to the test that waits for it, until the process ends. Then nobody has to wait any longer.
fn hand_out(stdout: ChildStdout, waiting: &Mutex<Waiting>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let response: Response = serde_json::from_str(&line).expect("a line is a response");
        let sender = waiting.lock().unwrap_or_else(PoisonError::into_inner).by_id.remove(&response.id);
        // The test may have given up.
        let _ = sender.map(|sender| sender.send(response));
    }
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.begun = COMMANDS;
    waiting.by_id.clear();
}

impl Drop for Server {
    fn drop(&mut self) {
        *self.stdin.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let _ = self.child.wait();
    }
}

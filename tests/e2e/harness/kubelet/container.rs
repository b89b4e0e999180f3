//! The process of a container.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;

use super::specification::Start;
use crate::harness::process::{leash, signal};

/// The line that `interlock serve` prints when it listens.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Addresses {
    pub(super) listen: SocketAddr,
    pub(super) admin: SocketAddr,
}

/// The output of the process so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Said {
    pub(super) pid: Option<u32>,
    pub(super) addresses: Option<Addresses>,
}

/// A process that is killed when this is dropped.
pub(super) struct Process {
    leash: Child,
    /// The process ends when this closes.
    stdin: Option<ChildStdin>,
    said: Arc<Mutex<Said>>,
}

impl Process {
    /// Starts it with its output at the end of the log.
    pub(super) fn start(start: &Start, log: &Path) -> Result<Self, String> {
        let open = || File::options().create(true).append(true).open(log);
        let (mut stdout, stderr) =
            open().and_then(|file| Ok((file, open()?))).map_err(|e| format!("cannot open {}: {e}", log.display()))?;
        let mut command = leash();
        command.args(&start.program).args(&start.arguments);
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).envs(&start.environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut leash = command.spawn().map_err(|e| format!("cannot start interlock: {e}"))?;
        let (Some(stdin), Some(pipe)) = (leash.stdin.take(), leash.stdout.take()) else {
            return Err("interlock has no pipes".to_owned());
        };
        let said = Arc::<Mutex<Said>>::default();
        let message = said.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                let mut said = message.lock().unwrap_or_else(PoisonError::into_inner);
                if said.pid.is_none() {
                    said.pid = line.trim().parse().ok();
                } else {
                    said.addresses = said.addresses.or(serde_json::from_str(&line).ok());
                    let _ = writeln!(stdout, "{line}");
                }
            }
        });
        Ok(Self { leash, stdin: Some(stdin), said })
    }

    pub(super) fn said(&self) -> Said {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a signal by name, once the process id is known.
    pub(super) fn signal(&self, name: &str) {
        if let Some(pid) = self.said().pid {
            signal(name, pid);
        }
    }

    /// The exit code, or 128 and the signal's number, if it has ended.
    pub(super) fn ended(&mut self) -> Option<i32> {
        self.leash.try_wait().ok()?.map(|status| status.code().unwrap_or(137))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.signal("KILL");
            // A process whose id is unknown ends when its leash closes.
            drop(self.stdin.take());
            let _ = self.leash.wait();
        }
    }
}

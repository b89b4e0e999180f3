//! How far a long command has come: a bar on a terminal, once it takes longer than a second.

use std::io::{IsTerminal, stderr, stdout};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Nobody wants to see a bar for less.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Things,
}

/// A bar on standard error, or nothing where that is no terminal. It goes when this is dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    started: Instant,
    /// Whether there is anybody to see it.
    wanted: bool,
}

impl Progress {
    /// Of a work of so many of something. `streams` says that results are written to standard output meanwhile: on a
    /// terminal they say enough by themselves.
    pub(super) fn new(doing: &'static str, total: u64, unit: Unit, streams: bool) -> Self {
        let wanted = stderr().is_terminal() && !(streams && stdout().is_terminal());
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden()).with_message(doing);
        let template = match unit {
            Unit::Bytes => "{msg} {wide_bar} {bytes}/{total_bytes} {eta}",
            Unit::Things => "{msg} {wide_bar} {pos}/{len} {eta}",
        };
        // A template that does not parse leaves the plain bar.
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self { bar: bar.with_style(style), started: Instant::now(), wanted }
    }

    /// So much is done by now.
    pub(super) fn at(&mut self, done: u64) {
        if self.wanted && self.bar.is_hidden() && self.started.elapsed() >= PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

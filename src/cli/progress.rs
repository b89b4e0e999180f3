//! A progress bar or a line of progress on a terminal, for commands that take longer than a second.

use std::io::{IsTerminal, stderr, stdout};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The interval at which the time on a line of progress is redrawn.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

/// Shorter commands show no bar.
const BAR_DELAY: Duration = Duration::from_secs(1);

/// The unit of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Things,
}

/// A bar on standard error, if standard error is a terminal. Drop removes the bar.
pub(super) struct Progress {
    bar: ProgressBar,
    started: Instant,
    /// Whether the bar may be shown.
    wanted: bool,
    unit: Unit,
}

impl Progress {
    /// `total` may be unknown at first. `streams` means that the command prints results in the meantime. There is no bar if these appear on a
    /// terminal, because they already show the progress.
    pub(super) fn new(doing: &'static str, total: impl Into<Option<u64>>, unit: Unit, streams: bool) -> Self {
        let total = total.into();
        let wanted = stderr().is_terminal() && !(streams && stdout().is_terminal());
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden()).with_message(doing);
        Self { bar: bar.with_style(style(total, unit)), started: Instant::now(), wanted, unit }
    }

    /// Sets the total and the label.
    pub(super) fn of(&self, doing: &'static str, total: u64) {
        if self.bar.length() != Some(total) {
            self.bar.set_length(total);
            self.bar.set_style(style(Some(total), self.unit));
            self.bar.set_message(doing);
        }
    }

    /// Sets the progress.
    pub(super) fn at(&self, done: u64) {
        self.show();
        self.bar.set_position(done);
    }

    /// Shows activity without progress.
    pub(super) fn tick(&self) {
        self.show();
        self.bar.tick();
    }

    fn show(&self) {
        if self.wanted && self.bar.is_hidden() && self.started.elapsed() >= BAR_DELAY {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

fn style(total: Option<u64>, unit: Unit) -> ProgressStyle {
    let template = match (total, unit) {
        (None, _) => "{msg} {spinner} {elapsed}",
        (_, Unit::Bytes) => "{msg} {wide_bar} {bytes}/{total_bytes} {eta}",
        (_, Unit::Things) => "{msg} {wide_bar} {pos}/{len} {eta}",
    };
    // The fallback is for an invalid template, and never used.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A line on standard error, if standard error is a terminal: what the command waits for, and since when. Drop removes the line.
#[derive(Default)]
pub(super) struct WaitLine(Option<ProgressBar>);

impl WaitLine {
    /// Replaces the line. The text must be printable.
    pub(super) fn says(&mut self, text: String) {
        let bar = self.0.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.enable_steady_tick(REDRAW_INTERVAL);
            bar
        });
        bar.set_message(text);
    }
}

impl Drop for WaitLine {
    fn drop(&mut self) {
        self.0.iter().for_each(ProgressBar::finish_and_clear);
    }
}

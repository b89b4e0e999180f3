//! Whether time runs forward inside one file.

use jiff::{SignedDuration, Timestamp};

use super::moment::Moment;

/// A file in which time runs back by more than this is not one log in order: the API server ends a request after a minute by
/// default, and writes its line at once.
const MAX_RUN_BACK: SignedDuration = SignedDuration::from_mins(1);

/// Requests that end at the same time are written in any order, and clocks are corrected: up to this nobody needs to know.
const NORMAL_RUN_BACK: SignedDuration = SignedDuration::from_secs(1);

/// The times of a file so far.
#[derive(Debug, Default)]
pub(super) struct Order {
    newest: Option<Moment>,
    /// The largest step back, with its line.
    worst: Option<(SignedDuration, usize)>,
    steps_back: usize,
}

impl Order {
    /// The time at which a line counts: its own, or that of the lines before it.
    ///
    /// # Errors
    /// When time runs back further than one log can explain.
    pub(super) fn follow(&mut self, moment: Option<Moment>, line: usize) -> Result<Option<Moment>, String> {
        let Some(moment) = moment else { return Ok(self.newest) };
        let Some(newest) = self.newest.filter(|newest| moment < *newest) else {
            self.newest = Some(moment);
            return Ok(self.newest);
        };
        let (later, earlier) = match (newest.received, moment.received) {
            _ if newest.ended != moment.ended => (newest.ended, moment.ended),
            (Some(later), Some(earlier)) => (later, earlier),
            _ => return Ok(self.newest),
        };
        let by = later.duration_since(earlier);
        if by > MAX_RUN_BACK {
            let at = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%S").to_string();
            return Err(format!(
                "time runs back here, by {}: from {} to {}. The file is not one log in order. If it is made of several \
                 logs, give each as a file of its own: they are ordered by time. Otherwise sort it: `jq -sc \
                 'sort_by(.stageTimestamp)[]'`",
                shown(by),
                at(later),
                at(earlier)
            ));
        }
        if by > NORMAL_RUN_BACK {
            self.steps_back += 1;
            self.worst = self.worst.max(Some((by, line)));
        }
        Ok(self.newest)
    }

    /// That time ran back, if it did so by more than is usual.
    pub(super) fn disorder(&self) -> Option<String> {
        let (by, line) = self.worst?;
        Some(format!(
            "time runs back {} times, by up to {} (line {line}). The lines were judged in the order of the file, so some \
             verdicts may be wrong.",
            self.steps_back,
            shown(by)
        ))
    }
}

/// In whole seconds.
fn shown(duration: SignedDuration) -> String {
    format!("{:#}", SignedDuration::from_secs(duration.as_secs()))
}

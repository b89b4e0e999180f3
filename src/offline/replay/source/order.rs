//! Whether time runs forward inside one file.

use jiff::{SignedDuration, Timestamp};

use super::moment::Moment;

/// The largest step back in time inside one log. By default the API server ends a request after a minute, and writes its line at
/// once. A file with larger steps is not one log in order.
const MAX_RUN_BACK: SignedDuration = SignedDuration::from_mins(1);

/// The largest step back that is not reported. Requests that end at the same time are written in any order, and clocks are
/// corrected.
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
    /// The time that counts for a line: its own time, or the time of the lines before it.
    ///
    /// # Errors
    /// When time runs back further than inside one log.
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
            return Err(format!(
                "time runs back here, by {}: from {} to {}. The file is not one log in order. If it is made of several \
                 logs, give each as a file of its own: they are ordered by time. Otherwise sort it: `jq -sc \
                 'sort_by(.stageTimestamp)[]'`",
                shown(by),
                date_time(later),
                date_time(earlier)
            ));
        }
        if by > NORMAL_RUN_BACK {
            self.steps_back += 1;
            self.worst = self.worst.max(Some((by, line)));
        }
        Ok(self.newest)
    }

    /// A note, if time ran back by more than usual.
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

fn date_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The duration in whole seconds.
fn shown(duration: SignedDuration) -> String {
    format!("{:#}", SignedDuration::from_secs(duration.as_secs()))
}

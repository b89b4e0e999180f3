//! The statistics of one file, and the notes for its reader.

use std::path::Path;

use interlock_engine::owners::CARRIERS;
use jiff::Timestamp;

/// The maximum number of bad lines that are named per file.
const MAX_NAMED: usize = 5;

/// The statistics of one file.
#[derive(Debug, Default)]
pub(super) struct FileTally {
    pub(super) lines: usize,
    /// Whether a line of the expected kind was found, with a change or without.
    pub(super) is_known: bool,
    pub(super) bad: usize,
    pub(super) named: Vec<String>,
    /// Writes of records whose objects the log does not contain.
    pub(super) without_objects: usize,
    /// Writes of objects that carry their operation themselves, without the object.
    pub(super) carriers_without_objects: usize,
    /// The times of the first event and of the last one.
    pub(super) range: Option<(Timestamp, Timestamp)>,
    /// Why the rest of the file could not be read.
    pub(super) failure: Option<String>,
}

impl FileTally {
    pub(super) fn bad(&mut self, path: &Path, line: usize, why: &str) {
        self.bad += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(format!("{}:{line}: {why}", path.display()));
        }
    }

    /// Notes the time of an event.
    pub(super) fn saw(&mut self, time: Timestamp) {
        let (first, last) = self.range.unwrap_or((time, time));
        self.range = Some((first.min(time), last.max(time)));
    }

    /// The notes about the file. `expected` describes the lines that it should have.
    pub(super) fn notes(&self, path: &Path, expected: &str) -> Vec<String> {
        let mut notes = self.named.clone();
        let path = path.display();
        if self.bad > self.named.len() {
            notes.push(format!("{path}: {} more lines cannot be parsed", self.bad - self.named.len()));
        }
        if self.without_objects > 0 {
            notes.push(format!(
                "{path}: {} writes of records say nothing of the record, and only the starts among them are listed: the audit \
                 policy logs Secrets below the level RequestResponse",
                self.without_objects
            ));
        }
        if self.carriers_without_objects > 0 {
            notes.push(format!(
                "{path}: {} writes of {} do not show their operations: the audit policy logs them below the level \
                 RequestResponse",
                self.carriers_without_objects,
                CARRIERS.iter().map(|carrier| carrier.plural).collect::<Vec<_>>().join(", ")
            ));
        }
        if !self.is_known && self.lines > self.bad {
            notes.push(format!("{path}: none of its {} lines is {expected}", self.lines));
        }
        notes.extend(self.failure.iter().map(|why| format!("{path}: {why}")));
        notes
    }
}

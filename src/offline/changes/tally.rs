//! What was found in one file, and what a reader must know of it.

use std::path::Path;

/// The most bad lines of a file that are named.
const MAX_NAMED: usize = 5;

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogKind {
    /// Audit events of the API server.
    Audit,
    /// Interlock's log in JSON.
    Own,
}

/// What was found in one file.
#[derive(Debug, Default)]
pub(super) struct FileTally {
    pub(super) lines: usize,
    /// Lines of the expected kind, whether they tell a change or not.
    pub(super) known: usize,
    pub(super) bad: usize,
    pub(super) named: Vec<String>,
    /// Writes of records whose objects the log does not contain.
    pub(super) without_objects: usize,
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

    /// What a reader must know of it.
    pub(super) fn notes(&self, path: &Path, kind: LogKind) -> Vec<String> {
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
        if self.known == 0 && self.lines > self.bad {
            let wanted = match kind {
                LogKind::Audit => "an audit event (apiVersion audit.k8s.io/v1)",
                LogKind::Own => {
                    "a transition. Give the log of `interlock serve` in the format json (--log-format json)"
                }
            };
            notes.push(format!("{path}: none of its {} lines is {wanted}", self.lines));
        }
        notes.extend(self.failure.iter().map(|why| format!("{path}: {why}")));
        notes
    }
}

//! An operation that an object carries itself, in place of a record.

use jiff::Timestamp;
use serde_json::Value;

/// A kind of objects that carry their operation.
#[derive(Debug)]
pub struct Carrier {
    pub group: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    /// Its short names at kubectl.
    pub short: &'static [&'static str],
    /// The program that carries the operations out.
    pub program: &'static str,
    /// Its workload.
    pub controller: &'static str,
    /// Reads the operation of an object, which has not ended.
    pub(super) operation: fn(&str) -> serde_json::Result<Option<CarriedOperation>>,
    /// Reads what an object says of its last operations.
    pub(super) trace: fn(&str) -> serde_json::Result<OperationTrace>,
    /// The command that starts an operation of an object, by namespace and name.
    pub(super) start: fn(&str, &str) -> String,
}

/// What an object says of its last operations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationTrace {
    /// Whether one is requested. Its controller removes the request at its end.
    pub is_requested: bool,
    /// The user who requested it, by the stamp.
    pub holder: Option<String>,
    /// The last one that the controller began: the requested one, or the one before it.
    pub run: Option<OperationRun>,
}

/// An operation that its controller began. The times are by the controller's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRun {
    pub started: Option<Timestamp>,
    /// The user who requested it, by the stamp.
    pub holder: Option<String>,
    /// `None` if it has not ended.
    pub end: Option<OperationEnd>,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationEnd {
    pub time: Option<Timestamp>,
    pub has_succeeded: bool,
}

/// An operation that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CarriedOperation {
    /// When it began, by the clock of its controller; `None` if it has not, or if the controller does not say.
    pub started: Option<Timestamp>,
    /// The user who started it, by the stamp.
    pub holder: Option<String>,
    pub stage: Stage,
}

/// How far an operation is.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// The controller has not begun it.
    Requested,
    /// The controller carries it out. This merge patch ends it.
    Running { end: Value },
    /// The controller is ending it.
    Ending,
    /// Nothing works on it any longer. This merge patch starts it again.
    Interrupted { again: Value },
}

impl Stage {
    /// The spelling for people and programs.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Running { .. } => "running",
            Self::Ending => "ending",
            Self::Interrupted { .. } => "interrupted",
        }
    }
}

impl Carrier {
    /// Whether a word names the kind, as at kubectl. A word without a dot may also be a namespace.
    #[must_use]
    pub fn is_named(&self, word: &str) -> bool {
        let full = word.strip_suffix(self.group).and_then(|word| word.strip_suffix('.')).unwrap_or(word);
        full == self.plural || full.eq_ignore_ascii_case(self.kind) || self.short.contains(&word)
    }

    /// The operation of an object, from its text; `None` if it has ended.
    ///
    /// # Errors
    /// When the text is not of this kind.
    pub fn operation(&self, object: &str) -> serde_json::Result<Option<CarriedOperation>> {
        (self.operation)(object)
    }

    /// What an object says of its last operations, from its text.
    ///
    /// # Errors
    /// When the text is not of this kind.
    pub fn trace(&self, object: &str) -> serde_json::Result<OperationTrace> {
        (self.trace)(object)
    }

    /// The command that starts an operation.
    #[must_use]
    pub fn start(&self, namespace: &str, name: &str) -> String {
        (self.start)(namespace, name)
    }
}

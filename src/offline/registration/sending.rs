//! Whether a request is sent, and why.

use std::fmt;
use std::sync::Arc;

/// Whether the API server sends a request to Interlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sending {
    Sent,
    /// `is_certain`: the objects of the request cannot change the answer.
    NotSent {
        why: NotSent,
        is_certain: bool,
    },
    /// The input lacks the deciding information.
    Unsure(Doubt),
}

/// Why a request is not sent. Later reasons are closer to sending the request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NotSent {
    /// No entry has a rule for the resource, subresource, operation and scope.
    Rules,
    Namespace,
    /// Neither the object nor the old object has the labels.
    Labels,
    /// A match condition is false: its place in the entry, and its name.
    Condition(usize, Arc<str>),
}

impl Sending {
    /// Not sent, whatever the objects of the request are.
    pub(super) fn not_sent(why: NotSent) -> Self {
        Self::NotSent { why, is_certain: true }
    }

    /// Adds a check. It is skipped if the request is known not to be sent.
    pub(super) fn and(self, check: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Sent => check(),
            Self::Unsure(doubt) => match check() {
                Self::Sent => Self::Unsure(doubt),
                otherwise => otherwise,
            },
            not_sent @ Self::NotSent { .. } => not_sent,
        }
    }

    /// Not sent because of the objects of the request.
    pub(super) fn not_sent_by_objects(why: NotSent) -> Self {
        Self::NotSent { why, is_certain: false }
    }
}

/// Completes "12 requests", or a count of them.
impl fmt::Display for NotSent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rules => out.write_str("of resources, subresources and operations without an entry"),
            Self::Namespace => out.write_str("in namespaces that the entries leave out"),
            Self::Labels => out.write_str("of objects without the labels that the entries ask for"),
            Self::Condition(_, name) => write!(out, "by the match condition {name}"),
        }
    }
}

/// Why it is unknown whether a request is sent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doubt {
    /// An entry selects namespaces by labels other than their name, and the input does not have the Namespace.
    NamespaceLabels,
    /// This match condition cannot be evaluated.
    Condition(Arc<str>),
}

/// In brackets after "12 requests".
impl fmt::Display for Doubt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NamespaceLabels => out.write_str("the labels of their namespace are unknown"),
            Self::Condition(name) => write!(out, "the match condition {name} cannot be evaluated"),
        }
    }
}

//! What a rule is, apart from how it is checked: a name, a shipped mode, and what people are told about it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::review::Operation;

/// The status code of most refusals. 409 would make retry-on-conflict loops spin, and 429 would make the client wait with a
/// plan that is stale by the time it continues.
pub const FORBIDDEN: u16 = 403;

/// The status code for commits of Sveltos: up to 1.12 its controller takes 403 in a teardown for a missing permission and
/// continues, and 404 everywhere for nothing to do.
pub const UNPROCESSABLE: u16 = 422;

/// How a rule is applied; a later variant is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// The rule is not evaluated.
    Off,
    /// Violations are admitted silently, logged and counted.
    Audit,
    /// Violations are admitted with a warning that kubectl and helm show.
    Warn,
    /// Violations are refused.
    Enforce,
}

impl Mode {
    /// As policies spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
            Self::Audit => "audit",
            Self::Off => "off",
        }
    }
}

/// Which requests an enforced rule refuses when it cannot be evaluated and the policy does not set `onUndecided`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailsClosed {
    /// None: they are admitted with a warning.
    Never,
    /// The CREATE of a release record, the only clean and atomic gate. Other requests are admitted with a warning.
    OnRecordCreate,
    /// Whatever cannot be undone and may take away what is protected: a deletion, unless of a record, and the write of a record that
    /// starts or ends an uninstall. Other requests are admitted with a warning.
    OnRemoval,
    /// Every request for which the cluster gave no answer: the client retries within a minute, and a wrong admission cannot be
    /// undone.
    Always,
}

/// The requests that a rule can find something in, as far as policies tell requests apart.
#[derive(Debug)]
pub struct Requests {
    pub operations: &'static [Operation],
    /// The kinds of the objects. Empty where the rule judges objects of any kind, or the kinds that records are stored in.
    pub kinds: &'static [&'static str],
}

/// Everything that is known of a rule without a request. Each rule's file has one, beside the check.
#[derive(Debug)]
pub struct Specification {
    /// The public name: policies, metrics and messages use it.
    pub id: &'static str,
    /// Whose releases it judges. Each of them can follow the way out.
    pub owners: &'static [&'static str],
    /// The mode in the shipped policy, and where a policy does not mention the rule.
    pub mode: Mode,
    pub status_code: u16,
    pub fails_closed: FailsClosed,
    pub requests: Requests,
    /// The rule in one sentence.
    pub summary: &'static str,
    /// What goes wrong without the rule.
    pub why: &'static str,
    /// A similar request that is admitted.
    pub allowed: &'static str,
    /// A request that is refused where the rule is enforced.
    pub refused: &'static str,
    /// What to do instead.
    pub way_out: &'static str,
    /// The policy settings of this rule, beside those that every rule has.
    pub settings: &'static [&'static str],
}

/// A rule by its name. Only the rules of the table have one.
#[derive(Clone, Copy)]
pub struct RuleId(&'static Specification);

impl RuleId {
    pub(super) const fn of(specification: &'static Specification) -> Self {
        Self(specification)
    }

    /// What the rule is.
    #[must_use]
    pub fn specification(self) -> &'static Specification {
        self.0
    }

    /// As policies and messages spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0.id
    }
}

// Each specification is a static: one address a rule.
impl PartialEq for RuleId {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for RuleId {}

impl Hash for RuleId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

impl Ord for RuleId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for RuleId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for RuleId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

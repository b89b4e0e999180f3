//! The values of keys: choices, durations, globs, pointers, names of rules.

use jiff::civil::Weekday;
use jiff::{SignedDuration, SpanRelativeTo};
use jsonptr::PointerBuf;
use serde_json::{Value, json};

use super::nearest::did_you_mean;
use super::read::{FromNode, Spanned, entries, value};
use super::tree::{Content, Node};
use crate::policy::reason_pattern::{self, MAX_PATTERN_BYTES};
use crate::policy::{
    AllowRollback, FreezeEffect, Globs, LabelOperator, OnFirstInstall, OnUndecided, OnUnexplained, StartedBy,
    WhenSuspended,
};
use crate::policy_files::problem::{Problems, Span};
use crate::rule::{Mode, RuleId};
use crate::rules;

/// A value that can be spelled as in a policy file, for messages.
pub(in crate::policy_files) trait Spelled {
    /// The spelling in policies.
    fn spelled(&self) -> String;
}

/// Names the variants of an enum in the spelling of policies.
macro_rules! choice {
    ($name:ty { $($word:literal => $variant:path),+ $(,)? }) => {
        impl FromNode for $name {
            fn schema() -> Value {
                json!({"enum": [$($word),+]})
            }

            fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
                match word(node, problems)? {
                    $($word => Some($variant),)+
                    other => {
                        unknown(node.span, other, [$($word),+].into_iter(), problems);
                        None
                    }
                }
            }
        }

        impl Spelled for $name {
            fn spelled(&self) -> String {
                match self { $($variant => $word),+ }.to_owned()
            }
        }
    };
}

/// `apiVersion`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy_files) enum Version {
    V1Alpha1,
}

/// `kind`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy_files) enum PolicyKind {
    Cluster,
    Namespace,
}

/// The highest mode of a policy, if it is not enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy_files) enum Cap {
    Audit,
    Warn,
}

impl Cap {
    pub(in crate::policy_files) fn mode(self) -> Mode {
        match self {
            Self::Audit => Mode::Audit,
            Self::Warn => Mode::Warn,
        }
    }
}

choice!(Cap { "audit" => Cap::Audit, "warn" => Cap::Warn });
choice!(Version { "interlock.dev/v1alpha1" => Version::V1Alpha1 });
choice!(PolicyKind { "ClusterPolicy" => PolicyKind::Cluster, "NamespacePolicy" => PolicyKind::Namespace });
choice!(Mode { "enforce" => Mode::Enforce, "warn" => Mode::Warn, "audit" => Mode::Audit, "off" => Mode::Off });
choice!(OnUndecided { "deny" => OnUndecided::Deny, "allow" => OnUndecided::Allow });
choice!(AllowRollback {
    "never" => AllowRollback::Never,
    "whenStale" => AllowRollback::WhenStale,
    "always" => AllowRollback::Always,
});
choice!(OnUnexplained { "deny" => OnUnexplained::Deny, "warn" => OnUnexplained::Warn });
choice!(StartedBy { "anybody" => StartedBy::Anybody, "managers" => StartedBy::Managers });
choice!(WhenSuspended { "enforce" => WhenSuspended::Enforce, "warn" => WhenSuspended::Warn });
choice!(FreezeEffect { "deny" => FreezeEffect::Deny, "allowOnly" => FreezeEffect::AllowOnly });
choice!(LabelOperator {
    "In" => LabelOperator::In,
    "NotIn" => LabelOperator::NotIn,
    "Exists" => LabelOperator::Exists,
    "DoesNotExist" => LabelOperator::DoesNotExist,
});
choice!(Weekday {
    "monday" => Weekday::Monday,
    "tuesday" => Weekday::Tuesday,
    "wednesday" => Weekday::Wednesday,
    "thursday" => Weekday::Thursday,
    "friday" => Weekday::Friday,
    "saturday" => Weekday::Saturday,
    "sunday" => Weekday::Sunday,
});
choice!(OnFirstInstall { "allow" => OnFirstInstall::Allow, "deny" => OnFirstInstall::Deny });

impl FromNode for RuleId {
    fn schema() -> Value {
        json!({"enum": rules::all().map(Self::as_str).collect::<Vec<_>>()})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        rule(node.span, word(node, problems)?, problems)
    }
}

impl FromNode for bool {
    fn schema() -> Value {
        json!({"type": "boolean"})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        match &node.content {
            Content::Scalar { text, quoted: false } if text == "true" => Some(true),
            Content::Scalar { text, quoted: false } if text == "false" => Some(false),
            _ => {
                problems.at(node.span, format!("expected true or false, got {}", node.description()));
                None
            }
        }
    }
}

/// The default of a list.
pub(super) const EMPTY_LIST: &str = "[]";

impl Spelled for &str {
    fn spelled(&self) -> String {
        (*self).to_owned()
    }
}

impl Spelled for bool {
    fn spelled(&self) -> String {
        self.to_string()
    }
}

impl FromNode for String {
    fn schema() -> Value {
        json!({"type": "string"})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        word(node, problems).map(str::to_owned)
    }
}

/// The durations that the schema accepts: numbers with units, or ISO 8601. The parser accepts more spellings of the
/// units.
const DURATION: &str = "^(P[0-9WDTHMSwdthms.,]+|([0-9]+([.,][0-9]+)? *(w|wks?|weeks?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?|ms|millis|milliseconds?),? *)+)$";

impl FromNode for SignedDuration {
    fn schema() -> Value {
        json!({"type": "string", "pattern": DURATION, "examples": ["90s", "15m", "1h30m"]})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        let text = word(node, problems)?;
        let duration = text.parse().ok().or_else(|| with_days(text)).filter(Self::is_positive);
        if duration.is_none() {
            problems.at(node.span, format!("`{text}` is not a duration like 90s, 15m or 1h30m"));
        }
        duration
    }
}

impl Spelled for SignedDuration {
    fn spelled(&self) -> String {
        let days = self.as_hours() / 24;
        if days > 2 && *self == Self::from_hours(days * 24) {
            return format!("{days}d");
        }
        format!("{self:#}").replace(' ', "")
    }
}

/// A duration in days and weeks, of 24 hours each.
fn with_days(text: &str) -> Option<SignedDuration> {
    text.parse::<jiff::Span>().ok()?.to_duration(SpanRelativeTo::days_are_24_hours()).ok()
}

/// A regular expression as text. It compiles within the limits of [`reason_pattern`].
#[derive(Debug, Clone)]
pub(in crate::policy_files) struct Pattern(pub(in crate::policy_files) String);

impl FromNode for Pattern {
    fn schema() -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": MAX_PATTERN_BYTES})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        let text = word(node, problems)?;
        if text.is_empty() {
            problems.at(node.span, "the pattern is empty, so that every text matches it; write one, or remove it");
            return None;
        }
        match reason_pattern::compiled(text) {
            Ok(_) => Some(Self(text.to_owned())),
            Err(why) => {
                problems.at(node.span, format!("the regular expression cannot be used: {why}"));
                None
            }
        }
    }
}

impl FromNode for PointerBuf {
    fn schema() -> Value {
        json!({"type": "string", "pattern": "^(/([^~/]|~[01])*)*$"})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        let text = word(node, problems)?;
        let pointer = Self::parse(text);
        if pointer.is_err() {
            problems.at(
                node.span,
                format!("`{text}` is not a JSON pointer like /spec/replicas; write / in a name as ~1, and ~ as ~0"),
            );
        }
        pointer.ok()
    }
}

impl<T: FromNode> FromNode for Vec<T> {
    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        Some(items(node, problems)?.iter().filter_map(|item| T::read(item, problems)).collect())
    }
}

/// A list of globs, each with its location.
#[derive(Debug, Clone, Default)]
pub(in crate::policy_files) struct GlobList {
    pub(in crate::policy_files) globs: Vec<(Span, String)>,
    pub(in crate::policy_files) compiled: Globs,
}

impl FromNode for GlobList {
    fn schema() -> Value {
        Vec::<String>::schema()
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        let globs = items(node, problems)?.iter();
        let globs: Vec<_> = globs.filter_map(|item| Some((item.span, glob(item, problems)?.to_owned()))).collect();
        let compiled = Globs::new(globs.iter().map(|(_, glob)| glob.as_str())).ok()?;
        Some(Self { globs, compiled })
    }
}

/// A list in a condition, which holds for no request if the list is empty.
#[derive(Debug)]
pub(in crate::policy_files) struct AtLeastOne<T>(pub(in crate::policy_files) T);

impl<T: FromNode> FromNode for AtLeastOne<T> {
    fn schema() -> Value {
        let mut schema = T::schema();
        schema["minItems"] = 1.into();
        schema
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        if items(node, problems)?.is_empty() {
            problems.at(node.span, "the list is empty, so that nothing matches it; name a value, or remove it");
            return None;
        }
        T::read(node, problems).map(Self)
    }
}

/// A single glob.
#[derive(Debug)]
pub(in crate::policy_files) struct SingleGlob(pub(in crate::policy_files) GlobList);

impl FromNode for SingleGlob {
    fn schema() -> Value {
        String::schema()
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        let glob = glob(node, problems)?;
        let compiled = Globs::new([glob]).ok()?;
        Some(Self(GlobList { globs: vec![(node.span, glob.to_owned())], compiled }))
    }
}

/// One value for each rule.
#[derive(Debug)]
pub(in crate::policy_files) struct ByRule<T>(pub(in crate::policy_files) Vec<(RuleId, Spanned<T>)>);

impl<T> ByRule<T> {
    pub(in crate::policy_files) fn of(&self, rule: RuleId) -> Option<&Spanned<T>> {
        self.0.iter().find(|(named, _)| *named == rule).map(|(_, value)| value)
    }
}

impl<T: FromNode> FromNode for ByRule<T> {
    fn schema() -> Value {
        let properties: serde_json::Map<_, _> =
            rules::all().map(|rule| (rule.as_str().to_owned(), T::schema())).collect();
        json!({"type": "object", "additionalProperties": false, "properties": properties})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        let mut read = Vec::new();
        for entry in entries(node, problems)? {
            // Problems below an unknown rule are reported too.
            let value = value(entry, &entry.value, problems);
            if let (Some(rule), Some(value)) = (rule(entry.at, &entry.key, problems), value) {
                read.push((rule, value));
            }
        }
        Some(Self(read))
    }
}

fn rule(span: Span, text: &str, problems: &mut Problems<'_>) -> Option<RuleId> {
    let rule = rules::named(text);
    if rule.is_none() {
        let known = rules::all().map(RuleId::as_str).collect::<Vec<_>>();
        problems.at(span, format!("there is no rule `{text}`{}", did_you_mean(text, known.iter().copied())));
    }
    rule
}

fn glob<'n>(node: &'n Node, problems: &mut Problems<'_>) -> Option<&'n str> {
    let text = word(node, problems)?;
    match Globs::new([text]) {
        Ok(_) => Some(text),
        Err(error) => {
            problems.at(node.span, format!("`{text}` is not a glob: {}", error.kind()));
            None
        }
    }
}

fn unknown<'k>(span: Span, text: &str, known: impl Iterator<Item = &'k str> + Clone, problems: &mut Problems<'_>) {
    problems.at(span, format!("unknown value `{text}`{}", did_you_mean(text, known)));
}

pub(super) fn word<'n>(node: &'n Node, problems: &mut Problems<'_>) -> Option<&'n str> {
    match &node.content {
        Content::Scalar { text, .. } => Some(text),
        _ => {
            problems.at(node.span, format!("expected one value, got {}", node.description()));
            None
        }
    }
}

pub(super) fn items<'n>(node: &'n Node, problems: &mut Problems<'_>) -> Option<&'n [Node]> {
    match &node.content {
        Content::Null => Some(&[]),
        Content::List(items) => Some(items),
        _ => {
            problems.at(node.span, format!("expected a list, got {}", node.description()));
            None
        }
    }
}

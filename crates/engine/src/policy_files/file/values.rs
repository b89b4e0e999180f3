//! The values of keys: choices, durations, globs, pointers, names of rules.

use std::marker::PhantomData;

use jiff::civil::Weekday;
use jiff::{SignedDuration, SpanRelativeTo};
use jsonptr::PointerBuf;
use serde_json::{Value, json};

use super::nearest::did_you_mean;
use super::read::{FromNode, FromText, Key, Spanned, entries, items, value};
use super::tree::{Content, Node};
use crate::policy::reason_pattern::{self, MAX_PATTERN_BYTES};
use crate::policy::{
    AllowRollback, FreezeEffect, Globs, LabelOperator, OnFirstInstall, OnUndecided, OnUnexplained, Share, StartedBy,
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
        impl FromText for $name {
            type Output = Self;

            fn schema() -> Value {
                json!({"enum": [$($word),+]})
            }

            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok($variant),)+
                    _ => Err(format!("unknown value `{text}`{}", did_you_mean(text, [$($word),+].into_iter()))),
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

impl FromText for RuleId {
    type Output = Self;

    fn schema() -> Value {
        json!({"enum": rules::all().map(Self::as_str).collect::<Vec<_>>()})
    }

    fn parse(text: &str) -> Result<Self, String> {
        rules::named(text).ok_or_else(|| {
            let known = rules::all().map(Self::as_str).collect::<Vec<_>>();
            format!("there is no rule `{text}`{}", did_you_mean(text, known.iter().copied()))
        })
    }
}

impl FromNode for bool {
    type Output = Self;

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

impl Spelled for bool {
    fn spelled(&self) -> String {
        self.to_string()
    }
}

impl FromText for Share {
    type Output = Self;

    fn schema() -> Value {
        json!({"type": "string", "pattern": "^(100|[1-9]?[0-9])%$"})
    }

    fn parse(text: &str) -> Result<Self, String> {
        let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
        let share = percent.filter(|percent| *percent <= 100).map(Self).filter(|share| share.spelled() == text);
        share.ok_or_else(|| format!("`{text}` is no share from 0% to 100%"))
    }
}

impl Spelled for Share {
    fn spelled(&self) -> String {
        format!("{}%", self.0)
    }
}

impl FromText for String {
    type Output = Self;

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Spelled for String {
    fn spelled(&self) -> String {
        self.clone()
    }
}

/// The durations that the schema accepts: numbers with units, or ISO 8601. The parser accepts more spellings of the
/// units.
const DURATION: &str = "^(P[0-9WDTHMSwdthms.,]+|([0-9]+([.,][0-9]+)? *(w|wks?|weeks?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?|ms|millis|milliseconds?),? *)+)$";

impl FromText for SignedDuration {
    type Output = Self;

    fn schema() -> Value {
        json!({"type": "string", "pattern": DURATION, "examples": ["90s", "15m", "1h30m"]})
    }

    fn parse(text: &str) -> Result<Self, String> {
        let duration = text.parse().ok().or_else(|| with_days(text)).filter(Self::is_positive);
        duration.ok_or_else(|| format!("`{text}` is not a duration like 90s, 15m or 1h30m"))
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

/// A regular expression that compiles within the limits of [`reason_pattern`], as text.
pub(in crate::policy_files) struct Pattern;

impl FromText for Pattern {
    type Output = String;

    fn schema() -> Value {
        json!({"type": "string", "minLength": 1, "maxLength": MAX_PATTERN_BYTES})
    }

    fn parse(text: &str) -> Result<String, String> {
        if text.is_empty() {
            return Err("the pattern is empty, so that every text matches it; write one, or remove it".to_owned());
        }
        match reason_pattern::compiled(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(why) => Err(format!("the regular expression cannot be used: {why}")),
        }
    }
}

impl FromText for PointerBuf {
    type Output = Self;

    fn schema() -> Value {
        json!({"type": "string", "pattern": "^(/([^~/]|~[01])*)*$"})
    }

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|_| {
            format!("`{text}` is not a JSON pointer like /spec/replicas; write / in a name as ~1, and ~ as ~0")
        })
    }
}

impl<T: FromNode> FromNode for Vec<T> {
    type Output = Vec<T::Output>;

    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self::Output> {
        Some(items(node, problems)?.iter().filter_map(|item| T::read(item, problems)).collect())
    }
}

/// A list of globs, each with its location.
#[derive(Debug, Clone, Default)]
pub(in crate::policy_files) struct GlobList {
    pub(in crate::policy_files) globs: Globs,
    spans: Vec<Span>,
}

impl GlobList {
    fn of(nodes: &[Node], problems: &mut Problems<'_>) -> Option<Self> {
        let globs = nodes.iter().filter_map(|node| Some((node.span, Glob::read(node, problems)?)));
        let (spans, texts): (Vec<_>, Vec<_>) = globs.unzip();
        Some(Self { globs: Globs::new(texts.iter().map(String::as_str)).ok()?, spans })
    }

    pub(in crate::policy_files) fn iter(&self) -> impl Iterator<Item = (Span, &str)> {
        self.spans.iter().copied().zip(self.texts())
    }

    pub(in crate::policy_files) fn texts(&self) -> impl Iterator<Item = &str> {
        self.globs.texts().iter().map(String::as_str)
    }
}

impl Key<GlobList> {
    pub(in crate::policy_files) fn globs(&self) -> Option<&Globs> {
        self.value().map(|list| &list.globs)
    }
}

impl FromNode for GlobList {
    type Output = Self;

    fn schema() -> Value {
        Vec::<String>::schema()
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self> {
        Self::of(items(node, problems)?, problems)
    }
}

/// A single glob.
pub(in crate::policy_files) struct SingleGlob;

impl FromNode for SingleGlob {
    type Output = GlobList;

    fn schema() -> Value {
        <Glob as FromText>::schema()
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<GlobList> {
        GlobList::of(std::slice::from_ref(node), problems).filter(|list| !list.spans.is_empty())
    }
}

/// The text of a glob.
struct Glob;

impl FromText for Glob {
    type Output = String;

    fn parse(text: &str) -> Result<String, String> {
        compiled_glob(text).map(|_| text.to_owned())
    }
}

pub(super) fn compiled_glob(text: &str) -> Result<Globs, String> {
    Globs::new([text]).map_err(|error| format!("`{text}` is not a glob: {}", error.kind()))
}

/// A list in a condition, which holds for no request if the list is empty.
pub(in crate::policy_files) struct AtLeastOne<T>(PhantomData<T>);

impl<T: FromNode> FromNode for AtLeastOne<T> {
    type Output = T::Output;

    fn schema() -> Value {
        let mut schema = T::schema();
        schema["minItems"] = 1.into();
        schema
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<T::Output> {
        if items(node, problems)?.is_empty() {
            problems.at(node.span, "the list is empty, so that nothing matches it; name a value, or remove it");
            return None;
        }
        T::read(node, problems)
    }
}

/// One value for each rule.
pub(in crate::policy_files) struct ByRule<T>(PhantomData<T>);

impl<T: FromNode> FromNode for ByRule<T> {
    type Output = Vec<(RuleId, Spanned<T::Output>)>;

    fn schema() -> Value {
        let properties: serde_json::Map<_, _> =
            rules::all().map(|rule| (rule.as_str().to_owned(), T::schema())).collect();
        json!({"type": "object", "additionalProperties": false, "properties": properties})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self::Output> {
        let mut read = Vec::new();
        for entry in entries(node, problems)? {
            // Problems below an unknown rule are reported too.
            let value = value::<T>(entry, &entry.value, problems);
            let rule = RuleId::parse(&entry.key).map_err(|message| problems.at(entry.at, message)).ok();
            read.extend(rule.zip(value));
        }
        Some(read)
    }
}

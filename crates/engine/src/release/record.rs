//! The payload of a record: base64, gzip, JSON. Parts that no rule needs are not copied.

mod content;
mod definitions;
mod fingerprint;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod hooks;
mod mapped;
mod payload;
mod start;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::Revision;
use super::manifest::{HookObject, hooks_of_kind};
use crate::effort::Effort;
use crate::json::{GoStruct, Text, first_at};

pub use content::{Difference, differences};
pub use hooks::Hooks;
pub use mapped::is_mapped_copy;
pub use payload::extra_chunks;
pub use payload::{DecodeError, INFLATE_LIMIT, Payload};
pub use start::chart_at_start;

/// The head of a record's body. Fields of later Helm versions are skipped.
///
/// Chart, config and manifest stay raw JSON: rules compare their bytes first.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self")]
pub struct Record<'b> {
    #[serde(borrow)]
    pub name: Cow<'b, str>,
    pub version: Revision,
    /// The namespace of the release's objects, which may differ from that of the record.
    #[serde(borrow, default)]
    pub namespace: Cow<'b, str>,
    #[serde(borrow)]
    pub info: RecordInfo<'b>,
    /// The chart with its templates and default values.
    #[serde(borrow)]
    chart: Option<&'b RawValue>,
    /// The values that the user gave.
    #[serde(borrow)]
    config: Option<&'b RawValue>,
    /// The rendered objects without hooks, as one JSON string.
    #[serde(borrow)]
    manifest: Option<&'b RawValue>,
    /// The rendered hooks.
    #[serde(borrow)]
    hooks: Option<&'b RawValue>,
    /// How Helm 4 applied the objects. Helm 3 drops it when it writes the record.
    #[serde(borrow)]
    apply_method: Option<&'b RawValue>,
    /// Contains OLM's description of the bundle that the chart was generated from.
    #[serde(borrow)]
    labels: Option<&'b RawValue>,
}

impl<'de: 'b, 'b> Deserialize<'de> for Record<'b> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(GoStruct(deserializer))
    }
}

/// A JSON string as text; empty if there is none.
fn text(raw: Option<&RawValue>) -> Cow<'_, str> {
    let text = raw.and_then(|raw| serde_json::from_str::<Option<Text<'_>>>(raw.get()).ok());
    text.flatten().map(|text| text.0).unwrap_or_default()
}

/// `info` of a record.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self")]
pub struct RecordInfo<'b> {
    /// Helm orders and decides by this status, not by the label.
    #[serde(borrow)]
    pub status: Cow<'b, str>,
    /// The client's clock at the creation of this revision. It never changes afterwards.
    #[serde(borrow, default)]
    pub last_deployed: Cow<'b, str>,
    /// The description by the client.
    #[serde(borrow, default)]
    pub description: Cow<'b, str>,
    /// The client's clock at the first installation of the release.
    #[serde(borrow)]
    first_deployed: Option<&'b RawValue>,
    /// The client's clock at the start of the uninstall. Helm 3 writes an empty text, or year 1, where there is none.
    #[serde(borrow)]
    deleted: Option<&'b RawValue>,
    /// The rendered notes of the chart.
    #[serde(borrow)]
    notes: Option<&'b RawValue>,
}

impl<'de: 'b, 'b> Deserialize<'de> for RecordInfo<'b> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(GoStruct(deserializer))
    }
}

/// The label in the body of a record with the package that it installs.
pub(crate) const PACKAGE_NAME_LABEL: &str = "olm.operatorframework.io/package-name";
/// The label in the body of a record with the version of the bundle.
pub(crate) const BUNDLE_VERSION_LABEL: &str = "olm.operatorframework.io/bundle-version";

/// The steps to parse a byte of a body.
const READ_STEPS: u64 = 2;

/// At most 120 characters of a text from a body, for messages and annotations.
#[must_use]
pub fn truncated(text: &str) -> String {
    const MAX_CHARS: usize = 120;
    if text.chars().nth(MAX_CHARS).is_none() {
        return text.to_owned();
    }
    text.chars().take(MAX_CHARS).chain(['…']).collect()
}

/// Name and version of a chart.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct ChartId<'b> {
    /// For example `ingress-nginx`.
    #[serde(borrow)]
    pub name: Cow<'b, str>,
    /// For example `4.11.2`.
    #[serde(borrow)]
    pub version: Cow<'b, str>,
}

impl<'de: 'b, 'b> Deserialize<'de> for ChartId<'b> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(GoStruct(deserializer))
    }
}

impl ChartId<'_> {
    /// `name-version`, as `helm list` shows it; `None` if both are empty.
    #[must_use]
    pub fn display(&self) -> Option<String> {
        let named = !self.name.is_empty() || !self.version.is_empty();
        named.then(|| truncated(&format!("{}-{}", self.name, self.version)))
    }
}

impl<'b> Record<'b> {
    /// Parses the head of a body.
    ///
    /// # Errors
    /// The body is not JSON, repeats a key, or lacks name, version or status; or it is more work than the review has
    /// left.
    pub fn read(body: &'b [u8], effort: &Effort) -> Result<Self, DecodeError> {
        effort.take(body.len() as u64 * READ_STEPS)?;
        serde_json::from_slice(body).map_err(|error| DecodeError::of_json(body, &error))
    }

    /// The values that the user gave, as JSON.
    #[must_use]
    pub fn values(&self) -> &'b str {
        self.config.map(RawValue::get).filter(|values| *values != "null").unwrap_or("{}")
    }

    /// The name and version of the chart, parsed without the megabytes of templates after them; empty if the record has
    /// no chart. If the metadata is repeated, which no client does, the first one counts: the author of a record
    /// chooses these names anyway.
    #[must_use]
    pub fn chart_id(&self) -> ChartId<'b> {
        let Some(chart) = self.chart else { return ChartId::default() };
        first_at::<Option<_>>(chart.get(), &["metadata"]).ok().flatten().flatten().unwrap_or_default()
    }

    /// `name-version` of the chart, or of the bundle if OLM generated the chart without a name. `None` if neither has a
    /// name.
    #[must_use]
    pub fn chart(&self) -> Option<String> {
        self.chart_id().display().or_else(|| self.bundle())
    }

    /// `name-version` of the bundle that OLM generated the chart from.
    fn bundle(&self) -> Option<String> {
        let labels: BTreeMap<Cow<'_, str>, Cow<'_, str>> = serde_json::from_str(self.labels?.get()).ok()?;
        let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
        ChartId { name: label(PACKAGE_NAME_LABEL), version: label(BUNDLE_VERSION_LABEL) }.display()
    }

    /// The manifest as text; empty if there is none.
    #[must_use]
    pub fn manifest(&self) -> Cow<'b, str> {
        text(self.manifest)
    }

    /// The objects of a kind among the hooks.
    ///
    /// # Errors
    /// The hooks cannot be parsed, or it is more work than the review has left. The error contains the position of the
    /// problem, never the text there.
    pub fn hooks_of_kind(&self, kind: &str, effort: &Effort) -> Result<Vec<HookObject>, String> {
        self.hooks.map_or_else(|| Ok(Vec::new()), |hooks| hooks_of_kind(hooks.get(), kind, &self.namespace, effort))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"name":"web","info":{"first_deployed":"x","status":"deployed","later":1},
        "chart":{"metadata":{"name":"shop","version":"1.2.3"},"templates":[]},"config":{"a":1},
        "manifest":"---\nkind: A\n","hooks":[],"version":3,"namespace":"shop","apply_method":"ssa"}"#;

    #[test]
    fn the_head_is_borrowed_and_the_rest_stays_raw() {
        let record = Record::read(BODY.as_bytes(), &Effort::of_review()).unwrap();
        assert!(matches!(record.name, Cow::Borrowed("web")));
        assert_eq!(record.version, Revision(3));
        assert_eq!(record.info.status, "deployed");
        assert_eq!(record.chart().as_deref(), Some("shop-1.2.3"));
        assert_eq!(record.manifest(), "---\nkind: A\n");
        let twice = BODY.replace(r#""templates":[]"#, r#""metadata":{"name":"other"}"#);
        let record = Record::read(twice.as_bytes(), &Effort::of_review()).unwrap();
        assert_eq!(record.chart().as_deref(), Some("shop-1.2.3"), "the first counts");
    }

    #[test]
    fn a_record_without_chart_or_manifest_is_empty() {
        let record =
            Record::read(br#"{"name":"a","info":{"status":"failed"},"version":1,"chart":null}"#, &Effort::of_review())
                .unwrap();
        assert_eq!(record.chart(), None);
        assert_eq!(record.manifest(), "");
    }

    #[test]
    fn a_chart_that_olm_generated_is_named_after_its_bundle() {
        let record = |labels: &str| {
            let chart = r#"{"metadata":{"annotations":{"createdAt":"x"}}}"#;
            format!(r#"{{"name":"a","info":{{"status":"failed"}},"version":1,"chart":{chart},"labels":{labels}}}"#)
        };
        let bundle =
            r#"{"olm.operatorframework.io/package-name":"web","olm.operatorframework.io/bundle-version":"2.0.0"}"#;
        for (labels, source) in [(bundle, Some("web-2.0.0")), ("{}", None), ("null", None), ("7", None)] {
            assert_eq!(
                Record::read(record(labels).as_bytes(), &Effort::of_review()).unwrap().chart().as_deref(),
                source,
                "{labels}"
            );
        }
    }

    #[test]
    fn a_repeated_key_is_an_error() {
        let twice = BODY.replacen(r#""version":3"#, r#""version":3,"version":4"#, 1);
        assert!(matches!(Record::read(twice.as_bytes(), &Effort::of_review()), Err(DecodeError::Json(_))));
    }

    #[test]
    fn a_key_that_go_takes_for_a_known_one_is_an_error() {
        let body = |more: &str| format!(r#"{{"name":"a","version":1,"info":{{"status":"failed"{more}}}{more}}}"#);
        assert!(Record::read(body(r#","later":1"#).as_bytes(), &Effort::of_review()).is_ok());
        for key in ["Manifest", "VERSION", "hoo\\u212As", "ver\\u017Fion", "Status", "\\u017Ftatus"] {
            let read = Record::read(body(&format!(r#","{key}":1"#)).as_bytes(), &Effort::of_review()).map(|_| ());
            assert!(matches!(&read, Err(DecodeError::Json(why)) if why.contains("only in case")), "{key}: {read:?}");
        }
    }

    #[test]
    fn deep_json_is_skipped_without_recursion() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let body = BODY.replacen(r#""hooks":[]"#, &format!(r#""hooks":{deep}"#), 1);
        assert!(Record::read(body.as_bytes(), &Effort::of_review()).is_ok());
    }
}

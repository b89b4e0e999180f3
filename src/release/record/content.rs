//! What of a record must never change once it is stored, compared by meaning.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Record;

/// A part of a record that no client changes after it created the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// `name`.
    Name,
    /// `version`.
    Version,
    /// `namespace`.
    Namespace,
    /// `manifest`.
    Manifest,
    /// `config`.
    Config,
    /// `chart`, its modification times left out.
    Chart,
    /// `info.last_deployed`: the body of another life of the release, which happened to use the same revision.
    LastDeployed,
}

impl Difference {
    /// The member of the body.
    #[must_use]
    pub fn member(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Version => "version",
            Self::Namespace => "namespace",
            Self::Manifest => "manifest",
            Self::Config => "config",
            Self::Chart => "chart",
            Self::LastDeployed => "info.last_deployed",
        }
    }
}

/// The lasting parts in which two bodies differ.
///
/// Bytes first; where they differ, by meaning, because Helm 3 and Helm 4 write the same release differently: Helm 3
/// drops modification times that Helm 4 stores, and an absent member, `null` and an empty one are the same to both.
#[must_use]
pub fn differences(old: &Record<'_>, new: &Record<'_>) -> Vec<Difference> {
    let checks = [
        (Difference::Name, old.name == new.name),
        (Difference::Version, old.version == new.version),
        (Difference::Namespace, old.namespace == new.namespace),
        (Difference::LastDeployed, same_time(&old.info.last_deployed, &new.info.last_deployed)),
        (Difference::Config, same_config(old, new)),
        (Difference::Chart, same_chart(old, new)),
        (Difference::Manifest, same_raw(old.manifest, new.manifest) || old.manifest() == new.manifest()),
    ];
    checks.into_iter().filter(|(_, same)| !same).map(|(difference, _)| difference).collect()
}

/// Whether two records were made from the same chart and the same values, as a mapped copy of a record is.
#[must_use]
pub fn same_source(old: &Record<'_>, new: &Record<'_>) -> bool {
    same_config(old, new) && same_chart(old, new)
}

fn same_raw(old: Option<&RawValue>, new: Option<&RawValue>) -> bool {
    old.map(RawValue::get) == new.map(RawValue::get)
}

fn same_time(old: &str, new: &str) -> bool {
    let instant = |text: &str| text.parse::<jiff::Timestamp>().ok();
    old == new || instant(old).is_some_and(|old| instant(new) == Some(old))
}

fn same_config(old: &Record<'_>, new: &Record<'_>) -> bool {
    same_raw(old.config, new.config) || meaning(old.config) == meaning(new.config)
}

fn same_chart(old: &Record<'_>, new: &Record<'_>) -> bool {
    if same_raw(old.chart, new.chart) {
        return true;
    }
    let chart = |raw: Option<&'_ RawValue>| raw.map_or("null", RawValue::get).to_owned();
    let (old, new) = (chart(old.chart), chart(new.chart));
    let read = |text| serde_json::from_str::<Option<Chart<'_>>>(text);
    match (read(&old), read(&new)) {
        (Ok(old), Ok(new)) => old.unwrap_or_default() == new.unwrap_or_default(),
        _ => false,
    }
}

/// A chart without its modification times.
#[derive(Default, PartialEq, Deserialize)]
#[serde(default)]
struct Chart<'b> {
    metadata: Meaning,
    lock: Meaning,
    #[serde(borrow)]
    templates: Files<'b>,
    values: Meaning,
    #[serde(borrow)]
    schema: Option<Cow<'b, str>>,
    #[serde(borrow)]
    files: Files<'b>,
}

#[derive(Default, Deserialize)]
#[serde(transparent)]
struct Files<'b>(#[serde(borrow)] Option<Vec<File<'b>>>);

impl PartialEq for Files<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_deref().unwrap_or_default() == other.0.as_deref().unwrap_or_default()
    }
}

#[derive(PartialEq, Deserialize)]
struct File<'b> {
    #[serde(borrow, default)]
    name: Cow<'b, str>,
    #[serde(borrow, default)]
    data: Option<Cow<'b, str>>,
}

/// A JSON value in which what is empty is the same as what is absent, at the top.
#[derive(Default)]
struct Meaning(Value);

impl<'de> Deserialize<'de> for Meaning {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self)
    }
}

impl PartialEq for Meaning {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || (is_empty(&self.0) && is_empty(&other.0))
    }
}

fn meaning(raw: Option<&RawValue>) -> Option<Meaning> {
    raw.map_or(Some(Meaning::default()), |raw| serde_json::from_str(raw.get()).ok())
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(chart: &str, config: &str) -> String {
        format!(
            r#"{{"name":"web","version":1,"namespace":"shop","manifest":"a < b",
               "info":{{"status":"deployed","last_deployed":"2026-11-21T09:23:20.5Z"}},"chart":{chart},"config":{config}}}"#
        )
    }

    fn compare(old: &str, new: &str) -> Vec<Difference> {
        differences(&Record::read(old.as_bytes()).unwrap(), &Record::read(new.as_bytes()).unwrap())
    }

    const HELM3: &str = r#"{"metadata":{"name":"shop"},"lock":null,"templates":[{"name":"t","data":"eA=="}],"values":{},
        "schema":null,"files":[]}"#;
    const HELM4: &str = r#"{"metadata":{"name":"shop"},"lock":null,"values":null,"schemamodtime":"0001-01-01T00:00:00Z",
        "templates":[{"name":"t","data":"eA==","modtime":"2026-11-21T09:22:17Z"}],"modtime":"2026-11-21T09:22:17Z"}"#;

    #[test]
    fn helm_3_and_helm_4_write_the_same_chart_differently() {
        assert_eq!(compare(&body(HELM3, "null"), &body(HELM4, "{}")), []);
    }

    #[test]
    fn escapes_and_time_formats_do_not_count() {
        let old = body(HELM3, "{}");
        let new = old.replace("a < b", r"a \u003c b").replace("20.5Z", "20.500Z");
        assert_eq!(compare(&old, &new), []);
    }

    #[test]
    fn every_lasting_part_is_noticed() {
        let old = body(HELM3, r#"{"replicas":1}"#);
        let changed = |from: &str, to: &str| {
            assert!(old.contains(from));
            compare(&old, &old.replace(from, to))
        };
        assert_eq!(changed(r#""name":"web""#, r#""name":"api""#), [Difference::Name]);
        assert_eq!(changed(r#""version":1"#, r#""version":2"#), [Difference::Version]);
        assert_eq!(changed(r#""namespace":"shop""#, r#""namespace":"bar""#), [Difference::Namespace]);
        assert_eq!(changed("a < b", "a > b"), [Difference::Manifest]);
        assert_eq!(changed(r#"{"replicas":1}"#, r#"{"replicas":2}"#), [Difference::Config]);
        assert_eq!(changed("eA==", "eQ=="), [Difference::Chart]);
        assert_eq!(changed("20.5Z", "21.5Z"), [Difference::LastDeployed]);
        assert_eq!(changed(r#""status":"deployed""#, r#""status":"superseded""#), []);
    }
}

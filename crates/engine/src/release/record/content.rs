//! The parts of a record that must never change once it is stored, compared by meaning.

use serde_json::value::RawValue;

use super::fingerprint::{Fingerprints, Irrelevant, Place};
use super::{Record, text};
use crate::effort::Effort;

/// The steps to unescape a byte of a JSON string.
const UNESCAPE_STEPS: u64 = 1;

/// A part of a record that no client changes after creation.
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
    /// `chart`, without its modification times.
    Chart,
    /// `info.last_deployed`. The body belongs to the same revision of a release before or after a reinstallation.
    LastDeployed,
    /// `info.first_deployed`.
    FirstDeployed,
    /// `info.deleted`, which only an uninstall sets.
    Deleted,
    /// `info.notes`.
    Notes,
    /// `apply_method`.
    ApplyMethod,
}

impl Difference {
    /// The path of the part in the body.
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
            Self::FirstDeployed => "info.first_deployed",
            Self::Deleted => "info.deleted",
            Self::Notes => "info.notes",
            Self::ApplyMethod => "apply_method",
        }
    }
}

/// The unchangeable parts in which two bodies differ.
///
/// If bytes differ, the meaning decides, because Helm 3 and Helm 4 write the same release differently: Helm 3 drops
/// modification times that Helm 4 stores. Both treat an absent member, `null` and an empty member as equal. Chart and
/// config are expensive to compare, and a client can spell them at any length. So they are compared only if nothing
/// else differs, and count as different if the review has too few steps left.
#[must_use]
pub fn differences(old: &Record<'_>, new: &Record<'_>, effort: &Effort) -> Vec<Difference> {
    let cheap = [
        (Difference::Name, old.name == new.name),
        (Difference::Version, old.version == new.version),
        (Difference::Namespace, old.namespace == new.namespace),
        (Difference::LastDeployed, same_time(&old.info.last_deployed, &new.info.last_deployed)),
        (Difference::FirstDeployed, same_moment(old.info.first_deployed, new.info.first_deployed)),
        (Difference::Deleted, same_moment(old.info.deleted, new.info.deleted)),
        (Difference::Notes, same_text(old.info.notes, new.info.notes, effort)),
        (Difference::ApplyMethod, new.apply_method.is_none() || same_raw(old.apply_method, new.apply_method)),
        (Difference::Manifest, same_text(old.manifest, new.manifest, effort)),
    ];
    let mut differing: Vec<_> = cheap.into_iter().filter(|(_, same)| !same).map(|(difference, _)| difference).collect();
    // Some tools change only the date.
    if differing.iter().all(|difference| *difference == Difference::LastDeployed) {
        let expensive =
            [(Difference::Config, same_config(old, new, effort)), (Difference::Chart, same_chart(old, new, effort))];
        differing.extend(expensive.into_iter().filter(|(_, same)| !same).map(|(difference, _)| difference));
    }
    differing
}

/// Whether two records have the same chart and values, like a record and its copy by helm-mapkubeapis.
#[must_use]
pub(super) fn same_chart_and_config(old: &Record<'_>, new: &Record<'_>, effort: &Effort) -> bool {
    same_config(old, new, effort) && same_chart(old, new, effort)
}

fn same_raw(old: Option<&RawValue>, new: Option<&RawValue>) -> bool {
    old.map(RawValue::get) == new.map(RawValue::get)
}

fn same_time(old: &str, new: &str) -> bool {
    old == new || instant(old).is_some_and(|old| instant(new) == Some(old))
}

fn instant(text: &str) -> Option<jiff::Timestamp> {
    text.parse().ok()
}

/// Whether two moments are equal. Helm writes no moment in several ways.
fn same_moment(old: Option<&RawValue>, new: Option<&RawValue>) -> bool {
    same_raw(old, new) || (is_text(old) && is_text(new) && same_or_no_time(&text(old), &text(new)))
}

/// Whether a value is a text or nothing, as Helm writes a moment.
fn is_text(raw: Option<&RawValue>) -> bool {
    raw.is_none_or(|raw| raw.get().starts_with('"') || raw.get() == "null")
}

fn same_or_no_time(old: &str, new: &str) -> bool {
    same_time(old, new) || (is_no_time(old) && is_no_time(new))
}

fn is_no_time(text: &str) -> bool {
    text.is_empty() || text.starts_with("0001-01-01T00:00:00")
}

/// Whether two JSON strings are equal, however they are escaped. An absent one is empty.
fn same_text(old: Option<&RawValue>, new: Option<&RawValue>, effort: &Effort) -> bool {
    let affordable = |raw: Option<&RawValue>| effort.take_text(raw.map_or("", RawValue::get), UNESCAPE_STEPS).is_ok();
    same_raw(old, new) || (affordable(old) && affordable(new) && text(old) == text(new))
}

fn same_config(old: &Record<'_>, new: &Record<'_>, effort: &Effort) -> bool {
    // An empty value counts: a null deletes a default of the chart.
    let irrelevant = Irrelevant { member: |_, _| false, empty_members: false };
    same_meaning(old.config, new.config, irrelevant, effort)
}

fn same_chart(old: &Record<'_>, new: &Record<'_>, effort: &Effort) -> bool {
    same_meaning(old.chart, new.chart, Irrelevant { member: is_time, empty_members: true }, effort)
}

/// Whether a member is a modification time of the chart or of one of its files. Values may have members with these names.
fn is_time(place: Place<'_>, key: &str) -> bool {
    match key {
        "modtime" => place.depth == 0 || (place.depth == 2 && matches!(place.top, "files" | "templates")),
        "schemamodtime" => place.depth == 0,
        _ => false,
    }
}

/// Compares bytes first. If the meaning cannot be determined, different bytes are different.
fn same_meaning(old: Option<&RawValue>, new: Option<&RawValue>, irrelevant: Irrelevant, effort: &Effort) -> bool {
    if same_raw(old, new) {
        return true;
    }
    let prints = Fingerprints::new(irrelevant, effort);
    let print = |raw: Option<&RawValue>| prints.of(raw.map_or("null", RawValue::get));
    print(old).is_some_and(|old| print(new) == Some(old))
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
        compare_within(&Effort::of_review(), old, new)
    }

    fn compare_within(effort: &Effort, old: &str, new: &str) -> Vec<Difference> {
        differences(
            &Record::read(old.as_bytes(), &Effort::of_review()).unwrap(),
            &Record::read(new.as_bytes(), &Effort::of_review()).unwrap(),
            effort,
        )
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
    fn an_empty_value_counts_and_absent_values_do_not() {
        let config = |config: &str| body(HELM3, config);
        for (old, new) in [
            (r#"{"a":{"b":null}}"#, r#"{"a":{}}"#),
            (r#"{"a":null}"#, "{}"),
            (r#"{"a":[]}"#, "{}"),
            (r#"{"a":[]}"#, r#"{"a":null}"#),
            (r#"{"a":{}}"#, "null"),
            (r#"{"a":""}"#, "{}"),
        ] {
            assert_eq!(compare(&config(old), &config(new)), [Difference::Config], "{old} {new}");
        }
        assert_eq!(compare(&config("null"), &config("{}")), []);
        assert_eq!(compare(&config("{}"), &body(HELM3, "null").replace(r#","config":null"#, "")), []);
    }

    #[test]
    fn only_the_times_of_helm_do_not_count() {
        let chart = |values: &str| body(&HELM3.replace(r#""values":{}"#, &format!(r#""values":{values}"#)), "{}");
        for values in [r#"{"modtime":"x"}"#, r#"{"a":{"modtime":"x"}}"#, r#"{"a":[{"modtime":"x"}]}"#] {
            assert_eq!(
                compare(&chart(values), &chart(&values.replace("\"x\"", "\"y\""))),
                [Difference::Chart],
                "{values}"
            );
        }
        let schema = r#"{"schemamodtime":1}"#;
        assert_eq!(compare(&chart(schema), &chart(r#"{"schemamodtime":2}"#)), [Difference::Chart]);
    }

    #[test]
    fn escapes_and_time_formats_do_not_count() {
        let old = body(HELM3, "{}");
        let new = old.replace("a < b", r"a \u003c b").replace("20.5Z", "20.500Z");
        assert_eq!(compare(&old, &new), []);
    }

    #[test]
    fn helm_reads_every_number_as_a_float() {
        // `--set id=9007199254740993` is stored unchanged at first, and rounded at the next write.
        let old = body(HELM3, r#"{"id":9007199254740993,"n":1}"#);
        assert_eq!(compare(&old, &body(HELM3, r#"{"id":9007199254740992,"n":1.0}"#)), []);
        assert_eq!(compare(&old, &body(HELM3, r#"{"id":9007199254740994,"n":1}"#)), [Difference::Config]);
    }

    #[test]
    fn the_order_of_items_counts_and_that_of_members_does_not() {
        let config = |value: &str| body(HELM3, value);
        assert_eq!(
            compare(&config(r#"{"a":{"x":1,"y":[1,2]},"b":2}"#), &config(r#"{"b":2,"a":{"y":[1,2],"x":1}}"#)),
            []
        );
        let swapped = compare(&config(r#"{"a":[1,2]}"#), &config(r#"{"a":[2,1]}"#));
        assert_eq!(swapped, [Difference::Config]);
    }

    #[test]
    fn values_nested_too_deep_to_compare_are_different() {
        let deep = |leaf: &str| body(HELM3, &format!(r#"{{"a":{}{leaf}{}}}"#, "[".repeat(200), "]".repeat(200)));
        assert_eq!(compare(&deep("1"), &deep("1")), []);
        assert_eq!(compare(&deep("1"), &deep("2")), [Difference::Config]);
    }

    #[test]
    fn values_too_expensive_to_compare_are_different() {
        let padded = |last: &str| body(HELM3, &format!(r#"{{"a":[{}{last}]}}"#, "{},".repeat(1_000)));
        let (old, new) = (padded(r#"{"x":1,"y":2}"#), padded(r#"{"y":2,"x":1}"#));
        assert_eq!(compare(&old, &new), []);
        let effort = Effort::of(60_000);
        assert_eq!(compare_within(&effort, &old, &new), [Difference::Config]);
        // Bytes cost nothing.
        assert_eq!(compare_within(&effort, &old, &old), []);
    }

    #[test]
    fn different_shapes_have_different_fingerprints() {
        let values = [r#"["a","b"]"#, r#"["ab"]"#, r#"[["a"],"b"]"#, r#"{"a":"b"}"#, r#"[{"a":"b"}]"#, r#"["a",null]"#];
        for (index, old) in values.iter().enumerate() {
            for new in &values[index + 1..] {
                let wrap = |value: &str| body(HELM3, &format!(r#"{{"v":{value}}}"#));
                assert_eq!(compare(&wrap(old), &wrap(new)), [Difference::Config], "{old} {new}");
            }
        }
    }

    #[test]
    fn a_change_of_any_unchangeable_part_is_found() {
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

//! `spec.driftDetection` of a HelmRelease: what Flux ignores when it corrects drift.
//!
//! Flux selects objects by the manifest of the release, not by their state in the cluster. So a label or an annotation counts
//! only if the release declares it, and nobody can create an exception by editing the object.

use std::collections::BTreeMap;

use jsonptr::PointerBuf;
use serde::Deserialize;

use super::pattern::{self, PatternMatch};
use super::selector;
use crate::effort::{Effort, OverBudget};
use crate::json::null_is_default;

/// The label or annotation that turns off drift detection for an object, and its value in upper or lower case.
const SWITCH: (&str, &str) = ("helm.toolkit.fluxcd.io/driftDetection", "disabled");

/// Steps to compare a pointer with all fields that a write changes, at most a thousand.
const POINTER_STEPS: u64 = 20_000;

/// Steps to parse one byte of a rule.
const RULE_STEPS: u64 = 20;

/// The part of `spec` with the drift detection. An empty list in it takes sixty times the memory of its text, so it is read only
/// from objects with a limited size.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DriftSpec {
    #[serde(deserialize_with = "null_is_default")]
    pub drift_detection: DriftDetection,
}

/// `spec.driftDetection`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DriftDetection {
    #[serde(deserialize_with = "null_is_default")]
    pub ignore: Vec<DriftIgnore>,
}

/// An entry of `spec.driftDetection.ignore`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DriftIgnore {
    /// JSON pointers. Fields below a pointer are ignored too. An empty pointer means the whole object.
    #[serde(deserialize_with = "null_is_default")]
    pub paths: Vec<String>,
    /// `None` means all objects.
    pub target: Option<DriftTarget>,
}

/// The objects of an entry: regular expressions, which must match the whole text, and label selectors. An empty one matches
/// everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DriftTarget {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub label_selector: String,
    pub annotation_selector: String,
}

impl DriftIgnore {
    fn steps(&self) -> u64 {
        let paths: usize = self.paths.iter().map(|path| path.len() + 1).sum();
        let patterns = self.target.as_ref().map_or(0, |target| {
            let DriftTarget { group, version, kind, namespace, name, label_selector, annotation_selector } = target;
            let texts = [group, version, kind, namespace, name, label_selector, annotation_selector];
            texts.into_iter().map(String::len).sum()
        });
        (patterns as u64).saturating_mul(pattern::COMPILE_STEPS).saturating_add(paths as u64 * RULE_STEPS)
    }
}

/// An object as declared in the manifest of its release.
#[derive(Debug, Default)]
pub struct DeclaredObject<'d> {
    pub group: &'d str,
    pub version: &'d str,
    pub kind: &'d str,
    /// Empty for cluster-scoped objects.
    pub namespace: &'d str,
    pub name: &'d str,
    pub labels: BTreeMap<&'d str, &'d str>,
    pub annotations: BTreeMap<&'d str, &'d str>,
}

impl DeclaredObject<'_> {
    /// Whether the object itself turns off drift detection.
    fn is_unchecked(&self) -> bool {
        let (key, value) = SWITCH;
        let is_set = |found: Option<&&str>| found.is_some_and(|found| found.eq_ignore_ascii_case(value));
        is_set(self.labels.get(key)) || is_set(self.annotations.get(key))
    }
}

/// The fields of an object that Flux ignores.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct IgnoredFields {
    /// Fields below a pointer are ignored too.
    pub pointers: Vec<PointerBuf>,
    /// The first unusable pattern or selector, for example `spec.driftDetection.ignore[0].target.name`. Its entry has no effect.
    pub unusable: Option<String>,
}

/// Whether an entry applies to an object.
enum TargetMatch {
    Matches,
    Differs,
    /// The name of an unusable field.
    Unusable(&'static str),
}

impl DriftDetection {
    /// About how many steps it takes to parse the rules.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.ignore.iter().map(DriftIgnore::steps).fold(0, u64::saturating_add)
    }

    /// The fields of an object that Flux ignores.
    ///
    /// # Errors
    /// [`OverBudget`] if the rules take more work than the review has left.
    pub fn ignored(&self, object: &DeclaredObject<'_>, effort: &Effort) -> Result<IgnoredFields, OverBudget> {
        if object.is_unchecked() {
            return Ok(IgnoredFields { pointers: vec![PointerBuf::root()], unusable: None });
        }
        let mut ignored = IgnoredFields::default();
        for (index, DriftIgnore { paths, target }) in self.ignore.iter().enumerate() {
            match target.as_ref().map_or(Ok(TargetMatch::Matches), |target| target.matches(object, effort))? {
                TargetMatch::Differs => {}
                TargetMatch::Unusable(field) => {
                    ignored
                        .unusable
                        .get_or_insert_with(|| format!("spec.driftDetection.ignore[{index}].target.{field}"));
                }
                TargetMatch::Matches => {
                    for path in paths {
                        effort.take_text(path, RULE_STEPS)?;
                        effort.take(POINTER_STEPS)?;
                        ignored.pointers.extend(PointerBuf::parse(path.as_str()).ok());
                    }
                }
            }
        }
        Ok(ignored)
    }
}

impl DriftTarget {
    fn matches(&self, object: &DeclaredObject<'_>, effort: &Effort) -> Result<TargetMatch, OverBudget> {
        let DeclaredObject { group, version, kind, namespace, name, labels, annotations } = object;
        for (field, pattern, text) in [
            ("kind", &self.kind, kind),
            ("name", &self.name, name),
            ("namespace", &self.namespace, namespace),
            ("group", &self.group, group),
            ("version", &self.version, version),
        ] {
            match pattern::matches(pattern, text, effort)? {
                PatternMatch::Matches => {}
                PatternMatch::Differs => return Ok(TargetMatch::Differs),
                PatternMatch::Unusable => return Ok(TargetMatch::Unusable(field)),
            }
        }
        for (field, selector, map) in [
            ("labelSelector", &self.label_selector, labels),
            ("annotationSelector", &self.annotation_selector, annotations),
        ] {
            effort.take_text(selector, RULE_STEPS)?;
            if selector.is_empty() {
                continue;
            }
            match selector::matches(selector, map) {
                Some(true) => {}
                Some(false) => return Ok(TargetMatch::Differs),
                None => return Ok(TargetMatch::Unusable(field)),
            }
        }
        Ok(TargetMatch::Matches)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ignored(rules: Value, object: &DeclaredObject<'_>, effort: &Effort) -> Result<Vec<String>, OverBudget> {
        let read: DriftDetection = serde_json::from_value(json!({"mode": "enabled", "ignore": rules})).unwrap();
        Ok(read.ignored(object, effort)?.pointers.iter().map(ToString::to_string).collect())
    }

    fn web() -> DeclaredObject<'static> {
        DeclaredObject {
            group: "apps",
            version: "v1",
            kind: "Deployment",
            namespace: "shop",
            name: "web-1",
            labels: BTreeMap::from([("app", "web")]),
            annotations: BTreeMap::from([("example.com/a", "b")]),
        }
    }

    #[test]
    fn targets_match_as_in_flux() {
        for (target, wanted) in [
            (json!(null), true),
            (json!({}), true),
            (json!({"kind": "Deployment"}), true),
            (json!({"kind": "Deploy"}), false),
            (json!({"kind": "Deploy.*"}), true),
            (json!({"kind": "StatefulSet|Deployment"}), true),
            (json!({"kind": "(?i)deployment"}), true),
            (json!({"name": "web-\\d", "namespace": "shop"}), true),
            (json!({"name": "web"}), false),
            (json!({"name": "web.1"}), true),
            (json!({"namespace": "sho"}), false),
            (json!({"group": "apps", "version": "v1"}), true),
            (json!({"group": "batch"}), false),
            (json!({"version": "v2"}), false),
            (json!({"labelSelector": "app in (web, api)", "annotationSelector": "example.com/a=b"}), true),
            (json!({"labelSelector": "app=api"}), false),
            (json!({"annotationSelector": "!example.com/a"}), false),
            // Patterns that Flux cannot parse make no exception.
            (json!({"name": "web("}), false),
            (json!({"name": "\\p{L}{1,1000}{1,1000}"}), false),
            (json!({"name": "web-1|".repeat(1_000)}), false),
            (json!({"labelSelector": "app in web"}), false),
        ] {
            let rules = json!([{"paths": ["/spec/replicas", "no pointer"], "target": target}]);
            let found = ignored(rules, &web(), &Effort::of_review()).unwrap();
            assert_eq!(found, if wanted { vec!["/spec/replicas"] } else { vec![] }, "{target}");
        }
    }

    #[test]
    fn an_object_that_turns_off_drift_detection_is_ignored() {
        let (key, _) = SWITCH;
        for (labels, annotations, whole) in [
            (vec![(key, "disabled")], vec![], true),
            (vec![], vec![(key, "Disabled")], true),
            (vec![(key, "enabled")], vec![(key, "")], false),
        ] {
            let object = DeclaredObject {
                labels: labels.into_iter().collect(),
                annotations: annotations.into_iter().collect(),
                ..web()
            };
            let found = ignored(json!([]), &object, &Effort::of_review()).unwrap();
            assert_eq!(found, if whole { vec![""] } else { vec![] });
        }
    }

    #[test]
    fn many_and_large_rules_are_bounded_by_the_effort() {
        let rule = json!({"paths": ["/spec"], "target": {"name": "(a|b)*".repeat(170)}});
        let effort = Effort::of_review();
        assert_eq!(ignored(vec![rule; 2_000].into(), &web(), &effort), Err(OverBudget));
        let long = json!([{"paths": ["/spec"], "target": {"labelSelector": "a,".repeat(1 << 20)}}]);
        assert_eq!(ignored(long, &web(), &Effort::of(1 << 20)), Err(OverBudget));
        // Typical rules cost almost nothing.
        let usual = json!({"paths": ["/spec/replicas"], "target": {"kind": "Deployment"}});
        let effort = Effort::of(2_000_000);
        assert_eq!(ignored(vec![usual; 50].into(), &web(), &effort).map(|found| found.len()), Ok(50));
    }
}

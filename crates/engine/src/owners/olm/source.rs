//! `spec.source` of a ClusterExtension: everything that affects what OLM resolves next.

use std::borrow::Cow;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::version_range::VersionRange;
use crate::effort::{Effort, OverBudget};
use crate::json::{null_is_default, redacted};

/// Steps to parse one byte of the source.
const READ_STEPS: u64 = 20;

/// The upgrade policy of a catalog that sets none.
const DEFAULT_POLICY: &str = "CatalogProvided";

/// `spec.source`.
#[derive(Debug, Default)]
pub struct ExtensionSource<'a> {
    pub catalog: CatalogSource<'a>,
    /// Its JSON.
    text: &'a str,
}

/// `spec.source.catalog`, with only the members that rules use.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CatalogSource<'a> {
    #[serde(borrow)]
    pub package_name: Cow<'a, str>,
    /// A version or a range of versions.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// `CatalogProvided` or `SelfCertified`.
    #[serde(borrow)]
    pub upgrade_constraint_policy: Cow<'a, str>,
}

impl<'de: 'a, 'a> Deserialize<'de> for ExtensionSource<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Members<'a> {
            #[serde(borrow, deserialize_with = "null_is_default")]
            catalog: CatalogSource<'a>,
        }
        let text = <&RawValue>::deserialize(deserializer)?.get();
        let members: Option<Members<'a>> =
            serde_json::from_str(text).map_err(|error| D::Error::custom(redacted(&error)))?;
        Ok(Self { catalog: members.unwrap_or_default().catalog, text })
    }
}

impl ExtensionSource<'_> {
    /// Whether OLM resolves the same bundle from both: the version ranges are the same, and all other values are equal in any
    /// spelling.
    ///
    /// # Errors
    /// The review has too few steps left.
    pub(crate) fn resolves_like(&self, other: &Self, effort: &Effort) -> Result<bool, OverBudget> {
        if self.text == other.text {
            return Ok(true);
        }
        let [one, two] = [self, other].map(|source| VersionRange::parse(&source.catalog.version));
        let same_range = match (one, two) {
            (Some(one), Some(two)) => one.admits_the_same(&two, effort)?,
            _ => self.catalog.version == other.catalog.version,
        };
        Ok(same_range && self.all_but_the_version(effort)? == other.all_but_the_version(effort)?)
    }

    /// Everything but the version, in a normalized spelling.
    fn all_but_the_version(&self, effort: &Effort) -> Result<Value, OverBudget> {
        effort.take_text(self.text, READ_STEPS)?;
        effort.take_tree(effort.most_trees_of(self.text.len()) as u64)?;
        let mut source: Value = serde_json::from_str(self.text).unwrap_or_default();
        if let Some(catalog) = source.get_mut("catalog").and_then(Value::as_object_mut) {
            catalog.remove("version");
            // OLM looks for a bundle in all channels.
            replace(catalog, "channels", sorted);
            replace(catalog, "selector", requirements);
            replace(
                catalog,
                "upgradeConstraintPolicy",
                |policy| {
                    if policy == DEFAULT_POLICY { Value::Null } else { policy }
                },
            );
            catalog.retain(|_, value| !is_empty(value));
        }
        Ok(source)
    }
}

fn replace(members: &mut Map<String, Value>, key: &str, by: fn(Value) -> Value) {
    if let Some(value) = members.get_mut(key) {
        *value = by(value.take());
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A list whose order and repetitions do not matter.
fn sorted(list: Value) -> Value {
    let Value::Array(mut items) = list else { return list };
    items.sort_by_cached_key(Value::to_string);
    items.dedup();
    Value::Array(items)
}

/// A label selector as a list of requirements. A label with a required value becomes such a requirement too.
fn requirements(selector: Value) -> Value {
    let Value::Object(mut members) = selector else { return selector };
    let mut found = Vec::new();
    if let Some(Value::Object(labels)) = members.remove("matchLabels") {
        found.extend(labels.into_iter().map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]})));
    }
    if let Some(Value::Array(expressions)) = members.remove("matchExpressions") {
        found.extend(expressions.into_iter().map(|mut expression| {
            if let Some(expression) = expression.as_object_mut() {
                replace(expression, "values", sorted);
                expression.retain(|_, value| !is_empty(value));
            }
            expression
        }));
    }
    // Unknown members, for example of a later version, are compared as they are.
    found.extend((!members.is_empty()).then_some(Value::Object(members)));
    sorted(Value::Array(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &Value, other: &Value) -> bool {
        let [one, other] = [one, other].map(Value::to_string);
        let [one, other]: [ExtensionSource<'_>; 2] = [&one, &other].map(|text| serde_json::from_str(text).unwrap());
        let effort = Effort::of_review();
        let alike = one.resolves_like(&other, &effort).unwrap();
        assert_eq!(other.resolves_like(&one, &effort), Ok(alike));
        alike
    }

    fn catalog(more: Value) -> Value {
        let mut catalog = json!({"packageName": "web", "version": "1.x"});
        catalog.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"sourceType": "Catalog", "catalog": catalog})
    }

    #[test]
    fn different_spellings_resolve_the_same_bundle() {
        for (one, other) in [
            (json!({"version": "1"}), json!({"version": "1.x"})),
            (json!({"channels": ["a", "b"]}), json!({"channels": ["b", "a", "b"]})),
            (json!({"channels": []}), json!({})),
            (json!({"selector": {}}), json!({})),
            (json!({"selector": {"matchLabels": {}}}), json!({"selector": null})),
            (json!({"upgradeConstraintPolicy": "CatalogProvided"}), json!({})),
            (
                json!({"selector": {"matchLabels": {"a": "b"}}}),
                json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}}),
            ),
            (
                json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c"]}]}}),
                json!({"selector": {"matchExpressions": [{"values": ["c", "b"], "operator": "In", "key": "a"}]}}),
            ),
        ] {
            assert!(alike(&catalog(one.clone()), &catalog(other.clone())), "{one} {other}");
        }
    }

    #[test]
    fn unknown_members_of_the_source_count_too() {
        for more in [
            json!({"version": "2"}),
            json!({"version": "latest"}),
            json!({"packageName": "shop"}),
            json!({"channels": ["stable"]}),
            json!({"selector": {"matchLabels": {"a": "b"}}}),
            json!({"upgradeConstraintPolicy": "SelfCertified"}),
            json!({"later": 1}),
        ] {
            assert!(!alike(&catalog(json!({})), &catalog(more.clone())), "{more}");
        }
        let selector = |values: Value| catalog(json!({"selector": {"matchExpressions": [values]}}));
        let within = json!({"key": "a", "operator": "In", "values": ["b"]});
        assert!(!alike(&selector(within.clone()), &selector(json!({"key": "a", "operator": "Exists"}))));
        assert!(!alike(&selector(within), &selector(json!({"key": "a", "operator": "NotIn", "values": ["b"]}))));
        assert!(!alike(&catalog(json!({})), &json!({"sourceType": "Image", "image": {"ref": "registry/web:2"}})));
        assert!(alike(
            &json!({"sourceType": "Image", "catalog": null}),
            &json!({"sourceType": "Image", "catalog": null})
        ));
    }
}

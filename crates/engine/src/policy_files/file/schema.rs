//! The JSON Schema of policy files, generated from the definitions that parse them.

use serde_json::{Value, json};

use super::mapping::Mapping;
use super::parts::{CLUSTER_ONLY_KEYS, OverridesFile, PolicyFile, RuleFile, rule_of_setting};
use super::read::{KeySpec, described, object_schema};
use super::values::{PolicyKind, Spelled};
use crate::rules;

const CASES_KEY: &str = "cases";

/// The JSON Schema of both kinds of policy files.
#[must_use]
pub fn schema() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://interlock.dev/schemas/policy-v1alpha1.json",
        "$comment": "Written by `interlock policy schema`.",
        "title": "A policy of Interlock",
        "definitions": {"cases": cases()},
        "type": "object",
        "properties": {"kind": {"enum": [PolicyKind::Cluster.spelled(), PolicyKind::Namespace.spelled()]}},
        "if": {"properties": {"kind": {"const": PolicyKind::Namespace.spelled()}}, "required": ["kind"]},
        "then": of(PolicyKind::Namespace),
        "else": of(PolicyKind::Cluster),
    })
}

/// The cases of a rule. The schema contains them once, because editors load it with each file.
fn cases() -> Value {
    RuleFile::KEYS.iter().find(|key| key.name == CASES_KEY).map(described).unwrap_or_default()
}

fn of(kind: PolicyKind) -> Value {
    let mut schema = object_schema(keys(PolicyFile::KEYS, kind));
    let properties = &mut schema["properties"];
    properties["kind"] = json!({"const": kind.spelled()});
    properties["overrides"]["properties"] = object_schema(keys(OverridesFile::KEYS, kind))["properties"].clone();
    // A cluster policy is for every namespace, and the policy of namespaces lists these only at the top.
    let without = match kind {
        PolicyKind::Cluster => &mut *properties,
        PolicyKind::Namespace => &mut properties["protected"]["properties"],
    };
    if let Some(without) = without.as_object_mut() {
        ["namespaces", "namespaceSelector"].iter().for_each(|key| _ = without.remove(*key));
    }
    for rule in rules::all() {
        let of_rule =
            keys(RuleFile::KEYS, kind).filter(|key| rule_of_setting(key.name).is_none_or(|owner| owner == rule));
        let mut own = object_schema(of_rule);
        own["properties"][CASES_KEY] = json!({"$ref": "#/definitions/cases"});
        properties["rules"]["properties"][rule.as_str()] = own;
    }
    schema
}

fn keys(keys: &'static [KeySpec], kind: PolicyKind) -> impl Iterator<Item = &'static KeySpec> {
    keys.iter().filter(move |key| kind == PolicyKind::Cluster || !CLUSTER_ONLY_KEYS.contains(&key.name))
}

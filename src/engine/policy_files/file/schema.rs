//! The JSON Schema of policy files, from the description that they are read by.

use serde_json::{Value, json};

use super::parts::{OF_THE_CLUSTER, OverridesFile, PolicyFile, RuleFile, owner};
use super::read::{Key, Part, described, object_schema};
use super::values::{Kind, Spelled};
use crate::engine::rules;

const CASES: &str = "cases";

/// The JSON Schema of both kinds of policy files.
#[must_use]
pub fn schema() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": "Written by `interlock policy schema`.",
        "title": "A policy of Interlock",
        "definitions": {"cases": cases()},
        "type": "object",
        "properties": {"kind": {"enum": [Kind::Cluster.spelled(), Kind::Namespace.spelled()]}},
        "if": {"properties": {"kind": {"const": Kind::Namespace.spelled()}}, "required": ["kind"]},
        "then": of(Kind::Namespace),
        "else": of(Kind::Cluster),
    })
}

/// What every rule has; written once, since editors read this with each file.
fn cases() -> Value {
    RuleFile::KEYS.iter().find(|key| key.name == CASES).map(described).unwrap_or_default()
}

fn of(kind: Kind) -> Value {
    let mut schema = object_schema(keys(PolicyFile::KEYS, kind));
    let properties = &mut schema["properties"];
    properties["kind"] = json!({"const": kind.spelled()});
    properties["overrides"]["properties"] = object_schema(keys(OverridesFile::KEYS, kind))["properties"].clone();
    for rule in rules::all() {
        let belongs = |key: &&Key| owner(key.name).is_none_or(|owner| owner == rule);
        let mut own = object_schema(keys(RuleFile::KEYS, kind).filter(belongs));
        own["properties"][CASES] = json!({"$ref": "#/definitions/cases"});
        properties["rules"]["properties"][rule.as_str()] = own;
    }
    schema
}

fn keys(keys: &'static [Key], kind: Kind) -> impl Iterator<Item = &'static Key> {
    keys.iter().filter(move |key| kind == Kind::Cluster || !OF_THE_CLUSTER.contains(&key.name))
}

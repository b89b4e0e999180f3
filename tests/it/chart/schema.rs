//! `values.schema.json`: people write it, except for what concerns policies, which is generated from the reader of policy files.

use std::collections::BTreeSet;
use std::fs;

use interlock_engine::policy_files::schema;
use serde_json::{Map, Value, json};

use super::WRITE;
use crate::harness::binary::repository;

const FILE: &str = "manifests/chart/values.schema.json";

/// The lists of the cluster policy to which `policies.accounts` adds.
const LISTS: [&str; 5] = ["managers", "tools", "controllers", "platform", "pipelines"];

/// The keywords that the template of the chart evaluates, for policies that are text.
const EVALUATED: [&str; 12] = [
    "$ref",
    "additionalProperties",
    "const",
    "enum",
    "items",
    "maxItems",
    "maxLength",
    "minItems",
    "minLength",
    "pattern",
    "required",
    "type",
];

/// Keywords that say nothing about values.
const TEXTS: [&str; 3] = ["default", "description", "examples"];

#[test]
fn the_schema_of_values_has_that_of_policies() {
    let file = repository(FILE);
    let committed = fs::read_to_string(&file).unwrap();
    let mut made: Value = serde_json::from_str(&committed).unwrap();
    let mut policies = schema();
    made["definitions"] = policies["definitions"].take();
    let cluster = &policies["else"]["properties"];
    let lists: Map<_, _> = LISTS.iter().map(|&list| (list.to_owned(), cluster[list].clone())).collect();
    assert!(lists.values().all(|list| list["type"] == json!(["array", "object"])), "{lists:?}");
    let accounts = json!({
        "type": "object",
        "additionalProperties": {"type": ["object", "null"], "additionalProperties": false, "properties": lists},
    });
    let of_policies = &mut made["properties"]["policies"]["properties"];
    of_policies["accounts"] = accounts;
    of_policies["cluster"] = given(policies["else"].take());
    of_policies["namespaces"]["additionalProperties"] = given(policies["then"].take());
    spell_off(&mut made);
    let made = format!("{}\n", serde_json::to_string_pretty(&made).unwrap());
    if std::env::var_os(WRITE).is_some() {
        fs::write(&file, &made).unwrap();
    } else {
        assert!(made == committed, "{FILE} is old; {WRITE}=1 cargo test --test it chart writes it");
    }
}

/// A policy as a value: text, or a map to which the chart adds apiVersion and kind.
fn given(mut policy: Value) -> Value {
    policy.as_object_mut().unwrap().remove("required");
    policy["type"] = json!(["string", "object"]);
    policy
}

/// helm reads an unquoted off as false, as YAML 1.1 does. The chart turns it back.
fn spell_off(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Array(choices)) = members.get_mut("enum")
                && choices.contains(&"off".into())
            {
                choices.push(false.into());
            }
            members.values_mut().for_each(spell_off);
        }
        Value::Array(items) => items.iter_mut().for_each(spell_off),
        _ => {}
    }
}

#[test]
fn the_chart_evaluates_every_keyword_of_the_schema_of_policies() {
    let policies = schema();
    let mut used = BTreeSet::new();
    for branch in ["then", "else"] {
        collect(&policies[branch], &mut used);
    }
    policies["definitions"].as_object().unwrap().values().for_each(|definition| collect(definition, &mut used));
    let known: BTreeSet<_> = EVALUATED.into_iter().chain(TEXTS).chain(["properties"]).map(str::to_owned).collect();
    assert_eq!(used.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
    let template = fs::read_to_string(repository("manifests/chart/templates/_policies.tpl")).unwrap();
    for keyword in EVALUATED.iter().filter(|keyword| **keyword != "additionalProperties") {
        assert!(
            template.contains(&format!("schema.{keyword}")) || template.contains(&format!("\"{keyword}\"")),
            "{keyword}"
        );
    }
}

fn collect(schema: &Value, used: &mut BTreeSet<String>) {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        used.insert(keyword.clone());
        match keyword.as_str() {
            "properties" => value.as_object().unwrap().values().for_each(|schema| collect(schema, used)),
            "items" => collect(value, used),
            // The template reports every unknown key.
            "additionalProperties" => assert_eq!(value, false),
            _ => {}
        }
    }
}

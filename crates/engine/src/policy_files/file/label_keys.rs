//! The keys and values of labels.

use serde_json::{Value, json};

use super::read::{FromNode, FromText, entries, items};
use super::tree::Node;
use crate::managed::MANAGED_BY_LABEL;
use crate::object::is_dns_subdomain;
use crate::policy_files::problem::Problems;

/// The most labels that are copied. Alerts and tickets are routed by one or two.
const MAX_KEYS: usize = 8;

/// The longest name of a label, without its prefix, and the longest prefix, in bytes.
const MAX_NAME_BYTES: usize = 63;
const MAX_PREFIX_BYTES: usize = 253;

/// Keys of labels to copy, without duplicates.
pub(in crate::policy_files) struct LabelKeys;

impl FromNode for LabelKeys {
    type Output = Vec<String>;

    fn schema() -> Value {
        json!({"type": "array", "maxItems": MAX_KEYS, "items": {"type": "string", "pattern": KEY}})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Vec<String>> {
        let items = items(node, problems)?;
        if items.len() > MAX_KEYS {
            problems.at(node.span, format!("{} labels are listed, and at most {MAX_KEYS} are copied", items.len()));
        }
        let mut keys = Vec::new();
        for item in items {
            let Some(key) = LabelKey::read(item, problems) else { continue };
            if key == MANAGED_BY_LABEL {
                let message = format!("Interlock sets the label `{key}` itself; remove it from the list");
                problems.at(item.span, message);
            } else if keys.contains(&key) {
                problems.at(item.span, format!("the label `{key}` is listed twice; remove one"));
            } else {
                keys.push(key);
            }
        }
        Some(keys)
    }
}

/// The pattern of a key, for the schema.
const KEY: &str = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$";

/// The key of a label.
pub(in crate::policy_files) struct LabelKey;

impl FromText for LabelKey {
    type Output = String;

    fn schema() -> Value {
        json!({"type": "string", "pattern": KEY})
    }

    fn parse(text: &str) -> Result<String, String> {
        if is_label_key(text) {
            return Ok(text.to_owned());
        }
        Err(format!("`{text}` is not the key of a label like team or example.com/team"))
    }
}

/// Labels with their values.
pub(in crate::policy_files) struct LabelMap;

impl FromNode for LabelMap {
    type Output = Vec<(String, String)>;

    fn schema() -> Value {
        json!({"type": "object"})
    }

    fn read(node: &Node, problems: &mut Problems<'_>) -> Option<Self::Output> {
        let mut labels = Vec::new();
        for entry in entries(node, problems)? {
            if let Err(message) = LabelKey::parse(&entry.key) {
                problems.at(entry.at, message);
            }
            labels.extend(String::read(&entry.value, problems).map(|value| (entry.key.clone(), value)));
        }
        Some(labels)
    }
}

/// Whether the API server accepts a key: a name, with or without the prefix of a DNS subdomain.
fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let mut ends = [name.bytes().next(), name.bytes().last()].into_iter();
    name.len() <= MAX_NAME_BYTES
        && ends.all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && prefix.is_none_or(|prefix| is_dns_subdomain(prefix, MAX_PREFIX_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy_files::{LoadedPolicies, PolicyFiles};

    fn loaded(list: &str) -> LoadedPolicies {
        let mut files = PolicyFiles::default();
        let text = format!("apiVersion: interlock.dev/v1alpha1\nkind: ClusterPolicy\nreportLabels: {list}\n");
        files.set_cluster("c".into(), text);
        LoadedPolicies::of(&files)
    }

    #[test]
    fn keys_are_those_that_the_api_server_accepts() {
        let (longest, longer) = ("a".repeat(63), "a".repeat(64));
        for key in ["team", "Team_1.x", "example.com/team", "a-b.c/x", "a", &longest] {
            assert!(is_label_key(key), "{key}");
        }
        let prefix = format!("{}/team", "a.".repeat(127) + "a");
        for key in [
            "",
            "-team",
            "team-",
            "my team",
            "Example.com/team",
            "/team",
            "example.com/",
            "a/b/c",
            "a..b/c",
            "tëam",
            &longer,
            &prefix,
        ] {
            assert!(!is_label_key(key), "{key}");
        }
    }

    #[test]
    fn a_wrong_list_of_labels_is_an_error() {
        let errors = |list: &str| loaded(list).problems.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(errors("[team, example.com/route]"), Vec::<String>::new());
        for (list, wanted) in [
            ("[my team]", "c:3:16: `my team` is not the key of a label like team or example.com/team"),
            (
                "[team, app.kubernetes.io/managed-by]",
                "c:3:22: Interlock sets the label `app.kubernetes.io/managed-by` itself",
            ),
            ("[team, team]", "c:3:22: the label `team` is listed twice"),
            ("[a, b, c, d, e, f, g, h, i]", "9 labels are listed, and at most 8 are copied"),
            ("team", "expected a list, got `team`"),
        ] {
            let errors = errors(list);
            assert!(errors.len() == 1 && errors[0].contains(wanted), "{list}: {errors:?}");
        }
        let policies = loaded("[team, example.com/route]").into_policies().unwrap();
        assert_eq!(policies.of("shop").report_labels, ["team", "example.com/route"]);
    }
}

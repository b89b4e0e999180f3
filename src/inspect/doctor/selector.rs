//! Label selectors and lists of strings in webhook configurations and roles.

use serde_json::Value;

/// Whether a selector matches an object with these labels.
pub(super) fn matches<'l>(selector: &Value, label: impl Fn(&str) -> Label<'l>) -> bool {
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut equal = equal.map(|(key, value)| label(key).may_be(value.as_str().unwrap_or_default()));
    equal.all(|expression_matches| expression_matches)
        && selector["matchExpressions"].as_array().into_iter().flatten().all(|it| expression_matches(it, &label))
}

/// A label of the object.
#[derive(Debug, Clone, Copy)]
pub(super) enum Label<'l> {
    Absent,
    Is(&'l str),
    /// Present, with an unknown value.
    Any,
}

impl Label<'_> {
    /// Whether the label may have this value.
    fn may_be(self, value: &str) -> bool {
        match self {
            Self::Absent => false,
            Self::Is(it) => it == value,
            Self::Any => true,
        }
    }
}

fn expression_matches<'l>(expression: &Value, label: &impl Fn(&str) -> Label<'l>) -> bool {
    let label = label(expression["key"].as_str().unwrap_or_default());
    let mut values = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match (expression["operator"].as_str().unwrap_or_default(), label) {
        ("Exists", label) => !matches!(label, Label::Absent),
        ("DoesNotExist", label) => matches!(label, Label::Absent),
        ("In", label) => values.any(|value| label.may_be(value)),
        ("NotIn", Label::Is(it)) => values.all(|value| value != it),
        // An unknown operator matches, so that it excludes nothing.
        _ => true,
    }
}

/// A label of an object.
pub(super) fn label_of<'l>(object: &'l Value, key: &str) -> Label<'l> {
    object["metadata"]["labels"][key].as_str().map_or(Label::Absent, Label::Is)
}

/// A label of a Secret that stores a release record.
pub(super) fn label_of_record(key: &str) -> Label<'static> {
    match key {
        "owner" => Label::Is("helm"),
        "name" | "status" | "version" | "modifiedAt" => Label::Any,
        _ => Label::Absent,
    }
}

/// The strings in a list.
pub(super) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a list has one of these strings.
pub(super) fn contains_any(list: &Value, wanted: &[&str]) -> bool {
    texts(list).any(|text| wanted.contains(&text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_match_as_the_api_server_matches() {
        let shop = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "shop", "team": "blue"}}});
        let name = |operator: &str, values: &[&str]| {
            let expression = json!({"key": "kubernetes.io/metadata.name", "operator": operator, "values": values});
            json!({"matchExpressions": [expression]})
        };
        let of_shop = |selector: &Value| matches(selector, |key| label_of(&shop, key));
        assert!(of_shop(&json!({})) && of_shop(&json!(null)));
        assert!(of_shop(&name("NotIn", &["kube-system"])) && !of_shop(&name("NotIn", &["kube-system", "shop"])));
        assert!(of_shop(&name("In", &["shop"])) && !of_shop(&name("In", &["other"])));
        assert!(!of_shop(&json!({"matchLabels": {"team": "red"}})));
        assert!(of_shop(&json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]})));
        assert!(of_shop(&json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a"]}]})));
        assert!(matches(&json!({"matchLabels": {"owner": "helm"}}), label_of_record));
        assert!(matches(&json!({"matchLabels": {"status": "deployed"}}), label_of_record));
        assert!(!matches(&json!({"matchLabels": {"inject": "yes"}}), label_of_record));
    }
}

//! Label selectors and lists of strings in webhook configurations and roles.

use serde_json::Value;

/// Whether a selector matches an object with these labels.
pub(super) fn matches<'l>(selector: &Value, label: impl Fn(&str) -> Label<'l>) -> bool {
    let mut equal = selector["matchLabels"].as_object().into_iter().flatten();
    equal.all(|(key, value)| label(key).may_be(value.as_str().unwrap_or_default()))
        && each(&selector["matchExpressions"]).all(|it| expression_matches(it, &label))
}

/// Whether a selector matches an object.
pub(super) fn selects(selector: &Value, object: &Value) -> bool {
    matches(selector, |key| object["metadata"]["labels"][key].as_str().map_or(Label::Absent, Label::Is))
}

/// The only label of an object.
pub(super) fn only<'l>(name: &'l str, value: &'l str) -> impl Fn(&str) -> Label<'l> {
    move |key| if key == name { Label::Is(value) } else { Label::Absent }
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
    let mut values = texts(&expression["values"]);
    match (expression["operator"].as_str().unwrap_or_default(), label) {
        ("Exists", label) => !matches!(label, Label::Absent),
        ("DoesNotExist", label) => matches!(label, Label::Absent),
        ("In", label) => values.any(|value| label.may_be(value)),
        ("NotIn", Label::Is(it)) => values.all(|value| value != it),
        // An unknown operator matches, so that it excludes nothing.
        _ => true,
    }
}

/// A label of a Secret that stores a release record.
pub(super) fn label_of_record(key: &str) -> Label<'static> {
    match key {
        "owner" => Label::Is("helm"),
        "name" | "status" | "version" | "modifiedAt" => Label::Any,
        _ => Label::Absent,
    }
}

/// The items of a list; none if it is missing.
pub(super) fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The strings in a list.
pub(super) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    each(list).filter_map(Value::as_str)
}

/// Every combination of one string from each list.
pub(super) fn combinations<const N: usize>(lists: [Vec<&str>; N]) -> Vec<[&str; N]> {
    let mut all = vec![[""; N]];
    for (place, list) in lists.into_iter().enumerate() {
        let longer = all.iter().flat_map(|start| {
            list.iter().map(|text| {
                let mut combination = *start;
                combination[place] = text;
                combination
            })
        });
        all = longer.collect();
    }
    all
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
        let of_shop = |selector: &Value| selects(selector, &shop);
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

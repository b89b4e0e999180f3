//! Fields that Argo CD does not compare: those that an Application ignores, and those that its own settings ignore everywhere.

use std::borrow::Cow;
use std::collections::BTreeMap;

use globset::Glob;
use jsonptr::PointerBuf;
use serde::Deserialize;

use crate::effort::Effort;
use crate::json::null_is_default;
use crate::managed::LeftToOthers;
use crate::object::ObjectKey;
use crate::yaml;

/// The ConfigMap with the settings of Argo CD.
pub(super) const SETTINGS: &str = "argocd-cm";

/// The start of the keys of that ConfigMap whose values are such fields; then `all`, `KIND` or `GROUP_KIND`.
const IGNORED_OF: &str = "resource.customizations.ignoreDifferences.";

/// The characters of a glob of Argo CD.
const GLOB: [char; 5] = ['*', '?', '[', '{', '\\'];

/// The longest glob that is compiled. The longest name of a group has 253 characters.
const MAX_GLOB_BYTES: usize = 256;

/// Steps to compile a glob and match one name, and those of each byte of the glob.
const GLOB_STEPS: u64 = 20_000;
const GLOB_BYTE_STEPS: u64 = 1_000;

/// Fields that Argo CD does not compare.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct IgnoredDifference<'a> {
    /// A glob.
    #[serde(borrow, deserialize_with = "null_is_default")]
    group: Cow<'a, str>,
    /// A glob.
    #[serde(borrow, deserialize_with = "null_is_default")]
    kind: Cow<'a, str>,
    /// Empty for every name.
    #[serde(borrow, deserialize_with = "null_is_default")]
    name: Cow<'a, str>,
    /// Empty for every namespace.
    #[serde(borrow, deserialize_with = "null_is_default")]
    namespace: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    json_pointers: Vec<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "null_is_default", rename = "jqPathExpressions")]
    jq_path_expressions: Vec<Cow<'a, str>>,
    /// The field managers whose fields are not compared.
    #[serde(borrow, deserialize_with = "null_is_default")]
    managed_fields_managers: Vec<Cow<'a, str>>,
}

/// The ConfigMap, with the fields that rules use.
#[derive(Deserialize)]
struct Settings<'a> {
    #[serde(borrow, default, deserialize_with = "null_is_default")]
    data: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

/// What an Application leaves to others of an object.
pub(super) fn in_application(rules: &[IgnoredDifference<'_>], key: &ObjectKey, effort: &Effort) -> LeftToOthers {
    let mut left = LeftToOthers::default();
    rules.iter().filter(|rule| rule.is_about(key, effort)).for_each(|rule| left.extend(rule.left()));
    left
}

/// What the settings of Argo CD, as JSON text of their ConfigMap, leave to others of an object, whatever applies it. Values that cannot
/// be parsed ignore nothing, for Argo CD too.
pub(super) fn everywhere(settings: &str, ObjectKey { group, kind, .. }: &ObjectKey, effort: &Effort) -> LeftToOthers {
    let Ok(Settings { data }) = serde_json::from_str(settings) else { return LeftToOthers::default() };
    let of_kind = if group.is_empty() { kind.clone() } else { format!("{group}_{kind}") };
    let mut left = LeftToOthers::default();
    for text in ["all", of_kind.as_str()].iter().filter_map(|of| data.get(format!("{IGNORED_OF}{of}").as_str())) {
        let read = yaml::parse(text, effort).unwrap_or_default();
        left.extend(IgnoredDifference::deserialize(&read).unwrap_or_default().left());
    }
    left
}

impl IgnoredDifference<'_> {
    fn is_about(&self, key: &ObjectKey, effort: &Effort) -> bool {
        let is_any = |wanted: &str, text: &str| wanted.is_empty() || wanted == text;
        is_any(&self.name, &key.name)
            && is_any(&self.namespace, &key.namespace)
            && matches(&self.kind, &key.kind, effort)
            && matches(&self.group, &key.group, effort)
    }

    /// Of an expression, the field that it starts from counts: everything below is left to others.
    fn left(&self) -> LeftToOthers {
        let given = self.json_pointers.iter().filter_map(|pointer| PointerBuf::parse(pointer.as_ref()).ok());
        let pointers = given.chain(self.jq_path_expressions.iter().map(|expression| start_of(expression))).collect();
        let managers = self.managed_fields_managers.iter().map(|manager| manager.clone().into_owned()).collect();
        LeftToOthers { pointers, managers }
    }
}

/// Whether a glob matches a name. One that does not compile matches nothing, for Argo CD too, and neither does one that takes more work
/// than the review has left.
fn matches(glob: &str, name: &str, effort: &Effort) -> bool {
    if glob == "*" || !glob.contains(GLOB) {
        return glob == "*" || glob == name;
    }
    let steps = GLOB_STEPS + GLOB_BYTE_STEPS * glob.len() as u64;
    let is_affordable = glob.len() <= MAX_GLOB_BYTES && effort.take(steps).is_ok();
    is_affordable && Glob::new(glob).is_ok_and(|glob| glob.compile_matcher().is_match(name))
}

/// The path at the start of a jq expression, such as `.spec.template` of `.spec.template[] | select(.name == "a")`.
fn start_of(expression: &str) -> PointerBuf {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut pointer = PointerBuf::root();
    let mut rest = expression.trim_start();
    while let Some(after) = rest.strip_prefix('.') {
        let end = after.find(|letter| !is_of_name(letter)).unwrap_or(after.len());
        let (name, tail) = after.split_at(end);
        if name.is_empty() {
            break;
        }
        pointer.push_back(name);
        rest = tail;
    }
    pointer
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_expression_leaves_the_field_that_it_starts_from() {
        for (expression, start) in [
            (".spec.template.spec.containers[] | select(.name == \"a\").image", "/spec/template/spec/containers"),
            (".spec.replicas", "/spec/replicas"),
            (".webhooks[]?.clientConfig.caBundle", "/webhooks"),
            ("del(.spec)", ""),
            ("..", ""),
        ] {
            assert_eq!(start_of(expression).as_str(), start, "{expression}");
        }
    }

    #[test]
    fn globs_match_as_argo_cd_matches_them() {
        let effort = Effort::of_review();
        for (glob, name, wanted) in [
            ("*", "", true),
            ("*", "apps", true),
            ("", "apps", false),
            ("apps", "apps", true),
            ("Apps", "apps", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "", false),
            ("Foo*", "ConfigMap", false),
            ("Config?ap", "ConfigMap", true),
            ("[A-D]onfigMap", "ConfigMap", true),
            ("[!A-D]onfigMap", "ConfigMap", false),
            ("{Secret,Config*}", "ConfigMap", true),
            ("{Secret,Role}", "ConfigMap", false),
            ("ConfigMap*", "ConfigMap", true),
            ("[", "[", false),
            ("{Secret", "{Secret", false),
        ] {
            assert_eq!(matches(glob, name, &effort), wanted, "{glob} {name}");
        }
        assert!(!matches(&"?*".repeat(200), &"a".repeat(200), &effort));
        assert!(!matches("Config*", "ConfigMap", &Effort::of(1)));
    }

    #[test]
    fn settings_leave_fields_of_a_kind_or_of_all() {
        let deployment = ObjectKey::new("apps", "Deployment", "shop", "web");
        let pointers = |data: serde_json::Value, key: &ObjectKey| {
            let left = everywhere(&json!({"data": data}).to_string(), key, &Effort::of_review());
            left.pointers.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let key = |of: &str| format!("{IGNORED_OF}{of}");
        let replicas = "jsonPointers:\n- /spec/replicas\n";
        assert_eq!(pointers(json!({key("apps_Deployment"): replicas}), &deployment), ["/spec/replicas"]);
        assert_eq!(pointers(json!({key("all"): replicas}), &deployment), ["/spec/replicas"]);
        assert_eq!(pointers(json!({key("ConfigMap"): replicas}), &deployment), [""; 0]);
        let config = ObjectKey::new("", "ConfigMap", "shop", "web");
        assert_eq!(pointers(json!({key("ConfigMap"): "jqPathExpressions: ['.data.a']"}), &config), ["/data/a"]);
        for broken in ["jsonPointers: {", "- a", "jsonPointers: 7", ""] {
            assert_eq!(pointers(json!({key("ConfigMap"): broken}), &config), [""; 0], "{broken}");
        }
    }
}

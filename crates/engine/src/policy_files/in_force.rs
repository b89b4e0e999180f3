//! The settings in force in a namespace, and the origin of each setting, for `interlock explain`. They are computed
//! from the files on demand, so that reviews do not carry them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::slice;

use serde_json::Value;

use super::changed::shown_case;
use super::file::{
    CLUSTER_ONLY_KEYS, KeySpec, Mapping, Node, OverridesFile, ParsedFile, PolicyFile, RuleFile, TEAM_FREEZES,
    TeamFreezesFile, rule_of_setting,
};
use super::files::{NAMESPACES_DIR, PolicyFiles};
use super::freezes;
use super::loaded::ParsedFiles;
use super::problem::{Layer, PolicyError, Problem, SourceFile, Span};
use crate::policy::{Freeze, NamespaceLabels};
use crate::rule::RuleId;
use crate::rules;

/// The settings in force in a namespace.
#[derive(Debug)]
pub struct InForce {
    /// Whether the namespace has its own file.
    pub has_file: bool,
    pub rules: Vec<RuleInForce>,
    /// The freezes of the cluster that concern the namespace, and its own freezes.
    pub freezes: Vec<FreezeInForce>,
    /// The protected releases, by the policies of the cluster and of the namespace.
    pub protected: Vec<SettingInForce>,
    pub overrides: Vec<SettingInForce>,
    /// The limits of its Freezes, from the cluster policy.
    pub team_freezes: Vec<SettingInForce>,
    /// Lists that only the cluster policy has: users, ignored fields, delegated rules.
    pub lists: Vec<SettingInForce>,
}

/// A rule with its settings in force.
#[derive(Debug, PartialEq, Eq)]
pub struct RuleInForce {
    pub rule: RuleId,
    /// Whether the cluster policy delegates the rule to namespaces.
    pub delegated: bool,
    /// Whether both files set modes, so that the stricter one counts for each request.
    pub both: bool,
    pub settings: Vec<SettingInForce>,
}

/// A freeze that concerns a namespace.
#[derive(Debug)]
pub struct FreezeInForce {
    pub freeze: Freeze,
    pub origin: SettingOrigin,
}

/// A setting in force.
#[derive(Debug, PartialEq, Eq)]
pub struct SettingInForce {
    /// The key, or `case` for a case.
    pub name: &'static str,
    /// As YAML, on one line.
    pub value: String,
    pub origin: SettingOrigin,
}

/// The origin of a setting.
#[derive(Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// No file sets it.
    Shipped,
    /// A file sets it.
    File {
        file: PathBuf,
        /// From 1.
        line: usize,
    },
}

impl SettingOrigin {
    /// The origin of a setting at a location of a file.
    pub(super) fn of(source: &SourceFile, span: Span) -> Self {
        match span.layer {
            Layer::Shipped => Self::Shipped,
            Layer::File => Self::File { file: source.path.clone(), line: source.line(span) },
        }
    }
}

/// The documentation of a setting.
#[derive(Debug, PartialEq, Eq)]
pub struct SettingDoc {
    pub name: &'static str,
    pub about: String,
    /// The accepted values, if they are a fixed list.
    pub choices: Vec<String>,
    /// The value if no file sets it.
    pub default: Option<String>,
}

/// The settings of a rule.
#[must_use]
pub fn settings_of(rule: RuleId) -> Vec<SettingDoc> {
    let settings = keys_of(rule).map(|key| SettingDoc {
        name: key.name,
        about: key.description(),
        choices: choices(key),
        default: default(key, rule),
    });
    settings.collect()
}

/// The settings in force in a namespace.
///
/// # Errors
/// Every problem in the file of the cluster and in that of the namespace.
pub fn in_force(files: &PolicyFiles, namespace: &str, labels: &NamespaceLabels) -> Result<InForce, PolicyError> {
    let ParsedFiles { cluster, namespaces, reading } = ParsedFiles::read(files);
    let cluster = cluster.as_ref();
    let own = own_file(&namespaces, namespace, labels);
    let path =
        own.map_or_else(|| Path::new(NAMESPACES_DIR).join(format!("{namespace}.yaml")), |own| own.source.path.clone());
    let mut problems = reading.problems;
    problems.retain(|Problem { file, .. }| {
        let of_the_cluster = cluster.is_none_or(|parsed| parsed.source.path == *file);
        of_the_cluster || file.ends_with(&path) || file.ends_with(NAMESPACES_DIR)
    });
    if !problems.is_empty() {
        return Err(PolicyError { problems });
    }
    let delegated = cluster.map(|parsed| parsed.file.delegate.items()).unwrap_or_default();
    let rules = rules::all().map(|rule| of_rule(rule, delegated.contains(&rule), cluster, own));
    let overrides = OverridesFile::KEYS.iter().flat_map(|key| {
        let given = [own, cluster].into_iter().flatten().flat_map(|file| file.settings(&["overrides"], key));
        // The patterns of both files apply.
        let count = if key.default.is_some() { 1 } else { 2 };
        given.take(count).collect::<Vec<_>>()
    });
    let top = PolicyFile::KEYS.iter();
    let lists = top.clone().filter(|key| CLUSTER_ONLY_KEYS.contains(&key.name) && key.name != TEAM_FREEZES);
    let mut freezes: Vec<_> = cluster.into_iter().flat_map(|file| file.freezes(None)).collect();
    for found in &mut freezes {
        found.freeze.namespaces.know(labels);
    }
    freezes.extend(own.into_iter().flat_map(|file| file.freezes(Some(namespace))));
    freezes.retain(|found| found.freeze.concerns_namespace(namespace));
    Ok(InForce {
        has_file: own.is_some(),
        rules: rules.collect(),
        freezes,
        protected: settings([cluster, own], &[], top.filter(|key| key.name == "protected")),
        overrides: overrides.collect(),
        team_freezes: settings([cluster, None], &[TEAM_FREEZES], TeamFreezesFile::KEYS),
        lists: settings([cluster, None], &[], lists),
    })
}

/// The file for a namespace: its own, or the first one for several namespaces that is for this one too.
fn own_file<'f>(
    files: &'f BTreeMap<&str, ParsedFile<'f>>,
    namespace: &str,
    labels: &NamespaceLabels,
) -> Option<&'f ParsedFile<'f>> {
    files.get(namespace).filter(|parsed| !parsed.file.is_shared()).or_else(|| {
        let mut shared = files.values().filter(|parsed| parsed.file.is_shared());
        shared.find(|parsed| {
            let mut served = parsed.file.served();
            served.know(labels);
            served.holds(namespace)
        })
    })
}

/// The settings of files below a path of keys.
fn settings<'k>(
    files: [Option<&ParsedFile<'_>>; 2],
    path: &[&str],
    keys: impl IntoIterator<Item = &'k KeySpec>,
) -> Vec<SettingInForce> {
    let keys = keys.into_iter().flat_map(|key| files.into_iter().flatten().flat_map(|file| file.settings(path, key)));
    keys.collect()
}

impl ParsedFile<'_> {
    fn freezes(&self, home: Option<&str>) -> impl Iterator<Item = FreezeInForce> {
        freezes::with_spans(&self.file, home)
            .map(|(span, freeze)| FreezeInForce { freeze, origin: SettingOrigin::of(self.source, span) })
    }

    /// The values of a key below a path of keys. Each item of a list is a value of its own, because a file and the shipped
    /// policy may both have items.
    fn settings(&self, path: &[&str], key: &KeySpec) -> Vec<SettingInForce> {
        let Some(value) = self.tree.at(path).and_then(|mapping| mapping.get(key.name)) else { return Vec::new() };
        let values = if value.listed().is_empty() { slice::from_ref(value) } else { value.listed() };
        values.iter().map(|value| self.setting(key.name, value.to_string(), value)).collect()
    }

    fn setting(&self, name: &'static str, value: String, at: &Node) -> SettingInForce {
        SettingInForce { name, value, origin: SettingOrigin::of(self.source, at.span) }
    }

    fn cases(&self, rule: RuleId) -> Vec<SettingInForce> {
        let cases = self.tree.at(&["rules", rule.as_str(), "cases"]).map(Node::listed).unwrap_or_default();
        cases.iter().map(|case| self.setting("case", shown_case(case), case.get("mode").unwrap_or(case))).collect()
    }

    fn names_modes(&self, rule: RuleId) -> bool {
        let file = self.tree.at(&["rules", rule.as_str()]);
        file.is_some_and(|file| file.get("mode").is_some() || file.get("cases").is_some())
    }
}

fn of_rule(
    rule: RuleId,
    delegated: bool,
    cluster: Option<&ParsedFile<'_>>,
    own: Option<&ParsedFile<'_>>,
) -> RuleInForce {
    let own_modes = own.is_some_and(|file| file.names_modes(rule));
    let mut settings = Vec::new();
    for key in keys_of(rule) {
        if key.name == "cases" {
            // For a delegated rule only the modes of the namespace count.
            let cluster = cluster.filter(|_| !(delegated && own_modes));
            settings.extend(own.into_iter().chain(cluster).flat_map(|file| file.cases(rule)));
            continue;
        }
        let files = own.into_iter().chain(cluster);
        let mut given = files.map(|file| file.settings(&["rules", rule.as_str()], key));
        settings.extend(given.find(|settings| !settings.is_empty()).unwrap_or_default());
    }
    let cluster_cases = cluster.is_some_and(|file| !file.cases(rule).is_empty());
    RuleInForce { rule, delegated, both: own_modes && cluster_cases && !delegated, settings }
}

fn keys_of(rule: RuleId) -> impl Iterator<Item = &'static KeySpec> {
    RuleFile::KEYS.iter().filter(move |key| rule_of_setting(key.name).is_none_or(|owner| owner == rule))
}

fn default(key: &KeySpec, rule: RuleId) -> Option<String> {
    if key.name == "mode" {
        Some(rule.specification().mode.as_str().to_owned())
    } else {
        key.default.map(|spell| spell())
    }
}

fn choices(key: &KeySpec) -> Vec<String> {
    let schema = key.schema();
    let choices = schema["enum"].as_array().into_iter().flatten();
    choices.filter_map(Value::as_str).map(str::to_owned).collect()
}

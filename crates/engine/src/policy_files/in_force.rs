//! The settings in force in a namespace, and the origin of each setting, for `interlock explain`. They are computed
//! from the files on demand, so that reviews do not carry them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::cluster::{places, rule_of};
use super::file::{
    CLUSTER_ONLY_KEYS, GivenKey, KeySpec, Mapping, OverridesFile, PolicyFile, RuleFile, TEAM_FREEZES, TeamFreezesFile,
    rule_of_setting,
};
use super::files::{NAMESPACES_DIR, PolicyFiles};
use super::freezes;
use super::loaded::ParsedFiles;
use super::problem::{Layer, PolicyError, Problem, SourceFile, Span};
use crate::policy::{Freeze, NamespaceCondition, NamespaceLabels};
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
    let mut problems = reading.problems;
    let named = namespaces.get(namespace).filter(|(_, file)| !file.is_shared());
    let own = named
        .or_else(|| namespaces.values().find(|(_, file)| file.is_shared() && served(file, labels).holds(namespace)));
    let path = own.map(|(source, _)| source.path.clone());
    let path = path.unwrap_or_else(|| Path::new(NAMESPACES_DIR).join(format!("{namespace}.yaml")));
    problems.retain(|Problem { file, .. }| {
        let of_the_cluster = cluster.as_ref().is_none_or(|(source, _)| source.path == *file);
        of_the_cluster || file.ends_with(&path) || file.ends_with(NAMESPACES_DIR)
    });
    if !problems.is_empty() {
        return Err(PolicyError { problems });
    }
    let cluster = cluster.as_ref().map(|(source, file)| PolicyFileView { source, file });
    let own = own.map(|(source, file)| PolicyFileView { source, file });
    let delegated = cluster.iter().filter_map(|view| view.file.delegate.as_ref()).flat_map(|at| &at.value);
    let delegated: Vec<_> = delegated.copied().collect();
    let rules = rules::all().map(|rule| of_rule(rule, delegated.contains(&rule), cluster, own));
    let overrides = OverridesFile::KEYS.iter().flat_map(|key| {
        let given = [own, cluster].into_iter().flatten().flat_map(|view| view.overrides(key.name));
        // The patterns of both files apply.
        let count = if key.default.is_some() { 1 } else { 2 };
        given.take(count).collect::<Vec<_>>()
    });
    let of_cluster =
        PolicyFile::KEYS.iter().filter(|key| CLUSTER_ONLY_KEYS.contains(&key.name) && key.name != TEAM_FREEZES);
    let lists = of_cluster.flat_map(|key| cluster.map(|view| view.top(key.name)).unwrap_or_default());
    let of_cluster = cluster.into_iter().flat_map(|view| view.freezes(None)).map(|mut found| {
        found.freeze.namespaces.know(labels);
        found
    });
    let freezes = of_cluster.chain(own.into_iter().flat_map(|view| view.freezes(Some(namespace))));
    let protected = [cluster, own].into_iter().flatten().flat_map(|view| view.top("protected"));
    Ok(InForce {
        protected: protected.collect(),
        has_file: own.is_some(),
        rules: rules.collect(),
        freezes: freezes.filter(|found| found.freeze.concerns_namespace(namespace)).collect(),
        overrides: overrides.collect(),
        team_freezes: cluster.map(PolicyFileView::team_freezes).unwrap_or_default(),
        lists: lists.collect(),
    })
}

/// The namespaces of a file for several namespaces.
fn served(file: &PolicyFile, labels: &NamespaceLabels) -> NamespaceCondition {
    let mut served = places(file.namespaces.as_ref(), file.namespace_selector.as_ref());
    served.know(labels);
    served
}

/// A parsed file with its text, which gives the lines of settings.
#[derive(Clone, Copy)]
pub(super) struct PolicyFileView<'f> {
    pub(super) source: &'f SourceFile,
    pub(super) file: &'f PolicyFile,
}

impl<'f> PolicyFileView<'f> {
    fn rule(self, rule: RuleId) -> Option<&'f RuleFile> {
        rule_of(self.file, rule)
    }

    pub(super) fn origin(self, span: Span) -> SettingOrigin {
        SettingOrigin::of(self.source, span)
    }

    fn freezes(self, home: Option<&str>) -> impl Iterator<Item = FreezeInForce> {
        freezes::with_spans(self.file, home)
            .map(move |(span, freeze)| FreezeInForce { freeze, origin: self.origin(span) })
    }

    fn setting(self, rule: RuleId, name: &str) -> Vec<SettingInForce> {
        self.rule(rule).map(|file| self.setting_in(file.given(), name)).unwrap_or_default()
    }

    fn overrides(self, name: &str) -> Vec<SettingInForce> {
        self.file.overrides.as_ref().map(|file| self.setting_in(file.value.given(), name)).unwrap_or_default()
    }

    fn team_freezes(self) -> Vec<SettingInForce> {
        let given = self.file.team_freezes.iter().flat_map(|file| {
            TeamFreezesFile::KEYS.iter().flat_map(|key| self.setting_in(file.value.given(), key.name))
        });
        given.collect()
    }

    fn top(self, name: &str) -> Vec<SettingInForce> {
        self.setting_in(self.file.given(), name)
    }

    /// The values of a setting. Each item of a list is a value of its own, because a file and the shipped policy may
    /// both have items.
    fn setting_in(self, given: Vec<GivenKey<'_>>, name: &str) -> Vec<SettingInForce> {
        let Some(GivenKey { name, span, text, items, .. }) = given.into_iter().find(|given| given.name == name) else {
            return Vec::new();
        };
        let one = |value: &str, span| SettingInForce { name, value: value.to_owned(), origin: self.origin(span) };
        if items.is_empty() {
            return vec![one(text, span)];
        }
        items.iter().map(|(span, text)| one(text, *span)).collect()
    }

    fn cases(self, rule: RuleId) -> Vec<SettingInForce> {
        let cases = self.rule(rule).and_then(|file| file.cases.as_ref()).into_iter().flat_map(|cases| &cases.value);
        let settings = cases.filter_map(|case| {
            let (when, mode) = (case.when.as_ref()?, case.mode.as_ref()?);
            let value = format!("{} when {}", mode.text, when.text);
            Some(SettingInForce { name: "case", value, origin: self.origin(mode.span) })
        });
        settings.collect()
    }

    fn names_modes(self, rule: RuleId) -> bool {
        self.rule(rule).is_some_and(|file| file.mode.is_some() || file.cases.is_some())
    }
}

fn of_rule(
    rule: RuleId,
    delegated: bool,
    cluster: Option<PolicyFileView<'_>>,
    own: Option<PolicyFileView<'_>>,
) -> RuleInForce {
    let own_modes = own.is_some_and(|view| view.names_modes(rule));
    let mut settings = Vec::new();
    for key in keys_of(rule) {
        if key.name == "cases" {
            // For a delegated rule only the modes of the namespace count.
            let cluster = cluster.filter(|_| !(delegated && own_modes));
            settings.extend(own.into_iter().chain(cluster).flat_map(|view| view.cases(rule)));
            continue;
        }
        let mut given = [own, cluster].into_iter().flatten().map(|view| view.setting(rule, key.name));
        settings.extend(given.find(|settings| !settings.is_empty()).unwrap_or_default());
    }
    let cluster_cases = cluster.is_some_and(|view| !view.cases(rule).is_empty());
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

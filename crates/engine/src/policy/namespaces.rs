//! Conditions on namespaces: on their names, and on the labels of the Namespace.
//!
//! Labels change while the policy files stay the same. So a selector carries the set of the namespaces that it selects,
//! and [`Policies::knowing`](super::Policies::knowing) updates the set when labels change. Rules only use the set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::globs::{Globs, matches};

/// The labels of a Namespace.
pub type Labels = BTreeMap<String, String>;

/// The labels of every Namespace, by its name.
pub type NamespaceLabels = BTreeMap<String, Arc<Labels>>;

/// A label selector of Kubernetes: an object must meet every requirement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(pub(crate) Vec<LabelRequirement>);

/// A requirement of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRequirement {
    pub(crate) key: String,
    pub(crate) operator: LabelOperator,
    /// The values for `In` and `NotIn`.
    pub(crate) values: Vec<String>,
}

/// The comparison of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOperator {
    In,
    /// Also matches objects without the label, as in Kubernetes.
    NotIn,
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    /// Whether an object with these labels is selected.
    #[must_use]
    pub fn selects(&self, labels: &Labels) -> bool {
        self.0.iter().all(|LabelRequirement { key, operator, values }| {
            let value = labels.get(key);
            match operator {
                LabelOperator::In => value.is_some_and(|value| values.contains(value)),
                LabelOperator::NotIn => value.is_none_or(|value| !values.contains(value)),
                LabelOperator::Exists => value.is_some(),
                LabelOperator::DoesNotExist => value.is_none(),
            }
        })
    }
}

/// In kubectl's notation: `env=prod,tier in (a,b),!temporary`.
impl fmt::Display for LabelSelector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, LabelRequirement { key, operator, values }) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let listed = values.join(",");
            match operator {
                LabelOperator::In if values.len() == 1 => write!(out, "{comma}{key}={listed}")?,
                LabelOperator::In => write!(out, "{comma}{key} in ({listed})")?,
                LabelOperator::NotIn if values.len() == 1 => write!(out, "{comma}{key}!={listed}")?,
                LabelOperator::NotIn => write!(out, "{comma}{key} notin ({listed})")?,
                LabelOperator::Exists => write!(out, "{comma}{key}")?,
                LabelOperator::DoesNotExist => write!(out, "{comma}!{key}")?,
            }
        }
        Ok(())
    }
}

/// A condition on a namespace. A part that is not set holds for every namespace, and for objects without one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceCondition {
    names: Option<Globs>,
    selected: Option<Selected>,
    /// Namespaces for which the condition never holds.
    except: Arc<BTreeSet<String>>,
}

/// A selector, and the namespaces that match it by the known labels.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Selected {
    by: LabelSelector,
    namespaces: Arc<BTreeSet<String>>,
}

impl NamespaceCondition {
    /// Both conditions must hold. No labels are known yet.
    #[must_use]
    pub fn new(names: Option<Globs>, by: Option<LabelSelector>) -> Self {
        let selected = by.map(|by| Selected { by, namespaces: Arc::default() });
        Self { names, selected, except: Arc::default() }
    }

    /// The same condition, without some namespaces.
    #[must_use]
    pub(crate) fn except(self, except: Arc<BTreeSet<String>>) -> Self {
        Self { except, ..self }
    }

    /// Whether the condition holds for a namespace. The namespace is empty for objects without one, which no selector
    /// selects.
    #[must_use]
    pub fn holds(&self, namespace: &str) -> bool {
        matches(self.names.as_ref(), Some(namespace))
            && self.selected.as_ref().is_none_or(|selected| selected.namespaces.contains(namespace))
            && !self.except.contains(namespace)
    }

    /// Computes which namespaces match the label selector. Returns whether there is a selector.
    pub(crate) fn know(&mut self, labels: &NamespaceLabels) -> bool {
        let Some(Selected { by, namespaces }) = &mut self.selected else { return false };
        let found = labels.iter().filter(|(_, labels)| by.selects(labels));
        *namespaces = Arc::new(found.map(|(namespace, _)| namespace.clone()).collect());
        true
    }
}

/// Values from the policies of namespaces. A policy file can apply to one namespace or to several.
#[derive(Debug, Clone)]
pub struct ByNamespace<T> {
    pub(crate) own: BTreeMap<String, T>,
    /// The first entry with a matching condition is used.
    pub(crate) shared: Vec<(NamespaceCondition, T)>,
}

impl<T> Default for ByNamespace<T> {
    fn default() -> Self {
        Self { own: BTreeMap::new(), shared: Vec::new() }
    }
}

impl<T> ByNamespace<T> {
    /// The value for a namespace.
    #[must_use]
    pub fn get(&self, namespace: &str) -> Option<&T> {
        self.own.get(namespace).or_else(|| {
            let mut shared = self.shared.iter();
            shared.find(|(namespaces, _)| namespaces.holds(namespace)).map(|(_, value)| value)
        })
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.own.values().chain(self.shared.iter().map(|(_, value)| value))
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.own.values_mut().chain(self.shared.iter_mut().map(|(_, value)| value))
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.shared.is_empty()
    }

    /// Maps the values, and drops entries without a result.
    pub(super) fn filter_map<'t, U>(&'t self, of: impl Fn(&'t T) -> Option<U>) -> ByNamespace<U> {
        let own = self.own.iter().filter_map(|(namespace, value)| Some((namespace.clone(), of(value)?)));
        let shared = self.shared.iter().filter_map(|(namespaces, value)| Some((namespaces.clone(), of(value)?)));
        ByNamespace { own: own.collect(), shared: shared.collect() }
    }

    /// Computes which namespaces match the label selectors. Returns whether there is a selector.
    pub(super) fn know(&mut self, labels: &NamespaceLabels) -> bool {
        know_all(self.shared.iter_mut().map(|(namespaces, _)| namespaces), labels)
    }
}

/// Computes which namespaces match the label selectors of conditions. Returns whether there is a selector.
pub(super) fn know_all<'c>(
    conditions: impl Iterator<Item = &'c mut NamespaceCondition>,
    labels: &NamespaceLabels,
) -> bool {
    conditions.fold(false, |uses_labels, condition| condition.know(labels) | uses_labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(all: &[(&str, &str)]) -> Labels {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn requirement(key: &str, operator: LabelOperator, values: &[&str]) -> LabelRequirement {
        LabelRequirement { key: key.to_owned(), operator, values: values.iter().map(|it| (*it).to_owned()).collect() }
    }

    #[test]
    fn a_selector_selects_and_is_written_as_in_kubernetes() {
        use LabelOperator::{DoesNotExist, Exists, In, NotIn};
        let prod = labels(&[("env", "prod"), ("team", "a")]);
        for (operator, key, values, wanted, text) in [
            (In, "env", &["prod"][..], true, "env=prod"),
            (In, "env", &["dev", "prod"], true, "env in (dev,prod)"),
            (In, "zone", &["a"], false, "zone=a"),
            (NotIn, "env", &["prod"], false, "env!=prod"),
            (NotIn, "env", &["dev", "test"], true, "env notin (dev,test)"),
            (NotIn, "zone", &["a"], true, "zone!=a"),
            (Exists, "team", &[], true, "team"),
            (Exists, "zone", &[], false, "zone"),
            (DoesNotExist, "team", &[], false, "!team"),
            (DoesNotExist, "zone", &[], true, "!zone"),
        ] {
            let selector = LabelSelector(vec![requirement(key, operator, values)]);
            assert_eq!((selector.selects(&prod), selector.to_string().as_str()), (wanted, text));
        }
        let both = LabelSelector(vec![requirement("env", In, &["prod"]), requirement("team", DoesNotExist, &[])]);
        assert!(!both.selects(&prod) && both.selects(&labels(&[("env", "prod")])));
        assert_eq!(both.to_string(), "env=prod,!team");
    }

    #[test]
    fn a_condition_holds_by_name_and_by_known_labels() {
        let by = LabelSelector(vec![requirement("env", LabelOperator::In, &["prod"])]);
        let mut condition = NamespaceCondition::new(Some(Globs::new(["shop-*"]).unwrap()), Some(by));
        assert!(!condition.holds("shop-a"), "its labels are not known");
        let env = |value: &str| Arc::new(labels(&[("env", value)]));
        let mut known = NamespaceLabels::from([
            ("shop-a".to_owned(), env("prod")),
            ("shop-b".to_owned(), env("dev")),
            ("bank".to_owned(), env("prod")),
        ]);
        condition.know(&known);
        assert!(condition.holds("shop-a"));
        assert!(!condition.holds("shop-b") && !condition.holds("bank") && !condition.holds(""));
        known.insert("shop-a".to_owned(), env("dev"));
        condition.know(&known);
        assert!(!condition.holds("shop-a"));
        assert!(NamespaceCondition::default().holds("") && !NamespaceCondition::default().know(&known));
    }

    #[test]
    fn an_own_policy_counts_before_a_shared_one() {
        let named = |glob| NamespaceCondition::new(Some(Globs::new([glob]).unwrap()), None);
        let all = ByNamespace {
            own: BTreeMap::from([("shop".to_owned(), 1)]),
            shared: vec![(named("shop*"), 2), (named("*"), 3)],
        };
        assert_eq!([all.get("shop"), all.get("shop-a"), all.get("bank")], [Some(&1), Some(&2), Some(&3)]);
        assert_eq!(all.values().sum::<i32>(), 6);
    }
}

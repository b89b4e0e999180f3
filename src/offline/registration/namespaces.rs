//! The namespaceSelector of an entry. The name of a namespace is one of its labels, and often the only known label.

use std::collections::BTreeMap;

use interlock_engine::review::{Operation, Request};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{ParseExpressionError, Selector, SelectorExt};

use super::objects::labels_of;
use super::rules::is_namespace;
use super::sending::{Doubt, NotSent, Sending};

/// The label that the API server sets on every namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The labels of a namespace by its name; `None` if the namespace is unknown.
pub(crate) type NamespaceLabels<'n> = &'n dyn Fn(&str) -> Option<BTreeMap<String, String>>;

/// A namespaceSelector. Expressions that need only the name are separate.
pub(super) struct NamespaceSelector {
    by_name: Selector,
    by_labels: Selector,
}

impl NamespaceSelector {
    pub(super) fn of(selector: LabelSelector) -> Result<Self, ParseExpressionError> {
        let (mut by_name, mut by_labels) = (LabelSelector::default(), LabelSelector::default());
        for (key, value) in selector.match_labels.unwrap_or_default() {
            let part = if key == NAME_LABEL { &mut by_name } else { &mut by_labels };
            part.match_labels.get_or_insert_default().insert(key, value);
        }
        for expression in selector.match_expressions.unwrap_or_default() {
            let part = if expression.key == NAME_LABEL { &mut by_name } else { &mut by_labels };
            part.match_expressions.get_or_insert_default().push(expression);
        }
        Ok(Self { by_name: by_name.try_into()?, by_labels: by_labels.try_into()? })
    }

    /// Whether the selector accepts the namespace of a request. It accepts every object without a namespace, except Namespaces.
    pub(super) fn sending(&self, request: &Request<'_>, labels: NamespaceLabels<'_>) -> Sending {
        let Some(name) = namespace(request) else { return Sending::Sent };
        if !self.by_name.selects_all() && !self.by_name.matches(&BTreeMap::from([(NAME_LABEL.into(), name.into())])) {
            return Sending::not_sent(NotSent::Namespace);
        }
        if self.by_labels.selects_all() {
            return Sending::Sent;
        }
        match own_labels(request).or_else(|| labels(name)) {
            None => Sending::Unsure(Doubt::NamespaceLabels),
            Some(labels) if self.by_labels.matches(&labels) => Sending::Sent,
            Some(_) => Sending::not_sent(NotSent::Namespace),
        }
    }
}

/// The namespace of a request. The namespace of a Namespace is the Namespace itself.
fn namespace<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    let given = request.namespace.as_deref().filter(|name| !name.is_empty());
    given.or_else(|| request.name.as_deref().filter(|_| is_namespace(request)))
}

/// The labels in the write of a Namespace.
fn own_labels(request: &Request<'_>) -> Option<BTreeMap<String, String>> {
    let is_written = matches!(request.operation, Operation::Create | Operation::Update);
    let is_own = is_namespace(request) && request.sub_resource().is_none() && is_written;
    labels_of(request.object.filter(|_| is_own)?)
}

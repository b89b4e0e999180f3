//! One entry of the registration.

use std::sync::Arc;

use cel::Env;
use interlock_engine::review::Request;
use k8s_openapi::api::admissionregistration::v1::{RuleWithOperations, ValidatingWebhook};
use kube::core::Selector;

use super::bad::BadRegistration;
use super::condition::Condition;
use super::namespaces::{NamespaceLabels, NamespaceSelector};
use super::objects::Objects;
use super::rules;
use super::sending::{Doubt, NotSent, Sending};

/// An entry. The API server sends a request that the rules, both selectors and all conditions accept.
pub(super) struct Entry {
    rules: Vec<RuleWithOperations>,
    /// Whether the rules accept all versions of their resources.
    is_equivalent: bool,
    namespaces: NamespaceSelector,
    objects: Selector,
    conditions: Vec<Condition>,
    env: Arc<Env>,
}

impl Entry {
    pub(super) fn of(webhook: ValidatingWebhook, env: &Arc<Env>) -> Result<Self, BadRegistration> {
        let ValidatingWebhook { name, rules, match_policy, namespace_selector, object_selector, .. } = webhook;
        let bad = |what: String, why: String| BadRegistration::Entry { entry: name.clone(), what, why };
        let namespaces = NamespaceSelector::of(namespace_selector.unwrap_or_default())
            .map_err(|error| bad("namespaceSelector".into(), error.to_string()))?;
        let objects = Selector::try_from(object_selector.unwrap_or_default())
            .map_err(|error| bad("objectSelector".into(), error.to_string()))?;
        let mut conditions = Vec::new();
        for (place, condition) in webhook.match_conditions.unwrap_or_default().iter().enumerate() {
            let compiled = Condition::compile(env, place, &condition.name, &condition.expression);
            conditions.push(compiled.map_err(|why| bad(format!("match condition {}", condition.name), why))?);
        }
        let is_equivalent = match_policy.as_deref() != Some("Exact");
        let rules = rules.unwrap_or_default();
        Ok(Self { rules, is_equivalent, namespaces, objects, conditions, env: Arc::clone(env) })
    }

    /// Whether the entry sends a request. Most requests are decided without their objects, so these checks come first.
    pub(super) fn sending(
        &self,
        request: &Request<'_>,
        namespaces: NamespaceLabels<'_>,
        objects: &Objects<'_>,
    ) -> Sending {
        self.sending_by_head(request, namespaces, objects)
            .and(|| self.by_labels(objects))
            .and(|| self.by_conditions(objects, true))
    }

    /// Whether the entry may send a request, from the checks that need no object.
    pub(super) fn sending_by_head(
        &self,
        request: &Request<'_>,
        namespaces: NamespaceLabels<'_>,
        objects: &Objects<'_>,
    ) -> Sending {
        if !rules::take(&self.rules, self.is_equivalent, request) {
            return Sending::not_sent(NotSent::Rules);
        }
        self.namespaces.sending(request, namespaces).and(|| self.by_conditions(objects, false))
    }

    fn by_labels(&self, objects: &Objects<'_>) -> Sending {
        if objects.are_selected(&self.objects) { Sending::Sent } else { Sending::not_sent_by_objects(NotSent::Labels) }
    }

    /// Evaluates the conditions that read the objects, or the other conditions. As in the API server, a false condition decides,
    /// even if another condition cannot be evaluated.
    fn by_conditions(&self, objects: &Objects<'_>, reads_objects: bool) -> Sending {
        let mut sending = Sending::Sent;
        for condition in self.conditions.iter().filter(|it| it.reads_objects == reads_objects) {
            match condition.holds(&self.env, &objects.variables) {
                Some(true) => {}
                Some(false) => {
                    let why = NotSent::Condition(condition.place, Arc::clone(&condition.name));
                    return Sending::NotSent { why, is_certain: !reads_objects };
                }
                None => sending = Sending::Unsure(Doubt::Condition(Arc::clone(&condition.name))),
            }
        }
        sending
    }
}

//! Evaluates the registration as the API server does: which requests the API server sends to Interlock.
//!
//! A log has the requests of a complete cluster, and the API server sends few of these. The files of the registration are
//! evaluated, because a copy of their conditions in Rust would diverge from them.

mod bad;
mod condition;
mod entry;
mod namespaces;
mod objects;
mod read;
mod rules;
mod sending;
mod variables;

pub(crate) use bad::BadRegistration;
pub(crate) use namespaces::NamespaceLabels;
pub(crate) use objects::labels_of;
pub(crate) use sending::{Doubt, NotSent, Sending};

use interlock_engine::review::Request;

use entry::Entry;
use objects::Objects;

/// The entries of a ValidatingWebhookConfiguration that belong to Interlock.
pub(crate) struct Registration {
    entries: Vec<Entry>,
}

impl Registration {
    /// The entries of the manifests, for an installation in the namespace `interlock-system`.
    pub(crate) fn shipped() -> Result<Self, BadRegistration> {
        Self::parse(include_str!("../../manifests/base/validating-webhooks.yaml"))
    }

    /// Whether the API server sends a request.
    pub(crate) fn sending(&self, request: &Request<'_>, namespaces: NamespaceLabels<'_>) -> Sending {
        let objects = Objects::of(request);
        self.first_sent(|entry| entry.sending(request, namespaces, &objects))
    }

    /// Whether the API server may send a request whose objects are unknown.
    pub(crate) fn may_send(&self, head: &Request<'_>, namespaces: NamespaceLabels<'_>) -> Sending {
        let objects = Objects::of(head);
        self.first_sent(|entry| entry.sending_by_head(head, namespaces, &objects))
    }

    /// One entry that sends the request is enough. If no entry does, the reason of the closest entry counts.
    fn first_sent(&self, sending: impl Fn(&Entry) -> Sending) -> Sending {
        let (mut doubt, mut closest, mut all_certain) = (None, NotSent::Rules, true);
        for entry in &self.entries {
            match sending(entry) {
                Sending::Sent => return Sending::Sent,
                Sending::Unsure(why) => doubt = doubt.or(Some(why)),
                Sending::NotSent { why, is_certain } => {
                    closest = closest.max(why);
                    all_certain &= is_certain;
                }
            }
        }
        doubt.map_or(Sending::NotSent { why: closest, is_certain: all_certain }, Sending::Unsure)
    }
}

#[cfg(test)]
mod tests;

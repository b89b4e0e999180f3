//! Requests that the registration does not send are not judged.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_engine::json::RawObject;
use interlock_engine::object::ObjectKey;
use interlock_engine::review::{BadReview, Request};
use jiff::Timestamp;

use super::{Replay, Replayed};
use crate::offline::registration::{NotSent, Registration, Sending, labels_of};

impl Replay {
    /// Adds a registration. Only the requests that it sends are judged, and all others take place as recorded.
    pub(crate) fn registered(self, registration: Arc<Registration>) -> Self {
        Self { registration: Some(registration), ..self }
    }

    /// Judges a request that the registration sends, and applies any other request. `unseen`: the object before the write is
    /// unknown.
    pub(super) async fn request(
        &mut self,
        line: usize,
        recorded: Request<'_>,
        at: Option<Timestamp>,
        unseen: bool,
    ) -> Result<Option<Replayed>, BadReview> {
        self.appliers.note_write(&recorded);
        let sending = self.registration.as_ref().map(|it| it.sending(&recorded, &|name| self.namespace_labels(name)));
        let not_sent = match sending {
            None | Some(Sending::Sent) => None,
            Some(Sending::Unsure(why)) => {
                self.gaps.count_may_be_sent(&why);
                None
            }
            Some(Sending::NotSent { why, is_certain }) => Some((why, is_certain)),
        };
        // The object before a write can decide that the request is sent.
        let is_certain = not_sent.as_ref().is_some_and(|(_, is_certain)| *is_certain || !unseen);
        self.gaps.unseen += usize::from(unseen && !is_certain);
        let Some((why, _)) = not_sent else { return self.review(line, recorded, at).await.map(Some) };
        if is_certain {
            self.gaps.count_not_sent(&why);
        }
        self.now = at.unwrap_or(self.now);
        self.memory.apply(&recorded);
        Ok(None)
    }

    /// Whether the registration may send a request whose objects are unknown. Otherwise counts the request.
    pub(super) fn may_be_sent(&mut self, head: &Request<'_>) -> bool {
        let sending = self.registration.as_ref().map(|it| it.may_send(head, &|name| self.namespace_labels(name)));
        if let Some(Sending::NotSent { why, .. }) = sending {
            self.gaps.count_not_sent(&why);
            return false;
        }
        true
    }

    pub(super) fn count_never_sent(&mut self) {
        if self.registration.is_some() {
            self.gaps.count_not_sent(&NotSent::Rules);
        }
    }

    /// The labels of a namespace; `None` if the input does not have the namespace.
    fn namespace_labels(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let namespace = self.memory.get(&ObjectKey::new("", "Namespace", "", name))?;
        labels_of(RawObject::delimited(&namespace))
    }
}

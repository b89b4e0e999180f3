//! What objects have lost, in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::evidence::KnownLosses;
use crate::losses::{Loss, Losses};
use crate::object::ObjectKey;

/// The most objects whose losses are kept.
const MOST_OBJECTS: usize = 1_000;

/// The losses of each object, in a version for each; `None` if none are noted.
#[derive(Debug, Default)]
pub(super) struct NotedLosses(Option<Mutex<ByObject>>);

type ByObject = BTreeMap<ObjectKey, (u64, Losses)>;

impl NotedLosses {
    pub(super) fn noting() -> Self {
        Self(Some(Mutex::default()))
    }

    pub(super) fn of(&self, object: &ObjectKey) -> Option<KnownLosses> {
        let by_object = self.lock()?;
        let (version, losses) = by_object.get(object).cloned().unwrap_or_default();
        Some(KnownLosses { losses, version: version.to_string() })
    }

    /// Returns whether what was known still held. If not, nothing is noted.
    pub(super) fn note(&self, loss: &Loss, known: &KnownLosses, admitted: bool, now: Timestamp) -> bool {
        let Some(mut by_object) = self.lock() else { return true };
        if by_object.len() >= MOST_OBJECTS && !by_object.contains_key(&loss.of) {
            by_object.pop_first();
        }
        let (version, losses) = by_object.entry(loss.of.clone()).or_default();
        if version.to_string() != known.version {
            return false;
        }
        (*version, *losses) = (*version + 1, losses.with(loss, admitted, now));
        by_object.retain(|_, (_, losses)| !losses.is_outdated(now));
        true
    }

    fn lock(&self) -> Option<MutexGuard<'_, ByObject>> {
        self.0.as_ref().map(|noted| noted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Clone for NotedLosses {
    fn clone(&self) -> Self {
        Self(self.lock().map(|by_object| Mutex::new(by_object.clone())))
    }
}

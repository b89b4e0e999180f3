//! The objects of a request as an entry sees them: their labels for its objectSelector, and the variables of its conditions.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use interlock_engine::json::RawObject;
use interlock_engine::review::Request;
use kube::core::{Selector, SelectorExt};
use serde::Deserialize;

use super::variables::Variables;

/// The object and the old object. Each is parsed at most once for all entries, and only on demand.
pub(super) struct Objects<'r> {
    request: &'r Request<'r>,
    labels: OnceCell<Vec<BTreeMap<String, String>>>,
    pub(super) variables: Variables<'r>,
}

impl<'r> Objects<'r> {
    pub(super) fn of(request: &'r Request<'r>) -> Self {
        Self { request, labels: OnceCell::new(), variables: Variables::of(request) }
    }

    /// Whether a selector accepts the object or the old object.
    pub(super) fn are_selected(&self, selector: &Selector) -> bool {
        selector.selects_all() || self.labels().iter().any(|labels| selector.matches(labels))
    }

    fn labels(&self) -> &[BTreeMap<String, String>] {
        self.labels.get_or_init(|| {
            let objects = [self.request.object, self.request.old_object].into_iter().flatten();
            objects.map(|object| labels_of(object).unwrap_or_default()).collect()
        })
    }
}

#[derive(Deserialize)]
struct Labelled {
    #[serde(default)]
    metadata: LabelledMetadata,
}

#[derive(Default, Deserialize)]
struct LabelledMetadata {
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

/// The labels of an object; `None` if they have a wrong shape, which no API server stores.
pub(crate) fn labels_of(object: RawObject<'_>) -> Option<BTreeMap<String, String>> {
    let object: Labelled = serde_json::from_str(object.get()).ok()?;
    Some(object.metadata.labels.unwrap_or_default())
}

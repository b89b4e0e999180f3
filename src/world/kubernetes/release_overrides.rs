//! ReleaseOverrides: a copy of all, and those of one release as the API server has them.

use std::collections::HashMap;
use std::sync::Arc;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde::Deserialize;
use tokio::task::JoinSet;

use super::custom::{Custom, CustomKind};
use super::reach::Reach;
use super::watch::Feed;
use crate::engine::overrides::{self, CREATED_BY, Override, OverrideSpec};
use crate::readiness::Gate;

const RELEASE_OVERRIDES: CustomKind =
    CustomKind { group: overrides::GROUP, kind: overrides::KIND, definition: overrides::DEFINITION };

/// How many are read at a time. Each is a few hundred bytes, and those that have expired stay until somebody deletes them.
const PAGE: u32 = 500;

/// What is known of the overrides of a cluster. Nothing, until it is followed.
#[derive(Debug)]
pub(super) struct ReleaseOverrides(Arc<Custom<Kept>>);

impl ReleaseOverrides {
    /// Of a cluster that nobody watches yet.
    pub(super) fn new() -> Self {
        Self(Arc::new(Custom::new(RELEASE_OVERRIDES)))
    }

    /// Those of a release in a namespace, as far as they are known.
    pub(super) fn of(&self, namespace: &str, release: &str) -> Vec<Override> {
        let of_release = |it: &&Override| it.namespace == namespace && it.spec.release == release;
        self.0.read(|kept| kept.0.values().filter(of_release).cloned().collect()).unwrap_or_default()
    }

    /// How many there are of a sort, as far as they are known.
    pub(super) fn count(&self, sort: impl Fn(&Override) -> bool) -> usize {
        self.0.read(|kept| kept.0.values().filter(|it| sort(it)).count()).unwrap_or_default()
    }

    /// Follows them and their definition, for ever.
    pub(super) fn follow(&self, client: &Client, reach: &Reach, gate: Gate, tasks: &mut JoinSet<()>) {
        tasks.spawn(Arc::clone(&self.0).follow_definition(client.clone()));
        tasks.spawn(Arc::clone(&self.0).follow::<DynamicObject>(client.clone(), reach.clone(), gate));
    }
}

/// Those of a release, as the API server has them: a LIST by field, page by page. Those that do not read open nothing.
///
/// # Errors
/// When the API server does not answer, or not with a list; 404 where the definition is not installed.
pub(super) async fn list(client: &Client, namespace: &str, release: &str) -> kube::Result<Vec<Override>> {
    let kind = GroupVersionKind::gvk(overrides::GROUP, overrides::VERSION, overrides::KIND);
    let resource = ApiResource::from_gvk_with_plural(&kind, overrides::PLURAL);
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let mut page = ListParams::default().fields(&format!("spec.release={release}")).limit(PAGE);
    let mut found = Vec::new();
    loop {
        let list = api.list(&page).await?;
        found.extend(list.items.iter().filter_map(read));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// Reads an override; `None` where it has another shape, as one of a later version may have.
pub(crate) fn read(object: &DynamicObject) -> Option<Override> {
    let metadata = &object.metadata;
    Some(Override {
        namespace: metadata.namespace.clone()?,
        name: metadata.name.clone()?,
        created: metadata.creation_timestamp.as_ref().map(|time| time.0),
        created_by: metadata.annotations.as_ref().and_then(|annotations| annotations.get(CREATED_BY)).cloned(),
        spec: OverrideSpec::deserialize(object.data.get("spec")?).ok()?,
    })
}

/// Every override that reads, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Kept(HashMap<(String, String), Override>);

impl Feed<DynamicObject> for Kept {
    fn fresh(&self) -> Self {
        Self::default()
    }

    fn apply(&mut self, object: &DynamicObject) {
        match read(object) {
            Some(read) => _ = self.0.insert(key(object), read),
            None => self.delete(object),
        }
    }

    fn delete(&mut self, object: &DynamicObject) {
        self.0.remove(&key(object));
    }
}

fn key(object: &DynamicObject) -> (String, String) {
    let metadata = &object.metadata;
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::world::kubernetes::definition::Definition;

    fn object(name: &str, release: &str, rule: &str) -> DynamicObject {
        let object = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride",
            "metadata": {
                "name": name, "namespace": "shop", "creationTimestamp": "2026-11-21T10:00:00Z",
                "annotations": {CREATED_BY: "alice"},
            },
            "spec": {"release": release, "rules": [rule], "reason": "incident", "expiresAt": "2026-11-21T11:00:00Z"},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn they_are_found_by_release_while_the_copy_is_whole() {
        let known = ReleaseOverrides::new();
        assert!(known.of("shop", "web").is_empty());
        known.0.definition.send_replace(Definition::Installed { uid: "a".to_owned() });
        let mut kept = Kept::default();
        kept.apply(&object("one", "web", "manual-edit"));
        kept.apply(&object("two", "other", "manual-edit"));
        kept.apply(&object("three", "web", "a-rule-of-later"));
        known.0.objects.replace(kept);
        let found = known.of("shop", "web");
        assert_eq!(found.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["one"]);
        assert_eq!(found[0].created_by.as_deref(), Some("alice"));
        assert!(found[0].created.is_some());
        assert_eq!((known.count(|_| true), known.count(|it| it.spec.release == "other")), (2, 1));
        known.0.objects.clear(Kept::default());
        assert!(known.of("shop", "web").is_empty());
    }

    #[test]
    fn they_come_and_go() {
        let mut kept = Kept::default();
        kept.apply(&object("one", "web", "manual-edit"));
        kept.apply(&object("one", "web", "of another shape"));
        assert!(kept.0.is_empty());
        kept.apply(&object("one", "web", "manual-edit"));
        kept.delete(&object("one", "web", "manual-edit"));
        assert!(kept.0.is_empty());
    }
}

//! ReleaseOverrides: a copy of all overrides, and live reads for one release.

use std::collections::HashMap;

use interlock_engine::answers::read::override_of;
use interlock_engine::release_override::{self, Override, OverrideSpec};
use kube::Client;
use kube::api::ListParams;

use super::custom::{CustomFeed, CustomKind, CustomObjects};
use super::intake::Projected;
use super::namespaced_name::NamespacedName;
use super::own_objects::OwnKind;
use super::watch::Feed;

/// The overrides of a cluster.
pub(super) type ReleaseOverrides = CustomObjects<OverridesByName>;

impl ReleaseOverrides {
    /// The known overrides of a release in a namespace.
    pub(super) fn of(&self, namespace: &str, release: &str) -> Vec<Override> {
        let found = self.read(|overrides| {
            let found = overrides.all().filter(|it| it.namespace == namespace && it.spec.release == release);
            found.cloned().collect()
        });
        found.unwrap_or_default()
    }

    /// The matching overrides, as in [`Known::overrides_that`](crate::world::Known::overrides_that).
    pub(super) fn that(&self, matches: &dyn Fn(&Override) -> bool, limit: usize) -> Option<(Vec<Override>, usize)> {
        self.read(|overrides| {
            let mut matching: Vec<_> = overrides.all().filter(|it| matches(it)).collect();
            matching.sort_unstable_by_key(|it| (it.spec.expires_at, &*it.namespace, &*it.name));
            (matching.iter().take(limit).map(|it| (*it).clone()).collect(), matching.len())
        })
    }

    /// The number of known overrides that match.
    pub(super) fn count(&self, matches: impl Fn(&Override) -> bool) -> usize {
        self.read(|overrides| overrides.all().filter(|it| matches(it)).count()).unwrap_or_default()
    }

    /// The known overrides that match and are not being deleted: at most `limit`, ordered by namespace and name, starting behind
    /// `after`.
    pub(super) fn to_delete(
        &self,
        after: Option<&(String, String)>,
        limit: usize,
        matches: impl Fn(&Override) -> bool,
    ) -> Vec<(String, String)> {
        let after = after.map(|(namespace, name)| (&**namespace, &**name));
        let found = self.read(|overrides| {
            let mut found: Vec<_> = overrides
                .0
                .values()
                .filter(|known| !known.is_being_deleted && matches(&known.read))
                .map(|KnownOverride { read, .. }| (&*read.namespace, &*read.name))
                .filter(|it| after.is_none_or(|after| *it > after))
                .collect();
            found.sort_unstable();
            found.into_iter().take(limit).map(|(namespace, name)| (namespace.to_owned(), name.to_owned())).collect()
        });
        found.unwrap_or_default()
    }
}

/// ReleaseOverrides, for reads of single objects.
pub(crate) const OWN_KIND: OwnKind = OwnKind { kind: release_override::KIND, plural: release_override::PLURAL };

/// Parses an override; `None` if it is too large or has another shape, for example that of a later version.
pub(crate) fn read(object: &Projected) -> Option<Override> {
    override_of(object.metadata(), object.spec::<Option<OverrideSpec>>().ok()??)
}

/// The overrides of a release, by a LIST with a field selector. Overrides that cannot be parsed are ignored.
///
/// # Errors
/// When the API server does not answer, or does not answer with a list; 404 if the definition is not installed.
pub(super) async fn list(client: &Client, namespace: &str, release: &str) -> kube::Result<Vec<Override>> {
    let of_release = ListParams::default().fields(&format!("spec.release={release}"));
    let found = OWN_KIND.list(client, namespace, of_release).await?;
    Ok(found.iter().filter_map(read).collect())
}

/// Every override that can be parsed.
#[derive(Debug, Default)]
pub(super) struct OverridesByName(HashMap<NamespacedName, KnownOverride>);

#[derive(Debug)]
struct KnownOverride {
    read: Override,
    /// Whether the override has a deletion timestamp. It disappears once its finalizers have run.
    is_being_deleted: bool,
}

impl OverridesByName {
    fn all(&self) -> impl Iterator<Item = &Override> {
        self.0.values().map(|known| &known.read)
    }
}

impl CustomFeed for OverridesByName {
    const KIND: CustomKind = CustomKind {
        group: release_override::GROUP,
        kind: release_override::KIND,
        definition: release_override::DEFINITION,
    };
}

impl Feed<Projected> for OverridesByName {
    fn fresh(&self) -> Self {
        Self::default()
    }

    fn apply(&mut self, object: &Projected) {
        match read(object) {
            Some(read) => {
                let is_being_deleted = object.metadata().deletion_timestamp.is_some();
                self.0.insert(NamespacedName::of(object.metadata()), KnownOverride { read, is_being_deleted });
            }
            None => self.delete(object),
        }
    }

    fn delete(&mut self, object: &Projected) {
        self.0.remove(&NamespacedName::of(object.metadata()));
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::release_override::CREATED_BY;
    use serde_json::{Value, json};

    use super::*;
    use crate::world::kubernetes::definition::Definition;

    fn object(name: &str, release: &str, rule: &str) -> Projected {
        serde_json::from_value(stored(name, release, rule)).unwrap()
    }

    fn stored(name: &str, release: &str, rule: &str) -> Value {
        json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "ReleaseOverride",
            "metadata": {
                "name": name, "namespace": "shop", "creationTimestamp": "2026-11-21T10:00:00Z",
                "annotations": {CREATED_BY: "alice"},
            },
            "spec": {"release": release, "rules": [rule], "reason": "incident", "expiresAt": "2026-11-21T11:00:00Z"},
        })
    }

    #[test]
    fn overrides_are_found_by_release_while_the_copy_is_in_sync() {
        let known = ReleaseOverrides::default();
        assert!(known.of("shop", "web").is_empty());
        assert_eq!(known.that(&|_| true, 9), None);
        known.definition.send_replace(Definition::Installed { uid: "a".to_owned() });
        let mut overrides = OverridesByName::default();
        overrides.apply(&object("one", "web", "manual-edit"));
        overrides.apply(&object("two", "other", "manual-edit"));
        overrides.apply(&object("three", "web", "a-rule-of-later"));
        known.objects.replace(overrides);
        let found = known.of("shop", "web");
        assert_eq!(found.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["one"]);
        assert_eq!(found[0].created_by.as_deref(), Some("alice"));
        assert!(found[0].created.is_some());
        assert_eq!((known.count(|_| true), known.count(|it| it.spec.release == "other")), (2, 1));
        let that = |limit: usize| known.that(&|it| it.namespace == "shop", limit).unwrap();
        let (first, total) = that(1);
        assert_eq!((&*first[0].name, first.len(), total, that(9).0.len()), ("one", 1, 2, 2));
        assert_eq!(known.that(&|it| it.spec.release == "none", 9), Some((vec![], 0)));
        known.objects.clear(OverridesByName::default());
        assert!(known.of("shop", "web").is_empty());
    }

    #[test]
    fn overrides_to_delete_come_in_turn() {
        let known = ReleaseOverrides::default();
        known.definition.send_replace(Definition::Installed { uid: "a".to_owned() });
        let mut overrides = OverridesByName::default();
        for name in ["d", "b", "a", "c"] {
            overrides.apply(&object(name, "web", "manual-edit"));
        }
        let mut going = stored("aa", "web", "manual-edit");
        going["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z".into();
        overrides.apply(&serde_json::from_value(going).unwrap());
        overrides.apply(&object("bb", "other", "manual-edit"));
        known.objects.replace(overrides);
        let shop = |name: &str| ("shop".to_owned(), name.to_owned());
        let next = |after: Option<&str>| known.to_delete(after.map(shop).as_ref(), 2, |it| it.spec.release == "web");
        assert_eq!(next(None), [shop("a"), shop("b")]);
        assert_eq!(next(Some("b")), [shop("c"), shop("d")]);
        assert_eq!(next(Some("aa")), [shop("b"), shop("c")], "although it is not among them");
        assert_eq!(next(Some("d")), []);
    }

    #[test]
    fn overrides_come_and_go() {
        let mut overrides = OverridesByName::default();
        overrides.apply(&object("one", "web", "manual-edit"));
        overrides.apply(&object("one", "web", "of another shape"));
        assert!(overrides.0.is_empty());
        overrides.apply(&object("one", "web", "manual-edit"));
        overrides.delete(&object("one", "web", "manual-edit"));
        assert!(overrides.0.is_empty());
    }
}

//! Freezes: a copy of all Freezes, and live reads for one namespace.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use interlock_engine::answers::read::freeze_of;
use interlock_engine::freeze_resource;
use interlock_engine::freezes::MAX_OF_NAMESPACE;
use interlock_engine::policy::Freeze;
use interlock_engine::release_override::GROUP;
use kube::Client;
use kube::api::ListParams;
use serde_json::value::RawValue;

use super::api_error::is_not_found;
use super::custom::{CustomFeed, CustomKind, CustomObjects};
use super::intake::Projected;
use super::namespaced_name::NamespacedName;
use super::own_objects::OwnKind;
use super::watch::Feed;
use crate::log_limit::CLIENT_LOG_LIMIT;

/// Freezes, for reads of single objects.
pub(crate) const OWN_KIND: OwnKind = OwnKind { kind: freeze_resource::KIND, plural: freeze_resource::PLURAL };

/// The Freezes of a cluster.
pub(super) type Freezes = CustomObjects<FreezesByName>;

impl Freezes {
    /// The Freezes as last known: a Freeze stays in force while the API server cannot be reached.
    pub(super) fn all(&self) -> Arc<[Freeze]> {
        self.last_known(FreezesByName::all)
    }
}

/// The current Freezes of a namespace. There are none if the definition is not installed. Freezes that cannot be used are left out.
///
/// # Errors
/// When the API server does not answer, or does not answer with a list.
pub(crate) async fn list(client: &Client, namespace: &str) -> kube::Result<Vec<Freeze>> {
    match OWN_KIND.list(client, namespace, ListParams::default()).await {
        Ok(found) => Ok(found.iter().filter_map(|object| read(object).ok()).collect()),
        Err(error) if is_not_found(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Parses a Freeze.
///
/// # Errors
/// Why the Freeze stops nothing.
pub(crate) fn read(object: &Projected) -> Result<Freeze, String> {
    let spec = object.spec::<Option<Box<RawValue>>>().map_err(|why| format!("it {why}"))?;
    freeze_of(object.metadata(), spec.as_deref().map(RawValue::get))
}

/// Every usable Freeze, by namespace and name. The order is the same in every replica.
#[derive(Debug, Default)]
pub(super) struct FreezesByName {
    by_name: BTreeMap<NamespacedName, Freeze>,
    /// All Freezes, computed on demand after a change.
    all: OnceLock<Arc<[Freeze]>>,
}

impl FreezesByName {
    fn all(&self) -> Arc<[Freeze]> {
        Arc::clone(self.all.get_or_init(|| self.by_name.values().cloned().collect()))
    }

    /// Adds a Freeze, unless its namespace has too many: admission refuses the creation of more.
    fn keep(&mut self, name: &NamespacedName, freeze: Freeze) -> Result<(), String> {
        let first = NamespacedName::new(&name.namespace, "");
        let of_namespace = self.by_name.range(first..).take_while(|(it, _)| it.namespace == name.namespace);
        if of_namespace.count() >= MAX_OF_NAMESPACE && !self.by_name.contains_key(name) {
            return Err(format!("its namespace has {MAX_OF_NAMESPACE} others"));
        }
        self.by_name.insert(name.clone(), freeze);
        Ok(())
    }
}

impl CustomFeed for FreezesByName {
    const KIND: CustomKind =
        CustomKind { group: GROUP, kind: freeze_resource::KIND, definition: freeze_resource::DEFINITION };
}

impl Feed<Projected> for FreezesByName {
    fn fresh(&self) -> Self {
        Self::default()
    }

    fn apply(&mut self, object: &Projected) {
        self.all = OnceLock::new();
        let name = NamespacedName::of(object.metadata());
        // A Freeze that is being deleted has ended.
        if object.metadata().deletion_timestamp.is_some() {
            self.by_name.remove(&name);
            return;
        }
        let kept = read(object).and_then(|freeze| self.keep(&name, freeze));
        if let Err(why) = kept {
            self.by_name.remove(&name);
            let NamespacedName { namespace, name } = name;
            let kind = "a Freeze stops nothing";
            if let Some(suppressed) = CLIENT_LOG_LIMIT.admit(kind) {
                tracing::warn!(%namespace, %name, %why, suppressed, "{kind}");
            }
        }
    }

    fn delete(&mut self, object: &Projected) {
        self.all = OnceLock::new();
        self.by_name.remove(&NamespacedName::of(object.metadata()));
    }
}

#[cfg(test)]
mod tests {
    use interlock_engine::release_override::CREATED_BY;
    use serde_json::{Value, json};

    use super::*;
    use crate::world::kubernetes::definition::Definition;

    fn stored(namespace: &str, name: &str) -> Value {
        json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "Freeze",
            "metadata": {
                "name": name, "namespace": namespace, "creationTimestamp": "2026-11-21T10:00:00Z",
                "annotations": {CREATED_BY: "alice\u{1b}"},
            },
            "spec": {"reason": "incident", "timeZone": "UTC", "from": "2026-11-21T10:00", "to": "2026-11-21T18:00"},
        })
    }

    fn object(namespace: &str, name: &str) -> Projected {
        serde_json::from_value(stored(namespace, name)).unwrap()
    }

    fn names(freezes: &FreezesByName) -> Vec<String> {
        freezes.all().iter().map(|it| format!("{}/{}", it.home.as_deref().unwrap_or_default(), it.name)).collect()
    }

    #[test]
    fn freezes_come_and_go_and_end_with_their_deletion() {
        let mut freezes = FreezesByName::default();
        freezes.apply(&object("web", "one"));
        freezes.apply(&object("shop", "two"));
        freezes.apply(&object("shop", "one"));
        assert_eq!(names(&freezes), ["shop/one", "shop/two", "web/one"]);
        let by = freezes.all()[0].creation.as_ref().and_then(|it| it.by.clone());
        assert_eq!(by.as_deref(), Some("alice\u{fffd}"), "printable");
        freezes.delete(&object("shop", "one"));
        let mut going = stored("web", "one");
        going["metadata"]["deletionTimestamp"] = "2026-11-21T11:00:00Z".into();
        freezes.apply(&serde_json::from_value(going).unwrap());
        assert_eq!(names(&freezes), ["shop/two"]);
        let mut wrong = stored("shop", "two");
        wrong["spec"]["to"] = "2026-11-20".into();
        freezes.apply(&serde_json::from_value(wrong).unwrap());
        assert!(names(&freezes).is_empty() && freezes.by_name.is_empty());
    }

    #[test]
    fn a_namespace_keeps_to_its_share_of_freezes() {
        let mut freezes = FreezesByName::default();
        let all: Vec<_> = (0..MAX_OF_NAMESPACE + 5).map(|number| object("evil", &format!("f{number}"))).collect();
        all.iter().for_each(|object| freezes.apply(object));
        freezes.apply(&object("shop", "one"));
        assert_eq!(freezes.all().len(), MAX_OF_NAMESPACE + 1);
        freezes.apply(&all[0]);
        assert_eq!(freezes.all().len(), MAX_OF_NAMESPACE + 1, "one that is kept stays");
        all.iter().for_each(|object| freezes.delete(object));
        assert_eq!(names(&freezes), ["shop/one"]);
    }

    #[test]
    fn the_last_known_freezes_hold_until_the_definition_is_gone() {
        let known = Freezes::default();
        known.definition.send_replace(Definition::Installed { uid: "a".to_owned() });
        let mut freezes = FreezesByName::default();
        freezes.apply(&object("shop", "one"));
        known.objects.replace(freezes);
        drop(crate::world::kubernetes::watch::SyncGuard(&known.objects));
        assert_eq!((known.all().len(), known.read(|_| ())), (1, None), "out of sync");
        known.definition.send_replace(Definition::Unknown);
        assert_eq!(known.all().len(), 1);
        known.definition.send_replace(Definition::Absent);
        assert_eq!(known.all().len(), 0);
    }
}

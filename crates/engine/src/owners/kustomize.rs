//! Flux's Kustomization: objects that kustomize-controller applies from a source. It keeps no records: its status lists what it
//! applies. The controller works at all times, so there is no operation to hold.

pub(crate) mod rules;

use std::borrow::Cow;

use serde::Deserialize;

use super::flux::{self, DriftIgnore};
use crate::json::{WithText, null_is_default};
use crate::managed::{MarkKey, Owner, OwnerKind};
use crate::object::{Metadata, ObjectKey};
use crate::owners::homes::homes;

/// Its own name.
pub(crate) const NAME: &str = "Kustomization";

/// The API group of Kustomizations.
pub const GROUP: &str = "kustomize.toolkit.fluxcd.io";

/// The name of its controller: of the service account, and of the field manager.
pub(super) const CONTROLLER: &str = "kustomize-controller";

/// The annotation that makes the controller skip an object.
const RECONCILE: &str = "kustomize.toolkit.fluxcd.io/reconcile";

/// The annotation with the way in which the controller applies an object.
const SSA: &str = "kustomize.toolkit.fluxcd.io/ssa";

/// The annotation that keeps an object that left the source.
const PRUNE: &str = "kustomize.toolkit.fluxcd.io/prune";

/// The annotation on an object that the controller deletes and creates anew where a field cannot be changed.
const FORCE: &str = "kustomize.toolkit.fluxcd.io/force";

/// The labels of the controller. Everybody who may write an object can copy them.
pub(super) const MARKS: OwnerKind = OwnerKind {
    label: Some(("kustomize.toolkit.fluxcd.io/name", None)),
    name: MarkKey::label("kustomize.toolkit.fluxcd.io/name"),
    scope: MarkKey::label("kustomize.toolkit.fluxcd.io/namespace"),
    managers: &[CONTROLLER],
    switches: &[RECONCILE, SSA, PRUNE, FORCE],
    keeps: |key, option| key == PRUNE && option.eq_ignore_ascii_case("disabled"),
    applied: None,
    owner: |name, scope, _| Owner::Applied {
        program: flux::NAME,
        kind: NAME,
        namespace: scope.to_owned(),
        name: name.to_owned(),
    },
};

/// A Kustomization, with the fields that rules use.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Kustomization<'a> {
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    spec: WithText<'a, KustomizationSpec<'a>>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    status: KustomizationStatus<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KustomizationSpec<'a> {
    /// The account in its namespace that works for it; empty for the controller's own.
    #[serde(borrow, deserialize_with = "null_is_default")]
    service_account_name: Cow<'a, str>,
    /// Whether it applies its objects to the cluster of this configuration, under a user that only the configuration names.
    kube_config: Option<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "null_is_default")]
    suspend: bool,
    /// Whether each object with a changed field that cannot be changed is deleted and created anew.
    #[serde(deserialize_with = "null_is_default")]
    force: bool,
    /// Whether objects that leave the source are deleted.
    #[serde(deserialize_with = "null_is_default")]
    prune: bool,
    /// What becomes of the objects when it is deleted; empty for what `prune` says.
    #[serde(borrow, deserialize_with = "null_is_default")]
    deletion_policy: Cow<'a, str>,
    /// The namespace of all objects; empty if each names its own.
    #[serde(borrow, deserialize_with = "null_is_default")]
    target_namespace: Cow<'a, str>,
    /// Fields that the controller leaves to others.
    #[serde(deserialize_with = "null_is_default")]
    ignore: Vec<DriftIgnore>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KustomizationStatus<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    inventory: Inventory<'a>,
    /// The revision of the source that was last applied as a whole, with all deletions.
    #[serde(borrow, deserialize_with = "null_is_default")]
    last_applied_revision: Cow<'a, str>,
}

/// What the controller has applied, since the end of the first apply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Inventory<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    entries: Vec<InventoryEntry<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InventoryEntry<'a> {
    /// `NAMESPACE_NAME_GROUP_KIND`, with `__` for a colon in the name.
    #[serde(borrow, deserialize_with = "null_is_default")]
    id: Cow<'a, str>,
}

/// The fields of the spec that leave all objects where they are. `prune` is asked for by itself.
const HARMLESS: [&str; 13] = [
    "decryption",
    "deletionPolicy",
    "dependsOn",
    "healthCheckExprs",
    "healthChecks",
    "ignore",
    "images",
    "interval",
    "prune",
    "retryInterval",
    "suspend",
    "timeout",
    "wait",
];

/// The fields that let another cluster or another account have the objects, also without pruning.
const GIVES_UP: [&str; 2] = ["kubeConfig", "serviceAccountName"];

impl Kustomization<'_> {
    /// The namespaces of its objects.
    fn homes<'n>(&'n self, own: &'n str, applied: &'n [ObjectKey]) -> impl Iterator<Item = &'n str> {
        homes(&self.spec.target_namespace, own, applied.iter().map(|object| &*object.namespace))
    }

    /// The objects in the inventory, if they are in this cluster.
    fn applied(&self) -> impl Iterator<Item = ObjectKey> {
        let entries = self.status.inventory.entries.iter().filter(|_| self.spec.kube_config.is_none());
        entries.filter_map(|entry| object_of(&entry.id))
    }

    /// The field with which it may delete objects that it keeps as before, or give them up.
    fn leaves_objects_of(&self, before: &Self) -> Option<String> {
        let (now, then) = (&self.spec, &before.spec);
        let field = match () {
            () if self.deletes_objects() && !before.deletes_objects() && before.is_dying() => {
                then.changed_field(now, |_| false)
            }
            () if now.prune && !then.prune => Some("prune".to_owned()),
            () if now.prune => then.changed_field(now, |field| HARMLESS.contains(&field)),
            () => then
                .changed_field(now, |field| !field.is_empty() && !GIVES_UP.iter().any(|part| field.starts_with(part))),
        };
        field.map(|field| format!("spec.{field}"))
    }

    /// Whether its deletion, which has not begun, deletes its objects too.
    fn is_deleted_with_its_objects(&self) -> bool {
        self.deletes_objects() && !self.is_dying()
    }

    fn is_dying(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether its spec says that its objects are deleted with it.
    fn deletes_objects(&self) -> bool {
        let deletes = match &*self.spec.deletion_policy {
            "" | "MirrorPrune" => self.spec.prune,
            policy => policy != "Orphan",
        };
        deletes && !self.spec.suspend
    }

    /// Whether the inventory has an object.
    fn lists(&self, key: &ObjectKey) -> bool {
        let id = inventory_id(key);
        self.status.inventory.entries.iter().any(|entry| entry.id == id)
    }
}

/// Whether a Kustomization would lose objects, or be deleted with them, together with a namespace.
pub(super) fn loses_with_namespace(key: &ObjectKey, text: &str, namespace: &str) -> bool {
    let Ok(read) = serde_json::from_str::<Kustomization<'_>>(text) else { return false };
    let goes_with_it = key.namespace == namespace && read.is_deleted_with_its_objects();
    let mut objects = read.applied().peekable();
    objects.peek().is_some() && (goes_with_it || objects.any(|object| object.namespace == namespace))
}

/// The objects in the inventory of a Kustomization, if they are in this cluster.
pub(super) fn applied_objects(text: &str) -> Vec<ObjectKey> {
    serde_json::from_str::<Kustomization<'_>>(text).unwrap_or_default().applied().collect()
}

/// The object that an entry of an inventory names. Neither its namespace, its group nor its kind has an underscore.
fn object_of(id: &str) -> Option<ObjectKey> {
    let (namespace, rest) = id.split_once('_')?;
    let (rest, kind) = rest.rsplit_once('_')?;
    let (name, group) = rest.rsplit_once('_')?;
    let is_complete = !name.is_empty() && !kind.is_empty();
    is_complete.then(|| ObjectKey::new(group, kind, namespace, &name.replace("__", ":")))
}

/// How an inventory names an object.
fn inventory_id(ObjectKey { group, kind, namespace, name }: &ObjectKey) -> String {
    format!("{namespace}_{}_{group}_{kind}", name.replace(':', "__"))
}

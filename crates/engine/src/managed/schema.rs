//! The lists, maps and quantities in the schemas of Kubernetes' own kinds, by the names of fields.
//!
//! Source: `x-kubernetes-list-type`, `x-kubernetes-map-type` and the type `Quantity` in the OpenAPI of Kubernetes 1.37.
//! The table leaves out the fields of a status, and fields inside lists without keys, because such a list is atomic.

/// The known fields of an object.
#[derive(Debug, PartialEq)]
pub(super) struct Schema {
    lists: &'static [KeyedList],
    atomic_maps: &'static [&'static str],
    quantities: &'static [(&'static str, &'static str)],
}

/// Kubernetes' own kinds.
pub(super) static BUILT_IN: Schema = Schema { lists: &KEYED_LISTS, atomic_maps: &ATOMIC_MAPS, quantities: &QUANTITIES };

/// Custom resources. Only their definitions know their fields. The API server stores their quantities as written.
pub(super) static CUSTOM: Schema = Schema { lists: &[], atomic_maps: &[], quantities: &[] };

/// A list whose items have keys: the field around the list or around its item, the field itself, and the keys.
type KeyedList = (&'static str, &'static str, &'static [&'static str]);

pub(super) const METADATA: &str = "metadata";

/// Matches every field around a list, and in [`QUANTITIES`] every member of a map.
const ANY: &str = "*";

/// Lists with merge keys. A list without merge keys is atomic.
const KEYED_LISTS: [KeyedList; 21] = [
    (ANY, "claims", &["name"]),
    (ANY, "containers", &["name"]),
    (ANY, "env", &["name"]),
    (ANY, "ephemeralContainers", &["name"]),
    (ANY, "hostAliases", &["ip"]),
    // In a ServiceAccount, this list is atomic.
    ("spec", "imagePullSecrets", &["name"]),
    (ANY, "initContainers", &["name"]),
    (ANY, "matchConditions", &["name"]),
    (METADATA, "ownerReferences", &["uid"]),
    ("containers", "ports", &["containerPort", "protocol"]),
    ("ephemeralContainers", "ports", &["containerPort", "protocol"]),
    ("initContainers", "ports", &["containerPort", "protocol"]),
    // In a Service.
    ("spec", "ports", &["port", "protocol"]),
    (ANY, "resourceClaims", &["name"]),
    (ANY, "schedulingGates", &["name"]),
    (ANY, "secrets", &["name"]),
    (ANY, "topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    (ANY, "volumeDevices", &["devicePath"]),
    (ANY, "volumeMounts", &["mountPath"]),
    (ANY, "volumes", &["name"]),
    (ANY, "webhooks", &["name"]),
];

/// Atomic maps: a new member changes the value. The name of a list stands for each of its items.
const ATOMIC_MAPS: [&str; 29] = [
    "controllerExpandSecretRef",
    "controllerPublishSecretRef",
    "dataSource",
    // A variable is a union of `value` and `valueFrom`, and empty without both.
    "env",
    "imagePullSecrets",
    "labelSelector",
    "matchConstraints",
    "matchResources",
    "namespaceSelector",
    "nodeExpandSecretRef",
    "nodePublishSecretRef",
    "nodeSelector",
    "nodeStageSecretRef",
    "nodeTopology",
    "objectSelector",
    "ownerReferences",
    "paramKind",
    "paramRef",
    "podSelector",
    "port",
    "required",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "roleRef",
    "scaleTargetRef",
    "scopeSelector",
    "secretRef",
    "secrets",
    "selector",
    // A volume is a union of its sources, and `emptyDir: {}` is a source.
    "volumes",
];

/// Quantities: the name of the enclosing field, and of the field itself.
const QUANTITIES: [(&str, &str); 17] = [
    ("capacity", ANY),
    ("default", ANY),
    ("defaultRequest", ANY),
    ("emptyDir", "sizeLimit"),
    ("hard", ANY),
    ("limits", ANY),
    ("max", ANY),
    ("maxLimitRequestRatio", ANY),
    ("min", ANY),
    ("overhead", ANY),
    ("podFixed", ANY),
    ("requests", ANY),
    ("resourceFieldRef", "divisor"),
    ("scaleDown", "tolerance"),
    ("scaleUp", "tolerance"),
    // In a metric. The `value` of an environment variable is text.
    ("target", "averageValue"),
    ("target", "value"),
];

/// The place of a value: the name of the enclosing field, and of its own field. An item of a list has the place of the list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place<'d> {
    pub(super) schema: &'static Schema,
    pub(super) parent: &'d str,
    pub(super) name: &'d str,
}

/// What an edit may do to a list with keys, apart from adding items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemRule {
    /// Items may move.
    Unordered,
    /// The declared items keep their order, because they run one after the other.
    Ordered,
    /// No item may be added. With another owner, the garbage collector may delete the object. With another finalizer, nobody can
    /// delete the object.
    Closed,
}

impl<'d> Place<'d> {
    /// A place without known fields.
    pub(super) const UNKNOWN: Self = Self { schema: &CUSTOM, parent: "", name: "" };

    /// The place of a member.
    pub(super) fn field(self, name: &'d str) -> Self {
        Self { parent: self.name, name, ..self }
    }

    /// The keys of the list at this place. They are empty if the items are their own keys, and `None` if the list is
    /// atomic.
    pub(super) fn list_keys(self) -> Option<&'static [&'static str]> {
        if self.is_finalizers() {
            return Some(&[]);
        }
        let mut lists = self.schema.lists.iter();
        let keyed = lists.find(|(parent, name, _)| *name == self.name && [ANY, self.parent].contains(parent));
        keyed.map(|(_, _, keys)| *keys)
    }

    pub(super) fn item_rule(self) -> ItemRule {
        match self.name {
            "initContainers" => ItemRule::Ordered,
            "ownerReferences" if self.parent == METADATA => ItemRule::Closed,
            _ if self.is_finalizers() => ItemRule::Closed,
            _ => ItemRule::Unordered,
        }
    }

    /// Whether the map at this place is atomic.
    pub(super) fn is_atomic_map(self) -> bool {
        self.schema.atomic_maps.contains(&self.name)
    }

    pub(super) fn is_quantity(self) -> bool {
        self.schema.quantities.iter().any(|(parent, name)| *parent == self.parent && [ANY, self.name].contains(name))
    }

    /// Whether the items at this place are their own keys, and names.
    pub(super) fn is_finalizers(self) -> bool {
        self.parent == METADATA && self.name == "finalizers"
    }
}

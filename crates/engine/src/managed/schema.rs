//! What the schemas of Kubernetes' own kinds say about lists, maps and quantities, by the names of fields.
//!
//! Source: `x-kubernetes-list-type`, `x-kubernetes-map-type` and the type `Quantity` in the OpenAPI of Kubernetes 1.37. Left
//! out are fields of a status, and fields inside of lists without keys, because such a list is one value.

/// What is known about the fields of an object.
#[derive(Debug, PartialEq)]
pub(super) struct Schema {
    lists: &'static [KeyedList],
    whole: &'static [&'static str],
    quantities: &'static [(&'static str, &'static str)],
}

/// Kubernetes' own kinds.
pub(super) static BUILT_IN: Schema = Schema { lists: &KEYED_LISTS, whole: &WHOLE_MAPS, quantities: &QUANTITIES };

/// Custom resources: only their definitions know their fields. The API server stores their quantities as written.
pub(super) static CUSTOM: Schema = Schema { lists: &[], whole: &[], quantities: &[] };

/// A list whose items have keys: the field around it or around its item, the field itself, and the keys.
type KeyedList = (&'static str, &'static str, &'static [&'static str]);

pub(super) const METADATA: &str = "metadata";

/// Matches every field around a list, and in [`QUANTITIES`] every member of a map.
const ANY: &str = "*";

/// Lists with merge keys. A list without any is one value.
const KEYED_LISTS: [KeyedList; 21] = [
    (ANY, "claims", &["name"]),
    (ANY, "containers", &["name"]),
    (ANY, "env", &["name"]),
    (ANY, "ephemeralContainers", &["name"]),
    (ANY, "hostAliases", &["ip"]),
    // In a ServiceAccount they are one value.
    ("spec", "imagePullSecrets", &["name"]),
    (ANY, "initContainers", &["name"]),
    (ANY, "matchConditions", &["name"]),
    (METADATA, "ownerReferences", &["uid"]),
    ("containers", "ports", &["containerPort", "protocol"]),
    ("ephemeralContainers", "ports", &["containerPort", "protocol"]),
    ("initContainers", "ports", &["containerPort", "protocol"]),
    // Of a Service.
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

/// Maps that are one value, so that a new member changes it. The name of a list stands for each of its items.
const WHOLE_MAPS: [&str; 29] = [
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
    // A volume is a union of its sources, and `emptyDir: {}` is one.
    "volumes",
];

/// Quantities: the field around, and the field.
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
    // Of a metric. The `value` of an environment variable is text.
    ("target", "averageValue"),
    ("target", "value"),
];

/// Where a value is: the name of the field around its own, and of its own. An item of a list is where the list is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place<'d> {
    pub(super) schema: &'static Schema,
    pub(super) parent: &'d str,
    pub(super) name: &'d str,
}

/// What an edit may do to a list with keys, besides adding items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemRule {
    /// It may move items.
    Unordered,
    /// The declared items stay in their order: they run one after the other.
    Ordered,
    /// It may not even add items. With another owner the garbage collector may delete the object, and with another finalizer
    /// nobody can.
    Closed,
}

impl<'d> Place<'d> {
    /// A place about which nothing is known.
    pub(super) const UNKNOWN: Self = Self { schema: &CUSTOM, parent: "", name: "" };

    /// The place of a member.
    pub(super) fn field(self, name: &'d str) -> Self {
        Self { parent: self.name, name, ..self }
    }

    /// The keys of the list here; empty if its items are their own keys, `None` if it is one value.
    pub(super) fn list_keys(self) -> Option<&'static [&'static str]> {
        if self.is_finalizers() {
            return Some(&[]);
        }
        let here = |(parent, name, _): &&KeyedList| *name == self.name && [ANY, self.parent].contains(parent);
        self.schema.lists.iter().find(here).map(|(_, _, keys)| *keys)
    }

    pub(super) fn item_rule(self) -> ItemRule {
        match self.name {
            "initContainers" => ItemRule::Ordered,
            "ownerReferences" if self.parent == METADATA => ItemRule::Closed,
            _ if self.is_finalizers() => ItemRule::Closed,
            _ => ItemRule::Unordered,
        }
    }

    /// Whether the map here is one value.
    pub(super) fn is_whole_map(self) -> bool {
        self.schema.whole.contains(&self.name)
    }

    pub(super) fn is_quantity(self) -> bool {
        self.schema.quantities.iter().any(|(parent, name)| *parent == self.parent && [ANY, self.name].contains(name))
    }

    /// Whether items are their own keys here, and names.
    pub(super) fn is_finalizers(self) -> bool {
        self.parent == METADATA && self.name == "finalizers"
    }
}

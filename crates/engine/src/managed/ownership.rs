//! The possible owners of an object, and the marks that name them.

/// A label or an annotation that names an owner.
#[derive(Debug, Clone, Copy)]
pub struct Mark<'m> {
    /// `labels` or `annotations`.
    pub map: &'static str,
    pub key: &'static str,
    /// `None` if every value counts.
    pub value: Option<&'m str>,
}

/// The owner of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A Helm release.
    Release {
        name: String,
        /// The namespace of the release's objects, which may differ from that of its records.
        target_namespace: String,
        /// The HelmRelease of the release, if its controller has set its labels.
        origin: Option<Origin>,
        /// Whether labels name the ClusterExtension with the name of the release.
        of_extension: bool,
    },
    /// A profile, which has no record in this cluster.
    Profile {
        /// The name of the program whose profile it is.
        program: &'static str,
        kind: String,
        name: String,
    },
}

/// The HelmRelease that an object comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    pub namespace: String,
    pub name: String,
}

/// A kind of owner. Each owner defines its own.
pub(crate) struct OwnerKind {
    /// A label, and its value if only one value counts.
    pub(crate) label: (&'static str, Option<&'static str>),
    /// The annotation with the owner's name. An object without the annotations has no owner: Argo CD and many charts set only the
    /// label.
    pub(crate) name: &'static str,
    /// The annotation with the owner's namespace or kind.
    pub(crate) scope: &'static str,
    /// The names under which the owner writes in `managedFields`.
    pub(crate) managers: &'static [&'static str],
    pub(crate) owner: OwnerFn,
}

/// Builds the owner from the two annotations and the labels.
pub(crate) type OwnerFn = fn(name: &str, scope: &str, label: &dyn Fn(&str) -> Option<String>) -> Owner;

/// The label with the tool that manages an object: `Helm`, or `interlock` on the objects that Interlock writes.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";

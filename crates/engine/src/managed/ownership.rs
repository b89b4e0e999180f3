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
    /// An object that applies others from elsewhere, and keeps no records of it: its status lists what it applies.
    Applied {
        /// The name of the program that applies them.
        program: &'static str,
        kind: &'static str,
        namespace: String,
        name: String,
    },
    /// A profile, which has no record in this cluster.
    Profile {
        /// The name of the program whose profile it is.
        program: &'static str,
        kind: String,
        name: String,
    },
}

impl Owner {
    /// The name of the release, the profile or the object that applies this one.
    #[must_use]
    pub fn name(&self) -> &str {
        let (Self::Release { name, .. } | Self::Profile { name, .. } | Self::Applied { name, .. }) = self;
        name
    }
}

/// The HelmRelease that an object comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    pub namespace: String,
    pub name: String,
}

/// A kind of owner. Each owner defines its own.
pub(crate) struct OwnerKind {
    /// A label, and its value if only one value counts; `None` if the owner sets no label.
    pub(crate) label: Option<(&'static str, Option<&'static str>)>,
    /// The mark with the owner's name. An object without this one and the next has no owner: Argo CD and many charts set only the
    /// label.
    pub(crate) name: MarkKey,
    /// The mark with the owner's namespace or kind.
    pub(crate) scope: MarkKey,
    /// The names under which the owner writes in `managedFields`.
    pub(crate) managers: &'static [&'static str],
    /// The annotations that make the owner leave an object alone, or treat it in another way. They count only as the owner wrote them.
    pub(crate) switches: &'static [&'static str],
    /// Whether an option in one of them, between commas, keeps the object from being deleted once its source no longer declares it.
    pub(crate) keeps: fn(key: &str, option: &str) -> bool,
    /// The annotation with the document that the owner applied last; `None` if it leaves none.
    pub(crate) applied: Option<&'static str>,
    pub(crate) owner: OwnerFn,
}

impl OwnerKind {
    /// The label as a mark.
    pub(crate) fn label_mark(&self) -> Option<Mark<'static>> {
        self.label.map(|(key, value)| Mark { map: "labels", key, value })
    }
}

/// The place of a mark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkKey {
    /// `labels` or `annotations`.
    pub(crate) map: &'static str,
    pub(crate) key: &'static str,
}

impl MarkKey {
    pub(crate) const fn label(key: &'static str) -> Self {
        Self { map: "labels", key }
    }

    pub(crate) const fn annotation(key: &'static str) -> Self {
        Self { map: "annotations", key }
    }

    pub(crate) fn mark(self, value: Option<&str>) -> Mark<'_> {
        Mark { map: self.map, key: self.key, value }
    }
}

/// Builds the owner from its name, its scope and the labels.
pub(crate) type OwnerFn = fn(name: &str, scope: &str, label: &dyn Fn(&str) -> Option<String>) -> Owner;

/// The label with the tool that manages an object: `Helm`, or `interlock` on the objects that Interlock writes.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";

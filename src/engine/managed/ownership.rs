//! Who manages an object, by a table of marks: whoever joins the table becomes a row, not a branch.

use memchr::memmem;
use serde_json::Value;

use super::declared::Declared;
use crate::engine::olm;

/// What an object's labels and annotations say of who manages it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    /// Whom they lead to.
    pub owner: Owner,
    /// The mark that is missing or says otherwise. Then the rest is not to be relied on.
    pub contradiction: Option<&'static str>,
    row: usize,
}

/// Who manages an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A Helm release.
    Release {
        /// Its name.
        name: String,
        /// The namespace that its objects go to, which need not be that of its records.
        target_namespace: String,
        /// The HelmRelease behind it, where Flux put its labels.
        origin: Option<Origin>,
        /// Whether OLM's labels say that it is that of the ClusterExtension of this name.
        of_extension: bool,
    },
    /// A Sveltos profile, which keeps no record in this cluster.
    Profile {
        /// `ClusterProfile` or `Profile`.
        kind: String,
        /// Its name.
        name: String,
    },
}

/// The HelmRelease that an object is from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The HelmRelease's namespace.
    pub namespace: String,
    /// The HelmRelease's name.
    pub name: String,
}

/// One kind of owner.
struct OwnerKind {
    /// A label, and the value it must have where only one counts.
    label: (&'static str, Option<&'static str>),
    /// The annotation with the owner's name. Without one of the annotations an object is not ours: Argo CD and many charts
    /// set the label alone.
    name: &'static str,
    /// The annotation with the owner's namespace or kind.
    scope: &'static str,
    /// The managers under which the owner's writes stand in `managedFields`.
    managers: &'static [&'static str],
    lead: Lead,
}

/// Makes an owner of the two annotations and of labels.
type Lead = fn(name: &str, scope: &str, label: &dyn Fn(&str) -> Option<String>) -> Owner;

const OWNER_KINDS: [OwnerKind; 2] = [
    // Helm, and everybody who installs through its SDK. The CLI names itself `helm`; a program that sets no name shows as
    // the first part of its user agent.
    OwnerKind {
        label: ("app.kubernetes.io/managed-by", Some("Helm")),
        name: "meta.helm.sh/release-name",
        scope: "meta.helm.sh/release-namespace",
        managers: &["helm", "Helm", "helm-controller", "operator-controller", "fleetagent"],
        lead: |name, scope, label| Owner::Release {
            name: name.to_owned(),
            target_namespace: scope.to_owned(),
            origin: label("helm.toolkit.fluxcd.io/namespace")
                .zip(label("helm.toolkit.fluxcd.io/name"))
                .map(|(namespace, name)| Origin { namespace, name }),
            of_extension: label(olm::OWNER_NAME_LABEL).is_some_and(|extension| extension == name),
        },
    },
    // Sveltos' agent, for the objects of a profile in a managed cluster.
    OwnerKind {
        label: ("projectsveltos.io/reason", None),
        name: "projectsveltos.io/owner-name",
        scope: "projectsveltos.io/owner-kind",
        managers: &["application/apply-patch"],
        lead: |name, scope, _| Owner::Profile { kind: scope.to_owned(), name: name.to_owned() },
    },
];

/// Whether an object can have marks at all: looks for the text of the annotations, which costs a fraction of parsing. The
/// API server never escapes these characters.
#[must_use]
pub fn may_be_marked(object: &str) -> bool {
    let mut annotations = OWNER_KINDS.iter().flat_map(|row| [row.name, row.scope]);
    annotations.any(|annotation| memmem::find(object.as_bytes(), annotation.as_bytes()).is_some())
}

impl Marks {
    /// Reads the marks of an object; `None` where it has none.
    pub fn of<'m>(
        label: impl Fn(&str) -> Option<&'m str>,
        annotation: impl Fn(&str) -> Option<&'m str>,
    ) -> Option<Self> {
        let all = OWNER_KINDS.iter().enumerate().filter_map(|(index, row)| {
            let (name, scope) = (annotation(row.name), annotation(row.scope));
            if name.is_none() && scope.is_none() {
                return None;
            }
            let labelled = label(row.label.0).is_some_and(|value| row.label.1.is_none_or(|wanted| wanted == value));
            let empty = |mark: Option<&str>| mark.is_none_or(str::is_empty);
            let contradiction = match () {
                () if empty(name) => Some(row.name),
                () if empty(scope) => Some(row.scope),
                () if !labelled => Some(row.label.0),
                () => None,
            };
            let label = |key: &str| label(key).map(str::to_owned);
            let owner = (row.lead)(name.unwrap_or_default(), scope.unwrap_or_default(), &label);
            Some(Self { owner, contradiction, row: index })
        });
        // An object may carry the marks of two; the whole ones count.
        all.min_by_key(|marks| marks.contradiction.is_some())
    }

    /// Whether a manager in `managedFields` writes for this owner.
    #[must_use]
    pub fn is_manager(&self, manager: &str) -> bool {
        OWNER_KINDS[self.row].managers.contains(&manager)
    }

    /// The marks themselves, which count as declared: who takes them off takes the object away from its owner.
    #[must_use]
    pub fn declared(&self) -> [Declared<'static>; 3] {
        let row = &OWNER_KINDS[self.row];
        let (name, scope) = match &self.owner {
            Owner::Release { name, target_namespace, .. } => (name, target_namespace),
            Owner::Profile { kind, name } => (name, kind),
        };
        let mark = |map: &'static str, key: &'static str, value: Option<&str>| {
            Declared::only(["metadata", map, key].into_iter(), value.map(Value::from))
        };
        let (label, value) = row.label;
        [
            mark("labels", label, value),
            mark("annotations", row.name, Some(name)),
            mark("annotations", row.scope, Some(scope)),
        ]
    }
}

//! The programs that own releases or objects. Each has a folder with everything that Interlock knows about it.

pub mod argo;
mod carried;
pub mod declaration;
pub mod flux;
pub mod helm;
mod homes;
pub mod kustomize;
mod marks;
pub mod olm;
mod release_owner;
pub(crate) mod rules;
pub mod status;
pub mod sveltos;
mod upstream;
mod vocabulary;
mod words;

pub use carried::{CarriedOperation, Carrier, OperationEnd, OperationRun, OperationTrace, Stage};
pub use flux::rules::release::{DrivenRelease, only_driver, works_for};
pub use flux::words::UNLOCKS;
pub(crate) use flux::words::goes_on_at_once;
pub use flux::words::{DUPLICATES, SUSPEND_ALL_BUT_ONE};
pub use flux::{CandidateSearch, Driver, HelmRelease, InstalledAt, MOST_CANDIDATES, account_elsewhere};
pub(crate) use flux::{DeclaredObject, IgnoredFields};
pub use flux::{DriftSpec, HelmReleaseSpec, HelmReleaseStatus};
pub use marks::{Marks, may_be_marked, selecting_marks};
pub(crate) use olm::CLUSTER_EXTENSION;
pub use olm::is_extension_in;
pub use release_owner::{Drivers, Finish, GoesOn, ReleaseOwner};
pub(crate) use sveltos::CONFIGURATION_GROUP;
pub use sveltos::{Bundle, BundleRef};
pub use sveltos::{ConfigurationGroup, RECREATE_COMMIT};
pub use upstream::Upstream;
pub use vocabulary::OwnerWords;

use crate::json::Patch;
use crate::object::ObjectKey;
use crate::release::{ProtectorRef, ReleaseRef, Storage};
use declaration::Declaration;

/// All owners whose releases or objects rules may judge, by their own names.
pub(crate) const ALL: &[&str] = &[helm::NAME, flux::NAME, olm::NAME, sveltos::NAME, kustomize::NAME, argo::NAME];

/// The owners whose operations Interlock can see: in a record, or in the object that declares them.
pub(crate) const OF_OPERATIONS: &[&str] = &[helm::NAME, olm::NAME, argo::NAME];

/// The kinds of these objects: where records are stored, and what carries its operation itself.
pub const KINDS_OF_OPERATIONS: &[&str] = &[Storage::Secret.kind(), Storage::ConfigMap.kind(), argo::CARRIER.kind];

/// The owners whose operations freezes stop.
pub(crate) const OF_FREEZES: &[&str] = &[helm::NAME, flux::NAME, olm::NAME, sveltos::NAME, argo::NAME];

/// The owners that install releases in the cluster of the objects.
pub(crate) const OF_RELEASES: &[&str] = &[helm::NAME, flux::NAME, olm::NAME];

/// The owners with their own record format.
pub(crate) const OF_RECORDS: &[&str] = &[helm::NAME, olm::NAME];

/// The group and kind of [`HelmRelease`]s.
pub const HELM_RELEASES: (&str, &str) = (flux::GROUP, flux::HELM_RELEASE);

/// The group and kind of OLM's extensions.
pub const EXTENSIONS: (&str, &str) = (olm::GROUP, olm::CLUSTER_EXTENSION);

/// The kinds of objects whose annotation protects the release that they declare.
pub const PROTECTING: [ProtectingKind; 2] = [
    ProtectingKind { group: flux::GROUP, kind: flux::HELM_RELEASE, path: flux::LIST },
    ProtectingKind { group: olm::GROUP, kind: olm::CLUSTER_EXTENSION, path: olm::LIST },
];

/// A kind of objects whose annotation protects the release that they declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectingKind {
    pub group: &'static str,
    pub kind: &'static str,
    /// The path of all objects at the API server.
    pub path: &'static str,
}

/// The key of the object that protects a release; `None` if objects of its kind protect none.
#[must_use]
pub fn key_of_protector(protector: ProtectorRef<'_>) -> Option<ObjectKey> {
    let ProtectorRef { kind, namespace, name, .. } = protector;
    let known = PROTECTING.iter().find(|it| it.kind == kind)?;
    Some(ObjectKey::new(known.group, kind, namespace, name))
}

/// The group and kind of [`Bundle`]s.
pub const BUNDLES: (&str, &str) = (sveltos::LIB_GROUP, sveltos::CONFIGURATION_BUNDLE);

/// The group and kind of a commit of bundles.
pub const COMMITS: (&str, &str) = (sveltos::LIB_GROUP, sveltos::CONFIGURATION_GROUP);

/// The name of the CustomResourceDefinition of [`HelmRelease`]s.
pub const HELM_RELEASE_DEFINITION: &str = flux::DEFINITION;

/// The label with the namespace of the HelmRelease behind an object.
pub const HELM_RELEASE_NAMESPACE_LABEL: &str = flux::NAMESPACE_LABEL;

/// The label with the name of the HelmRelease behind an object.
pub const HELM_RELEASE_NAME_LABEL: &str = flux::NAME_LABEL;

/// The label with the name of the ClusterExtension behind an object.
pub const EXTENSION_LABEL: &str = olm::OWNER_NAME_LABEL;

/// The label of an object of a profile.
pub const PROFILE_LABEL: &str = sveltos::REASON;

/// The group and kind of the objects that apply others without a label on these.
pub const UNLABELLED: (&str, &str) = (argo::GROUP, argo::APPLICATION);

/// The group and kind of the objects that apply others without a release.
pub const APPLYING: [(&str, &str); 2] = [UNLABELLED, (kustomize::GROUP, kustomize::NAME)];

/// Whether an object that applies others would lose some of these, or go with them, if a namespace were deleted. One that cannot be
/// parsed would not.
#[must_use]
pub fn loses_with_namespace(key: &ObjectKey, text: &str, namespace: &str) -> bool {
    match key.kind.as_str() {
        kustomize::NAME => kustomize::loses_with_namespace(key, text, namespace),
        _ => argo::loses_with_namespace(key, text, namespace),
    }
}

/// The objects of this cluster that an object of one of these kinds applies, by its status. One that cannot be parsed applies none.
#[must_use]
pub fn applied_objects(kind: &str, text: &str) -> Vec<ObjectKey> {
    match kind {
        kustomize::NAME => kustomize::applied_objects(text),
        _ => argo::applied_objects(text),
    }
}

/// The annotation of an object without a label, which names what applies it.
pub const TRACKING: &str = argo::TRACKING;

/// The label in its place, if what applies the object tracks objects by labels.
pub const TRACKING_LABEL: &str = argo::MARKS_BY_LABEL.name.key;

/// The labels of an object that is applied without a release: the name and the namespace of what applies it.
pub const APPLIED_LABELS: [&str; 2] = [kustomize::MARKS.name.key, kustomize::MARKS.scope.key];

/// The annotation with the kind of a profile.
pub const PROFILE_KIND: &str = sveltos::MARKS.scope.key;

/// The annotation with the name of a profile.
pub const PROFILE_NAME: &str = sveltos::MARKS.name.key;

/// The annotation with the position of a bundle in its commit.
pub const BUNDLE_INDEX: &str = sveltos::INDEX;

/// Whether an API group is that of the objects that identify commits.
#[must_use]
pub fn has_commits(group: &str) -> bool {
    group == sveltos::CONFIG_GROUP
}

/// The API groups of the owners' own objects, of which every kind counts.
const GROUPS: [&str; 5] = [flux::GROUP, olm::GROUP, sveltos::LIB_GROUP, sveltos::CONFIG_GROUP, kustomize::GROUP];

/// The managers in `managedFields` that install releases.
#[must_use]
pub fn managers_of_releases() -> &'static [&'static str] {
    helm::MARKS.managers
}

/// The holder that an operation in the object itself must name after a write by a user, and the one that it names; `None` if the object
/// carries none.
pub(crate) fn holders_of_operation(declaration: &Declaration<'_>, user: Option<&str>) -> Option<[Option<String>; 2]> {
    let Declaration::Application(written) = declaration else { return None };
    Some(written.after.as_ref()?.holders_after(written.before.as_ref(), user))
}

/// The patch with which the operation in an object names this holder; `None` if it does, or there is none.
pub(crate) fn naming_holder(declaration: &Declaration<'_>, holder: Option<&str>) -> Option<Patch> {
    let Declaration::Application(written) = declaration else { return None };
    written.after.as_ref()?.naming(holder)
}

/// The operations in an object before and after a write, its kind, and its release as freezes may name it; `None` if its kind carries none.
pub(crate) fn traces(declaration: &Declaration<'_>) -> Option<([OperationTrace; 2], &'static str, Vec<ReleaseRef>)> {
    let Declaration::Application(written) = declaration else { return None };
    let traces =
        [&written.before, &written.after].map(|side| side.as_ref().map(argo::Application::trace).unwrap_or_default());
    let homes = written.latest()?.homes(written.namespace);
    Some((traces, argo::CARRIER.kind, homes.map(|home| ReleaseRef::new(home, &*written.name)).collect()))
}

/// The kinds of objects that carry their operation themselves.
pub const CARRIERS: &[Carrier] = &[argo::CARRIER];

/// Whether objects of a kind are an owner's own. Others share the group of [`UNLABELLED`], and a cluster may have very many of them.
pub(crate) fn has_kind(group: &str, kind: &str) -> bool {
    GROUPS.contains(&group) || (group == argo::GROUP && argo::KINDS.contains(&kind))
}

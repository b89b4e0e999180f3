//! The objects in which people and controllers declare releases, and the changes to these objects.

use serde::Deserialize;

use super::argo::{self, Application};
use super::flux::{self, HelmRelease, InstalledRelease};
use super::kustomize::{self, Kustomization};
use super::marks::may_be_marked;
use super::olm::{self, ClusterExtension, ClusterObjectSet, OWNER_NAME_LABEL};
use super::status::{StatusWrite, member};
use super::sveltos::{self, Commit, ConfigurationGroup, Requestor};
use super::upstream::{Upstream, UpstreamKind};
use crate::json::{RawObject, first_at, redacted};
use crate::object::{Metadata, ObjectKey};
use crate::release::ReleaseRef;
use crate::review::{Operation, Request};

/// The subresources of a Namespace whose writes can change its metadata.
const KEEPS_NO_METADATA: [&str; 2] = ["status", "finalize"];

/// A write of an object that declares releases.
#[derive(Debug)]
pub enum Declaration<'r> {
    /// Argo CD's Application.
    Application(Box<DeclarationWrite<'r, Application<'r>>>),
    /// Flux's Kustomization.
    Kustomization(Box<DeclarationWrite<'r, Kustomization<'r>>>),
    /// OLM's ClusterExtension.
    ClusterExtension(Box<DeclarationWrite<'r, ClusterExtension<'r>>>),
    /// One revision of an extension.
    ClusterObjectSet(Box<DeclarationWrite<'r, ClusterObjectSet<'r>>>),
    /// A HelmRelease, and the name of its release: the new name if it changes.
    HelmRelease(Box<DeclarationWrite<'r, HelmRelease>>, String),
    /// A commit of bundles and its name, but never its DELETE. Sveltos deletes it after each rollout, in teardowns, and to
    /// recover from a second one. The agent removes nothing because of that.
    ConfigurationGroup(Box<DeclarationWrite<'r, ConfigurationGroup<'r>>>, Commit),
    /// A Namespace, but never its CREATE. Deleting it deletes the releases in it.
    Namespace(Box<DeclarationWrite<'r, Namespace<'r>>>),
    /// An object that others are made from, but never its CREATE.
    Upstream(Box<DeclarationWrite<'r, Upstream<'r>>>, &'static UpstreamKind),
    /// The status of an object, which proves what a controller did.
    Status(StatusWrite<'r>),
    /// The deletion of a CustomResourceDefinition without marks, as charts bring them in their directory `crds/`.
    Definition(DefinitionDeletion<'r>),
    /// The object cannot be parsed. A later version may have a different shape.
    Unparsed {
        kind: &'r str,
        /// Empty for cluster-scoped objects.
        namespace: &'r str,
        name: &'r str,
        why: String,
    },
}

/// A Namespace, with only the fields that rules use.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Namespace<'a> {
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
}

/// The deletion of a CustomResourceDefinition.
#[derive(Debug)]
pub struct DefinitionDeletion<'r> {
    pub name: &'r str,
    /// Who wrote which field, not parsed yet.
    pub managed_fields: Option<RawObject<'r>>,
}

/// An object before and after a request.
#[derive(Debug)]
pub struct DeclarationWrite<'r, T> {
    pub kind: &'r str,
    /// Empty for cluster-scoped objects.
    pub namespace: &'r str,
    pub name: String,
    /// `None` on CREATE.
    pub before: Option<T>,
    /// `None` on DELETE.
    pub after: Option<T>,
    /// Whether `spec` is unchanged, byte by byte. The API server encodes equal values the same way.
    pub same_spec: bool,
}

impl<T> DeclarationWrite<'_, T> {
    /// The object as it would be stored, or as it was before the deletion.
    #[must_use]
    pub fn latest(&self) -> Option<&T> {
        self.after.as_ref().or(self.before.as_ref())
    }
}

impl<'r> Declaration<'r> {
    /// Reads the object of a request; `None` if it declares no release.
    pub(crate) fn read(request: &'r Request<'r>) -> Option<Self> {
        if let Some(status) = StatusWrite::read(request) {
            return Some(Self::Status(status));
        }
        let is_namespace = request.kind.group.is_empty() && request.kind.kind == "Namespace";
        // For custom resources, writes of subresources do not change the metadata.
        if request.sub_resource().is_some_and(|sub| !(is_namespace && KEEPS_NO_METADATA.contains(&sub))) {
            return None;
        }
        let read = match (request.kind.group.as_ref(), request.kind.kind.as_ref()) {
            (olm::GROUP, olm::CLUSTER_EXTENSION) => written(request).map(Box::new).map(Self::ClusterExtension),
            (olm::GROUP, kind) if olm::OBJECT_SET_KINDS.contains(&kind) => {
                written(request).map(Box::new).map(Self::ClusterObjectSet)
            }
            (argo::GROUP, argo::APPLICATION) => written(request).map(Box::new).map(Self::Application),
            (kustomize::GROUP, kustomize::NAME) => written(request).map(Box::new).map(Self::Kustomization),
            (flux::GROUP, flux::HELM_RELEASE) => written(request).map(Self::helm_release),
            (sveltos::LIB_GROUP, sveltos::CONFIGURATION_GROUP) if request.operation == Operation::Delete => {
                return None;
            }
            (sveltos::LIB_GROUP, sveltos::CONFIGURATION_GROUP) => written(request).map(Self::configuration_group),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => return Self::definition(request),
            ("", "Namespace") if request.operation != Operation::Create => {
                written(request).map(Box::new).map(Self::Namespace)
            }
            (group, kind) => {
                let known = upstream_kind(group, kind).filter(|_| request.operation != Operation::Create)?;
                written(request).map(|written| Self::Upstream(Box::new(written), known))
            }
        };
        let unread = |error: serde_json::Error| Self::Unparsed {
            kind: &request.kind.kind,
            namespace: request.namespace_of_object(),
            name: request.name().unwrap_or_default(),
            why: redacted(&error),
        };
        Some(read.unwrap_or_else(unread))
    }

    fn definition(request: &'r Request<'r>) -> Option<Self> {
        let deleted = request.old_object.filter(|_| request.operation == Operation::Delete)?;
        let metadata = Metadata::of(deleted).ok()?;
        if may_be_marked(deleted.get()) || metadata.deletion_timestamp.is_some() {
            return None;
        }
        let name = request.name().unwrap_or_default();
        Some(Self::Definition(DefinitionDeletion { name, managed_fields: metadata.managed_fields }))
    }

    fn helm_release(written: DeclarationWrite<'r, HelmRelease>) -> Self {
        let release = written.latest().map(|side| side.release().name);
        Self::HelmRelease(Box::new(written), release.unwrap_or_default())
    }

    fn configuration_group(written: DeclarationWrite<'r, ConfigurationGroup<'r>>) -> Self {
        let nothing = ConfigurationGroup::default();
        let group = written.latest().unwrap_or(&nothing);
        let commit = Requestor::of(group, written.before.as_ref()).commit(written.namespace, &written.name);
        Self::ConfigurationGroup(Box::new(written), commit)
    }
}

impl Declaration<'_> {
    /// The kind of the object.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Application(written) => written.kind,
            Self::Kustomization(written) => written.kind,
            Self::ClusterExtension(written) => written.kind,
            Self::ClusterObjectSet(written) => written.kind,
            Self::HelmRelease(written, _) => written.kind,
            Self::ConfigurationGroup(written, _) => written.kind,
            Self::Namespace(written) => written.kind,
            Self::Upstream(written, _) => written.kind,
            Self::Status(written) => written.kind,
            Self::Definition(_) => "CustomResourceDefinition",
            Self::Unparsed { kind, .. } => kind,
        }
    }

    /// The namespace of the object; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        match self {
            Self::Application(written) => written.namespace,
            Self::Kustomization(written) => written.namespace,
            Self::ClusterExtension(written) => written.namespace,
            Self::ClusterObjectSet(written) => written.namespace,
            Self::HelmRelease(written, _) => written.namespace,
            Self::ConfigurationGroup(written, _) => written.namespace,
            Self::Namespace(written) => written.namespace,
            Self::Upstream(written, _) => written.namespace,
            Self::Status(written) => written.namespace,
            Self::Definition(_) => "",
            Self::Unparsed { namespace, .. } => namespace,
        }
    }

    /// The name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Application(written) => &written.name,
            Self::Kustomization(written) => &written.name,
            Self::ClusterExtension(written) => &written.name,
            Self::ClusterObjectSet(written) => &written.name,
            Self::HelmRelease(written, _) => &written.name,
            Self::ConfigurationGroup(written, _) => &written.name,
            Self::Namespace(written) => &written.name,
            Self::Upstream(written, _) => &written.name,
            Self::Status(written) => written.name,
            Self::Definition(deleted) => deleted.name,
            Self::Unparsed { name, .. } => name,
        }
    }

    /// Whether the object was annotated as protected, and is now deleted or no longer annotated.
    #[must_use]
    pub fn loses_protection(&self) -> bool {
        fn loses<T>(written: &DeclarationWrite<'_, T>, is_protected: impl Fn(&T) -> bool) -> bool {
            written.before.as_ref().is_some_and(&is_protected) && !written.after.as_ref().is_some_and(&is_protected)
        }
        match self {
            Self::ClusterExtension(written) => loses(written, |side| side.metadata.is_protected()),
            Self::HelmRelease(written, _) => loses(written, |side| side.metadata.is_protected()),
            Self::Namespace(written) => loses(written, |side| side.metadata.is_protected()),
            Self::Application(written) => loses(written, |side| side.metadata.is_protected()),
            Self::Kustomization(written) => loses(written, |side| side.metadata.is_protected()),
            Self::Upstream(written, _) => loses(written, Upstream::is_protected),
            Self::ClusterObjectSet(_)
            | Self::ConfigurationGroup(..)
            | Self::Status(_)
            | Self::Definition(_)
            | Self::Unparsed { .. } => false,
        }
    }

    /// The name of the write in refusals, if not kind and name: `the Helm commit of ClusterSummary civ/shop-sveltos-prod`.
    #[must_use]
    pub fn subject(&self) -> Option<String> {
        match self {
            Self::ConfigurationGroup(_, commit) => Some(commit.to_string()),
            _ => None,
        }
    }

    /// The apiVersion and the key of an object that identifies this one, because its own name differs with each attempt, and a
    /// refused object never exists. If a rule found a disturbed release, that release determines the object.
    pub(crate) fn lasting_object(&self, disturbed: Option<&ReleaseRef>) -> Option<(String, ObjectKey)> {
        let Self::ConfigurationGroup(_, commit) = self else { return None };
        let known = disturbed.and_then(Commit::object_of).unwrap_or_else(|| commit.object.clone());
        let is_of_profile = known.group == sveltos::CONFIG_GROUP;
        is_of_profile.then(|| (format!("{}/{}", known.group, sveltos::VERSION), known))
    }

    /// The name of the release that the object stands for, if the rules know it.
    #[must_use]
    pub fn release(&self) -> Option<&str> {
        match self {
            Self::Application(written) => Some(&written.name),
            Self::Kustomization(written) => Some(&written.name),
            Self::Upstream(written, _) => Some(&written.name),
            Self::ClusterExtension(written) => Some(&written.name),
            Self::ClusterObjectSet(written) => written.latest()?.metadata.label(OWNER_NAME_LABEL),
            Self::HelmRelease(_, release) => Some(release),
            Self::ConfigurationGroup(_, commit) => Some(&commit.name),
            Self::Namespace(_) | Self::Definition(_) => None,
            Self::Status(written) => Some(written.name),
            Self::Unparsed { name, .. } => Some(name),
        }
    }

    /// The release, with the namespace of its records, or with the namespace of the object if that is unknown.
    #[must_use]
    pub fn release_ref(&self) -> Option<ReleaseRef> {
        match self {
            Self::HelmRelease(written, _) => Some(written.latest()?.release()),
            other => Some(ReleaseRef::new(other.namespace(), other.release()?)),
        }
    }

    /// Another release that the object concerns. For a HelmRelease it is the installed release, for a ClusterObjectSet the
    /// release of the stored object. For a ConfigurationGroup it is the ClusterSummary of the profile and cluster that it names,
    /// even if it names another ClusterSummary.
    #[must_use]
    pub fn former_release(&self) -> Option<ReleaseRef> {
        match self {
            Self::HelmRelease(written, _) => written.before.as_ref()?.installed().map(InstalledRelease::release),
            Self::ClusterObjectSet(written) => {
                Some(ReleaseRef::new(written.namespace, written.before.as_ref()?.metadata.label(OWNER_NAME_LABEL)?))
            }
            Self::ConfigurationGroup(written, _) => {
                let requestor = Requestor::of(written.after.as_ref()?, written.before.as_ref());
                let expected = requestor.expected_summary()?;
                Some(requestor.commit_of_summary(written.namespace, &expected).release(written.namespace))
            }
            _ => None,
        }
    }
}

fn upstream_kind(group: &str, kind: &str) -> Option<&'static UpstreamKind> {
    let kinds = argo::UPSTREAMS.iter().chain(&flux::SOURCES);
    kinds.into_iter().find(|known| known.group == group && known.kind == kind)
}

fn written<'r, T: Deserialize<'r>>(request: &'r Request<'r>) -> Result<DeclarationWrite<'r, T>, serde_json::Error> {
    let (old, new) = (request.old_object, request.object);
    let same_spec = match (old, new) {
        (Some(old), Some(new)) => member(old, "spec")? == member(new, "spec")?,
        _ => false,
    };
    let read = |object: RawObject<'r>| serde_json::from_str::<T>(object.get());
    let name = match (request.name(), new.or(old)) {
        (None, Some(object)) => first_at(object.get(), &["metadata", "name"])?.unwrap_or_default(),
        (name, _) => name.unwrap_or_default().to_owned(),
    };
    Ok(DeclarationWrite {
        kind: &request.kind.kind,
        namespace: request.namespace_of_object(),
        name,
        before: old.map(read).transpose()?,
        after: new.map(read).transpose()?,
        same_spec,
    })
}

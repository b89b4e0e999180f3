//! Argo CD's Application: objects from Git that its controller applies, without records. Its status lists what it applies, and an
//! annotation on each object names it.

mod application_set;
mod holder;
mod ignored;
mod leaving;
pub(crate) mod rules;
mod sync;

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Patch, WithText, null_is_default};
use crate::managed::{MarkKey, Owner, OwnerKind};
use crate::object::{Metadata, ObjectKey};
use crate::owners::homes::homes;
use crate::owners::upstream::UpstreamKind;
use ignored::IgnoredDifference;
use leaving::SyncPolicy;
pub(super) use sync::CARRIER;

/// Its own name.
pub(crate) const NAME: &str = "Argo CD";

/// The API group of Applications.
pub const GROUP: &str = "argoproj.io";

/// The kind of an Application.
pub(super) const APPLICATION: &str = "Application";

/// What Applications are made from.
pub(super) static UPSTREAMS: [UpstreamKind; 2] = [
    UpstreamKind {
        group: GROUP,
        kind: application_set::APPLICATION_SET,
        loss: "its Applications would be deleted with their objects",
    },
    UpstreamKind { group: GROUP, kind: "AppProject", loss: "Argo CD would sync no Application of it any longer" },
];

/// The kinds of Argo CD that rules read.
pub(super) const KINDS: [&str; 2] = [APPLICATION, application_set::APPLICATION_SET];

/// The name of the service account of its controller.
const CONTROLLER: &str = "argocd-application-controller";

/// The annotation that names the Application, and the object that carries it.
pub(super) const TRACKING: &str = "argocd.argoproj.io/tracking-id";

/// The label that names the Application in place of the annotation, if Argo CD tracks objects by labels. Its own default,
/// `app.kubernetes.io/instance`, is a label of most charts, so it says nothing.
const INSTANCE: &str = "argocd.argoproj.io/instance";

/// The annotation on an object with the options of its sync and of its deletion.
const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// The annotations that make an object a hook, of which Argo CD compares and prunes nothing. It reads Helm's as its own.
const HOOKS: [&str; 2] = ["argocd.argoproj.io/hook", "helm.sh/hook"];

/// The marks of the controller. Everybody who may write an object can copy them.
pub(super) const MARKS: OwnerKind = OwnerKind {
    label: None,
    name: MarkKey::annotation(TRACKING),
    scope: MarkKey::annotation(TRACKING),
    // Without a field manager of its own, the name of the program counts.
    managers: &["argocd-controller", CONTROLLER],
    switches: &[SYNC_OPTIONS, "argocd.argoproj.io/compare-options", HOOKS[0], HOOKS[1]],
    keeps: |key, option| key == SYNC_OPTIONS && keeps_objects(option),
    applied: Some("kubectl.kubernetes.io/last-applied-configuration"),
    owner: |tracking, _, _| {
        let Tracking { namespace, application, .. } = Tracking::parse(tracking).unwrap_or_default();
        applied_by(namespace, application)
    },
};

/// The mark of the controller if it tracks objects by labels.
pub(super) const MARKS_BY_LABEL: OwnerKind = OwnerKind {
    label: Some((INSTANCE, None)),
    name: MarkKey::label(INSTANCE),
    scope: MarkKey::label(INSTANCE),
    owner: |instance, _, _| {
        let (namespace, application) = split_instance(instance);
        applied_by(namespace, application)
    },
    ..MARKS
};

/// Whether an option of a sync keeps an object from being deleted, until somebody confirms it or at all.
fn keeps_objects(option: &str) -> bool {
    ["Prune=confirm", "Prune=false", "Delete=confirm", "Delete=false"].contains(&option.trim())
}

fn applied_by(namespace: &str, application: &str) -> Owner {
    Owner::Applied { program: NAME, kind: APPLICATION, namespace: namespace.to_owned(), name: application.to_owned() }
}

/// The namespace and the name of an Application from a mark, with `NAMESPACE_` before one in another namespace than Argo CD's own.
fn split_instance(instance: &str) -> (&str, &str) {
    instance.split_once('_').unwrap_or(("", instance))
}

/// The value of the annotation: `APPLICATION:GROUP/KIND:NAMESPACE/NAME`, with `NAMESPACE_` before an Application in another namespace
/// than Argo CD's own.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tracking<'t> {
    /// Empty for Argo CD's own namespace.
    namespace: &'t str,
    application: &'t str,
    group: &'t str,
    kind: &'t str,
    /// The namespace and the name of the object.
    object: (&'t str, &'t str),
}

impl<'t> Tracking<'t> {
    /// Reads the annotation; `None` if it has another form. The name of an object may have colons.
    fn parse(text: &'t str) -> Option<Self> {
        let (application, rest) = text.split_once(':')?;
        let (kind, object) = rest.split_once(':')?;
        let (group, kind) = kind.split_once('/')?;
        let object = object.split_once('/')?;
        let (namespace, application) = split_instance(application);
        let is_complete = !application.is_empty() && !kind.is_empty() && !object.1.is_empty();
        is_complete.then_some(Self { namespace, application, group, kind, object })
    }

    /// Whether it names this object. A copy on another object is ignored, by Argo CD too. For an object without a namespace, it has the
    /// one that the Application deploys to.
    fn names(&self, ObjectKey { group, kind, namespace, name }: &ObjectKey) -> bool {
        let is_same_place = namespace.is_empty() || self.object.0 == namespace;
        self.group == group && self.kind == kind && self.object.1 == name && is_same_place
    }
}

/// The finalizer with which Argo CD deletes the objects of an Application, perhaps with more behind it.
const CASCADE: &str = "resources-finalizer.argocd.argoproj.io";

/// An Application, with the fields that rules use. It has no status subresource: whoever may write it may write the status.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Application<'a> {
    #[serde(borrow)]
    pub metadata: Metadata<'a>,
    /// The sync that Argo CD shall run now. It is removed at the end.
    #[serde(borrow)]
    operation: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    spec: WithText<'a, ApplicationSpec<'a>>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    status: ApplicationStatus<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ApplicationSpec<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    destination: Destination<'a>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    ignore_differences: Vec<IgnoredDifference<'a>>,
    #[serde(deserialize_with = "null_is_default")]
    sync_policy: SyncPolicy,
}

/// Where the objects are applied.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Destination<'a> {
    /// Empty if every object names its own.
    #[serde(borrow, deserialize_with = "null_is_default")]
    namespace: Cow<'a, str>,
    /// The address of the cluster, or its name.
    #[serde(borrow, deserialize_with = "null_is_default")]
    server: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    name: Cow<'a, str>,
}

impl Destination<'_> {
    /// Whether this is the cluster of the Application itself.
    fn is_here(&self) -> bool {
        let (server, name) = (&*self.server, &*self.name);
        (server.is_empty() || server == "https://kubernetes.default.svc") && (name.is_empty() || name == "in-cluster")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ApplicationStatus<'a> {
    /// The last operation, or the one that runs.
    #[serde(borrow)]
    operation_state: Option<OperationState<'a>>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    resources: Vec<ListedResource<'a>>,
}

/// What has become of an operation.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OperationState<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    phase: Cow<'a, str>,
    /// When it started, by the controller's clock.
    #[serde(deserialize_with = "time_or_none")]
    started_at: Option<Timestamp>,
    /// When it ended. While it waits for another attempt, when the last one ended.
    #[serde(deserialize_with = "time_or_none")]
    finished_at: Option<Timestamp>,
    /// The controller's copy of the operation.
    #[serde(borrow)]
    operation: Option<&'a RawValue>,
}

/// The API server admits times in more forms than one. A time in another form is unknown, and says nothing about the rest.
fn time_or_none<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<Cow<'_, str>>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// Whether an Application would lose objects, or be deleted with them, together with a namespace.
pub(super) fn loses_with_namespace(key: &ObjectKey, text: &str, namespace: &str) -> bool {
    let Ok(read) = serde_json::from_str::<Application<'_>>(text) else { return false };
    let goes_with_it = key.namespace == namespace && read.is_deleted_with_its_objects();
    !read.status.resources.is_empty() && (goes_with_it || read.applied().any(|listed| listed.namespace == namespace))
}

/// The objects that the status of an Application lists and a source declares, if they are in this cluster.
pub(super) fn applied_objects(text: &str) -> Vec<ObjectKey> {
    let read = serde_json::from_str::<Application<'_>>(text).unwrap_or_default();
    read.applied().map(|it| ObjectKey::new(&it.group, &it.kind, &it.namespace, &it.name)).collect()
}

/// An object in the status.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListedResource<'a> {
    #[serde(borrow, deserialize_with = "null_is_default")]
    group: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    kind: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    namespace: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "null_is_default")]
    name: Cow<'a, str>,
    /// Whether it has the mark, and no source declares it.
    #[serde(deserialize_with = "null_is_default")]
    requires_pruning: bool,
}

impl<'a> Application<'a> {
    /// The objects that the status lists and a source declares, if they are in this cluster.
    fn applied(&self) -> impl Iterator<Item = &ListedResource<'a>> {
        let is_here = self.spec.destination.is_here();
        self.status.resources.iter().filter(move |listed| is_here && !listed.requires_pruning)
    }

    /// The holder of the operation that runs, or of the one that the controller has not begun.
    fn holder(&self) -> Option<String> {
        // The webhook stamps the operation. Whoever may write the object may write the copy in its state.
        let copy = || self.running().and_then(|state| state.operation).and_then(holder::holder_of);
        self.operation.and_then(holder::holder_of).or_else(copy)
    }

    /// The holder that its operation must name after a write by a user, and the one that it names, as far as it has one.
    pub(in crate::owners) fn holders_after(&self, before: Option<&Self>, user: Option<&str>) -> [Option<String>; 2] {
        let before = before.and_then(|before| before.operation);
        let expected = self.operation.and_then(|after| holder::expected_holder(before, after, user));
        [expected, self.operation.and_then(holder::holder_of)]
    }

    /// The patch with which its operation names this holder; `None` if it does.
    pub(in crate::owners) fn naming(&self, holder: Option<&str>) -> Option<Patch> {
        holder::patch(self.operation?, holder)
    }

    /// The operation that runs, by the status.
    fn running(&self) -> Option<&OperationState<'a>> {
        let state = self.status.operation_state.as_ref();
        state.filter(|state| ["Running", "Terminating"].contains(&&*state.phase))
    }

    /// The namespaces of its objects.
    pub(in crate::owners) fn homes<'n>(&'n self, own: &'n str) -> impl Iterator<Item = &'n str> {
        homes(&self.spec.destination.namespace, own, self.applied().map(|listed| &*listed.namespace))
    }

    /// Whether its deletion, which has not begun, deletes its objects too.
    fn is_deleted_with_its_objects(&self) -> bool {
        let begun = self.metadata.deletion_timestamp.is_some();
        !begun && self.metadata.finalizers.is_some_and(|finalizers| finalizers.get().contains(CASCADE))
    }

    /// Whether the status lists other objects than that of another version.
    pub(in crate::owners) fn lists_others_than(&self, other: &Self) -> bool {
        self.status.resources != other.status.resources
    }

    /// Whether the status lists an object that a source declares.
    fn lists(&self, key: &ObjectKey) -> bool {
        self.status.resources.iter().any(|listed| {
            let ListedResource { group, kind, namespace, name, .. } = listed;
            let is_same = *group == key.group && *kind == key.kind && *namespace == key.namespace && *name == key.name;
            is_same && !listed.requires_pruning
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotation_names_the_application_and_the_object() {
        let read = |text| Tracking::parse(text).map(|it| (it.namespace, it.application, it.group, it.kind, it.object));
        assert_eq!(read("web:apps/Deployment:shop/web"), Some(("", "web", "apps", "Deployment", ("shop", "web"))));
        assert_eq!(read("team_web:/ConfigMap:shop/a"), Some(("team", "web", "", "ConfigMap", ("shop", "a"))));
        let role = read("web:rbac.authorization.k8s.io/ClusterRole:shop/system:web");
        assert_eq!(role.unwrap().4, ("shop", "system:web"));
        for other in ["", "web", "web:apps/Deployment", ":apps/Deployment:shop/web", "web:apps:shop/web", "web:a/b:c"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}

//! The statuses that prove something about a release, and the accounts that write them.

use serde_json::value::RawValue;

use super::{argo, flux, kustomize, olm, sveltos};
use crate::json::{RawObject, first_at};
use crate::review::{Operation, Request};

/// A kind whose status proves something.
struct Proof {
    group: &'static str,
    kind: &'static str,
    /// The owner's own name.
    owner: &'static str,
    /// The name of the service account of the owner's controller. Its namespace differs between clusters.
    controller: &'static str,
    /// The user name of the owner's program on another cluster that writes this status too: of a stored object, in this namespace
    /// and with this name.
    agent: fn(RawObject<'_>, &str, &str) -> Option<String>,
}

static PROOFS: [Proof; 5] = [
    Proof {
        group: flux::GROUP,
        kind: flux::HELM_RELEASE,
        owner: flux::NAME,
        controller: flux::CONTROLLER,
        agent: |_, _, _| None,
    },
    Proof {
        group: kustomize::GROUP,
        kind: kustomize::NAME,
        owner: flux::NAME,
        controller: kustomize::CONTROLLER,
        agent: |_, _, _| None,
    },
    Proof {
        group: olm::GROUP,
        kind: olm::CLUSTER_EXTENSION,
        owner: olm::NAME,
        controller: olm::CONTROLLER,
        agent: |_, _, _| None,
    },
    Proof {
        group: sveltos::CONFIG_GROUP,
        kind: sveltos::CLUSTER_SUMMARY,
        owner: sveltos::NAME,
        controller: sveltos::CONTROLLER,
        agent: |stored, namespace, _| sveltos::agent_of_summary(stored, namespace),
    },
    Proof {
        group: sveltos::CONFIG_GROUP,
        kind: sveltos::CLUSTER_CONFIGURATION,
        owner: sveltos::NAME,
        controller: sveltos::CONTROLLER,
        agent: |_, namespace, name| sveltos::agent_of_configuration(namespace, name),
    },
];

/// The kinds whose status proves something.
pub(crate) const PROVING_KINDS: &[&str] = &[
    flux::HELM_RELEASE,
    kustomize::NAME,
    olm::CLUSTER_EXTENSION,
    sveltos::CLUSTER_SUMMARY,
    sveltos::CLUSTER_CONFIGURATION,
    argo::APPLICATION,
];

/// The owners whose controllers write these statuses.
pub(crate) const PROVING_OWNERS: &[&str] = &[flux::NAME, olm::NAME, sveltos::NAME, argo::NAME];

/// The service accounts of the controllers that write these statuses: the owner, and the name of the account in any namespace.
pub fn status_controllers() -> Vec<(&'static str, &'static str)> {
    let mut controllers: Vec<_> = PROOFS.iter().map(|proof| (proof.owner, proof.controller)).collect();
    controllers.dedup();
    controllers
}

/// A write of a status that proves something.
#[derive(Debug)]
pub struct StatusWrite<'r> {
    pub kind: &'r str,
    /// Empty for cluster-scoped objects.
    pub namespace: &'r str,
    pub name: &'r str,
    /// The owner's own name.
    pub owner: &'static str,
    /// The name of the service account of the owner's controller, in any namespace.
    pub controller: &'static str,
    /// The user name of the owner's program on another cluster, which writes this status too.
    pub agent: Option<String>,
    /// Whether the status differs from the stored one, byte by byte, or cannot be read. The API server encodes equal values the same
    /// way.
    pub changes: bool,
}

impl<'r> StatusWrite<'r> {
    /// Reads a request; `None` if it does not write such a status.
    pub(super) fn read(request: &'r Request<'r>) -> Option<Self> {
        if request.operation != Operation::Update || request.sub_resource() != Some("status") {
            return None;
        }
        let (group, kind) = (request.kind.group.as_ref(), request.kind.kind.as_ref());
        let proof = PROOFS.iter().find(|proof| proof.group == group && proof.kind == kind)?;
        let (namespace, name) = (request.namespace_of_object(), request.name().unwrap_or_default());
        Some(Self {
            kind: &request.kind.kind,
            namespace,
            name,
            owner: proof.owner,
            controller: proof.controller,
            // The write stores nothing but the status, and its author chooses the rest of the new object.
            agent: request.old_object.and_then(|stored| (proof.agent)(stored, namespace, name)),
            changes: match (status(request.old_object), status(request.object)) {
                (Ok(old), Ok(new)) => old != new,
                _ => true,
            },
        })
    }
}

fn status(object: Option<RawObject<'_>>) -> Result<Option<&str>, serde_json::Error> {
    object.map_or(Ok(None), |object| member(object, "status"))
}

/// The text of a member of an object; `None` if the member is missing or null.
pub(super) fn member<'r>(object: RawObject<'r>, name: &str) -> Result<Option<&'r str>, serde_json::Error> {
    let found: Option<Option<&RawValue>> = first_at(object.get(), &[name])?;
    Ok(found.flatten().map(RawValue::get))
}

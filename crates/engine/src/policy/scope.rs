//! The requests that a mode applies to.

use super::Globs;
use super::globs::matches;
use super::namespaces::NamespaceCondition;
use super::scalable_resource::ScalableResource;
use crate::facts::{Actor, Facts, ObjectChange, Subject};
use crate::release::Storage;
use crate::review::Operation;

/// The properties of a request that policies can distinguish.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'s> {
    pub actor: Actor<'s>,
    /// The namespace of the object; empty for cluster-scoped objects.
    pub namespace: &'s str,
    /// The release concerned, if the request names it.
    pub release: Option<&'s str>,
    pub kind: &'s str,
    /// The label `owner` of the record concerned: `helm` or `operator-controller`.
    pub owner: Option<&'s str>,
    pub operation: Operation,
    /// Whether the request creates a record.
    pub creates_record: bool,
    pub removal: Removal,
}

/// What a request removes, as far as the request itself shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Nothing,
    /// An object that may belong to a release, a declaration of a release, or a release by its record.
    Possible,
    /// An object that is annotated as protected, or this annotation.
    Protected,
}

impl Removal {
    fn of(facts: &Facts<'_>) -> Self {
        let is_removal = match &facts.subject {
            Subject::Record(..) => facts.record_write().is_some_and(|write| write.uninstalls()),
            Subject::RecordChunk(_) => false,
            Subject::Declaration(declaration) if declaration.loses_protection() => return Self::Protected,
            Subject::Declaration(_) | Subject::Own(_) | Subject::Other => facts.operation == Operation::Delete,
        };
        if is_removal { Self::Possible } else { Self::Nothing }
    }
}

impl<'s> Scope<'s> {
    /// The scope of a request.
    #[must_use]
    pub fn of(facts: &'s Facts<'s>, scalable: &'s [ScalableResource]) -> Self {
        let other = Self {
            actor: facts.actor,
            namespace: "",
            release: None,
            kind: "",
            owner: None,
            operation: facts.operation,
            creates_record: false,
            removal: Removal::of(facts),
        };
        match (&facts.subject, facts.managed) {
            (Subject::Record(target, change), _) => Self {
                namespace: &target.namespace,
                release: Some(&target.release),
                kind: target.storage.kind(),
                owner: Some(target.storage.owner()),
                creates_record: change.is_creation(),
                ..other
            },
            (Subject::RecordChunk(part), _) => Self {
                namespace: part.namespace,
                release: Some(&part.release),
                kind: Storage::Index.kind(),
                owner: Some(Storage::Index.owner()),
                ..other
            },
            (Subject::Declaration(declaration), _) => Self {
                namespace: declaration.namespace(),
                release: declaration.release(),
                kind: declaration.kind(),
                ..other
            },
            (Subject::Other, Some(write)) => {
                let (kind, marks) = match &write.change {
                    ObjectChange::Edited { marks, .. } | ObjectChange::Deleted { marks, .. } => {
                        (write.kind, Some(marks))
                    }
                    ObjectChange::Scaled { resource, .. } => {
                        let scaled = scalable.iter().find(|known| known.is(write.group(), resource));
                        (scaled.map_or(write.kind, |known| known.kind.as_str()), None)
                    }
                };
                let release = marks.map(|marks| marks.owner.name());
                Self { namespace: &write.namespace, release, kind, ..other }
            }
            // The policy of the namespace decides, not the mode of a rule.
            (Subject::Own(write), _) => Self { namespace: write.namespace, kind: write.kind(), ..other },
            (Subject::Other, None) => other,
        }
    }
}

/// A condition on requests. Every list must match the request. A list matches if one of its entries does.
#[derive(Debug, Clone, Default)]
pub struct When {
    pub users: Option<Globs>,
    /// Groups of the user.
    pub groups: Option<Globs>,
    /// Service accounts as `NAMESPACE:NAME`.
    pub service_accounts: Option<Globs>,
    /// Names of pipelines.
    pub pipelines: Option<Globs>,
    pub namespaces: NamespaceCondition,
    pub releases: Option<Globs>,
    pub kinds: Option<Globs>,
    /// The label `owner` of records.
    pub owners: Option<Globs>,
    pub operations: Option<Globs>,
}

impl When {
    /// Whether the condition holds.
    #[must_use]
    pub fn holds(&self, scope: &Scope<'_>) -> bool {
        let actor = scope.actor;
        matches(self.users.as_ref(), Some(actor.name))
            && matches(self.service_accounts.as_ref(), actor.service_account())
            && matches(self.pipelines.as_ref(), actor.session.map(|session| session.pipeline))
            && self.namespaces.holds(scope.namespace)
            && matches(self.releases.as_ref(), scope.release)
            && matches(self.kinds.as_ref(), Some(scope.kind))
            && matches(self.owners.as_ref(), scope.owner)
            && matches(self.operations.as_ref(), Some(scope.operation.as_str()))
            && self.groups.as_ref().is_none_or(|globs| actor.groups.iter().any(|group| globs.contains(group)))
    }
}

//! The conflict of a request with the owner of an object, and the right place for the change.

use crate::evidence::RecordRef;
use crate::json::FieldPath;
use crate::managed::{Origin, Owner};
use crate::owners::{Marks, OwnerWords};
use crate::release::{ReleaseRef, Stamps, Storage};
use crate::ways_out::{Step, StepKind};

/// The conflict of a request with the owner of an object.
#[derive(Debug, Clone)]
pub(crate) struct OwnershipConflict {
    /// `release shop/web (revision 7, deployed)`.
    pub(crate) owner: String,
    /// Who declares the fields: the chart or the profile.
    pub(crate) declarer: &'static str,
    /// Where to make the change, without a verb: a helm command, or the object that declares the release.
    pub(crate) through: Step,
    /// How to finish the uninstall that has begun. Then no change through the owner makes sense.
    pub(crate) uninstall: Option<Step>,
    /// The release. A profile is represented by its name and the namespace of the object.
    pub(crate) release: ReleaseRef,
    /// The declared fields that would change; empty if the object is deleted.
    pub(crate) fields: Vec<FieldPath>,
    /// Whether another user's operation is in flight.
    pub(crate) in_flight: bool,
    /// The record that declares the fields; `None` for a profile.
    pub(crate) declaring: Option<DeclaringRelease>,
    /// Whether what applies the object without a release is suspended, so that an edit lasts only until it goes on.
    pub(crate) is_suspended: bool,
    /// An exception of the HelmRelease that has no effect, because it cannot be used.
    pub(crate) unusable_exception: Option<String>,
    /// Why the chart's document of the object cannot be read. All of the object then counts as declared.
    pub(crate) unreadable: Option<String>,
}

impl OwnershipConflict {
    /// `change it through HelmRelease apps/web`, or how to finish the uninstall.
    pub(crate) fn through(&self, verb: &str) -> Step {
        if let Some(finish) = &self.uninstall {
            return finish.clone();
        }
        Step { text: format!("{verb} {}", self.through.text), ..self.through.clone() }
    }
}

/// The record that says what a release declares, and the namespace of its objects.
#[derive(Debug, Clone)]
pub(crate) struct DeclaringRelease {
    pub(crate) record: RecordRef,
    /// The namespace of the objects.
    pub(crate) target_namespace: String,
    /// The stamps of the newest record.
    pub(crate) stamps: Stamps,
    pub(crate) marks: Marks,
}

/// A change through the object that declares the release or the profile.
pub(super) fn declaration(object: &str) -> Step {
    Step::of(StepKind::Act, format!("it through {object}"))
}

/// Where to change a release, in its owner's terms.
pub(super) fn declared_by(owner: &Owner, storage: Storage, release: &ReleaseRef) -> Step {
    match owner {
        _ if storage == Storage::Index => declaration(&format!("ClusterExtension {}", release.name)),
        Owner::Release { origin: Some(Origin { namespace, name }), .. } => {
            declaration(&format!("HelmRelease {namespace}/{name}"))
        }
        _ => {
            let words = OwnerWords { storage, namespace: &release.namespace, release: &release.name };
            Step::run("it through {}", words.upgrade_command(None))
        }
    }
}

/// How to finish an uninstall, in its owner's terms.
pub(super) fn finish_uninstall(owner: &Owner, storage: Storage, release: &ReleaseRef) -> Step {
    let words = OwnerWords { storage, namespace: &release.namespace, release: &release.name };
    match owner {
        Owner::Release { origin: Some(Origin { namespace, name }), .. } if storage == Storage::Secret => {
            Step::of(StepKind::NextOperation, format!("let HelmRelease {namespace}/{name} finish the uninstall"))
        }
        _ => Step::run("finish the uninstall with {}", words.remove_command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_names_what_declares_the_release() {
        let owner = |origin: Option<Origin>| Owner::Release {
            name: "web".to_owned(),
            target_namespace: "shop".to_owned(),
            origin,
            of_extension: false,
        };
        let flux = || owner(Some(Origin { namespace: "apps".to_owned(), name: "web".to_owned() }));
        let release = ReleaseRef::new("shop", "web");
        let named = |owner: &Owner, storage| declared_by(owner, storage, &release);
        let upgrade = Step::run("it through {}", "helm upgrade web CHART -n shop".to_owned());
        assert_eq!(named(&owner(None), Storage::Secret), upgrade);
        assert_eq!(named(&flux(), Storage::Secret), declaration("HelmRelease apps/web"));
        assert_eq!(named(&flux(), Storage::Index), declaration("ClusterExtension web"));
        assert_eq!(named(&owner(None), Storage::Index), declaration("ClusterExtension web"));
    }
}

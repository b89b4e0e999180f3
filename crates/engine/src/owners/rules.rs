//! Questions of the general rules to all owners. Each arm only forwards to one owner's folder.

pub(crate) use super::flux::rules::release::helm_releases;
pub(crate) use super::olm::rules::record_part;

use super::marks::Marks;
use super::{argo, flux, kustomize, olm, sveltos};
use crate::effort::Effort;
use crate::evidence::{Evidence, question};
use crate::facts::{ActorKind, Declaration};
use crate::managed::{LeftToOthers, Owner};
use crate::object::ObjectKey;
use crate::policy::Policy;
use crate::release::{ReleaseRef, Storage};
use crate::rules::check::CheckedAll;
use crate::rules::declarations::case::DeclarationCase;
use crate::rules::freeze::started::StartedOperation;
use crate::rules::protected_release::protection::{Protection, ReleaseAtHome};
use crate::rules::proven_status::proves;
use crate::rules::undecided::{Undecided, ask};

/// The protected releases that a write of a declaration would remove.
pub(crate) fn removals_of_protected(case: &DeclarationCase<'_>) -> CheckedAll {
    match case.declaration {
        Declaration::HelmRelease(written, _) => flux::rules::protected_release::check(case, written),
        Declaration::ClusterExtension(written) => olm::rules::protected_release::check(case, written),
        Declaration::ConfigurationGroup(..) => sveltos::rules::protected_release::check(case),
        Declaration::ClusterObjectSet(written) => olm::rules::protected_release::check_revision(case, written),
        Declaration::Application(written) => argo::rules::protected_release::check(case, written),
        Declaration::Kustomization(written) => kustomize::rules::protected_release::check(case, written),
        Declaration::Namespace(_)
        | Declaration::Upstream(..)
        | Declaration::Status(_)
        | Declaration::Definition(_)
        | Declaration::Unparsed { .. } => Ok(Vec::new()),
    }
}

/// Whether a write may start an operation, without a question. Controllers write declarations in stages, and a refusal would stop a
/// whole stage. What they start is refused where it becomes a record, a revision or a commit.
pub(crate) fn may_start_operation(case: &DeclarationCase<'_>) -> bool {
    let by_people = matches!(case.facts.actor.kind, ActorKind::Person | ActorKind::Pipeline);
    match case.declaration {
        Declaration::Application(written) => argo::rules::operation::started(case, written).is_some(),
        Declaration::Upstream(written, kind) => argo::rules::operation::started_with(case, written, kind).is_some(),
        Declaration::HelmRelease(written, _) => by_people && flux::rules::retarget::leaves(written).is_some(),
        Declaration::ClusterExtension(written) => by_people && written.after.is_none(),
        Declaration::ClusterObjectSet(written) => {
            written.before.is_none() || (by_people && olm::rules::revision::retired(written).is_some())
        }
        Declaration::ConfigurationGroup(..) => sveltos::rules::start::may_start(case),
        Declaration::Kustomization(_)
        | Declaration::Namespace(_)
        | Declaration::Status(_)
        | Declaration::Definition(_)
        | Declaration::Unparsed { .. } => false,
    }
}

/// The operation that a write starts; `None` if it starts none.
pub(crate) fn started_operation(case: &DeclarationCase<'_>) -> Result<Option<StartedOperation>, Undecided> {
    match case.declaration {
        Declaration::Application(written) => Ok(argo::rules::operation::started(case, written)),
        Declaration::Upstream(written, kind) => Ok(argo::rules::operation::started_with(case, written, kind)),
        Declaration::HelmRelease(written, _) => flux::rules::start::started(case, written),
        Declaration::ClusterExtension(written) => olm::rules::start::by_extension(case, written),
        Declaration::ClusterObjectSet(written) => olm::rules::start::by_revision(case, written),
        Declaration::ConfigurationGroup(..) => sveltos::rules::start::started(case),
        Declaration::Kustomization(_)
        | Declaration::Namespace(_)
        | Declaration::Status(_)
        | Declaration::Definition(_)
        | Declaration::Unparsed { .. } => Ok(None),
    }
}

/// The refusals of writes to the operation that a declaration carries itself, without a record.
pub(crate) fn conflicts_with_operation(case: &DeclarationCase<'_>) -> CheckedAll {
    match case.declaration {
        Declaration::Application(written) => argo::rules::operation::check(case, written),
        _ => Ok(Vec::new()),
    }
}

/// The owner whose status a write changes or brings together with the object, because the kind has no status of its own; `None` if that
/// proves nothing.
pub(crate) fn changed_status(declaration: &Declaration<'_>) -> Option<&'static str> {
    let Declaration::Application(written) = declaration else { return None };
    let (absent, after) = (argo::Application::default(), written.after.as_ref()?);
    after.lists_others_than(written.before.as_ref().unwrap_or(&absent)).then_some(argo::NAME)
}

/// What applies an object without a release, as it says of itself.
#[derive(Debug, Default)]
pub(crate) struct Applier {
    /// Its kind, namespace and name.
    pub(crate) title: String,
    /// The account that works for it, in place of the owner's own.
    pub(crate) user: Option<String>,
    pub(crate) is_suspended: bool,
    /// The namespace of its objects, or of this one if it deploys to several.
    pub(crate) home: String,
    /// Whether it is annotated as protected.
    pub(crate) is_protected: bool,
    /// Whether users outside of the owner's own namespaces may have written what proves it. It does not outrank another proven owner.
    pub(crate) may_be_forged: bool,
    pub(crate) left: LeftToOthers,
}

/// An object of a request, for the question what applies it.
pub(crate) struct AppliedObject<'o> {
    pub(crate) marks: &'o Marks,
    /// For a Scale, that of the scaled object.
    pub(crate) key: ObjectKey,
    pub(crate) version: &'o str,
    /// Whether the owner wrote a field; `None` if that is unknown.
    pub(crate) wrote: &'o dyn Fn(&[&str]) -> Option<bool>,
    pub(crate) policy: &'o Policy,
    pub(crate) effort: &'o Effort,
}

/// What applies an object; `None` if its marks name nothing that does.
pub(crate) fn applier(evidence: &Evidence, object: &AppliedObject<'_>) -> Result<Option<Applier>, Undecided> {
    match &object.marks.owner {
        Owner::Applied { kind: kustomize::NAME, namespace, name, .. } => {
            kustomize::rules::applier(evidence, object, (namespace, name))
        }
        Owner::Applied { namespace, name, .. } => argo::rules::applier(evidence, object, (namespace, name)),
        Owner::Release { .. } | Owner::Profile { .. } => Ok(None),
    }
}

/// Whether the annotation on an object of this kind protects a release.
pub(crate) fn can_be_protected(kind: &str) -> bool {
    [flux::HELM_RELEASE, olm::CLUSTER_EXTENSION, argo::APPLICATION, kustomize::NAME].contains(&kind)
}

/// The name of the annotated object that declares a release.
pub(crate) fn annotated_declaration(
    evidence: &Evidence,
    storage: Storage,
    release: &ReleaseRef,
) -> Result<Option<String>, Undecided> {
    match storage {
        Storage::Secret => flux::rules::protected_release::annotated(evidence, release),
        Storage::Index => olm::rules::protected_release::annotated(evidence, &release.name),
        Storage::ConfigMap => Ok(None),
    }
}

/// Whether the status of a HelmRelease proves that Flux has installed a release for it.
pub(crate) fn installed_statuses_prove(evidence: &Evidence, policy: &Policy) -> Result<bool, Undecided> {
    proves(evidence, policy, flux::CONTROLLER)
}

/// Whether the records of a release are obsolete, because its owner now stores the state of the release elsewhere.
pub(crate) fn are_outdated(
    evidence: &Evidence,
    policy: &Policy,
    storage: Storage,
    release: &str,
) -> Result<bool, Undecided> {
    match storage {
        Storage::Index => olm::rules::extension::is_migrated(evidence, policy, release),
        Storage::Secret | Storage::ConfigMap => Ok(false),
    }
}

/// The namespace of the objects of a release, if its declaration contains it.
pub(crate) fn declared_namespace(
    evidence: &Evidence,
    storage: Storage,
    release: &str,
) -> Result<Option<String>, Undecided> {
    match storage {
        Storage::Index => olm::rules::extension::namespace_of_extension(evidence, release),
        Storage::Secret | Storage::ConfigMap => Ok(None),
    }
}

/// The protected releases that objects in a namespace declare, or whose objects are there, where no records say so.
pub(crate) fn protected_in(
    case: &DeclarationCase<'_>,
    namespace: &str,
) -> Result<Vec<(ReleaseRef, Protection)>, Undecided> {
    let annotated = flux::rules::protected_release::annotated_in(case, namespace)?.into_iter();
    let mut protected: Vec<_> =
        annotated.map(|(release, declaration)| (release, Protection::Annotation(declaration))).collect();
    protected.extend(olm::rules::protected_release::protected_in(case, namespace)?);
    protected.extend(protected_appliers_in(case, namespace)?);
    Ok(protected)
}

/// The protected objects that apply others, if these or they themselves are in the namespace.
fn protected_appliers_in(
    case: &DeclarationCase<'_>,
    in_namespace: &str,
) -> Result<Vec<(ReleaseRef, Protection)>, Undecided> {
    let only_annotated = case.policy.protected.names_nothing();
    let found = ask(case.evidence, question::AppliersIn { namespace: in_namespace.to_owned(), only_annotated })?;
    let mut protected = Vec::new();
    for (key, text) in found.into_iter().flatten() {
        let declared = match key.kind.as_str() {
            kustomize::NAME => kustomize::rules::protected_release::declared(text),
            _ => argo::rules::protected_release::declared(text),
        };
        let Some((target, is_annotated)) = declared else { continue };
        let home = if target.is_empty() { in_namespace.to_owned() } else { target };
        let ObjectKey { kind, namespace, name, .. } = key;
        let at_home = ReleaseAtHome::new(Storage::Index, ReleaseRef::new(namespace, name), Some(&home));
        let declaration = (format!("{kind} {namespace}/{name}"), is_annotated);
        let protection = at_home.protection_declared_by(declaration, case.policy, case.evidence)?;
        protected.extend(protection.map(|protection| (at_home.release, protection)));
    }
    Ok(protected)
}

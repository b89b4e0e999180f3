//! Exceptions that people declare in the HelmRelease of a release: fields that Flux ignores when it corrects drift, and objects
//! whose HelmRelease is suspended.
//!
//! Tenants write the spec of a HelmRelease, and could name the release of somebody else. So a HelmRelease counts only if it is in
//! the namespace of the records, or if its account holds them, and if its status says that Flux has installed the release for it.
//! Statuses count only where they prove something.
//! If there are several, all that Flux acts on count. If the HelmReleases are unknown, there are no exceptions.
//!
//! Exceptions cover only the content of an object. Its marks, finalizers, owners and `immutable` are always protected: without
//! them, no later write could be refused.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::case::ObjectCase;
use super::conflict::{DeclaringRelease, OwnershipConflict};
use super::content::is_content;
use super::declared_fields::Declaration;
use crate::effort::{Effort, OverBudget};
use crate::json::FieldPath;
use crate::managed::Mark;
use crate::object::group_of;
use crate::owners::Marks;
use crate::owners::rules::{helm_releases, installed_statuses_prove};
use crate::owners::{DeclaredObject, Driver, IgnoredFields};
use crate::policy::WhenSuspended;
use crate::release::{ReleaseRef, Storage};
use crate::rules::check::Refusal;
use crate::rules::undecided::Undecided;

impl ObjectCase<'_> {
    /// The conflict without the excepted fields; `None` if no field remains.
    pub(crate) fn outside_exceptions<'c>(
        &self,
        conflict: &'c OwnershipConflict,
    ) -> Result<Option<Cow<'c, OwnershipConflict>>, Undecided> {
        let unchanged = Ok(Some(Cow::Borrowed(conflict)));
        let Some(declaring) = conflict.declaring.as_ref().filter(|_| self.policy.drift_exceptions.honour_drift_ignore)
        else {
            return unchanged;
        };
        let drivers = self.installing(declaring, conflict)?;
        if drivers.is_empty() {
            return unchanged;
        }
        let declaration = self.declaration(declaring.record.clone(), declaring.target_namespace.clone());
        let Ok(Declaration::Document(document)) = declaration else {
            return unchanged;
        };
        let object = (self.kind(), self.write.namespace.as_str(), self.write.name.as_str());
        // A client's rules must not make its own edits undecided: undecided edits are admitted.
        let Ok(excepted) = ExceptedFields::of(&drivers, document, object, &declaring.marks, self.facts.effort) else {
            return unchanged;
        };
        let fields = self.changed_in_manifest(&declaring.marks, document, &|field| excepted.contains(field));
        let unusable_exception = unusable_exception(&drivers, &excepted.ignored);
        Ok(fields.map(|fields| Cow::Owned(OwnershipConflict { fields, unusable_exception, ..conflict.clone() })))
    }

    /// The refusal. It becomes a warning if the HelmRelease, or what applies the object, is suspended and the policy then lets people
    /// edit its objects.
    pub(crate) fn unless_suspended(
        &self,
        conflict: &OwnershipConflict,
        refusal: Refusal,
    ) -> Result<Refusal, Undecided> {
        let may_warn = self.policy.drift_exceptions.when_suspended == WhenSuspended::Warn;
        if !may_warn {
            return Ok(refusal);
        }
        let is_suspended = match &conflict.declaring {
            None => conflict.is_suspended,
            Some(declaring) => {
                let drivers = self.installing(declaring, conflict)?;
                let is_suspended = !drivers.is_empty() && drivers.iter().all(|driver| driver.suspended);
                is_suspended && conflict.fields.iter().all(|field| is_content(field, &declaring.marks))
            }
        };
        Ok(if is_suspended { refusal.into_advice() } else { refusal })
    }

    /// The HelmReleases for which Flux has installed the object's release and that are not suspended. If all are suspended, all
    /// of them.
    fn installing(
        &self,
        declaring: &DeclaringRelease,
        conflict: &OwnershipConflict,
    ) -> Result<Vec<&Driver>, Undecided> {
        let DeclaringRelease { record, target_namespace, stamps, .. } = declaring;
        let name = &conflict.release.name;
        if record.storage != Storage::Secret {
            return Ok(Vec::new());
        }
        let drivers = match helm_releases(self.evidence, &record.namespace, name, stamps) {
            Err(need @ Undecided::Ask(_)) => return Err(need),
            drivers => drivers.unwrap_or_default(),
        };
        let installing = installing(drivers, &ReleaseRef::new(&record.namespace, name), target_namespace);
        let counts = installing.is_empty() || installed_statuses_prove(self.evidence, self.policy)?;
        Ok(if counts { installing } else { Vec::new() })
    }
}

/// Those of the HelmReleases for which Flux has installed a release with objects in this namespace and that are not suspended. If
/// all are suspended, all of them.
pub fn installing<'d>(drivers: &'d [Driver], release: &ReleaseRef, target_namespace: &str) -> Vec<&'d Driver> {
    let installing = |driver: &&Driver| driver.records_of(&release.name, target_namespace) == Some(&release.namespace);
    let (suspended, acting): (Vec<_>, Vec<_>) = drivers.iter().filter(installing).partition(|driver| driver.suspended);
    if acting.is_empty() { suspended } else { acting }
}

/// The fields of an object that Flux ignores when it corrects drift.
pub struct ExceptedFields<'e> {
    ignored: Vec<IgnoredFields>,
    marks: &'e Marks,
}

impl<'e> ExceptedFields<'e> {
    /// `object` is its kind, namespace and name; `document` is from the manifest.
    pub fn of(
        drivers: &[&Driver],
        document: &Value,
        object: (&str, &str, &str),
        marks: &'e Marks,
        effort: &Effort,
    ) -> Result<Self, OverBudget> {
        let object = declared_object(document, object, marks);
        let ignored = drivers.iter().map(|driver| driver.drift_detection.ignored(&object, effort));
        Ok(Self { ignored: ignored.collect::<Result<_, _>>()?, marks })
    }

    /// Whether people may edit a field: it is content, and every HelmRelease ignores it. False without a HelmRelease.
    pub fn contains(&self, field: &FieldPath) -> bool {
        !self.ignored.is_empty() && is_content(field, self.marks) && are_all_over(&self.ignored, field)
    }
}

/// The object as Flux sees it: from the manifest, with the marks that Helm adds.
fn declared_object<'d>(
    document: &'d Value,
    (kind, namespace, name): (&'d str, &'d str, &'d str),
    marks: &'d Marks,
) -> DeclaredObject<'d> {
    let api_version = document.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let text = |map: &'static str| {
        let members = document.pointer(&format!("/metadata/{map}")).and_then(Value::as_object);
        let declared = members.into_iter().flat_map(Map::iter);
        let declared = declared.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
        let marks = marks.each().filter(move |mark| mark.map == map);
        declared.chain(marks.filter_map(|Mark { key, value, .. }| Some((key, value?)))).collect::<BTreeMap<_, _>>()
    };
    DeclaredObject {
        group: group_of(api_version),
        version: api_version.rsplit('/').next().unwrap_or_default(),
        kind,
        namespace,
        name,
        labels: text("labels"),
        annotations: text("annotations"),
    }
}

/// Whether each HelmRelease ignores the field, or a field above it.
fn are_all_over(ignored: &[IgnoredFields], field: &FieldPath) -> bool {
    let field = field.pointer();
    ignored.iter().all(|ignored| ignored.pointers.iter().any(|pointer| field.starts_with(pointer)))
}

/// `spec.driftDetection.ignore[0].target.name of HelmRelease shop/web`: the first unusable exception.
fn unusable_exception(drivers: &[&Driver], ignored: &[IgnoredFields]) -> Option<String> {
    drivers.iter().zip(ignored).find_map(|(driver, ignored)| {
        let field = ignored.unusable.as_ref()?;
        Some(format!("{field} of HelmRelease {}/{}", driver.namespace, driver.name))
    })
}
